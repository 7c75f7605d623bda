"""Run by a candidate's Python: says what it has, in a line of JSON each for the packages and for the GPU.

It must run on any Python 3 there is, so that an old one can be named instead of failing on syntax.
"""

import importlib.util
import json
import os
import re
import sys

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

MARK = "tripy-module-probe:"
NEEDED = ("numpy", "pytest", "colored", "ml_dtypes")


def say(**facts):  # noqa: D103
    # Whatever the packages print stands on lines of its own.
    sys.stdout.write("\n" + MARK + json.dumps(facts) + "\n")
    sys.stdout.flush()


def origin(name):  # noqa: D103
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, AttributeError, ValueError):
        return None
    return spec.origin if spec is not None else None


def version_of(path):  # noqa: D103
    # The source says which version it is, also in a checkout that nobody has installed.
    with open(path, encoding="utf-8", errors="replace") as source:  # noqa: PTH123
        found = re.search(r"^__version__\s*=\s*[\"']([^\"']+)", source.read(), re.MULTILINE)
    return found.group(1) if found else ""


def ask_for_gpu():  # noqa: D103
    try:
        import tensorrt  # noqa: F401
        from mlir_tensorrt.runtime import api

        # What nvtripy itself needs before it can put a tensor anywhere.
        count = len(api.RuntimeClient().get_devices())
    except BaseException as error:
        lines = str(error).strip().splitlines()
        return False, lines[0] if lines else type(error).__name__
    return count > 0, "" if count else "there is no device"


def main():  # noqa: D103
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != here]  # noqa: PTH100
    nvtripy = origin("nvtripy")
    if nvtripy is not None and not nvtripy.endswith("__init__.py"):
        nvtripy = None
    backend = [name for name in ("tensorrt", "mlir_tensorrt") if origin(name) is None]
    say(
        python=list(sys.version_info[:3]),
        nvtripy=nvtripy,
        version=version_of(nvtripy) if nvtripy else "",
        missing=[name for name in NEEDED if origin(name) is None],
        without=backend,
    )
    if not backend and "--gpu" in sys.argv:
        answers, reason = ask_for_gpu()
        say(gpu=answers, reason=reason)


main()
