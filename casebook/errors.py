"""Everything that casebook raises on purpose.

Each message says what happened and what to do next; the command line prints it as one line
and leaves with `exit_code`. A notebook shows the message and no traceback.
"""


class CasebookError(Exception):
    """The base of all errors here. `exit_code` is what the command line leaves with."""

    exit_code = 1

    def _render_traceback_(self) -> list[str]:
        """Return what a notebook shows: the sentence. IPython asks for it."""
        return [f"{type(self).__name__}: {self}"]


class UsageError(CasebookError):
    """The caller asked for something that does not exist or is out of range."""

    exit_code = 2


class MissingInterpreter(CasebookError):
    """A stack needs a Python, or a processor, that this machine does not have."""


class EnvironmentFailed(CasebookError):
    """A stack's virtual environment could not be made."""


class ServerFailed(CasebookError):
    """The lab server or a store did not start, or cannot be reached or trusted."""


class RunFailed(CasebookError):
    """A response was missing, wrong or not 200: there is no timing to report."""


class VisitFailed(CasebookError):
    """A client did not fetch every book unchanged: there is no timing to report."""


class MachineFileRefused(CasebookError):
    """A machine file is not one, is larger than allowed, or is damaged."""


class NotInFile(CasebookError):
    """The machine file that a book is written from has no answer to a question."""


class FindingsOtherwise(CasebookError):
    """The book was built, but a finding came out otherwise (only a strict build minds)."""


class PointsMissing(CasebookError):
    """A submission was graded, and did not get full points."""


class NotGraded(CasebookError):
    """A submission, or a part of it, could not be graded here. What was graded got full points."""

    exit_code = 3


class BookFailed(CasebookError):
    """A notebook or a page of the book could not be built."""
