"""`python -m casebook grade LAB SUBMISSION`: the driver."""

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

from casebook import places
from casebook.classroom import room
from casebook.classroom.grade_report import Report
from casebook.classroom.grader_runs import GraderRuns, RecordedRuns
from casebook.errors import UsageError
from casebook.laboratory import machine_files
from casebook.laboratory.progress import Progress

_CHECKS = "casebook.classroom.checks"
#: The labs, in the order in which a class may take them, and the points of each.
LABS = {"find-the-monkey": 20, "read-a-profile": 17, "count-the-loads": 24, "one-slow-book": 15}


def folder(lab: str) -> Path:
    """Return the folder that is handed out for a lab."""
    return places.ROOT / "classroom" / "labs" / lab


def grade(lab: str, submission: Path, file: Path | None = None) -> Report:
    """Run a submission and report, line by line, what was found.

    submission: the file that was handed in, or the folder with its answer.py. file: a machine file,
    which answers what the grader would measure itself; None: those of classroom/machines do, if a
    stack cannot run here.

    Raises UsageError if there is no such lab or file, MachineFileRefused if the machine file is
    none, and NotGraded if a stack cannot run and no machine was asked the same.
    """
    if lab not in LABS:
        raise UsageError(f"there is no lab {lab!r}; choose one of: {', '.join(LABS)}")
    answer = submission / "answer.py" if submission.is_dir() else submission
    if not answer.is_file():
        place = folder(lab).relative_to(places.ROOT)
        raise UsageError(f"there is no file {answer}; name the answer.py of {place}")
    report, checks = Report(lab), _checks(lab)
    if file:
        room.FORBIDDEN.append(file.resolve())
    machine = machine_files.read(file) if file else None
    with Progress(LABS[lab], f"grading {lab}", "point") as progress:
        report.progress = progress.step
        checks.grade(answer, report, GraderRuns(Path(checks.__file__ or ""), machine))
    return report


def measure_answers() -> list[dict[str, object]]:
    """Measure all that the labs may ask, and return the answers as in a machine file.

    Raises the error of an environment that cannot be made: a file is whole or none.
    """
    answers: list[dict[str, object]] = []
    for lab in LABS:
        checks = _checks(lab)
        grader_runs = RecordedRuns(Path(checks.__file__ or ""))
        checks.record(grader_runs)
        answers += grader_runs.answers
    return answers


def lacking(lab: str) -> list[str]:
    """Return the stacks of a lab that do not run here. What each lacks goes to standard error."""
    checks = _checks(lab)
    grader_runs = GraderRuns(Path(checks.__file__ or ""))
    return [name for name in checks.STACKS if not grader_runs.can_run(name)]


def _checks(lab: str) -> ModuleType:
    return import_module(f"{_CHECKS}.{lab.replace('-', '_')}")


if __name__ == "__main__":  # whether a lab can be graded here as a whole
    for name in sys.argv[1:]:
        if missing := lacking(name):
            sys.exit(f"{name} cannot be graded here as a whole, without {' and '.join(missing)}")
