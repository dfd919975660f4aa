"""`python -m bookmaker <command>`: what makes, checks, prints, and hands out the book.

    book check verify reference bundle    runs: make them, check them, keep them, hand them on
    serve pdf                             the site of a profile, in a browser or as one file
    sweep                                 many runs, one table
    teach                                 what a course hands out: the next three
    student quizzes slides                each of them alone
    launch                                copies for the cloud

`python -m bookmaker <command> --help` says what a command takes.
"""

import importlib
import sys

MODULES = {
    "bookmaker.runner.cli": ("book", "check", "verify", "reference", "bundle", "run", "collect"),
    "bookmaker.site.__main__": ("serve", "pdf"),
    "bookmaker.teaching.__main__": ("teach", "student", "quizzes", "slides", "launch"),
    "bookmaker.sweep.__main__": ("sweep",),
}


def main(arguments: list[str]) -> int:
    """Run one command and return its exit code."""
    command = arguments[0] if arguments else "--help"
    module = next((name for name, commands in MODULES.items() if command in commands), "")
    if not module:
        asked = command in ("-h", "--help")
        print(__doc__, file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 2
    given = arguments[1:] if module == "bookmaker.sweep.__main__" else arguments
    return importlib.import_module(module).main(given)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
