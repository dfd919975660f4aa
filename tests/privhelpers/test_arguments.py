"""Values of no kind at the doors of several rooms: each ends in a refusal that names its argument."""

import numpy as np
import pytest

from privhelpers import accounting, claims, hipaa, lower_bounds, records
from privhelpers.errors import InvalidParameter

RAGGED, HUGE = [[1, 2], [3]], 10**400
NO_FUNCTIONS = (0, "", "mean", RAGGED, np.array([]))
RUN = {"noise_multiplier": 1.0, "sample_rate": 0.5, "steps": 2}
COINS = [True, False] * 4
HOSPITAL = {"seed": 0, "patients": 2, "validation_patients": 2, "heldout_patients": 2}
CALLS = {  # what is called with one of the values as its keyword argument
    "shows": (
        NO_FUNCTIONS,
        lambda **bad: lower_bounds.simulate_scores(canaries=4, **RUN, seed=0, **bad),
    ),
    "times": (
        (0, 10**7, 10**18, HUGE),
        lambda **bad: lower_bounds.claim_p_value(COINS, range(8), **RUN, seed=0, **bad),
    ),
    "planted": ((RAGGED, None, 3), lambda planted: lower_bounds.swap_pairs(planted, seed=0)),
    "lower": ((HUGE,), lambda lower: lower_bounds.require_below(lower, 1.0)),
    "upper": ((HUGE, -HUGE), lambda upper: lower_bounds.require_below(1.0, upper)),
    "name": (
        ("pld", "", None, RAGGED),
        lambda name: accounting.opacus_epsilon(name, **RUN, delta=1e-5),
    ),
    "document": (("", None, RAGGED), claims.printed),
    "documents": ((0, 10**18), lambda documents: records.make_public_corpus(seed=0, documents=documents)),
    "canaries_per_level": ((0, 10**6), lambda **bad: records.make_hospital_records(**HOSPITAL | bad)),
    "subject": ((RAGGED, {}, "x"), lambda subject: hipaa.declare(subject, "no", by="me", on="2024-01-01")),
    "access": ((RAGGED, ()), lambda access: hipaa.declare("access", access, by="me", on="2024-01-01")),
}


@pytest.mark.parametrize(
    ("name", "value", "call"),
    [(name, value, call) for name, (values, *calls) in CALLS.items() for value in values for call in calls],
    ids=lambda part: part if isinstance(part, str) else "",  # no address of a function
)
def test_a_value_of_no_kind_is_refused_by_name(name, value, call):
    with pytest.raises(InvalidParameter, match=rf"\b{name}\b"):
        call(**{name: value})
