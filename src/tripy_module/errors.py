"""What every part of the engine raises for the user to read."""


class UserError(Exception):
    """One clear line: what is wrong, with what, and what to do."""


def of_system(error: OSError) -> UserError:
    """An operating system's refusal as a line to read."""
    return UserError(f"{error.filename or 'a file'}: {error.strerror or type(error).__name__}; nothing was changed")


class AnswerError(UserError):
    """An answer that cannot be used.

    Args:
        answer: The name of the question.
        problem: What is wrong with the answer and what to write instead.
    """

    def __init__(self, answer: str, problem: str) -> None:
        super().__init__(f"{answer}: {problem}")
        self.answer = answer
