"""What a long measurement of audits has so far: a line of JSON for each result, so that it goes on later."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tqdm import tqdm

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
