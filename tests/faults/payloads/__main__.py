"""`make payloads`: hostile texts in every display, in a browser, under each net alone and under both.

Writes `build/faults/payloads.md`. The texts are the catalogue's and nothing is drawn, so there is no seed.
"""

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from faults.harness import report
from faults.payloads import acting, catalogue, displays, nets
from faults.payloads.catalogue import Payload
from playwright.sync_api import sync_playwright

from privhelpers import browser
from privhelpers.artifacts import write_atomic

TARGET = report.ROOT / "build" / "faults" / "payloads.md"
PATIENCE = 600_000  # milliseconds that a busy computer may take for one step of a page


class _Patient:
    """A browser whose pages wait as long as a busy computer needs."""

    def __init__(self, opened) -> None:
        self.opened = opened

    def new_context(self, **options):
        context = self.opened.new_context(**options)
        context.set_default_timeout(PATIENCE)
        return context


def results(chromium, payloads: Sequence[Payload], folder: Path) -> Iterator[nets.Result]:
    """Yield what became of the payloads, display by display and net by net."""
    html, shown = displays.pages(folder / "pages", payloads)
    (folder / "raw").mkdir()
    yield from nets.escaped(chromium, html, shown, payloads, policy=False)
    yield from nets.escaped(chromium, html, shown, payloads, policy=True)
    yield from nets.under_policies(chromium, folder / "raw", html, shown, payloads)


def _bound(failures: int, trials: int) -> str:
    return f"{100 * report.upper_bound(failures, trials):.2g} %"


def table(payloads: Sequence[Payload], idle: Sequence[Payload], made: Sequence[nets.Result]) -> str:
    """Return the table of a run as Markdown.

    Args:
        payloads: what was tried.
        idle: those that do nothing even where nothing stops them.
        made: what became of them.
    """
    trials, failed = sum(len(one.tried) for one in made), sum(len(one.failed) for one in made)
    amiss = [f"- {one.display}, {one.net}: {words}" for one in made for words in one.amiss]
    by_kind, idle_by_kind = Counter(one.kind for one in payloads), Counter(one.kind for one in idle)
    effects = {one.kind: one.effect for one in reversed(payloads)}
    kinds = []
    for kind, count in by_kind.items():
        own = frozenset(one.number for one in payloads if one.kind == kind)
        of_kind = [(len(own & one.tried), len(own & one.failed), len(own & one.refused)) for one in made]
        tried, bad, refused = map(sum, zip(*of_kind, strict=True))
        cells = [kind, effects[kind], count, count - idle_by_kind[kind], tried, refused, bad]
        kinds.append([*cells, _bound(bad, tried)])
    shown = []
    for one in made:
        counts = map(len, (one.tried, one.refused, one.ran, one.asked, one.unread, one.amiss))
        shown.append([one.display, one.net, *counts, _bound(len(one.failed), len(one.tried))])
    head = ["display", "net", "payloads", "refused", "ran", "asked", "not shown as text", "else amiss"]
    of_kinds = ["kind", "tries", "payloads", "act where nothing stops them", "trials", "refused", "failed"]
    return "\n".join(
        [
            "# Hostile texts on every page",
            "",
            f"{len(payloads)} payloads, {trials:,} trials (a payload in a display under a net), commit",
            f"{report.commit()}, on {report.processor()}. Nothing is drawn: there is no seed.",
            f"Failed: {failed:,}; chance of a failure: at most {_bound(failed, trials)}, one-sided, at 95 %",
            "(Clopper-Pearson, trials taken as independent draws). Pages otherwise amiss: "
            f"{sum(bool(one.amiss) for one in made)}.",
            "",
            "A net alone: pages without their policies, or payloads that stand in a page as they are, under",
            "a policy of ours. A payload fails if it runs, asks for an address, or is not shown in its own",
            "characters; one that is refused is not shown at all.",
            "",
            *_rows([*head, "upper bound"], shown),
            "",
            *_rows([*of_kinds, "upper bound"], kinds),
            *(["", "## Amiss", "", *amiss] if amiss else []),
            *(["", "## Not shown as text, run or asked", "", *_failures(payloads, made)] if failed else []),
            *(["", "## Idle where nothing stops them", ""] if idle else []),
            *(f"- {one.kind}: {one.text!a}" for one in idle),
            "",
        ]
    )


def _failures(payloads: Sequence[Payload], made: Sequence[nets.Result]) -> Iterator[str]:
    texts = {one.number: one for one in payloads}
    for one in made:
        for number in sorted(one.failed):
            yield f"- {one.display}, {one.net}: {texts[number].kind}: {texts[number].text!a}"


def _rows(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(map(str, line))} |" for line in lines]


def main() -> int:
    """Try every payload and return 1 if one of them did more than stand there."""
    payloads, made, start = catalogue.payloads(), [], time.monotonic()
    path = browser.require_chromium("shows the pages")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as tools:
        opened = tools.chromium.launch(executable_path=path, args=browser._arguments(), timeout=PATIENCE)
        chromium, folder = _Patient(opened), Path(name)
        (folder / "idle").mkdir()
        idle = acting.idle(chromium, folder / "idle", payloads)
        for one in results(chromium, payloads, folder):
            made.append(one)
            minutes = (time.monotonic() - start) / 60
            sys.stderr.write(f"\r[payloads] {len(made)} displays, {minutes:.0f} min: {one.display[:40]:40}")
            sys.stderr.flush()
        opened.close()
    text = table(payloads, idle, made)
    write_atomic(TARGET, text.encode())
    print(f"\n{text}", end="")
    return int(any(one.failed or one.amiss for one in made))


if __name__ == "__main__":
    sys.exit(main())
