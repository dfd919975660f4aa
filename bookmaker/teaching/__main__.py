"""`python -m bookmaker.teaching student|solutions|quizzes --profile NAME` after its runs; `... launch`.

A refusal is one line on stderr and exit code 2; a solution that failed is exit code 1.
"""

import argparse
import os
import sys

from bookmaker.runner import plan as planning
from privhelpers.artifacts import repository_root
from privhelpers.errors import PrivHelpersError, RunFailed


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m bookmaker.teaching", description=__doc__)
    parser.add_argument("command", choices=("student", "solutions", "quizzes", "slides", "launch"))
    parser.add_argument("--profile", default="course", help="a file of params/ without its ending")
    options = parser.parse_args(arguments)
    try:
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
    except RunFailed as error:
        print(f"failed: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    except (PrivHelpersError, OSError) as error:
        print(f"refused: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
