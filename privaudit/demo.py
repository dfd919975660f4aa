"""`privai-leak demo`: two audits of small models in the package, one that leaks and its control.

Both models have one shape, one tokenizer, and one training (`benchmarks/demo_model.py` makes them).
`demo` was trained on the notes of `members.jsonl`, `demo-control` on notes of other patients. Both are asked
about the same two files, so only the training explains that the verdicts differ.
"""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from privhelpers.artifacts import parse_json
from privhelpers.errors import RunFailed

EXAMPLE = Path(__file__).with_name("example")


def add_parser(commands: argparse._SubParsersAction, **form: Any) -> None:
    """Declare the command; it takes no options."""
    told = "audit two small models of invented patients, one that leaks and its control: under a minute"
    commands.add_parser("demo", help=told, description=f"{told.capitalize()}.", **form)


def run(audit: Callable[..., Path]) -> int:
    """Audit both models and print both verdicts; return the exit code.

    Args:
        audit: takes options of `privai-leak audit` and returns the folder of the report.

    Raises:
        RunFailed: a verdict differs from the one that the models were made for.
    """
    from privaudit.verdict import FLAGGED, NOTHING_FOUND
    from privaudit.words import WORDING  # late: these load torch

    words, expected = WORDING["demo"], {"demo": FLAGGED, "demo-control": NOTHING_FOUND}
    files = {"records": EXAMPLE / "members.jsonl", "holdout": EXAMPLE / "nonmembers.jsonl"}
    reports = {}
    for name in expected:
        paths = {option: str(path) for option, path in {"model": EXAMPLE / name, **files}.items()}
        folder = audit(**paths, effort="quick", pdf=False)
        reports[name] = folder, parse_json((folder / "report.json").read_bytes(), "report.json")
    for name, (folder, facts) in reports.items():
        print("\n".join(_lines(name, folder, facts, words)), end="\n\n")
    wrong = [name for name, (_, facts) in reports.items() if facts["outcome"] != expected[name]]
    if wrong:
        raise RunFailed(words["wrong"].format(" and ".join(wrong)))
    print(words["end"].format(EXAMPLE))
    return 0


def _lines(name: str, folder: Path, facts: Mapping, words: Mapping) -> list[str]:
    """Return a verdict in a few lines: what was audited, what was found, what to do next."""
    found = facts["answers"]["found"]
    if facts["outcome"] == "flagged":  # else "trained patients" would name those of the file
        found = f"{found} {facts['first_page']['named']}"
    told = {"found": found, "next": facts["answers"]["next"], "report": folder / "report.html"}
    sentences = [words["about"][name], *(words[key].format(one) for key, one in told.items())]
    return [f"{name}: {facts['outcome']}", *(f"  {one}" for one in sentences)]
