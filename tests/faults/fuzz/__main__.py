"""`make fuzz N=... SEED=... JOBS=...`: runs cases, keeps a line for each five hundred, and ends with a table.

A run that was stopped goes on where it was, as long as the code is the same.
"""

import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict

os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"
os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"

from faults.fuzz import doors, worker
from faults.harness import counted, report

from privhelpers.artifacts import write_atomic

CORPUS = report.ROOT / "tests" / "faults" / "fuzz" / "corpus"
CHUNK = 500  # cases for which the record has one line


def kept(found: dict) -> bytes:
    """Return a third outcome as a file of the corpus."""
    return (
        json.dumps({name: found[name] for name in ("door", "file", "said", "data")}, indent=1) + "\n"
    ).encode()


def corpus() -> dict[str, worker.Case]:
    """Return the cases that were once third outcomes, by the name of their file."""
    cases, by_name = {}, {door.name: door for door in doors.DOORS}
    for path in sorted(CORPUS.glob("*.json")):
        one = json.loads(path.read_text())
        cases[path.stem] = (by_name[one["door"]], one["file"], one["data"].encode("latin-1"))
    return cases


def _line(first: int, cases: Callable[[int], worker.Case], number: int) -> dict:
    """Run some cases and return their line of the record."""
    outcomes, found, seconds = worker.run(cases, first, number)
    counts: dict[str, Counter] = {}
    for index, outcome in enumerate(outcomes, first):
        counts.setdefault(doors.of(index).name, Counter())[outcome] += 1
    return {"counts": counts, "seconds": seconds, "found": [asdict(one) for one in found]}


def table(rows: list[dict], seed: int, ran: str, machine: str) -> str:
    """Return the table of a run as Markdown.

    Args:
        rows: lines of the record.
        seed: of the run.
        ran: commit.
        machine: its processor.
    """
    head = ["door", "cases", *worker.OUTCOMES, "upper bound", "cases per CPU second"]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for name in ("**all**", *(door.name for door in doors.DOORS)):
        counts, seconds = Counter(), 0.0
        for row in rows:
            for door, some in row["counts"].items():
                if name in ("**all**", door):
                    counts.update(some)
                    seconds += row["seconds"].get(door, 0.0)
        cases, thirds = counts.total(), sum(counts[outcome] for outcome in worker.THIRD)
        bound = f"{100 * report.upper_bound(thirds, cases):.2g} %" if cases else "-"
        numbers = [f"{count:,}" for count in (cases, *(counts[outcome] for outcome in worker.OUTCOMES))]
        lines.append(f"| {' | '.join([name, *numbers, bound, f'{cases / max(seconds, 1e-9):,.0f}'])} |")
    found = [one for row in rows for one in row["found"]]
    told = [f"- case {one['index']}, {one['door']}: {one['outcome']}: `{one['said']}`" for one in found]
    return "\n".join(
        [
            "# Fuzzing",
            "",
            f"Seed {seed}, commit {ran}, on {machine}.",
            "The upper bound is of the chance of a third outcome (the last four counts) in a case that",
            "is drawn so, one-sided, at 95 % (Clopper-Pearson).",
            "",
            *lines,
            *(["", "## Third outcomes", "", *told] if told else []),
            "",
        ]
    )


def _count(asked: counted.Count) -> int:
    doors.warm()
    rows = asked.rows(
        lambda index: _line(CHUNK * index, lambda case: worker.case(asked.seed, case), CHUNK),
        -(-asked.number // CHUNK),  # whole lines alone: a longer run later takes them over
        lambda rows: (
            f"[fuzz] {CHUNK * len(rows):,} of {asked.number:,} cases, "
            f"{sum(len(row['found']) for row in rows)} third outcomes"
        ),
    )
    found = [one for row in rows for one in row["found"]]
    for one in found:
        name = "".join(c if c.isalnum() else "-" for c in one["door"].lower())
        write_atomic(counted.PLACE / asked.stem / f"{name}-{asked.seed}-{one['index']}.json", kept(one))
    asked.publish(table(rows, asked.seed, asked.commit, asked.machine))
    return int(bool(found))


def main(arguments: list[str] | None = None) -> int:
    """Run the cases and return 1 if there was a third outcome."""
    return counted.program("fuzz", 10_000, _count, arguments)


if __name__ == "__main__":
    sys.exit(main())
