"""Every example in the documentation of the installed nvtripy runs."""

from __future__ import annotations

import importlib.util
import inspect
import itertools
import re
import textwrap
from collections.abc import Iterator
from typing import Any

import cupy as cp
import numpy as np
import nvtripy as tp
import pytest
from nvtripy.export import PUBLIC_APIS

HAS_TORCH = importlib.util.find_spec("torch") is not None


def documented(obj: Any, name: str) -> Iterator[tuple[str, str]]:
    """Yield (name, docstring) of an object and of a class's own methods and properties."""
    if inspect.ismodule(obj):
        return
    yield name, inspect.getdoc(obj) or ""
    if inspect.isclass(obj):
        for key, member in vars(obj).items():
            function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
            if inspect.isfunction(function):
                yield f"{name}.{key}", inspect.getdoc(function) or ""


def examples(doc: str) -> Iterator[str]:
    """Yield the code of each `.. code-block:: python`.

    It goes on as long as lines are indented as far as the first is: on Python 3.13 and later, nvtripy indents the
    directive itself as far as the code when it puts its constraints before it.
    """
    for block in re.split(r"^ *\.\. code-block:: python\n", doc, flags=re.MULTILINE)[1:]:
        lines = [line for line in block.splitlines() if not re.match(r"\s*:\w+:", line)]
        first = next(line for line in lines if line.strip())
        indent = len(first) - len(first.lstrip())
        code = itertools.takewhile(lambda line: not line.strip() or line[:indent].isspace(), lines)  # noqa: B023
        yield textwrap.dedent("\n".join(code)).strip() + "\n"


def cases() -> list[Any]:
    found: dict[str, tuple[str, str]] = {}
    for api in PUBLIC_APIS:
        for name, doc in documented(api.obj, api.qualname):
            for index, code in enumerate(examples(doc)):
                found.setdefault(code, (name, str(index)))
    return [pytest.param(code, id="-".join(name)) for code, name in found.items()]


def test_examples_are_found() -> None:
    assert len(cases()) > 150
    assert all(case.values[0].strip() for case in cases())


# Some examples leave it to the garbage collector to remove their temporary folder.
@pytest.mark.filterwarnings("ignore:Implicitly cleaning up:ResourceWarning")
@pytest.mark.parametrize("code", cases())
def test_example_runs(code: str) -> None:
    if "torch" in code and not HAS_TORCH:
        pytest.skip("needs torch")
    if "tp.plugin(" in code:
        pytest.skip("needs TensorRT")
    names = {"tp": tp, "np": np, "cp": cp, "nvtripy": tp, "__name__": "example"}
    if HAS_TORCH:
        torch = names["torch"] = importlib.import_module("torch")
        if not torch.cuda.is_available():  # two examples have torch compute where they think that the data is
            code = code.replace('torch.device("cuda")', 'torch.device("cpu")')
    exec(compile(code, "<example>", "exec"), names)  # noqa: S102
