"""Intervals for observations that come in groups: notes of one patient, generations of one prompt.

Notes of one patient resemble each other, so a thousand notes of a hundred patients say less than a
thousand notes of a thousand. Whole groups are resampled, or the group count enters the variance.

Sources: Cameron, Gelbach and Miller, Review of Economics and Statistics 90 (2008), section 3.1, for the
cluster bootstrap; Korn and Graubard, Survey Methodology 24 (1998), section 2, for rates near 0.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats as distributions

from privhelpers import rng, validate
from privhelpers.errors import InvalidParameter
from privhelpers.stats import checks
from privhelpers.stats._proportions import Interval

BLOCK = 2_000_000  # weights held at once: bounds the memory of a bootstrap at about 50 MB


def percentile_interval(estimate: float, replicates: np.ndarray, level: float, method: str) -> Interval:
    """Return the percentile interval of bootstrap replicates."""
    tail = 50 * (1 - level)
    low, high = np.percentile(replicates, [tail, 100 - tail])
    return Interval(float(estimate), float(low), float(high), level, method)


def _equal_clusters(codes: np.ndarray) -> float:
    """Return how many clusters of equal size would say as much."""
    sizes = np.bincount(codes) / np.bincount(codes).max()
    return float(sizes.sum() ** 2 / np.sum(sizes**2))


def widen_point_interval(interval: Interval, *patients: ArrayLike) -> Interval:
    """Return an interval of a mean over pairs, or a wider one if its ends are equal.

    A bootstrap of what does not vary is a point and claims certainty. One patient of each arm makes k
    independent pairs, k of the smaller arm (of equal sizes, as in `clustered_proportion`). If all have the
    value e, pairs of another one may be a share q with (1 - q)^k >= (1 - level) / 2, and then the mean is
    (1 - q) e + q x, x from 0 to 1. At e = 0 and 1 these ends are Clopper and Pearson's (1934), of k trials.

    Args:
        interval: of a value from 0 to 1.
        patients: patient of each note, of each arm.
    """
    if interval.low < interval.high:
        return interval
    pairs = min(_equal_clusters(np.unique(owners, return_inverse=True)[1]) for owners in patients)
    q, e = 1 - ((1 - interval.level) / 2) ** (1 / pairs), interval.estimate
    method = f"{interval.method}, which do not differ: Clopper-Pearson of {pairs:.0f} pairs of patients"
    return Interval(e, (1 - q) * e, (1 - q) * e + q, interval.level, method)


def _resampled_weights(
    codes: np.ndarray, clusters: int, draws: int, generator: np.random.Generator
) -> np.ndarray:
    """Return how often each observation enters each bootstrap draw, shape (draws, observations)."""
    picks = generator.integers(clusters, size=(draws, clusters))
    picks += clusters * np.arange(draws)[:, None]
    times = np.bincount(picks.ravel(), minlength=draws * clusters).reshape(draws, clusters)
    return times[:, codes].astype(np.float64)


def weight_blocks(
    arms: list[tuple[np.ndarray, int]], draws: int, generator: np.random.Generator
) -> Iterator[list[np.ndarray]]:
    """Yield bootstrap weights of several arms, each resampled on its own, a bounded block at a time."""
    step = max(1, BLOCK // max(codes.size for codes, _ in arms))
    for start in range(0, draws, step):
        size = min(step, draws - start)
        yield [_resampled_weights(codes, clusters, size, generator) for codes, clusters in arms]


def clustered_bootstrap(
    statistic: Callable[..., float],
    clusters: ArrayLike,
    *arrays: ArrayLike,
    draws: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """Return a percentile interval of any statistic by resampling whole clusters.

    Each draw takes as many clusters as there are, with replacement, and keeps every observation of a
    cluster as often as it was taken. With fewer than about 30 clusters the interval is too narrow.

    Args:
        statistic: called with one resampled array per entry of `arrays`; returns a number.
        clusters: cluster of each observation (any labels), shape (n,).
        arrays: observations, each of length n along the first axis.
        draws: bootstrap draws, 1 to 10 million.
        seed: seed of the resampling, 0 or more.
        level: nominal coverage, in (0, 1).

    Raises:
        InvalidParameter: lengths differ, fewer than 2 clusters, or the statistic is not finite on a draw.
    """
    validate.function(statistic=statistic)
    draws, level = checks.draws(draws), validate.open_unit(level=level)
    columns = [validate.array("arrays", array) for array in arrays]
    if not columns or any(column.ndim == 0 or len(column) != len(columns[0]) for column in columns):
        raise InvalidParameter("arrays: give one or more, all of the same length")
    codes, n_clusters = checks.cluster_codes("clusters", clusters, len(columns[0]))
    members = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    generator = rng.make(seed, "stats.clustered_bootstrap")
    replicates = np.empty(draws)
    for draw in range(draws):
        rows = np.concatenate([members[pick] for pick in generator.integers(n_clusters, size=n_clusters)])
        replicates[draw] = statistic(*(column[rows] for column in columns))
    estimate = float(statistic(*columns))
    if not np.isfinite([estimate, *replicates]).all():
        raise InvalidParameter("statistic: not finite on the data or on a draw of them")
    return percentile_interval(estimate, replicates, level, f"cluster bootstrap, {draws} draws")


def _outcomes(hits: ArrayLike, clusters: ArrayLike) -> tuple[np.ndarray, np.ndarray, float]:
    """Return outcomes, cluster numbers, and how many clusters of equal size would say as much."""
    outcomes = checks.vector("hits", hits)
    if not np.isin(outcomes, (0, 1)).all():
        raise InvalidParameter("hits: must be 0 or 1 (or False, True)")
    codes, _ = checks.cluster_codes("clusters", clusters, outcomes.size)
    return outcomes, codes, _equal_clusters(codes)


def design_effect(hits: ArrayLike, clusters: ArrayLike) -> float:
    """Return by how much clustering multiplies the variance of a rate (1: not at all).

    The cluster-robust variance of the rate over p(1-p)/n. If every outcome is the same, the data say
    nothing about clustering and the worst case is returned, of clusters that agree within: the size of the
    cluster of a mean trial, sum m^2 / sum m over sizes m, which is the mean size if all are equal.

    Args:
        hits: outcome of each trial, 0 or 1, shape (n,).
        clusters: cluster of each trial (any labels), shape (n,).

    Raises:
        InvalidParameter: outcomes are not 0 or 1, lengths differ, or there are fewer than 2 clusters.

    Source: Kish, Survey Sampling (1965), section 8.2.
    """
    outcomes, codes, n_clusters = _outcomes(hits, clusters)
    n, p = outcomes.size, outcomes.mean()
    if p in (0, 1):
        return n / n_clusters
    residuals = np.bincount(codes, weights=outcomes - p)
    variance = n_clusters / (n_clusters - 1) * np.sum(residuals**2) / n**2
    return float(variance / (p * (1 - p) / n))


def intraclass_correlation(values: ArrayLike, clusters: ArrayLike) -> float:
    """Return the correlation of two observations of one cluster, by analysis of variance.

    Below 0 if observations within a cluster differ more than between clusters; not a number
    if all values are equal or no cluster has two observations: such data are not informative.

    Args:
        values: one number per observation (0 and 1 for outcomes), shape (n,).
        clusters: cluster of each observation (any labels), shape (n,).

    Raises:
        InvalidParameter: lengths differ, a value is not finite, or there are fewer than 2 clusters.

    Source: Donner and Klar, Design and Analysis of Cluster Randomization Trials (2000), section 1.4.

    >>> round(intraclass_correlation([0, 0, 1, 1], ["a", "a", "b", "b"]), 6)
    1.0
    """
    array = checks.vector("values", values)
    codes, count = checks.cluster_codes("clusters", clusters, array.size)
    sizes = np.bincount(codes)
    if array.size == count or np.ptp(array) == 0:
        return float("nan")
    means = np.bincount(codes, weights=array) / sizes
    between = np.sum(sizes * (means - array.mean()) ** 2) / (count - 1)
    within = np.sum((array - means[codes]) ** 2) / (array.size - count)
    # The size that counts when clusters differ: a little below their mean.
    size = (array.size - np.sum(sizes**2) / array.size) / (count - 1)
    return float((between - within) / (between + (size - 1) * within))


def clustered_proportion(
    hits: ArrayLike, clusters: ArrayLike, *, effect: float | None = None, level: float = 0.95
) -> Interval:
    """Return an interval for a rate whose trials are clustered, such as attempts within prompts.

    Clopper-Pearson at the effective number of trials (trials over design effect, with a correction for
    few clusters), because a bootstrap of zero leaks in any number of attempts is the interval [0, 0].
    Clusters of unequal sizes m count as (sum m)^2 / sum m^2 equal ones. A handful covers too rarely: at a
    rate of 0.1 and a correlation of 0.5, five of 60 trials 85%, three of 100 with twenty of one 82%
    (2000 draws each). The worst `effect`, the `design_effect` of no hit, covered in every draw.

    Args:
        hits: outcome of each trial, 0 or 1, shape (n,).
        clusters: cluster of each trial (any labels), shape (n,).
        effect: design effect to use, greater than 0; default: `design_effect` of these data, which lets
            the clusters alone count when no trial, or every trial, is a hit.
        level: nominal coverage, in (0, 1).

    Raises:
        InvalidParameter: outcomes are not 0 or 1, lengths differ, or there are fewer than 2 clusters.

    Source: Korn and Graubard (1998), section 2.
    """
    outcomes, _, n_clusters = _outcomes(hits, clusters)
    level = validate.open_unit(level=level)
    effect = design_effect(outcomes, clusters) if effect is None else validate.positive(effect=effect)
    n, p = outcomes.size, float(outcomes.mean())
    tail = (1 - level) / 2
    few = 1.0
    if p not in (0, 1):
        few = (distributions.t.isf(tail, n - 1) / distributions.t.isf(tail, n_clusters - 1)) ** 2
    # A design effect below 1, or the 0 of clusters that share one rate, is noise more often than truth: never
    # claim more trials than there were. If one cluster outweighs all, none are left: [0, 1].
    effective = max(few * n / max(effect, few), 1e-12)
    beta = distributions.beta.ppf
    low = 0.0 if p == 0 else beta(tail, p * effective, (1 - p) * effective + 1)
    high = 1.0 if p == 1 else beta(1 - tail, p * effective + 1, (1 - p) * effective)
    method = f"Clopper-Pearson at {effective:.0f} effective of {n} trials"
    return Interval(p, float(low), float(high), level, method)


def paired_rate_difference(
    hits_a: ArrayLike,
    hits_b: ArrayLike,
    clusters: ArrayLike,
    *,
    effect: float | None = None,
    level: float = 0.95,
) -> Interval:
    """Return rate(a) - rate(b) of two rules on the same trials, with an interval that is never a point.

    The difference is between two exclusive rates: trials that only a hits, and trials that only b hits.
    Each gets its `clustered_proportion`, with one design effect for both: a rule without a hit shows no
    clustering of its own. The two intervals are joined with the correlation of the rates over clusters.
    If the rules never differ, that design effect is `effect`, or each cluster counts as one trial.

    Args:
        hits_a, hits_b: outcome of each trial under each rule, 0 or 1, shape (n,).
        clusters: cluster of each trial (any labels), shape (n,).
        effect: design effect of a related rule on these trials, greater than 0, used if the two rules
            never differ.
        level: nominal coverage, in (0, 1).

    Raises:
        InvalidParameter: outcomes are not 0 or 1, lengths differ, or there are fewer than 2 clusters.

    Source: Newcombe, Statistics in Medicine 17 (1998), 2635, method 10, with other intervals inside.

    >>> difference = paired_rate_difference([0, 0, 0], [0, 0, 0], ["a", "b", "c"])
    >>> round(difference.low, 3), difference.estimate, round(difference.high, 3)
    (-0.708, 0.0, 0.708)
    """
    a, codes, _ = _outcomes(hits_a, clusters)
    b, _, _ = _outcomes(hits_b, clusters)
    only_a, only_b = (a > b).astype(float), (b > a).astype(float)
    either = np.maximum(only_a, only_b)
    known = None if effect is None else validate.positive(effect=effect)
    effects = [design_effect(hits, codes) for hits in (only_a, only_b, either) if hits.any()]
    effect = max(effects) or None if effects else known or design_effect(either, codes)
    one, two = (clustered_proportion(hits, codes, effect=effect, level=level) for hits in (only_a, only_b))
    sums = [np.bincount(codes, weights=hits - hits.mean()) for hits in (only_a, only_b)]
    spread = math.sqrt(np.sum(sums[0] ** 2) * np.sum(sums[1] ** 2))
    correlation = float(np.clip(np.sum(sums[0] * sums[1]) / spread, -1, 1)) if spread > 1e-12 else 0.0

    def reach(p: float, q: float) -> float:
        return math.sqrt(max(0.0, p**2 + q**2 - 2 * correlation * p * q))

    estimate = one.estimate - two.estimate
    low = estimate - reach(one.estimate - one.low, two.high - two.estimate)
    high = estimate + reach(one.high - one.estimate, two.estimate - two.low)
    method = f"Newcombe, of trials that one rule alone hits; {one.method}"
    return Interval(estimate, max(low, -1.0), min(high, 1.0), level, method)


def mean_difference(planted: ArrayLike, control: ArrayLike, *, level: float = 0.95) -> Interval:
    """Return the Welch interval of mean(planted) - mean(control) for independent units.

    Welch rather than bootstrap: a few dozen canaries are too few for percentiles, which come out too
    narrow, and the two arms have different spreads (planted canaries pile up at the ceiling). A handful of
    units that are 0 or 1 covers too rarely: 2 against 2 in 87% of 4000 draws instead of 95%. For rates
    take `newcombe_difference` of two `clopper_pearson` intervals, which covered in every draw.

    Args:
        planted: one value per planted unit, such as the exposure of a canary in bits; 2 or more.
        control: one value per never-trained unit; 2 or more.
        level: nominal coverage, in (0, 1).

    Raises:
        InvalidParameter: an arm has fewer than 2 values, or a value is not finite.

    Source: Welch, Biometrika 34 (1947).
    """
    planted, control = checks.vector("planted", planted, 2), checks.vector("control", control, 2)
    level = validate.open_unit(level=level)
    estimate = float(planted.mean() - control.mean())
    # Spread at the size of rounding counts as zero: the degrees of freedom would be 0/0.
    if max(np.ptp(planted), np.ptp(control)) <= 1e-12 * max(1, *np.abs(planted), *np.abs(control)):
        return Interval(estimate, estimate, estimate, level, "Welch (no spread in either arm)")
    low, high = distributions.ttest_ind(planted, control, equal_var=False).confidence_interval(level)
    return Interval(estimate, float(low), float(high), level, "Welch")
