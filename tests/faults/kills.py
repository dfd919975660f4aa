"""`make kills N=... SEED=... JOBS=...`: kills a private run at any moment and lets it go on to its end.

N kills fall before lines of ours that chance chose, four in one run, each in what the one before left: lines
are counted, not seconds, so that the moments are the same on any machine. Besides, a run is killed at every
boundary of its writes, flushes, renames and removals. After each kill a copy of what is left goes on to the
end: to the weights of a run that was left alone, with a ledger that never counted less than was done.
"""

import functools
import json
import os
import shutil
import signal
import sys
import tempfile
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"
os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"

from faults.harness import base, counted, report
from faults.harness.layer import KILL, Layer, injected, survived

from privhelpers import dpsgd, rng
from privhelpers.dpsgd import _checkpoint
from privhelpers.ledger import read_ledger

PACKAGE = report.ROOT / "privhelpers"
OURS = tuple(f"{PACKAGE}/{name}" for name in ("dpsgd/", "ledger/", "artifacts.py", "processes.py"))
IN_A_RUN = 4  # kills of one run before lines


class Lines:
    """Counts the lines of ours that begin from now on, and kills this process before one of them.

    Attributes:
        count: lines so far.
        last: number of the line that is not reached, from 1; 0: none.
    """

    def __init__(self, last: int = 0) -> None:
        """Begin to count."""
        self.count, self.last = 0, last

    def __enter__(self) -> "Lines":
        """Begin to count."""
        sys.settrace(self._enter)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop counting."""
        sys.settrace(None)

    def _enter(self, frame, event, _):
        return self._line if frame.f_code.co_filename.startswith(OURS) else None

    def _line(self, frame, event, _):
        self.count += event == "line"
        if self.count == self.last:
            os.kill(os.getpid(), signal.SIGKILL)
        return self._line


@contextmanager
def _place():
    """Yield an empty folder that is removed afterwards."""
    place = Path(tempfile.mkdtemp(prefix="kills-"))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _saved(folder: Path) -> int:
    """Return the steps that the newest checkpoint holds."""
    path = _checkpoint.newest(folder)
    return int(path.stem.removeprefix("step-")) if path else 0


def _spent(folder: Path) -> int:
    path = folder / "ledger.jsonl"
    return read_ledger(path).steps if path.exists() else 0


def _train(folder: Path, under: AbstractContextManager) -> tuple[str | None, int]:
    """Train in a child; return the weights, or None where it was killed, and the steps that it began."""
    with _place() as place:
        note, result = os.open(place / "note", os.O_CREAT | os.O_RDWR | os.O_APPEND), place / "result"

        def work() -> None:
            with under:
                weights = base.train(folder, note=note)[0]
            result.write_text(weights)

        try:
            weights = result.read_text() if survived(work) else None
        except RuntimeError as error:  # neither killed nor well: refused, or a traceback
            weights = str(error)
        begun = os.fstat(note).st_size
        os.close(note)
        return weights, begun


def killed(folder: Path, under: AbstractContextManager) -> dict:
    """Kill a run, look at its ledger, and let a copy go on to the end.

    Args:
        folder: of the run, new or as an earlier kill left it.
        under: kills the process in which it is entered.

    Returns:
        killed: whether it was. begun: steps begun when it was. spent: steps that the ledger counts then.
        least: what the ledger had to count. same: whether the copy came to the right weights and steps.
        said: how a copy ended that came to others.
    """
    before, saved = _spent(folder), _saved(folder)
    weights, begun = _train(folder, under)
    begun, spent = saved + begun, _spent(folder)
    with _place() as place:
        copy = place / "kept"
        if folder.exists():
            shutil.copytree(folder, copy)
        resumed, again = _train(copy, nullcontext())
        steps = _saved(folder) + again, _saved(copy), _spent(copy)
    right = {base.whole()}
    same = resumed in right and set(steps) == {base.STEPS} and weights in right | {None}
    return {
        "killed": weights is None,
        "begun": begun,
        "spent": spent,
        "least": max(before, begun),
        "same": same,
        "said": "" if same else f"{resumed}, {steps} steps",
    }


def _rest(folder: Path, known: dict) -> tuple[int, int]:
    """Return how many lines of ours begin until a run from this state took a step, and until it is over."""
    state = _saved(folder), _spent(folder), (folder / "ledger.jsonl").exists()
    if state not in known:
        with _place() as place:
            copy, counts = place / "kept", place / "counts"
            if folder.exists():
                shutil.copytree(folder, copy)

            def work() -> None:
                step, first = dpsgd.PrivateOptimizer.step, []

                def noted(self, draw):
                    norms = step(self, draw)
                    first.append(lines.count)
                    return norms

                dpsgd.PrivateOptimizer.step = noted
                with Lines() as lines:
                    base.train(copy)
                counts.write_text(json.dumps([first[0] if first else lines.count, lines.count]))

            survived(work)
            known[state] = tuple(json.loads(counts.read_text()))
    return known[state]


def at_lines(index: int, seed: int, known: dict) -> list[dict]:
    """Kill one run several times, each time before a line that chance chose.

    One in three kills falls before the end of the next step, which has most of the lines: it begins with a
    look at the model. The others fall after it, and in turn: the first of four in the next quarter of the
    run, the second in the next third of what is left, and so to the end.
    """
    chance, rows = rng.make(seed, f"kills {index}"), []
    with _place() as place:
        for left in range(IN_A_RUN, 0, -1):
            first, rest = _rest(place / "kept", known)
            if chance.random() < 1 / 3 or first == rest:
                line = 1 + int(chance.integers(first))
            else:
                line = 1 + first + int(chance.integers(max(1, (rest - first) // left)))
            rows.append({"line": line, "of": rest, **killed(place / "kept", Lines(line))})
            if not rows[-1]["killed"] or wrong(rows[-1]):  # what an earlier kill left took fewer lines
                break
    return rows


def boundaries() -> list[tuple[str, int, float]]:
    """Return every moment of a run at which bytes or names reach the system: call, number, share written.

    A kill falls before each call; in a write also halfway, and after it, before it returns.
    """
    with _place() as place:
        calls = place / "calls"

        def work() -> None:
            with injected(Layer(KILL)) as layer:
                base.train(place / "kept")
            calls.write_text(" ".join(layer.calls))

        survived(work)
        return [
            (call, number, share)
            for number, call in enumerate(calls.read_text().split(), 1)
            for share in ((0.0, 0.5, 1.0) if call == "write" else (0.0,))
        ]


def at_boundary(call: str, number: int, share: float) -> list[dict]:
    """Kill a new run at one of its boundaries."""
    with _place() as place:
        layer = Layer(KILL, number, share=share)
        return [{"call": call, "share": share, **killed(place / "kept", injected(layer))}]


def trial(index: int, *, seed: int, edges: list[tuple[str, int, float]], known: dict) -> dict:
    """Return the kills of one trial: the first ones are at the boundaries, the others before lines."""
    at = edges[index] if index < len(edges) else None
    return {"kills": at_boundary(*at) if at else at_lines(index - len(edges), seed, known)}


def wrong(kill: dict) -> bool:
    """Return whether a run did not come back to the same bytes, or its ledger counted too little."""
    return not kill["same"] or kill["spent"] < kill["least"]


def _row(name: str, kills: list[dict], *, drawn: bool) -> str:
    found = sum(not kill["same"] for kill in kills), sum(kill["spent"] < kill["least"] for kill in kills)
    bounds = [
        f"{100 * report.upper_bound(one, len(kills)):.2g} %" if drawn and kills else "" for one in found
    ]
    cells = [name, f"{len(kills):,}", f"{len(kills) - found[0]:,}", bounds[0], f"{found[1]:,}", bounds[1]]
    return f"| {' | '.join(cells)} |"


def table(rows: list[dict], seed: int, ran: str, machine: str) -> str:
    """Return what became of the kills as Markdown."""
    every = [kill for row in rows for kill in row["kills"]]
    kills = [kill for kill in every if kill["killed"]]
    lines, edges = [k for k in kills if "line" in k], [k for k in kills if "call" in k]
    longest = max((kill["of"] for kill in lines), default=0)
    return "\n".join(
        [
            "# A private run killed, and gone on with",
            "",
            f"Seed {seed}, commit {ran}, on {machine}.",
            f"A run of {base.STEPS} steps, with a checkpoint and a reserve every {base.EVERY}, has",
            f"{longest:,} lines of ours. After each kill a copy of what was left went on to the end.",
            "Upper bounds are of the chance of other bytes, and of a ledger below the steps begun,",
            "one-sided, at 95 % (Clopper-Pearson); boundaries have none, for every one was tried.",
            f"Moments past the end of their run: {len(every) - len(kills)}.",
            "",
            "| killed at | kills | resumed to the same bytes | upper bound | ledger too low | upper bound |",
            "|---|---|---|---|---|---|",
            _row("**a line that chance chose**", lines, drawn=True),
            *(
                _row(f"with {begun} steps begun", [k for k in lines if k["begun"] == begun], drawn=True)
                for begun in range(base.STEPS + 1)
            ),
            _row("**every boundary of a run**", edges, drawn=False),
            *(
                _row(call, [kill for kill in edges if kill["call"] == call], drawn=False)
                for call in sorted({kill["call"] for kill in edges})
            ),
            *(f"- {kill}" for kill in every if wrong(kill)),
            "",
        ]
    )


def _count(asked: counted.Count) -> int:
    with base.made():
        edges = boundaries()

        def tell(rows: list[dict]) -> str:
            so_far = [kill for row in rows for kill in row["kills"]]
            return f"[kills] {len(so_far):,} kills, {sum(map(wrong, so_far))} wrong"

        one = functools.partial(trial, seed=asked.seed, edges=edges, known={})
        rows = asked.rows(one, len(edges) + -(-asked.number // IN_A_RUN), tell)
    asked.publish(table(rows, asked.seed, asked.commit, asked.machine))
    return int(any(wrong(kill) for row in rows for kill in row["kills"]))


def main(arguments: list[str] | None = None) -> int:
    """Kill, resume, and return 1 if a run came to other bytes or a ledger counted too little."""
    return counted.program("kills", 1000, _count, arguments)


if __name__ == "__main__":
    sys.exit(main())
