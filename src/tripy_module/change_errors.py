"""What can go wrong while files are changed, each as one line that a person can act on."""

from tripy_module.errors import UserError


class ChangesError(UserError):
    """A file change that was refused or failed; the message says what, where and why."""


class PathError(ChangesError):
    """A path that may not or cannot be written: absolute, outside the project, a folder in place of a file."""


class ConflictError(ChangesError):
    """A file is not what the plan was made for: someone else changed it. Theirs is kept."""


class LockedError(ChangesError):
    """Another run holds the project's lock and did not finish in time."""


class NotWritableError(ChangesError):
    """The operating system refused to write; whatever had been written was taken back."""


class UndoError(ChangesError):
    """Something could not be put back; the journal is kept so that the next run can try again."""


def reason(error: OSError) -> str:
    """Say in the operating system's words why it refused, without the path (which may be a temporary one)."""
    return error.strerror or type(error).__name__
