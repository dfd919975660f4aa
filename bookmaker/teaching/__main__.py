"""`python -m bookmaker.teaching student|solutions|quizzes|slides --profile NAME` after its runs.

`launch`, `assignments` and `grade --submitted FOLDER` need no runs. A refusal is one line on stderr and exit
code 2; a solution that failed, or a folder that was not graded, is exit code 1.
"""

import argparse
import os
import sys

from bookmaker.runner import plan as planning
from bookmaker.runner import processes
from privaudit.console import guarded, one_line
from privhelpers.artifacts import repository_root

OF_A_RUN, OF_NO_RUN = ("student", "solutions", "quizzes", "slides"), ("launch", "assignments", "grade")


def _command(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code, unless it refuses or fails."""
    parser = argparse.ArgumentParser(prog="python -m bookmaker.teaching", description=__doc__)
    parser.add_argument("command", choices=(*OF_A_RUN, *OF_NO_RUN))
    parser.add_argument("--profile", default="course", help="a file of params/ without its ending")
    parser.add_argument("--submitted", default="", help="a folder with a folder for each student")
    options = parser.parse_args(arguments)
    root = repository_root()
    os.chdir(root)
    if options.command == "launch":
        from bookmaker.teaching import _launch

        written = _launch.write_copies(root, root / "build" / "launch" / "notebooks")
        print(f"{len(written)} notebooks for the branch `launch`: {written[0].parent.relative_to(root)}")
        return 0
    if options.command == "assignments":
        from bookmaker.teaching import _assignments

        written = _assignments.release(root, root / "build" / "assignments")
        print(f"{len(written)} assignments for students: {written[0].parents[1].relative_to(root)}")
        return 0
    if options.command == "grade":
        from bookmaker.teaching import _grading

        grades, odd = _grading.write(root, options.submitted, root / "build" / "grades")
        print(f"{len(grades)} grades in build/grades/grades.csv, feedback beside it")
        for name in odd:
            print(f"not graded: {name}: rename it to letters, digits, - and _", file=sys.stderr)
        return 1 if odd else 0
    plan = planning.jobs(root, options.profile)
    if options.command == "student":
        from bookmaker.teaching import _student

        written = _student.write_copies(root, plan)
        print(f"{len(written)} notebooks without solutions: {written[0].parent.relative_to(root)}")
    elif options.command == "quizzes":
        from bookmaker.teaching import _quizzes

        written = _quizzes.write(root, plan, root / "build" / "quizzes")
        print(f"{len(written)} quizzes for Moodle, one a chapter: {written[0].parent.relative_to(root)}")
    elif options.command == "slides":
        from bookmaker.teaching import _slides

        written = _slides.write(root, plan)
        print(f"{len(written)} decks of slides: {written[0].parent.relative_to(root)}/index.html")
    else:
        from bookmaker.teaching import _solutions

        table = _solutions.report(root, plan)
        print(table.to_string(index=False))
        print(f"\n{len(table)} exercises, every solution ran")
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    return guarded(lambda: _command(arguments), one_line)


if __name__ == "__main__":
    processes.die_with_parent(clean=False)
    sys.exit(main())
