"""What every part of the engine raises for the user to read."""

from __future__ import annotations


class UserError(Exception):
    """One clear line: what is wrong, with what, and what to do."""


def one_line(error: UserError | OSError) -> str:
    """What to tell the user of an error that is not a defect of the engine."""
    if isinstance(error, OSError):
        return f"{error.filename or 'the operating system'}: {error.strerror or type(error).__name__}"
    return str(error)


class AnswerError(UserError):
    """An answer that cannot be used.

    Args:
        answer: The name of the question.
        problem: What is wrong with the answer and what to write instead.
    """

    def __init__(self, answer: str, problem: str) -> None:
        super().__init__(f"{answer}: {problem}")
        self.answer = answer
