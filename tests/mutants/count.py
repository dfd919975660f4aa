"""Try every mutant, written by hand or made by rule, and write the table of all: `make -f dev.mk mutants`.

A stopped run goes on from its record, `build/mutants.jsonl`. The mutants made by rule are those that
`generate.py` judged; here the test that it named must notice each. In the end an audit looks at runs with
twelve of them (`net.py`).
"""

import argparse
import gc
import hashlib
import json
import os
import platform
import sys
import traceback
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from table import MUTANTS

from bookmaker.runner import fingerprint

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "build" / "mutants.jsonl"
SOURCES = ("privhelpers", "tests/privhelpers", "tests/mutants")


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


def table(rows: list[dict], made: list[dict], ran: str, machine: str, more: Sequence[str] = ()) -> str:
    """Return the verdicts as Markdown.

    Args:
        rows: a line of the record for each mutant that was tried.
        made: what `generated.json` holds, the equivalent ones included.
        ran: commit.
        machine: its processor.
        more: lines at the end.
    """
    killed = {row["name"]: row["killed"] for row in rows if "name" in row}
    by_rule = [row for row in made if row["by"]]
    equivalent = [row for row in made if not row["by"]]
    by_hand = sum(killed[mutant.name] for mutant in MUTANTS)
    noticed = sum(killed[row["name"]] for row in by_rule)
    rooms = Counter(row["module"].split(".")[1] for row in made)
    said = {
        row["name"]: (f"`{row['by'].removeprefix('tests/')}`" if killed[row["name"]] else "**survived**")
        for row in by_rule
    } | {row["name"]: f"equivalent: {row['equivalent']}" for row in equivalent}
    return "\n".join(
        [
            "# Mutants of the private training, its accounting, its ledger and its audit",
            "",
            f"Commit {ran}, on {machine}. Made by `make -f dev.mk mutants`.",
            f"Written by hand: {len(MUTANTS)}, killed {by_hand}.",
            f"Made by rule (`python tests/mutants/generate.py`): {len(made)}, killed {noticed}, equivalent",
            f"{len(equivalent)}, survived {len(by_rule) - noticed};",
            f"of the rooms {', '.join(f'{room} {count}' for room, count in sorted(rooms.items()))}.",
            "",
            "## Written by hand",
            "",
            "| mutant | module | tests that notice it |",
            "|---|---|---|",
            *(
                f"| {mutant.name} | {mutant.module.removeprefix('privhelpers.')} | "
                + (f'`-k "{mutant.tests}"` |' if killed[mutant.name] else "**survived** |")
                for mutant in MUTANTS
            ),
            "",
            "## Made by rule",
            "",
            "| mutant | first test that notices it, or why none can |",
            "|---|---|",
            *(f"| {_code(row['name'])} | {said[row['name']]} |" for row in made),
            "",
            *more,
        ]
    )


def _hash_of_sources() -> str:
    """Return the SHA-256 of what the verdict on a mutant depends on."""
    digest = hashlib.sha256()
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _rows_of(code: str) -> list[dict]:
    """Return the verdicts that a stopped run of the same code left, and begin a record if it left none."""
    lines = RECORD.read_bytes().split(b"\n")[:-1] if RECORD.exists() else []
    mark, *rows = [json.loads(line) for line in lines] or [None]
    if mark != {"code": code}:
        RECORD.parent.mkdir(exist_ok=True)
        RECORD.write_text(json.dumps({"code": code}) + "\n")
        return []
    return rows


def _processor() -> str:
    """Return what the processor calls itself."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def main(jobs: int) -> int:
    """Try all mutants, `jobs` at once, write the table of all, and return 1 if one survived."""
    import net
    import run  # here: they import all that the tests of any mutant need

    mutants, made = [*MUTANTS, *run.generated()], json.loads(run.GENERATED.read_text())
    run.prepare()
    gc.freeze()  # pytest collects garbage at its end, and would look at all that is imported here
    code = _hash_of_sources()
    done = {row["index"] for row in _rows_of(code)}
    todo = [index for index in range(len(mutants) + 1 + len(net.NET)) if index not in done]
    record, lanes = os.open(RECORD, os.O_WRONLY | os.O_APPEND), []
    for lane in range(jobs):
        if child := os.fork():
            lanes.append(child)
            continue
        code_of_lane = 1
        try:
            for index in todo[lane::jobs]:
                if index < len(mutants):
                    row = run.judged(mutants[index])
                else:
                    row = net.caught(("", *net.NET)[index - len(mutants)])
                # One write for each line: several processes append to the record.
                os.write(record, (json.dumps({"index": index} | row) + "\n").encode())
                print(f"[mutants] {row}", file=sys.stderr)
            code_of_lane = 0
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(code_of_lane)
    if any([os.waitpid(child, 0)[1] for child in lanes]):
        print("mutants: not all were tried; call again, and it goes on", file=sys.stderr)
        return 1
    rows = sorted(_rows_of(code), key=lambda row: row["index"])
    audited = net.table([row for row in rows if "net" in row])
    text = table(rows, made, fingerprint.commit(ROOT) or "unknown", _processor(), audited)
    (ROOT / "build" / "mutants.md").write_text(text)
    print(text)
    return int(not all(row.get("killed", True) for row in rows))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="make -f dev.mk mutants")
    parser.add_argument("--jobs", type=lambda text: max(1, int(text or 1)), default=1)
    sys.exit(main(parser.parse_args().jobs))
