"""Write the labs as a course for nbgrader."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path


def add_arguments(parser: ArgumentParser) -> None:
    """Add what the command takes."""
    add = parser.add_argument
    add("folder", type=Path, metavar="FOLDER", help="one that is not there yet")
    add("--exercises", action="store_true",
        help="write the chapters instead, without their solutions")  # fmt: skip


def run(options: Namespace) -> None:
    """Write the course, or the chapters without solutions, and say how it goes on."""
    from casebook.classroom import course, grading

    if options.exercises:
        from casebook import places
        from casebook.classroom import solutions
        from casebook.pages.contents import Book

        solutions.exercises(options.folder, Book(places.ROOT))
        print(
            f"{options.folder}: the notebooks without their solutions. To open them:\n"
            f"    {sys.executable} -m jupyterlab --config=jupyter_server_config.py "
            f"--notebook-dir={options.folder} {options.folder / 'start.ipynb'}"
        )
        return
    nbgrader = course.write(options.folder)
    print(
        f"{options.folder}: a course. In that folder:\n"
        f"    {nbgrader} generate_assignment LAB\n"
        f"    {nbgrader} release_assignment LAB      (or hand out release/LAB)\n"
        f"    {nbgrader} collect LAB                 (or fill submitted/STUDENT/LAB)\n"
        f"    {nbgrader} autograde LAB\n"
        f"    {nbgrader} generate_feedback LAB\n"
        f"    {nbgrader} export                      (all points, as grades.csv)\n"
        f"LAB is one of: {', '.join(grading.LABS)}"
    )
