"""The door of figures: tests, intervals, audits and bounds, given what is none or at its edge."""

import math
import random

import numpy as np
from faults.harness import values
from faults.harness.registry import Case, Trial, fault

from privhelpers import audit, mechanisms, stats

MEMBERS, OTHERS = [0.5, 1.0, 2.0, 2.0, 3.0, 1.5], [0.1, 0.2, 2.0, -1.0, 0.0, 0.4]
OURS, THEIRS = ["a", "a", "b", "c", "d", "d"], ["e", "f", "f", "g", "h", "h"]
COINS = [1, 0] * 6
SCORES = [float(n % 5) for n in range(12)]
NUMBERS = (
    *values.NO_NUMBERS,
    *values.NEGATIVE,
    *values.ZERO,
    1,
    1.0,
    0.5,
    1e-300,
    5e-324,
    1e300,
    1 - 1e-16,
    2,
    7,
    10**6,
)
ROWS = (
    *(
        None,
        [],
        [[]],
        [1],
        [math.nan] * 6,
        [math.inf] * 6,
        [None] * 6,
        ["x"] * 6,
        "abcdef",
        [[1.0] * 6],
        {},
        object(),
    ),
    *(
        [1e308] * 6,
        [-1e308, 1e308] * 3,
        [10**400] * 6,
        [1j] * 6,
        [True] * 6,
        [5e-324] * 6,
        np.zeros((6, 2)),
        3,
        [0.0] * 6,
    ),
    *(
        [1, 2, 3, 4, 5],
        list(range(7)),
        [[1], [2, 3]],
        [b"x"] * 6,
        range(6),
        np.arange(6),
        ["a"] * 6,
        [-0.0] * 6,
    ),
)
ARMS = {
    "member_scores": MEMBERS,
    "member_patients": OURS,
    "nonmember_scores": OTHERS,
    "nonmember_patients": THEIRS,
}
AREA = np.array([MEMBERS + OTHERS, OTHERS + MEMBERS]).T
RUN = {"canaries": 100, "guesses": 20, "correct": 18}
TESTS = {
    stats.permutation_auc: ARMS | {"draws": 9, "seed": 0},
    stats.permutation_scores: {
        "scores": AREA,
        "member": [True] * 6 + [False] * 6,
        "fpr": 0.2,
        "draws": 9,
        "seed": 0,
    },
    stats.auc_interval: ARMS,
    stats.clustered_mean: {"values": MEMBERS, "clusters": OURS},
    stats.paired_difference: {"values_a": MEMBERS, "values_b": OTHERS, "clusters": OURS},
    stats.clopper_pearson: {"successes": 3, "trials": 10},
    stats.detectable_auc: {"members": 10, "nonmembers": 10, "power": 0.8, "alpha": 0.05},
    stats.tost_rates: {"successes_a": 1, "n_a": 9, "successes_b": 2, "n_b": 9, "margin": 0.5},
}
AUDITS = {
    audit.audit_in_one_run: {"included": COINS, "scores": SCORES, "delta": 1e-5, "confidence": 0.95},
    audit.count_correct: {"included": COINS, "scores": SCORES, "guesses": 4, "by": audit.BY_RANK},
    audit.one_run_p_value: RUN | {"epsilon": 1.0, "delta": 1e-5},
    audit.one_run_epsilon_lower: RUN | {"delta": 1e-5, "confidence": 0.95},
    audit.fdp_epsilon_lower: RUN | {"delta": 1e-5, "confidence": 0.95},
    audit.searched_guesses: {"canaries": 100, "shares": (0.1, 1.0)},
    audit.swap_pairs: {"planted": COINS, "seed": 0},
}
BOUNDS = {
    mechanisms.basic_composition: {"epsilons": [1.0, 2.0], "deltas": [0.0, 1e-5]},
    mechanisms.advanced_composition: {"epsilon": 0.1, "runs": 9, "delta_slack": 1e-5, "delta": 0.0},
    mechanisms.optimal_composition: {"epsilon": 0.1, "runs": 9, "delta_slack": 1e-5, "delta": 0.0},
    mechanisms.group_privacy: {"epsilon": 0.1, "size": 3, "delta": 1e-5},
    mechanisms.posterior: {"log_ratio": 1.0, "prior": 0.5},
    mechanisms.posterior_range: {"prior": 0.5, "epsilon": 1.0},
    mechanisms.participation_log_ratio: {"seen": [0.5, -1.0], "noise_multiplier": 1.0, "sample_rate": 0.1},
    mechanisms.dp_tradeoff: {"fpr": [0.0, 0.5], "epsilon": 1.0, "delta": 1e-5},
    mechanisms.gdp_tradeoff: {"fpr": 0.5, "mu": 1.0},
    mechanisms.smallest_fpr: {"tpr": 0.5, "epsilon": 1.0, "delta": 0.0},
    mechanisms.laplace_on_grid: {"answer": 1.5, "sensitivity": 1.0, "epsilon": 1.0, "step": 0.5},
    mechanisms.gaussian_on_grid: {
        "answer": 1.5,
        "sensitivity": 1.0,
        "epsilon": 1.0,
        "delta": 1e-5,
        "step": 0.5,
    },
}


