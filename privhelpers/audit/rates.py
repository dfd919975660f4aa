"""The audit from two error rates: the attacker's FPR and TPR, each with an exact confidence limit.

The limits of Clopper and Pearson need scores that are independent from canary to canary. Canaries with
coordinates of their own in the noise have them; notes that share a model's weights have them only nearly.

>>> counts = {"true_positives": 500, "included": 500, "false_positives": 0, "excluded": 500}
>>> round(rates_epsilon_lower(**counts, delta=0.0, confidence=0.99), 6)
4.541916
"""

import math

import numpy as np
from scipy.special import betainccinv, ndtri

from privhelpers import rng, validate
from privhelpers.audit.result import AuditResult, significance_of
from privhelpers.audit.scores import check_scores
from privhelpers.errors import InvalidParameter
from privhelpers.mechanisms import gdp_epsilon

RATES, RATES_GDP = "Clopper-Pearson", "Clopper-Pearson, Gaussian curve"
_MOST_TRIED = 500  # thresholds held against the half that chooses
CURVES = {False: RATES, True: RATES_GDP}


def _limits(
    true_positives: int, included: int, false_positives: int, excluded: int, error: float
) -> tuple[float, float]:
    """Return upper limits of FNR and FPR, both right at once with probability 1 - error."""
    for name, hits, trials in (
        ("true_positives", true_positives, included),
        ("false_positives", false_positives, excluded),
    ):
        if not 0 <= hits <= trials or trials < 1:
            raise InvalidParameter(f"{name} = {hits} of {trials}: must be in [0, {trials}], of at least 1")
    missed = included - true_positives
    pairs = ((missed, included), (false_positives, excluded))
    fnr, fpr = (float(betainccinv(k + 1, n - k, error / 2)) if k < n else 1.0 for k, n in pairs)
    return fnr, fpr


def rates_epsilon_lower(
    *,
    true_positives: int,
    included: int,
    false_positives: int,
    excluded: int,
    delta: float,
    confidence: float = 0.95,
    searched: int = 1,
    gaussian: bool = False,
) -> float:
    """Return the smallest epsilon that fits the exact confidence limits of both error rates.

    Args:
        true_positives: included canaries that the attacker called included, 0 to `included`.
        included: canaries that were included, 1 or more.
        false_positives: excluded canaries that were called included, 0 to `excluded`.
        excluded: canaries that were excluded, 1 or more.
        delta: of the guarantee that is audited, in [0, 1); in (0, 1) for a Gaussian curve.
        confidence: of the bound, in (0, 1).
        searched: thresholds among which this one was picked after looking; Bonferroni, 1 or more.
        gaussian: the smallest Gaussian trade-off curve through the limits instead of the two lines of
            (epsilon, delta); a bound within that family.

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Jagielski, Ullman and Oprea 2020 (limits); Nasr et al. 2023 (Gaussian curve).
    """
    error = significance_of(confidence, searched)
    fnr, fpr = _limits(true_positives, included, false_positives, excluded, error)
    if gaussian:
        validate.delta(delta)
        mu = float(-ndtri(fpr) - ndtri(fnr))
        return gdp_epsilon(mu=mu, delta=delta) if mu > 0 else 0.0
    validate.non_negative(delta=delta)
    if delta >= 1:
        raise InvalidParameter(f"delta = {delta!r}: must be in [0, 1)")
    # Both tests of one threshold rest on the same two limits, so that the better one is free.
    pairs = ((1 - fnr - delta, fpr), (1 - fpr - delta, fnr))
    return max(0.0, *(math.log(right / wrong) for right, wrong in pairs if right > 0), 0.0)


def audit_by_rates(
    included: np.ndarray,
    scores: np.ndarray,
    *,
    delta: float,
    confidence: float = 0.95,
    thresholds: tuple[float, ...] | None = None,
    gaussian: bool = False,
    seed: int = 0,
) -> AuditResult:
    """Audit by the error rates at a threshold that the counted scores did not choose.

    Without `thresholds`, half of the canaries, by lot, choose the threshold and the other half are counted.

    Args:
        included: whether each canary was included, by a coin of its own, shape [canaries].
        scores: higher for canaries that look included, shape [canaries].
        delta, confidence, gaussian: as in `rates_epsilon_lower`.
        thresholds: fixed before the scores were seen; the best is taken, and paid for by Bonferroni.
        seed: of the halves.

    Raises:
        InvalidParameter: a value is out of its range, or one of the halves holds only one kind.
    """
    included, scores = check_scores(included, scores)
    settings = {"delta": delta, "confidence": confidence, "gaussian": gaussian}
    counted = np.ones(included.size, dtype=bool)
    if thresholds is None:
        counted[rng.make(seed, "audit/halves").permutation(included.size)[: included.size // 2]] = False
        thresholds = (_chosen(included[~counted], np.nan_to_num(scores[~counted]), settings),)
    found = [
        _bound_at(t, included[counted], scores[counted], {**settings, "searched": len(thresholds)})
        for t in thresholds
    ]
    bound, called, correct = max(found)
    return AuditResult(
        epsilon_lower=bound,
        delta=delta,
        confidence=confidence,
        method=CURVES[gaussian],
        canaries=int(included.size),
        guesses=called,
        correct=correct,
        searched=len(thresholds),
    )


def _bound_at(threshold: float, included: np.ndarray, scores: np.ndarray, settings: dict) -> tuple:
    """Return (bound, canaries counted, right answers) of calling scores at or above a threshold included."""
    called = scores >= threshold
    hits, alarms = int(np.sum(called & included)), int(np.sum(called & ~included))
    members = int(included.sum())
    counts = {"true_positives": hits, "included": members}
    counts |= {"false_positives": alarms, "excluded": int(included.size) - members}
    right = hits + counts["excluded"] - alarms
    return rates_epsilon_lower(**counts, **settings), int(included.size), right


def _chosen(included: np.ndarray, scores: np.ndarray, settings: dict) -> float:
    """Return the threshold with the best bound, looks paid for so that luck at the ends does not win."""
    ordered = np.unique(scores)
    candidates = np.append(ordered[1:] / 2 + ordered[:-1] / 2, ordered[0])  # halfway: room on both sides
    candidates = candidates[
        np.linspace(0, candidates.size - 1, min(candidates.size, _MOST_TRIED)).astype(int)
    ]
    paid = {**settings, "searched": int(candidates.size)}
    bounds = [_bound_at(t, included, scores, paid)[0] for t in candidates]
    return float(candidates[int(np.argmax(bounds))] if max(bounds) > 0 else np.median(scores))
