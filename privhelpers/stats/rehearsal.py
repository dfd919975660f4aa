"""Rehearsals: whole experiments simulated, so that a test or a plan can be caught when it fails.

>>> 0 <= share_found(4, 0.7, patients=20, notes=2, icc=0.3) <= 1
True
"""

import numpy as np
from scipy.stats import norm

from privhelpers import rng
from privhelpers.errors import InvalidParameter
from privhelpers.stats import checks
from privhelpers.stats.coverage import Ends, simulated_hits
from privhelpers.stats.estimates import clustered_auc
from privhelpers.stats.membership import auc_interval, membership_advantage_interval
from privhelpers.stats.multiplicity import METHODS
from privhelpers.stats.permutation import permutation_difference
from privhelpers.stats.proportions import two_proportion


def simulated_scores(patients: int, notes: int, *, icc: float, shift: float, seed: int) -> Ends:
    """Return normal scores of notes of which each patient's correlate, and the patient of each note.

    Args:
        patients: 1 or more.
        notes: of each patient, 1 or more.
        icc: intraclass correlation, in [0, 1].
        shift: mean of the scores, whose variance is 1.
        seed: 0 or more.
    """
    patients, notes = checks.count("patients", patients, low=1), checks.count("notes", notes, low=1)
    icc, generator = float(checks.rates("icc", icc)), rng.make(seed, "stats.simulated_scores")
    owners = np.repeat(np.arange(patients), notes)
    own, shared = generator.normal(size=owners.size), generator.normal(size=patients)
    return shift + np.sqrt(icc) * shared[owners] + np.sqrt(1 - icc) * own, owners


