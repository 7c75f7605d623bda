"""Which names nvtripy exports, read from its sources: importing it would need a backend."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from tripy_module.errors import AnswerError

_EXPORT = "public_api("
# `@export.public_api(...)`, perhaps more decorators, and what they decorate.
_DECORATED = re.compile(r"^@export\.public_api\b.*?^(?:class|def)[ \t]+(\w+)", re.MULTILINE | re.DOTALL)
_ASSIGNED = re.compile(r"^(\w+)[ \t]*(?::[^=\n]+)?=[ \t]*export\.public_api\(", re.MULTILINE)
_SYMBOL = re.compile(r"\bsymbol=\"(\w+)\"")
# A function of the file exports what it makes: `float32 = _make_float_datatype("float32", ...)`.
_MADE = re.compile(r"^(\w+)[ \t]*=[ \t]*_\w+\(", re.MULTILINE)


@lru_cache
def exported_names(nvtripy: Path) -> frozenset[str]:
    """All names that `nvtripy.<name>` gives, its own submodules included.

    Args:
        nvtripy: The package's folder.
    """
    names = set()
    for path in filter(Path.is_file, nvtripy.rglob("*.py")):
        if path.parent == nvtripy and not path.stem.startswith("_"):
            names.add(path.stem)
        elif path.parent.parent == nvtripy and path.name == "__init__.py":
            names.add(path.parent.name)
        text = path.read_text(encoding="utf-8", errors="replace")
        if _EXPORT in text:
            for pattern in (_DECORATED, _ASSIGNED, _SYMBOL, _MADE):
                names.update(pattern.findall(text))
    return frozenset(names)


def check_untaken(nvtripy: Path, class_name: str, module_name: str = "") -> None:
    """Refuse names that nvtripy has: exporting one a second time breaks `import nvtripy`.

    Raises:
        AnswerError: One of the names is taken.
    """
    taken = exported_names(nvtripy)
    if class_name in taken:
        raise AnswerError("class_name", f"nvtripy exports {class_name!r} already; choose another, as My{class_name}")
    if module_name in taken:
        raise AnswerError(
            "module_name", f"nvtripy exports {module_name!r} already; choose another, as {module_name}_layer"
        )
