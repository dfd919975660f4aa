"""`python -m bookmaker.teaching student|solutions|quizzes|slides --profile NAME` after its runs.

`launch` needs no runs. A refusal is one line on stderr and exit code 2; a solution that failed is exit code
1.
"""

import argparse
import os
import sys

from bookmaker.runner import plan as planning
from bookmaker.runner import processes
from bookmaker.runner.commands import guarded, one_line
from privhelpers.artifacts import repository_root

COMMANDS = ("student", "solutions", "quizzes", "slides", "launch")


def _command(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code, unless it refuses or fails."""
    parser = argparse.ArgumentParser(prog="python -m bookmaker.teaching", description=__doc__)
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("--profile", default="course", help="a file of params/ without its ending")
    options = parser.parse_args(arguments)
    root = repository_root()
    os.chdir(root)
    if options.command == "launch":
        from bookmaker.teaching import _launch

        written = _launch.write_copies(root, root / "build" / "launch" / "notebooks")
        print(f"{len(written)} notebooks for the branch `launch`: {written[0].parent.relative_to(root)}")
        return 0
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
