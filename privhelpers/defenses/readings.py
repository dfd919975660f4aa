"""From outcomes to figures: what every attack found in each of the 16 cells, beside who was never trained on.

    readings = read(outcomes, public, suite, output_filter, public_texts=corpus)
    readings.figures["membership, patient"][Layers(dp=True)].interval()
    store.write_jsonl("defenses/factorial.jsonl", readings.rows)

The filter stands between the model and a reader of its texts. It changes what was extracted and leaves what
was read from probabilities, so membership, exposure and perplexity of a cell are those of its training.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from privhelpers import stats
from privhelpers.attacks import extraction
from privhelpers.attacks.extraction import Generation
from privhelpers.defenses.arms import membership_arms, patients
from privhelpers.defenses.factorial import (
    Figure,
    Layers,
    area,
    cells,
    difference,
    joined,
    row,
    weighted_mean,
)
from privhelpers.defenses.suite import Outcome, Suite
from privhelpers.stats import Interval

Filter = Callable[[str], str]  # what is left of a text
TRAINED, NEVER, DIFFERENCE = "trained", "never trained", "difference"
AGAINST = "trained against never trained"  # of an AUC, which has both arms in it
HELD_BACK = "held back by the filter"
IN_TEXT = ("canaries extracted", "second halves recalled", "prompts that leaked")


@dataclass
class Readings:
    """All figures of the factorial.

    Attributes:
        figures: by measure and cell, with replicates, for effects and tables.
        rows: one line a figure and arm, as `factorial.jsonl` holds them.
    """

    figures: dict[str, dict[Layers, Figure]] = field(default_factory=dict)
    rows: list[dict] = field(default_factory=list)
    _intervals: dict[tuple[str, Layers], Interval] = field(default_factory=dict)

    def add(
        self,
        cell: Layers,
        measure: str,
        figure: Figure,
        interval: Interval | None = None,
        *,
        arm: str = DIFFERENCE,
    ) -> None:
        """Keep a figure, and its line; `interval` replaces that of the bootstrap where it would be empty."""
        interval = interval or figure.interval()
        self.figures.setdefault(measure, {})[cell] = figure
        self._intervals[measure, cell] = interval
        self.rows.append(row(cell, measure, arm, interval, n=figure.n))

    def interval(self, measure: str, cell: Layers) -> Interval:
        """Return the interval of a figure of one cell, as it stands in the lines."""
        return self._intervals[measure, cell]

    def shown(self, measures: Sequence[str], where: Sequence[Layers]) -> pd.DataFrame:
        """Return estimates with their intervals, in words, one row a cell and one column a measure."""
        table = {}
        for measure in measures:
            ends = {cell.name: self.interval(measure, cell) for cell in where}
            words = {name: f"{i.estimate:.2f} [{i.low:.2f}, {i.high:.2f}]" for name, i in ends.items()}
            table[measure.removeprefix("membership, ").removeprefix("above control, ")] = words
        return pd.DataFrame(table)

    def rates(self, measures: Sequence[str]) -> pd.DataFrame:
        """Return the rate of the trained beside that of the never-trained, one row a cell."""
        lines = pd.DataFrame(self.rows)
        lines = lines[lines["measure"].isin(measures) & (lines["arm"] != DIFFERENCE)]
        table = lines.pivot(index="cell", columns=["measure", "arm"], values="estimate")
        return table.loc[[cell.name for cell in cells()]].rename_axis(columns=[None, None])

    def verdicts(self, where: Mapping[str, Layers], nulls: Mapping[str, float]) -> pd.DataFrame:
        """Say for each measure and named cell whether its interval lies above the null.

        Returns:
            `leaks`, or `not seen` for an interval that reaches the null.
        """
        table = {
            name: {
                measure: "leaks" if self.interval(measure, cell).low > null else "not seen"
                for measure, null in nulls.items()
            }
            for name, cell in where.items()
        }
        return pd.DataFrame(table)

    def perplexities(self, where: Sequence[Layers]) -> pd.DataFrame:
        """Return the perplexity on notes of never-trained patients as written and after scrubbing."""
        table = {
            form: {cell.name: float(np.exp(self.figures[f"loss, {form}"][cell].estimate)) for cell in where}
            for form in ("raw", "scrubbed")
        }
        return pd.DataFrame(table)


def _membership(
    into: Readings,
    cell: Layers,
    found: Outcome,
    public: Outcome,
    suite: Suite,
    strangers: Mapping[Layers, Outcome],
    how: dict,
) -> None:
    other = strangers.get(Layers(scrub=cell.scrub, dp=cell.dp))
    theirs = membership_arms(other, public, suite, scrub=cell.scrub) if other else {}
    for name, arms in membership_arms(found, public, suite, scrub=cell.scrub).items():
        own = area(*arms.values, **how)
        into.add(cell, f"membership, {name}", own, arm=AGAINST)
        if name in theirs:
            null = area(*theirs[name].values, **how)
            gap = Figure(own.estimate - null.estimate, own.replicates - null.replicates, own.n)
            into.add(cell, f"above control, {name}", gap)


def _rates(
    into: Readings,
    cell: Layers,
    measure: str,
    arms: Sequence[tuple[np.ndarray, Sequence]],
    how: dict,
    distinct_n: int | None = None,
) -> None:
    """Add a rate of hits: each arm with its clustered interval, and their difference."""
    for arm, (hits, clusters) in zip((TRAINED, NEVER), arms, strict=True):
        interval = stats.clustered_proportion(hits, clusters)
        into.rows.append(row(cell, measure, arm, interval, n=hits.size, distinct_n=distinct_n))
    (hits, owners), (control, others) = arms
    figure = difference(hits, owners, control, others, **how)
    # Intervals of the two arms are clustered already; joining them keeps the end open where nothing was hit.
    into.add(cell, measure, figure, joined(*(stats.clustered_proportion(*arm) for arm in arms)))


def _canaries(into: Readings, cell: Layers, found: Outcome, suite: Suite, let: Filter, how: dict) -> None:
    by_id = {canary["canary_id"]: canary for canary in suite.canaries}
    planted = np.array([result.planted for result in found.canaries])
    names = np.array([result.canary_id for result in found.canaries])
    bits = np.array([result.exposure_bits for result in found.canaries])
    out = []
    for result in found.canaries:
        secret = by_id[result.canary_id]["secret"]
        written = by_id[result.canary_id]["prefix"] + secret
        out.append(result.extracted and secret in let(written))
    out = np.array(out, dtype=float)
    gap = stats.mean_difference(bits[planted], bits[~planted])
    exposure = difference(bits[planted], names[planted], bits[~planted], names[~planted], **how)
    into.add(cell, "canary exposure", exposure, gap)
    arms = [(out[side], names[side]) for side in (planted, ~planted)]
    _rates(into, cell, "canaries extracted", arms, how)


def _recall(into: Readings, cell: Layers, found: Outcome, suite: Suite, let: Filter, how: dict) -> None:
    texts = [note["text"] for note in suite.notes]
    passes = [hit and let(text) == text for hit, text in zip(found.recalled, texts, strict=True)]
    hits, owners = np.array(passes, dtype=float), patients(suite)
    arms = [(hits[side], owners[side]) for side in (suite.member, ~suite.member)]
    _rates(into, cell, "second halves recalled", arms, how)


def _prompts(
    into: Readings, cell: Layers, found: Outcome, suite: Suite, let: Filter, known: str, how: dict
) -> None:
    """Both arms are the same attempts, held against members and against never-trained people."""
    written = [Generation(g.prompt, let(g.text)) for g in found.generations]
    everybody = [*suite.people[0], *suite.people[1]]
    public = extraction.public_values(written, everybody, [known])
    hits = [
        extraction.strict_match(written, group, public=public).hits.astype(float) for group in suite.people
    ]
    prompts = [g.prompt for g in written]
    arms = [(hit, prompts) for hit in hits]
    _rates(into, cell, "prompts that leaked", arms, how, distinct_n=len({g.text for g in written}))


def _names(into: Readings, cell: Layers, found: Outcome, suite: Suite, how: dict) -> None:
    arms = [
        (hits.astype(float), [person.patient_id for person in group])
        for hits, group in zip(found.first_guess, suite.people, strict=True)
    ]
    _rates(into, cell, "diagnosis by name", arms, how)


def _utility(into: Readings, cell: Layers, found: Outcome, suite: Suite, how: dict) -> None:
    others, owners = ~suite.member, patients(suite)
    for form in ("raw", "scrubbed"):
        losses, tokens = getattr(found, form), getattr(found, f"{form}_tokens")
        figure = weighted_mean(losses[others], tokens[others], owners[others], **how)
        into.add(cell, f"loss, {form}", figure, arm=NEVER)


def _held_back(into: Readings, cell: Layers, suite: Suite, let: Filter, how: dict) -> None:
    """Add how often the filter holds something back in notes themselves: it tells who is in it."""
    texts = [note["text"] for note in suite.notes]
    hits, owners = np.array([let(text) != text for text in texts], dtype=float), patients(suite)
    arms = [(hits[side], owners[side]) for side in (suite.member, ~suite.member)]
    _rates(into, cell, HELD_BACK, arms, how)


def read(
    outcomes: Mapping[Layers, Outcome],
    public: Outcome,
    suite: Suite,
    output_filter: Filter,
    *,
    known: str,
    strangers: Mapping[Layers, Outcome] | None = None,
    draws: int = 300,
    seed: int = 0,
) -> Readings:
    """Return every figure of the 16 cells.

    Args:
        outcomes: of the eight trainings.
        public: of the public checkpoint, the reference of two attacks.
        suite: what the models were asked.
        output_filter: returns what is left of a text; applied in the cells with the filter.
        known: public text; an identifier that stands in it gives nobody away.
        strangers: models trained in the same way on other people of the hospital, by scrubbing and DP: what
            an attack finds on them is a difference between the groups of patients, and no memory of them.
        draws: resamples of people, the same in every cell.
        seed: of the resampling.
    """
    into, how = Readings(), {"draws": draws, "seed": seed}
    output_filter = functools.cache(output_filter)  # the same notes pass it in eight cells
    for cell in cells():
        found = outcomes[cell.training]
        let = output_filter if cell.filter else str
        _membership(into, cell, found, public, suite, strangers or {}, how)
        _canaries(into, cell, found, suite, let, how)
        _recall(into, cell, found, suite, let, how)
        _prompts(into, cell, found, suite, let, known, how)
        _names(into, cell, found, suite, how)
        _utility(into, cell, found, suite, how)
        if cell.filter:
            _held_back(into, cell, suite, let, how)
    return into


def control(public: Outcome, suite: Suite, *, known: str, draws: int = 300, seed: int = 0) -> Readings:
    """Return the same figures for the public checkpoint, which was trained on nobody: all must be null.

    Its lines carry the cell `none`; do not mix them with those of `read`.
    """
    into, how = Readings(), {"draws": draws, "seed": seed}
    cell = Layers()
    arms = membership_arms(public, public, suite, scrub=False)
    for name in ("note, loss", "patient, loss"):  # against itself as the reference every score is zero
        into.add(cell, f"membership, {name}", area(*arms[name].values, **how), arm=AGAINST)
    _canaries(into, cell, public, suite, str, how)
    _recall(into, cell, public, suite, str, how)
    _prompts(into, cell, public, suite, str, known, how)
    _names(into, cell, public, suite, how)
    _utility(into, cell, public, suite, how)
    return into
