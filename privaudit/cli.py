"""`privai-leak`: the audit, and the verification of its evidence, as a command for any folder."""

import argparse
import re
import sys
from pathlib import Path

from privaudit import _command, bundle
from privaudit.console import guarded

ABOUT = """Audit what a language model, or a synthetic data set, gives away about the people behind it.
Nothing is fetched, and nothing leaves this machine."""
EXIT_CODES = """exit codes:
  0    audit: a report was made, whatever it says; verify: the bundle holds
  1    audit: the work failed; verify: the bundle does not hold
  2    refused: something given cannot be used, and nothing was made
  130  interrupted"""


def _parser() -> argparse.ArgumentParser:
    form = {"epilog": EXIT_CODES, "formatter_class": argparse.RawDescriptionHelpFormatter}
    parser = argparse.ArgumentParser(prog="privai-leak", description=ABOUT, **form)
    commands = parser.add_subparsers(dest="command", required=True)
    audit = commands.add_parser("audit", help="audit a model or a synthetic data set", **form)
    _command.add_options(audit)
    verify = commands.add_parser("verify", help="say in one line whether an evidence bundle holds", **form)
    verify.add_argument("bundle", help="the file, .zip")
    verify.add_argument("--key", default="", help="public Ed25519 key, PEM, that must have signed it")
    return parser


def _worded(message: str) -> str:
    """Return a message of `make audit` in the words of this command.

    >>> _worded("PATIENTS=0: must be 1 or more; for example: make audit MODEL=net")
    '--patients=0: must be 1 or more; for example: privai-leak audit --model=net'
    """
    names = {name.upper(): f"--{name}" for name in _command.OPTIONS} | {"DRY": "--dry-run"}
    message = message.replace("make audit", "privai-leak audit")
    return re.sub(rf"(?<![\w/.=-])({'|'.join(names)})(?=[=:, ])", lambda found: names[found[1]], message)


def main(arguments: list[str] | None = None) -> int:
    """Run one command where the caller stands, and return its exit code."""

    def run() -> int:
        options = _parser().parse_args(arguments)
        if options.command == "verify":
            return 0 if bundle.verify(options.bundle, options.key) else 1
        _command.run(Path.cwd(), options)
        return 0

    return guarded(run, _worded)


if __name__ == "__main__":
    sys.exit(main())