def _numbers(result: object) -> list:
    """Return every number in a result."""
    if isinstance(result, np.ndarray):
        return result.ravel().tolist()
    if isinstance(result, tuple | list):
        return [one for part in result for one in _numbers(part)]
    if hasattr(result, "__dict__"):
        return _numbers(list(vars(result).values()))
    return [result] if isinstance(result, int | float) else []


def _given(t: Trial, calls: dict) -> Case:
    call = list(calls)[t.below(len(calls))]
    t.note(call.__name__)
    usual = dict(calls[call])
    which = t.choose(usual)
    pool = ROWS if isinstance(usual[which], list | tuple | np.ndarray) else NUMBERS
    value = pool[t.below(len(pool))]
    t.note(value)
    given = usual | {which: value}
    if call.__name__.endswith("on_grid"):
        given["source"] = random.Random(0)

    def made() -> bool:
        result = call(**given)
        numbers = _numbers(result)
        of_nothing = isinstance(result, np.ndarray) and not result.size
        return bool(numbers or of_nothing) and not any(math.isnan(number) for number in numbers)

    return Case(made, right=True)


@fault("a test or an interval of what is none")
def _(t: Trial) -> Case:
    return _given(t, TESTS)


@fault("an audit of coins, scores or counts that are none")
def _(t: Trial) -> Case:
    return _given(t, AUDITS)


@fault("a bound of a mechanism for what is none or at its edge")
def _(t: Trial) -> Case:
    return _given(t, BOUNDS)


@fault("p-values and bounds of wild scores keep their range")
def _(t: Trial) -> Case:
    """Scores of any size and ties: a p-value lies in (0, 1], and a bound on epsilon is none or more."""
    size = 4 + t.below(20)
    scale = 10.0 ** t.choose((-320, -300, -10, 0, 10, 300, 308))
    raw = t.rng.standard_normal(2 * size) * scale
    scores = np.round(raw / scale) * scale if t.below(2) else raw
    owners = t.rng.integers(0, max(2, size // 2), 2 * size)
    ours, theirs = owners[:size].tolist(), (owners[size:] + 1000).tolist()
    coins = t.rng.integers(0, 2, 2 * size).astype(bool)

    def call() -> bool:
        p = stats.permutation_auc(scores[:size], ours, scores[size:], theirs, draws=19, seed=1)
        q = stats.permutation_scores(scores[:, None], np.arange(2 * size) < size, draws=19, seed=1)
        bound = audit.audit_in_one_run(coins, scores, delta=1e-5).epsilon_lower
        tests = [p, *np.concatenate(q).tolist()]
        return all(0.05 <= one <= 1 for one in tests) and 0 <= bound < math.inf

    return Case(call, right=True)
