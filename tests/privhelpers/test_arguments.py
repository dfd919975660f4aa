"""Values of no kind at the doors of several rooms: each ends in a refusal that names its argument."""

import random

import numpy as np
import pytest

from privhelpers import (
    accounting,
    anonymity,
    claims,
    hipaa,
    lower_bounds,
    mechanisms,
    records,
)
from privhelpers.anonymity import tables
from privhelpers.errors import InvalidParameter

RAGGED, HUGE = [[1, 2], [3]], 10**400
NO_FUNCTIONS = (0, "", "mean", RAGGED, np.array([]))
RUN = {"noise_multiplier": 1.0, "sample_rate": 0.5, "steps": 2}
COINS = [True, False] * 4
ARMS = ([1.0, 2.0, 3.0], [1, 2, 3], [0.0, 1.0, 2.0], [4, 5, 6])
LOSSES, INSIDE, FIXED = [[1.0], [2.0]], [[True], [False]], {"fixed_variance": True}
HOSPITAL = {"seed": 0, "patients": 2, "validation_patients": 2, "heldout_patients": 2}
GRID = {"sensitivity": 1.0, "epsilon": 1.0}
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
    "source": (
        (None, "x", random, np.random.default_rng(0)),
        lambda source: mechanisms.laplace_on_grid(1.0, **GRID, source=source),
        lambda source: mechanisms.gaussian_on_grid(1.0, **GRID, delta=1e-5, source=source),
    ),
    "releases": (
        (3, np.array([]), tables.patients()),
        lambda releases: anonymity.composition(releases, "condition", {}),
    ),
    "known": ((None, RAGGED), lambda known: anonymity.composition(tables.hospitals(), "condition", known)),
    "hierarchy": (
        (np.array([]), 0),
        lambda hierarchy: anonymity.candidates(tables.patients(), {"age": 28}, hierarchy),
    ),
    "document": (("", None, RAGGED), claims.printed),
    "documents": ((0, 10**18), lambda documents: records.make_public_corpus(seed=0, documents=documents)),
    "canaries_per_level": ((0, 10**6), lambda **bad: records.make_hospital_records(**HOSPITAL | bad)),
    "subject": ((RAGGED, {}, "x"), lambda subject: hipaa.declare(subject, "no", by="me", on="2024-01-01")),
    "access": ((RAGGED, ()), lambda access: hipaa.declare("access", access, by="me", on="2024-01-01")),
    "by": ((None, RAGGED), lambda by: hipaa.declare("access", "partners", by=by, on="2024-01-01")),
    "on": ((None, 3), lambda on: hipaa.declare("access", "partners", by="me", on=on)),
}


@pytest.mark.parametrize(
    ("name", "value", "call"),
    [(name, value, call) for name, (values, *calls) in CALLS.items() for value in values for call in calls],
    ids=lambda part: part if isinstance(part, str) else "",  # no address of a function
)
def test_a_value_of_no_kind_is_refused_by_name(name, value, call):
    with pytest.raises(InvalidParameter, match=rf"\b{name}\b"):
        call(**{name: value})
