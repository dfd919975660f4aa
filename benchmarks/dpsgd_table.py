"""What `dpsgd.py` prints: pure functions from seconds to ratios and from ratios to Markdown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

PLAIN, SAME, LOOP, OURS, LOW = "plain", "plain, same kernels", "report's loop", "ours, fast", "ours, low"
HOOKS, GHOST, VMAP = "Opacus hooks", "Opacus ghost, untied", "torch.func vmap"
FASTDP, PRIVATE_TRANSFORMERS = "fastDP, untied", "private-transformers, untied"
PEERS = (HOOKS, GHOST, VMAP, FASTDP, PRIVATE_TRANSFORMERS)


@dataclass
class Result:
    """What one cell gave.

    Attributes:
        title: model and batch.
        seconds: of one step of each variant; 25th percentile over rounds.
        errors: relative error of each private variant's clipped sum.
        failures: why a variant has no seconds.
    """

    title: str
    seconds: dict[str, float] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)


def quartile(values: Sequence[float]) -> float:
    """Return the 25th percentile: a neighbor on the machine only ever makes a step longer."""
    return float(np.percentile(values, 25))


def ratio(seconds: Mapping[str, float], upper: str, lower: str) -> float | None:
    """Return a ratio, or None where one of both is missing."""
    return seconds[upper] / seconds[lower] if upper in seconds and lower in seconds else None


def best_peer(seconds: Mapping[str, float]) -> str | None:
    """Return the fastest of the other libraries."""
    return min((name for name in PEERS if name in seconds), key=seconds.__getitem__, default=None)


def shown(value: float | None, pattern: str = ".2f") -> str:
    """Return a number as text; a dash for None."""
    return "-" if value is None else format(value, pattern)


def reason(error: Exception) -> str:
    """Return the kind of an error and the first line of what it says."""
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table that can be read as it is: the first column to the left, numbers to the right."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        first, *others = (cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
        return "| " + " | ".join([cells[0].ljust(len(first)), *others]) + " |"

    rule = "|" + "|".join([":" + "-" * (widths[0] + 1), *("-" * (w + 1) + ":" for w in widths[1:])]) + "|"
    return "\n".join([line(head), rule, *(line(row) for row in rows)])


def cell_table(result: Result) -> str:
    """Return the table of one cell."""
    rows = [
        [
            name,
            f"{1000 * result.seconds[name]:.1f}",
            shown(ratio(result.seconds, name, PLAIN)),
            shown(ratio(result.seconds, name, SAME)),
            shown(result.errors.get(name), ".0e"),
        ]
        for name in result.seconds
    ]
    table = markdown(["variant", "ms per step", "/ plain", "/ same kernels", "error of the sum"], rows)
    notes = [f"- {name}: not timed. {why}" for name, why in result.failures.items()]
    return "\n".join([f"## {result.title}", "", table, *([""] if notes else []), *notes])


def ratio_table(results: Sequence[Result]) -> str:
    """Return the ratios that matter, one row for each cell."""
    rows = []
    for result in results:
        seconds, peer = result.seconds, best_peer(result.seconds)
        pairs = [(OURS, PLAIN), (OURS, SAME), (LOW, PLAIN), (LOOP, PLAIN), (LOOP, OURS), (peer, OURS)]
        rows.append([result.title, *(shown(ratio(seconds, *pair)) for pair in pairs), peer or "-"])
    head = ["cell", "ours / plain", "ours / same kernels", "low / plain", "loop / plain", "loop / ours"]
    return markdown([*head, "best peer / ours", "best peer"], rows)


def price_of_the_loop(results: Sequence[Result]) -> str:
    """Return what the loop costs in these results, and what follows for any gain over it."""
    prices = [price for result in results if (price := ratio(result.seconds, LOOP, PLAIN))]
    if not prices:
        return ""
    return (
        f"On one CPU core the arithmetic is the bottleneck: the loop itself costs only {min(prices):.1f} to "
        f"{max(prices):.1f} times a plain step here.\nThat factor is the most that can be gained over it: "
        "a gain of ten times does not exist on such a machine."
    )


def memory_table(title: str, megabytes: Mapping[str, float]) -> str:
    """Return peak memory in MB and its ratio to the plain step."""
    rows = [[name, f"{mb:.0f}", shown(ratio(megabytes, name, PLAIN))] for name, mb in megabytes.items()]
    return "\n".join([f"## Peak memory: {title}", "", markdown(["variant", "MB", "/ plain"], rows)])
