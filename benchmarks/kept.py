"""What the programs of this folder share: results that are kept line by line, and a process to time in."""

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from tqdm import tqdm

from bookmaker.runner.fingerprint import commit, machine, versions
from bookmaker.runner.kernel import KEEP_MEMORY, THREAD_VARIABLES
from privhelpers.artifacts import Store
from privhelpers.results.reference import FOLDER

ROOT = Path(__file__).parents[1]

Key = tuple[str | int | float, ...]


def options_of(description: str) -> argparse.ArgumentParser:
    """Return a parser of options that prints a program's own description as it stands."""
    return argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def rows_of(path: Path) -> dict[Key, dict]:
    """Return the finished results by key; the end of a line that was cut off does not count."""
    rows = {}
    if path.is_file():
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                key, row = json.loads(line)
            except json.JSONDecodeError:
                continue
            rows[tuple(key)] = row
    return rows


def go_on(path: Path, keys: Iterable[Key], measure: Callable[[Key], dict], title: str) -> dict[Key, dict]:
    """Measure what `path` does not hold yet, write each result at once, and return all of `keys`."""
    keys = list(keys)
    rows = rows_of(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        if rows:
            file.write("\n")  # after a line that was cut off
        for key in tqdm([key for key in keys if key not in rows], desc=title, mininterval=5):
            rows[key] = measure(key)
            file.write(json.dumps([list(key), rows[key]]) + "\n")
            file.flush()
    return {key: rows[key] for key in keys}


def made_with() -> str:
    """Return what a measurement ran with, in a line."""
    return f"Python {platform.python_version()}, numpy {np.__version__}, {platform.machine()}."


def about(command: str, rows: list[dict], parameters: dict) -> dict:
    """Return how rows with a `date` and `cpu_seconds` were measured, for the page that shows them."""
    return {
        "command": command,
        "commit": commit(ROOT),
        "date": max(row["date"] for row in rows),
        "machine": machine(),
        "cpu_seconds": round(sum(row["cpu_seconds"] for row in rows), 1),
        "runs": len(rows),
        "versions": versions(),
        "parameters": parameters,
    }


def keep(name: str, numbers: dict, root: Path = ROOT) -> None:
    """Keep numbers in `reference/audits`, where a chapter reads them."""
    Store(root / FOLDER / "audits", "audits").write_json(f"auditing/{name}.json", numbers)


def settle() -> None:
    """Start again with one thread and the malloc settings of the book's runs."""
    wanted = {**dict.fromkeys(THREAD_VARIABLES, "1"), "HF_HUB_OFFLINE": "1", **KEEP_MEMORY}
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        os.execve(sys.executable, sys.orig_argv, {**os.environ, **wanted})
