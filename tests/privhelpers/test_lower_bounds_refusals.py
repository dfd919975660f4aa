"""What no lower bound can be computed from: refused by the name of the argument."""

import math
from functools import partial

import numpy as np
import pytest

from privhelpers import accounting, lower_bounds
from privhelpers.errors import InvalidParameter

RUN = {"sample_rate": 0.1, "steps": 10}
COUNTS = {"canaries": 100, "guesses": 10, "correct": 9}
COINS = {"included": [1, 0] * 20, "scores": list(range(40)), "delta": 1e-5}
ONE_RUN = partial(lower_bounds.one_run_epsilon_lower, **COUNTS, delta=1e-5)
FDP = partial(lower_bounds.fdp_epsilon_lower, **COUNTS, delta=1e-5)
MASS = partial(lower_bounds.fdp_mass, **COUNTS, mu=1.0, significance=0.05)
OWN = partial(lower_bounds.own_curve_epsilon_lower, canaries=100, correct=80, **RUN, delta=1e-5)
NOTHING = partial(OWN, correct=0)  # whatever the counts certify
AUDIT = partial(lower_bounds.audit_in_one_run, **COINS)
OWN_AUDIT = partial(lower_bounds.own_curve_audit, **COINS, **RUN)
GUESSES = partial(lower_bounds.count_correct, COINS["included"], COINS["scores"])
MOST = partial(lower_bounds.most_certifiable, canaries=10, delta=1e-5)
SIMULATED = partial(lower_bounds.simulate_scores, canaries=10, noise_multiplier=1.0, **RUN, seed=0)
DELTA = partial(accounting.delta_at, epsilon=1.0, noise_multiplier=1.0, **RUN)
RATES, DELTAS = (0.0, 1.1, math.nan, [0.1]), (0.0, 1.0, -1.0, math.nan, True, "x")
ROWS = ([], [[1, 0]], [1, 2] * 20, [1, 0, 1], [[1], [1, 0]])
SCORES = ([], [1.0], [math.nan] * 40, ["high"] * 40, [10**400] * 40)


@pytest.mark.parametrize(
    ("calls", "name", "values"),
    [
        ((ONE_RUN, FDP), "canaries", (0, 10**300, [100])),
        ((ONE_RUN, FDP), "guesses", (101, 2.5, 10**5000, [10])),
        ((ONE_RUN, FDP), "correct", (11, -1)),
        ((ONE_RUN, FDP), "searched", (0,)),
        ((ONE_RUN, FDP, OWN, NOTHING, AUDIT), "confidence", (0.0, 1.0, 1e-17, math.nan, [0.95])),
        ((ONE_RUN,), "delta", (1.0, -1e-9)),
        ((ONE_RUN, AUDIT), "adjacency", ("bounded", ["add/remove"], np.array([1, 2]))),
        ((MASS,), "mu", (-1.0, "1")),
        ((MASS,), "significance", (0, 5)),
        ((OWN, NOTHING), "sample_rate", RATES),
        ((OWN, NOTHING), "steps", (0, 1.5)),
        ((OWN, NOTHING), "canaries", (0, [100])),
        ((OWN,), "correct", (-1, 101, 2.5)),
        ((OWN, NOTHING, AUDIT, OWN_AUDIT), "delta", DELTAS),
        ((AUDIT, OWN_AUDIT), "included", ROWS),
        ((AUDIT, OWN_AUDIT), "scores", SCORES),
        ((AUDIT, MOST), "method", ("best", np.array([1, 2]))),
        ((GUESSES,), "guesses", (41, 1.5, "2")),
        ((partial(GUESSES, 2),), "by", ("luck", np.array([1, 2]))),
        ((lower_bounds.searched_guesses,), "canaries", ("10", 0)),
        ((MOST,), "canaries", (1, 6 * 10**10)),
        ((SIMULATED,), "canaries", (10**12,)),
        ((SIMULATED, DELTA), "noise_multiplier", (0.0, 5e-324)),
        ((SIMULATED,), "sample_rate", RATES),
        ((SIMULATED,), "steps", (1_000_001,)),
        ((DELTA,), "epsilon", (-0.1, math.nan)),
        ((DELTA,), "steps", (0,)),
    ],
)
def test_values_out_of_range_are_refused_by_name(calls, name, values):
    for call in calls:
        for value in values:
            with pytest.raises(InvalidParameter, match=name):
                call(**{name: value})


def test_one_canary_cannot_be_ranked():
    with pytest.raises(InvalidParameter, match="included"):
        lower_bounds.audit_in_one_run([1], [1.0], delta=1e-5)
