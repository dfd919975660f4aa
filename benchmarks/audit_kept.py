"""What a long measurement of audits has so far, a line of JSON for each result, and where its end is kept."""

import json
import platform
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
from tqdm import tqdm

from privhelpers.artifacts import Store, write_atomic
from privhelpers.results.reference import FOLDER

ROOT = Path(__file__).parents[1]

Key = tuple[str | int | float, ...]


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
    missing = [key for key in keys if key not in rows]
    with path.open("a", encoding="utf-8") as file:
        if rows:
            file.write("\n")  # after a line that was cut off
        for key in _shown(missing, title):
            rows[key] = measure(key)
            file.write(json.dumps([list(key), rows[key]]) + "\n")
            file.flush()
    return {key: rows[key] for key in keys}


def _shown(keys: list[Key], title: str) -> Iterator[Key]:
    yield from tqdm(keys, desc=title, file=sys.stderr, mininterval=5)


def made_with() -> str:
    """Return what a measurement ran with, in a line."""
    return f"Python {platform.python_version()}, numpy {np.__version__}, {platform.machine()}."


def markdown(rows: list[dict[str, str]]) -> str:
    """Return rows as a table."""
    lines = [list(rows[0]), ["---"] * len(rows[0]), *(list(row.values()) for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def keep(name: str, numbers: dict, page: str, root: Path = ROOT) -> None:
    """Keep numbers in `reference/audits`, where a chapter reads them, and their page in `benchmarks`."""
    Store(root / FOLDER / "audits", "audits").write_json(f"auditing/{name}.json", numbers)
    write_atomic(root / "benchmarks" / f"audit_{name}.md", page.encode())
