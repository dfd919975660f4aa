"""The factorial of four layers of defense: its cells, its contrasts, and how sure one can be of them.

    for cell in cells(): ...                    # 16 combinations; the first is no layer at all
    effects({cell: figure for ...})             # what each layer changes, alone and together

All cells are measured on the same people, so one resample of the people serves every cell, and a contrast of
cells has an interval of its own. It covers the choice of patients, not the luck of training: each cell is
trained once.

>>> [cell.name for cell in cells()][:3], Layers(scrub=True, dp=True).name
(['none', 'filter', 'DP'], 'scrub + DP')

Source: for contrasts of a two-level factorial, Box, Hunter and Hunter 2005, chapter 5.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from privhelpers import rng
from privhelpers.errors import InvalidParameter
from privhelpers.stats import Interval, checks, roc
from privhelpers.stats.clustered import percentile_interval, weight_blocks

LAYERS = ("scrub", "dedup", "dp", "filter")
IN_TRAINING = LAYERS[:3]  # the filter changes what comes out, not the weights
WORDS = {"scrub": "scrub", "dedup": "dedup", "dp": "DP", "filter": "filter"}


@dataclass(frozen=True, order=True)
class Layers:
    """One cell: which layers are on.

    Attributes:
        scrub: identifiers are replaced in the notes before training.
        dedup: near-duplicates among a patient's notes are removed before training.
        dp: training is DP-SGD.
        filter: what the model writes passes an output filter.
    """

    scrub: bool = False
    dedup: bool = False
    dp: bool = False
    filter: bool = False

    @property
    def name(self) -> str:
        """Words for a table: `none`, or the layers that are on."""
        return " + ".join(WORDS[layer] for layer in LAYERS if getattr(self, layer)) or "none"

    @property
    def training(self) -> "Layers":
        """The cell whose weights this one uses: itself without the filter."""
        return Layers(self.scrub, self.dedup, self.dp)


def cells() -> list[Layers]:
    """Return the 16 cells, the one without any layer first."""
    return [Layers(*on) for on in itertools.product((False, True), repeat=len(LAYERS))]


def trainings() -> list[Layers]:
    """Return the 8 cells that differ in training, in the order of `cells`."""
    return [cell for cell in cells() if not cell.filter]


@dataclass(frozen=True)
class Figure:
    """A figure of one cell, with what it would have been on other people.

    Attributes:
        estimate: on these people.
        replicates: on each resample of them, shape [draws]; the same resamples in every cell.
        n: observations behind it, of both arms together.
    """

    estimate: float
    replicates: np.ndarray
    n: int

    def interval(self, level: float = 0.95) -> Interval:
        """Return the percentile interval."""
        return percentile_interval(self.estimate, self.replicates, level, _method(self.replicates.size))


def _method(draws: int) -> str:
    return f"cluster bootstrap, {draws} draws"


def area(
    member_scores: ArrayLike,
    member_patients: ArrayLike,
    other_scores: ArrayLike,
    other_patients: ArrayLike,
    *,
    draws: int = 300,
    seed: int = 0,
) -> Figure:
    """Return an AUC; its replicates fit those of other cells if the patients stand in the same order.

    Args:
        member_scores, member_patients: of notes trained on, higher is more member-like.
        other_scores, other_patients: of notes of never-trained patients.
        draws: resamples of patients.
        seed: of the resampling, the same for all cells.
    """
    pooled = roc.PooledScores(member_scores, other_scores)
    drawn = roc.replicates(roc.areas, pooled, (member_patients, other_patients), draws, seed)
    return Figure(float(roc.areas(*pooled.equal())[0]), drawn, sum(map(np.size, pooled.codes)))


def difference(
    values: ArrayLike,
    clusters: ArrayLike,
    control: ArrayLike,
    control_clusters: ArrayLike,
    *,
    draws: int = 300,
    seed: int = 0,
) -> Figure:
    """Return the mean of `values` minus that of the control, each arm resampled by clusters.

    Args:
        values, clusters: of the trained arm: numbers, or 0 and 1 for a rate.
        control, control_clusters: of the never-trained arm.
        draws, seed: as of `area`.
    """
    arms = [checks.vector(n, v) for n, v in (("values", values), ("control", control))]
    groups = (("clusters", clusters), ("control_clusters", control_clusters))
    owners = [checks.cluster_codes(*group, arm.size) for group, arm in zip(groups, arms, strict=True)]
    generator = rng.make(seed, "factorial/difference")
    blocks = weight_blocks(owners, checks.count("draws", draws, low=1), generator)
    drawn = [(a @ arms[0]) / a.sum(1) - (b @ arms[1]) / b.sum(1) for a, b in blocks]
    return Figure(float(arms[0].mean() - arms[1].mean()), np.concatenate(drawn), sum(a.size for a in arms))


def weighted_mean(
    values: ArrayLike, weights: ArrayLike, clusters: ArrayLike, *, draws: int = 300, seed: int = 0
) -> Figure:
    """Return a weighted mean, such as the loss per token over a set of notes: the log of its perplexity.

    Args:
        values: one a note.
        weights: such as tokens of the note, greater than 0.
        clusters: patient of each note.
        draws, seed: as of `area`.
    """
    values, weights = checks.vector("values", values), checks.vector("weights", weights)
    owners = [checks.cluster_codes("clusters", clusters, values.size)]
    blocks = weight_blocks(owners, checks.count("draws", draws, low=1), rng.make(seed, "factorial/mean"))
    drawn = [(w @ (weights * values)) / (w @ weights) for (w,) in blocks]
    return Figure(float(np.average(values, weights=weights)), np.concatenate(drawn), values.size)


def joined(one: Interval, two: Interval) -> Interval:
    """Return the difference of two rates, with an interval that stays open where nothing was hit.

    A bootstrap of no hits in either arm is the interval [0, 0], which claims certainty. Here the ends come
    from the intervals of the two rates, joined as Newcombe joins Wilson's.

    Args:
        one, two: rates with intervals of the same level, of independent arms.

    Source: Newcombe 1998, method 10, with other intervals inside.

    >>> from privhelpers import stats
    >>> found = joined(stats.clopper_pearson(0, 20), stats.clopper_pearson(0, 20))
    >>> round(found.low, 3), found.estimate, round(found.high, 3)
    (-0.168, 0.0, 0.168)
    """
    estimate = one.estimate - two.estimate
    low = estimate - np.hypot(one.estimate - one.low, two.high - two.estimate)
    high = estimate + np.hypot(one.high - one.estimate, two.estimate - two.low)
    return Interval(estimate, float(low), float(high), one.level, "Newcombe, of the intervals of the arms")


def _contrast(layers: Sequence[str], factors: Sequence[str]) -> np.ndarray:
    """Return the weight of each cell: differences along `layers`, averaged over all other factors."""
    rows = [dict(zip(factors, on, strict=True)) for on in itertools.product((0, 1), repeat=len(factors))]
    signs = [np.prod([1 if row[layer] else -1 for layer in layers]) for row in rows]
    return np.array(signs) / 2 ** (len(factors) - len(layers))


def effects(
    figures: Mapping[Layers, Figure], *, factors: Sequence[str] = IN_TRAINING, level: float = 0.95
) -> pd.DataFrame:
    """Return what each layer changes, and what two change together beyond the sum.

    A main effect is the mean figure of the cells with the layer minus that of the cells without. An
    interaction is the effect of one layer where the other is on, minus its effect where the other is off:
    zero if layers add up.

    Args:
        figures: of all cells of the factors; other layers off.
        factors: layers that vary.
        level: of the intervals, which cover the choice of people.

    Returns:
        One row an effect: `effect`, `low`, `high`, and `away_from_0`, whether the interval excludes zero.

    Raises:
        InvalidParameter: a cell is missing, or cells have different numbers of replicates.
    """
    grid = [
        Layers(**dict(zip(factors, on, strict=True)))
        for on in itertools.product((False, True), repeat=len(factors))
    ]
    missing = [cell.name for cell in grid if cell not in figures]
    if missing:
        raise InvalidParameter(f"figures: no cell {missing[0]!r}; effects need all {len(grid)}")
    if len({figures[cell].replicates.size for cell in grid}) != 1:
        raise InvalidParameter("figures: cells must be measured on the same resamples")
    estimates = np.array([figures[cell].estimate for cell in grid])
    drawn = np.stack([figures[cell].replicates for cell in grid])
    pairs = [(layer,) for layer in factors] + list(itertools.combinations(factors, 2))
    rows = {}
    for layers in pairs:
        weights = _contrast(layers, factors)
        found = percentile_interval(weights @ estimates, weights @ drawn, level, "")
        sure = found.low > 0 or found.high < 0
        rows[" x ".join(WORDS[layer] for layer in layers)] = [found.estimate, found.low, found.high, sure]
    columns = ["effect", "low", "high", "away_from_0"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("layers")


def row(
    cell: Layers, measure: str, arm: str, interval: Interval, *, n: int, distinct_n: int | None = None
) -> dict:
    """Return one line of `factorial.jsonl`: one figure of one cell, with its arm and its interval.

    Args:
        cell: of the factorial.
        measure: name of the attack or cost.
        arm: `trained`, `never trained`, or `difference` of the two.
        interval: of the figure.
        n: observations of the arm.
        distinct_n: distinct texts among them, where texts were generated.
    """
    ends = {"estimate": interval.estimate, "low": interval.low, "high": interval.high}
    rounded = {name: round(float(value), 6) for name, value in ends.items()}
    counts = {"n": int(n), "distinct_n": distinct_n}
    return {"cell": cell.name, "measure": measure, "arm": arm, **rounded, **counts}
