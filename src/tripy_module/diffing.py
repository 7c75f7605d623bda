"""File changes as text for people and for `git apply`."""

import difflib
import re
from pathlib import PurePosixPath

_NEW_FILE_MODE = 0o644
_NO_FINAL_NEWLINE = "\\ No newline at end of file\n"


def unified_diff(path: PurePosixPath, before: bytes | None, after: bytes | None, mode: int | None = None) -> str:
    r"""Return the change of one file in git's notation, empty if there is none.

    Bytes that are not UTF-8 are written as `\xNN`; the content of a file with a zero byte is not shown.

    Args:
        path: The name to show.
        before: Content before, None if the file is not there.
        after: Content afterwards, None if the file is deleted.
        mode: Permission bits, where known.
    """
    if before == after:
        return ""
    old, new = f"a/{path}", f"b/{path}"
    lines = [f"diff --git {old} {new}\n"]
    git_mode = "100755" if (_NEW_FILE_MODE if mode is None else mode) & 0o100 else "100644"
    if before is None:
        lines.append(f"new file mode {git_mode}\n")
    elif after is None:
        lines.append(f"deleted file mode {git_mode}\n")
    old_name = "/dev/null" if before is None else _marked(old)
    new_name = "/dev/null" if after is None else _marked(new)
    if b"\0" in (before or b"") + (after or b""):
        return "".join([*lines, f"Binary files {old_name} and {new_name} differ\n"])
    hunks = difflib.unified_diff(_lines(before), _lines(after), old_name, new_name)
    return "".join([*lines, *(line if line.endswith("\n") else f"{line}\n{_NO_FINAL_NEWLINE}" for line in hunks)])


def _marked(name: str) -> str:
    """End a name that has a space with a tab, as git does, so that it is not cut off at the space."""
    return f"{name}\t" if " " in name else name


def _lines(content: bytes | None) -> list[str]:
    """Split at line feeds only: `str.splitlines` takes a form feed for the end of a line too."""
    return re.findall(r"[^\n]*\n|[^\n]+", (content or b"").decode("utf-8", errors="backslashreplace"))
