"""Grade what was handed in for a lab: points, measured, hints."""

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path

from casebook.cli import machine
from casebook.errors import NotGraded, PointsMissing


def add_arguments(parser: ArgumentParser) -> None:
    """Add what the command takes."""
    add = parser.add_argument
    add("lab", metavar="LAB", help="a folder of classroom/labs")
    add("submission", type=Path, metavar="SUBMISSION", help="the answer.py, or its folder")
    machine_help = "ask this machine file what the grader would measure: of `machine labs`"
    add("--machine", metavar="FILE", help=machine_help)
    add("--json", action="store_true", help="one JSON object")


def run(options: Namespace) -> None:
    """Print the points; raises PointsMissing or NotGraded if there are not all."""
    from casebook.classroom import grade_report, grading

    file = machine.file_of(options.machine) if options.machine else None
    graded = grading.grade(options.lab, options.submission, file)
    print(json.dumps(graded.as_json()) if options.json else grade_report.with_warning(graded))
    if graded.points < graded.of:
        raise PointsMissing(f"{graded.score()}: see the hints.")
    if graded.not_graded:
        raise NotGraded(f"{graded.score()}.")
