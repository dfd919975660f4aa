"""About how long the tests of an audit take, from doing a little of each."""

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from privaudit import _blind, _membership
from privaudit._sample import Sample
from privaudit._settings import Settings
from privaudit._wording import in_time
from privhelpers import rng
from privhelpers.attacks.scores import measure, split

_DEALINGS, _DRAWS = 50, 25  # one in so many is tried
_SIZE = 512  # of the matrices whose product says how fast this machine computes


def seconds_of(function: Callable[[], object]) -> float:
    """Return how long a call takes."""
    clock = time.perf_counter()
    function()
    return time.perf_counter() - clock


def tests_ahead(sample: Sample, settings: Settings, *, attacks: int) -> str:
    """Return in words about how long tests, intervals and the comparison of the two files take.

    Args:
        sample: the notes that are asked about.
        settings: of the audit.
        attacks: on membership, about.
    """
    few = replace(
        settings,
        permutations=max(1, settings.permutations // _DEALINGS),
        draws=max(1, settings.draws // _DRAWS),
    )
    score = rng.make(settings.seed, "checkup/ahead").random(len(sample.notes))
    notes = split(score, sample.patients, sample.member)
    dealing = seconds_of(lambda: _membership.p_values({"": score}, sample, few))
    drawing = sum(
        seconds_of(lambda arms=arms: measure(arms, draws=few.draws, seed=few.seed))
        for arms in (notes, notes.by_patient())
    )
    scales = settings.permutations / few.permutations, settings.draws / few.draws
    models = 1 + settings.control
    # The audited model's patients are dealt twice, once with the two groups exchanged.
    seconds = attacks * ((1 + models) * scales[0] * dealing + models * scales[1] * drawing)

    square = np.ones((_SIZE, _SIZE))
    rate = 2 * _SIZE**3 / seconds_of(lambda: square @ square)
    sides = (len(sample.texts_by_patient(member=side)) for side in (True, False))
    seconds += _blind.operations(*sides, dealings=settings.permutations) / rate
    return f"tests, intervals and the comparison of the two files take about {in_time(seconds)} more"
