"""How often intervals hold the truth: exactly for single trials, by simulation for clusters.

A simulated data set is one row of cluster sums, so that thousands of data sets are analyzed at once; the
tests compare each row with what the helper for a single data set returns.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats as distributions

from privhelpers import rng
from privhelpers.errors import InvalidParameter
from privhelpers.stats import checks
from privhelpers.stats.clustered import resampled_weights
from privhelpers.stats.proportions import Interval

Ends = tuple[np.ndarray, np.ndarray]


def binomial_coverage(
    method: Callable[[int, int, float], Interval], rates: ArrayLike, trials: int, level: float = 0.95
) -> np.ndarray:
    """Return the exact probability that an interval of a rate holds it, at each true rate.

    There are only `trials` + 1 possible data sets: their probabilities are added up, nothing is simulated.

    Args:
        method: `wald`, `wilson`, `clopper_pearson` or another function of successes, trials and level.
        rates: true rates, in [0, 1], one axis.
        trials: independent trials, 1 or more.
        level: nominal coverage, in (0, 1).

    Raises:
        InvalidParameter: a rate is outside [0, 1], or trials are not a whole number.

    Source: Brown, Cai and DasGupta, Statistical Science 16 (2001), section 2.

    >>> from privhelpers.stats.proportions import wald
    >>> binomial_coverage(wald, [0.01], 50).round(3).tolist()
    [0.395]
    """
    rates, trials = np.atleast_1d(checks.rates("rates", rates)), checks.count("trials", trials, low=1)
    counts = np.arange(trials + 1)
    ends = [method(int(count), trials, level) for count in counts]
    low, high = (np.array([getattr(one, end) for one in ends]) for end in ("low", "high"))
    holds = (low <= rates[:, None]) & (rates[:, None] <= high)
    return np.sum(distributions.binom.pmf(counts, trials, rates[:, None]) * holds, axis=1)


def simulated_hits(
    data_sets: int, clusters: int, per_cluster: int, *, rate: float, icc: float, seed: int
) -> np.ndarray:
    """Return the number of hits of each cluster of many data sets, shape (data_sets, clusters).

    Every cluster has a rate of its own, from the beta distribution with mean `rate` under which two
    attempts of one cluster correlate by `icc`.

    Args:
        data_sets: data sets to draw, 1 or more.
        clusters: clusters of each, 2 or more.
        per_cluster: attempts of each cluster, 1 or more.
        rate: mean rate, in (0, 1).
        icc: intraclass correlation, in [0, 1); 0 makes all attempts independent.
        seed: 0 or more.

    Raises:
        InvalidParameter: a value is outside its range.
    """
    shape = checks.count("data_sets", data_sets, low=1), checks.count("clusters", clusters, low=2)
    per_cluster = checks.count("per_cluster", per_cluster, low=1)
    rate, icc = checks.open_unit("rate", rate), float(checks.rates("icc", icc))
    if icc == 1:
        raise InvalidParameter("icc = 1: every cluster is all hits or none; it must be below 1")
    generator = rng.make(seed, "stats.simulated_hits")
    rates = rate
    if icc > 0:
        weight = 1 / icc - 1
        rates = generator.beta(rate * weight, (1 - rate) * weight, size=shape)
    return generator.binomial(per_cluster, rates, size=shape)


def _hits(hits: ArrayLike, per_cluster: int) -> np.ndarray:
    hits, per_cluster = np.asarray(hits), checks.count("per_cluster", per_cluster, low=1)
    if hits.ndim != 2 or hits.shape[1] < 2 or not ((hits >= 0) & (hits <= per_cluster)).all():
        raise InvalidParameter("hits: must be (data sets, 2 clusters or more), in [0, per_cluster]")
    return hits


def bootstrap_ends(
    hits: ArrayLike, per_cluster: int, *, draws: int = 1000, seed: int = 0, level: float = 0.95
) -> Ends:
    """Return the ends of `clustered_bootstrap` of the mean for each data set, shape (data_sets,).

    Args:
        hits: hits of each cluster, shape (data_sets, clusters).
        per_cluster: attempts of each cluster, 1 or more.
        draws, seed, level: as in `clustered_bootstrap`.
    """
    hits, level = _hits(hits, per_cluster), checks.open_unit("level", level)
    clusters = hits.shape[1]
    generator = rng.make(seed, "stats.clustered_bootstrap")
    weights = resampled_weights(np.arange(clusters), clusters, checks.count("draws", draws, 1), generator)
    means = hits @ weights.T / (clusters * per_cluster)
    low, high = np.percentile(means, [50 * (1 - level), 50 * (1 + level)], axis=1)
    return low, high


def plain_bootstrap_ends(hits: ArrayLike, per_cluster: int, *, level: float = 0.95) -> Ends:
    """Return what a bootstrap of single attempts gives: percentiles of a binomial, so none is drawn.

    Args:
        hits: hits of each cluster, shape (data_sets, clusters).
        per_cluster: attempts of each cluster, 1 or more.
        level: nominal coverage, in (0, 1).
    """
    hits, tail = _hits(hits, per_cluster), (1 - checks.open_unit("level", level)) / 2
    trials = hits.shape[1] * per_cluster
    rates = hits.sum(axis=1) / trials
    low, high = (distributions.binom.ppf(end, trials, rates) / trials for end in (tail, 1 - tail))
    return low, high


def cluster_t_ends(hits: ArrayLike, per_cluster: int, *, level: float = 0.95) -> Ends:
    """Return the ends of `clustered_mean(...).interval()` for each data set.

    Args:
        hits: hits of each cluster, shape (data_sets, clusters).
        per_cluster: attempts of each cluster, 1 or more.
        level: nominal coverage, in (0, 1).
    """
    hits, tail = _hits(hits, per_cluster), (1 - checks.open_unit("level", level)) / 2
    rates = hits / per_cluster
    clusters = hits.shape[1]
    error = rates.std(axis=1, ddof=1) / np.sqrt(clusters)
    reach = distributions.t.isf(tail, clusters - 1) * error
    return rates.mean(axis=1) - reach, rates.mean(axis=1) + reach


def exact_ends(hits: ArrayLike, per_cluster: int, *, level: float = 0.95) -> Ends:
    """Return the ends of `clustered_proportion` for each data set.

    Args:
        hits: hits of each cluster, shape (data_sets, clusters).
        per_cluster: attempts of each cluster, 1 or more.
        level: nominal coverage, in (0, 1).
    """
    hits, tail = _hits(hits, per_cluster), (1 - checks.open_unit("level", level)) / 2
    clusters, trials = hits.shape[1], hits.shape[1] * per_cluster
    rates = hits.mean(axis=1) / per_cluster
    error = hits.std(axis=1, ddof=1) / per_cluster / np.sqrt(clusters)
    some = (rates > 0) & (rates < 1)
    few = (distributions.t.isf(tail, trials - 1) / distributions.t.isf(tail, clusters - 1)) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        effective = np.where(some, few * rates * (1 - rates) / error**2, clusters)
        effective = np.minimum(effective, trials)
        low = distributions.beta.ppf(tail, rates * effective, (1 - rates) * effective + 1)
        high = distributions.beta.ppf(1 - tail, rates * effective + 1, (1 - rates) * effective)
    return np.where(rates == 0, 0.0, low), np.where(rates == 1, 1.0, high)


def share_holding(ends: Ends, truth: float) -> float:
    """Return the share of data sets whose interval holds the truth."""
    low, high = ends
    return float(np.mean((low <= truth) & (truth <= high)))
