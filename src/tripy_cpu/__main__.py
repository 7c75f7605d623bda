"""`python -m tripy_cpu script.py [args]`: run a script that uses nvtripy on the CPU."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import tripy_cpu

_USAGE = "usage: python -m tripy_cpu script.py [arguments of the script]"


def main(arguments: list[str]) -> int:
    """Run the script that `arguments` names with the rest of them, and return the exit status."""
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.stderr.write(f"{_USAGE}\n")
        return 0 if arguments else 2
    script = Path(arguments[0])
    if not script.is_file():
        sys.stderr.write(f"tripy_cpu: there is no file {script}; {_USAGE}\n")
        return 2
    if tripy_cpu.wanted():
        tripy_cpu.install(force=True)
        sys.stderr.write("tripy_cpu: running nvtripy on the CPU (NumPy reference backend)\n")
    else:
        sys.stderr.write("tripy_cpu: stepping aside, TensorRT is installed (set TRIPY_CPU=always to use the CPU)\n")
    sys.argv = arguments
    if not getattr(sys.flags, "safe_path", False):  # new in Python 3.11
        sys.path[0] = str(script.resolve().parent)
    runpy.run_path(str(script), run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
