"""`make mutants JOBS=...`: tries every mutant, written by hand or made by rule, and writes the table of all.

The mutants made by rule are those that `generate.py` judged; here the test that it named must notice each. In
the end an audit looks at runs with twelve of them (`net.py`).
"""

import gc
import json
import sys
from collections import Counter
from collections.abc import Sequence

from faults.harness import counted
from table import MUTANTS


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
            f"Commit {ran}, on {machine}. Made by `make mutants`.",
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


def _count(asked: counted.Count) -> int:
    import net
    import run  # here: they import all that the tests of any mutant need

    mutants, made = [*MUTANTS, *run.generated()], json.loads(run.GENERATED.read_text())
    trials = len(mutants) + 1 + len(net.NET)

    def tell(rows: list[dict]) -> str:
        survived = sum(not row.get("killed", True) for row in rows)
        return f"[mutants] {len(rows)} of {trials} tried, {survived} survived"

    run.prepare()
    gc.freeze()  # pytest collects garbage at its end, and would look at all that is imported here

    def trial(index: int) -> dict:
        if index < len(mutants):
            return run.judged(mutants[index])
        return net.caught(("", *net.NET)[index - len(mutants)])

    rows = asked.rows(trial, trials, tell, sources=("tests/unit", "tests/mutants"))
    audited = net.table([row for row in rows if "net" in row])
    asked.publish(table(rows, made, asked.commit, asked.machine, audited))
    return int(not all(row.get("killed", True) for row in rows))


def main(arguments: list[str] | None = None) -> int:
    """Try all mutants and return 1 if one survived."""
    return counted.program("mutants", None, _count, arguments)


if __name__ == "__main__":
    sys.exit(main())
