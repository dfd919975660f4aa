"""`python -m bookmaker teach|student|quizzes|slides --profile NAME` after its runs.

`launch` needs no runs. A refusal is one line on stderr and exit code 2.
"""

import argparse
import importlib
import os
import sys

from bookmaker.runner import plan as planning
from bookmaker.runner.commands import die_with_parent
from privaudit.console import guarded, one_line
from privhelpers.artifacts import repository_root

MADE = {  # command -> what its module, of the same name, writes
    "student": "notebooks without solutions",
    "quizzes": "quizzes for Moodle, one a chapter",
    "slides": "decks of slides",
}


def _command(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code, unless it refuses or fails."""
    parser = argparse.ArgumentParser(prog="python -m bookmaker", description=__doc__)
    parser.add_argument("command", choices=("launch", "teach", *MADE))
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
    for name in MADE if options.command == "teach" else (options.command,):
        written = importlib.import_module(f"bookmaker.teaching._{name}").write(root, plan)
        print(f"{len(written)} {MADE[name]}: {written[0].parent.relative_to(root)}")
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    return guarded(lambda: _command(arguments), one_line)


if __name__ == "__main__":
    die_with_parent()
    sys.exit(main())
