"""`python -m privhelpers.site build --profile NAME`: stage the runs of a profile and build the site.

A refusal is one line on stderr and exit code 2.
"""

import argparse
import os
import sys

from privhelpers.artifacts import repository_root
from privhelpers.errors import PrivHelpersError
from privhelpers.runner import plan as planning
from privhelpers.runner import processes
from privhelpers.site.build import build


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m privhelpers.site", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("build", help="build runs/<profile>/site/_build/html")
    command.add_argument("--profile", default="course", help="a file of params/ without its ending")
    options = parser.parse_args(arguments)
    processes.die_with_parent(clean=True)
    try:
        root = repository_root()
        os.chdir(root)
        plan = planning.jobs(root, options.profile)
        lock = root / "runs" / plan[0].profile / ".locks" / "site"
        with processes.exclusive(lock, f"the site of profile {options.profile}", wait=10):
            build(root, plan)
    except (PrivHelpersError, OSError) as error:
        print(f"refused: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