def simulated_attack(
    patients: int, notes: int, *, icc: float, area: float, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return scores and patients of members and of others, for an attack of known AUC.

    Args:
        patients: in each arm, 1 or more.
        notes: of each patient, 1 or more.
        icc: intraclass correlation of the scores, in [0, 1].
        area: true area under the ROC curve, in (0, 1).
        seed: 0 or more.
    """
    shift = float(np.sqrt(2) * norm.ppf(checks.open_unit("area", area)))
    own = rng.derive(seed, "stats.simulated_attack")
    member = simulated_scores(patients, notes, icc=icc, shift=shift, seed=own)
    return *member, *simulated_scores(patients, notes, icc=icc, shift=0.0, seed=own + 1)


def score_coverage(
    score_sets: int, *, area: float, patients: int, notes: int, icc: float, draws: int = 200, seed: int = 0
) -> dict[str, float]:
    """Return how often intervals of an attack's AUC and of its advantage hold the truth.

    Args:
        score_sets: simulated attacks, 1 or more.
        area: their true AUC, in (0, 1); the best threshold's advantage follows from it.
        patients, notes, icc: as in `simulated_attack`.
        draws: bootstrap draws of each interval.
        seed: 0 or more.

    Returns:
        Share of attacks by interval: `AUC, notes` takes each note for a patient of its own.
    """
    advantage = float(max(2 * norm.cdf(norm.ppf(area) / np.sqrt(2)) - 1, 0.0))
    held: dict[str, int] = {}
    for number in range(checks.count("score_sets", score_sets, low=1)):
        own = rng.derive(seed, f"stats.score_coverage/{number}")
        arms = simulated_attack(patients, notes, icc=icc, area=area, seed=own)
        alone = (arms[0], np.arange(arms[0].size), arms[2], np.arange(arms[2].size))
        how = {"draws": draws, "seed": seed}
        found = {
            "AUC, notes": (area, clustered_auc(*alone).interval()),
            "AUC, patients": (area, clustered_auc(*arms).interval()),
            "AUC, bootstrap": (area, auc_interval(*arms, **how)),
            "advantage, basic": (advantage, membership_advantage_interval(*arms, method="basic", **how)),
            "advantage, band": (advantage, membership_advantage_interval(*arms, **how)),
        }
        for name, (truth, interval) in found.items():
            held[name] = held.get(name, 0) + (truth in interval)
    return {name: count / score_sets for name, count in held.items()}


def null_p_values(
    null_sets: int, *, patients: int, attempts: int, rate: float, icc: float, draws: int = 400, seed: int = 0
) -> dict[str, np.ndarray]:
    """Return p-values of comparisons in which both arms leak alike.

    Args:
        null_sets: simulated comparisons, 1 or more.
        patients: in each arm, 2 or more.
        attempts: on each patient, 1 or more.
        rate: at which both arms leak on average, in (0, 1).
        icc: intraclass correlation of the attempts on a patient, in [0, 1).
        draws: dealings of each permutation test.
        seed: 0 or more.

    Returns:
        `attempts dealt`: of Fisher's exact test, which deals labels to attempts; `patients dealt`.
    """
    found = np.empty((checks.count("null_sets", null_sets, low=1), 2))
    owners, trials = np.repeat(np.arange(patients), attempts), patients * attempts
    for number, row in enumerate(found):
        own = rng.derive(seed, f"stats.null_p_values/{number}")
        both = simulated_hits(2, patients, attempts, rate=rate, icc=icc, seed=own)
        a, b = ((np.arange(attempts) < arm[:, None]).ravel() for arm in both)
        row[0] = two_proportion(int(a.sum()), trials, int(b.sum()), trials).fisher_p
        row[1] = permutation_difference(a, owners, b, owners + patients, draws=draws, seed=own).p_value
    return {"attempts dealt": found[:, 0], "patients dealt": found[:, 1]}


def share_found(
    experiments: int,
    area: float,
    *,
    patients: int,
    notes: int,
    icc: float,
    alpha: float = 0.05,
    seed: int = 0,
) -> float:
    """Return the share of simulated experiments that tell an attack's AUC from one half.

    Args:
        experiments: simulated, 1 or more.
        area: true area under the ROC curve, in (0, 1); at 0.5 the share is that of false alarms.
        patients, notes, icc: as in `simulated_attack`.
        alpha: two-sided error, in (0, 1).
        seed: 0 or more.
    """
    seen, alpha = 0, checks.open_unit("alpha", alpha)
    for number in range(checks.count("experiments", experiments, low=1)):
        own = rng.derive(seed, f"stats.share_found/{number}")
        arms = simulated_attack(patients, notes, icc=icc, area=area, seed=own)
        seen += clustered_auc(*arms).p_value(0.5) <= alpha
    return seen / experiments


def _adjusted(p_values: np.ndarray, method: str) -> np.ndarray:
    """Return what `adjust` makes of each row; the library is slow if called often."""
    tests = p_values.shape[1]
    if method == "none":
        return p_values
    if method == "bonferroni":
        return np.minimum(tests * p_values, 1)
    order = np.argsort(p_values, axis=1)
    steps = np.take_along_axis(p_values, order, axis=1) * (tests - np.arange(tests))
    raised = np.empty_like(p_values)
    np.put_along_axis(raised, order, np.minimum(np.maximum.accumulate(steps, axis=1), 1), axis=1)
    return raised


def many_tests(
    simulations: int, *, effects: np.ndarray, method: str, alpha: float = 0.05, seed: int = 0
) -> tuple[float, float]:
    """Return how many real effects a batch of tests finds, and how often it raises a false alarm.

    Args:
        simulations: batches, 1 or more.
        effects: true effect of each test in standard errors, 0 where there is none.
        method: `holm`, `bonferroni` or `none`.
        alpha: allowed to a batch, in (0, 1).
        seed: 0 or more; the same for two methods compares them on the same data.

    Returns:
        Mean number of real effects found, and share of batches that reject a hypothesis that is true.
    """
    effects, alpha = checks.vector("effects", effects), checks.open_unit("alpha", alpha)
    if method not in METHODS:
        raise InvalidParameter(f"method = {method!r}: must be one of {', '.join(METHODS)}")
    shape = (checks.count("simulations", simulations, low=1), effects.size)
    scores = effects + rng.make(seed, "stats.many_tests").normal(size=shape)
    rejected = _adjusted(2 * norm.sf(np.abs(scores)), method) <= alpha
    real = effects != 0
    return float(rejected[:, real].sum(axis=1).mean()), float(rejected[:, ~real].any(axis=1).mean())
