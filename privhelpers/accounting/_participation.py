"""What the same noise is worth when batches are not Poisson samples, or a patient has several notes.

>>> round(epsilon_without_amplification(noise_multiplier=2.0, participations=6, delta=1e-6), 2)
6.16
>>> run = {"noise_multiplier": 2.0, "sample_rate": 0.0064, "steps": 782, "delta": 1e-6}
>>> round(patient_epsilon(**run, notes_per_patient=3), 2)
1.29
"""

import math

import numpy as np
from dp_accounting import get_epsilon_gaussian
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.stats import binom

from privhelpers import validate
from privhelpers.accounting._bounds import (
    TAIL,
    check_run,
    composable,
    epsilon,
    epsilon_of_losses,
    grid_for,
    in_float64,
    loss_sizes,
)
from privhelpers.accounting._renyi import check_noise

# How much one unit can move the sum, in clipping norms: taken out, or replaced by its opposite.
_MOVES = {"zero-out": 1.0, "replacement": 2.0}

_LEAST_SIGMA = 1e-154  # the square of its inverse, about twice the epsilon, is a float64

# The grid of a mixture is slow to build: it is this much coarser than for one Gaussian, and ends here.
_LEAST_LOSS = 1e-7  # dp-accounting's search for a mixture's ends is not for smaller ones
_COARSER, _MOST_POINTS, _MOST_PARTS = 3, 20_000, 2000  # an epsilon is 0.1% looser at most


@np.errstate(all="ignore")  # dp-accounting's search passes infinities on its way
def epsilon_without_amplification(
    *,
    noise_multiplier: float,
    participations: int,
    delta: float,
    notes_per_patient: int = 1,
    adjacency: str = "zero-out",
) -> float:
    """Return the exact epsilon of a unit that takes part in a known number of Gaussian steps.

    This is what shuffled epochs or fixed batches may claim: nothing is gained from chance, and the steps in
    which the unit is absent cost it nothing. The bound holds for any order of the batches fixed beforehand.

    Args:
        noise_multiplier: noise standard deviation over the clipping norm, greater than 0.
        participations: steps that use the unit (the epochs, if each uses it once), 1 or more.
        delta: in (0, 1).
        notes_per_patient: notes of the unit that one step may use together, 1 or more.
        adjacency: "zero-out" (the unit's gradients are taken out, the batches stay) or "replacement".

    Returns:
        Nats; infinite if it exceeds a float64.

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Balle and Wang 2018, theorem 8; Dong, Roth and Su 2022, corollary 3.3 (composition).
    """
    noise_multiplier = check_noise(noise_multiplier)
    participations, notes_per_patient = validate.positive_int(
        participations=participations, notes_per_patient=notes_per_patient
    )
    delta = validate.delta(delta)
    validate.one_of(_MOVES, adjacency=adjacency)
    sigma = noise_multiplier / (_MOVES[adjacency] * notes_per_patient * math.sqrt(participations))
    return float(get_epsilon_gaussian(sigma, delta)) if sigma > _LEAST_SIGMA else math.inf


def patient_epsilon(
    *,
    noise_multiplier: float,
    sample_rate: float,
    steps: int,
    delta: float,
    notes_per_patient: int,
    interval: float | None = None,
) -> float:
    """Return the epsilon of a whole patient when training draws and clips single notes.

    A step uses a binomial number of the patient's notes, each of which can move the sum by the clipping norm
    in the same direction: the output is a mixture of Gaussians, and its privacy loss distribution is exact.

    Args:
        noise_multiplier, sample_rate, steps, delta: as in `epsilon`; the rate is per note.
        notes_per_patient: most notes that one patient has, 1 to 1,000,000; 1 gives `epsilon`.
        interval: grid of the privacy loss in nats; by default three times the one of `grid_for` or more.

    Raises:
        InvalidParameter: a value is out of its range, or no grid fits the run.

    Source: Choquette-Choo, Ganesh, Steinke and Thakurta 2024 (mixture of Gaussians).
    """
    run = check_run(noise_multiplier=noise_multiplier, sample_rate=sample_rate, steps=steps, delta=delta)
    noise_multiplier, sample_rate, steps, delta = run.values()
    notes_per_patient = validate.positive_int(1_000_000, notes_per_patient=notes_per_patient)
    if interval is not None:
        interval = validate.positive(interval=interval)
    if notes_per_patient == 1 and interval is None:
        return epsilon(**run)
    rate = min(1.0, sample_rate * math.sqrt(notes_per_patient))
    move = notes_per_patient / noise_multiplier
    largest = move * (TAIL + move / 2)  # privacy loss of a step that draws every note
    if interval is None:
        tight = grid_for(
            epsilon=notes_per_patient * epsilon(**run),
            noise_multiplier=noise_multiplier,
            sample_rate=rate,
            steps=steps,
        )
        interval = max(_COARSER * tight, largest / _MOST_POINTS)
    with in_float64(**run, notes_per_patient=notes_per_patient):
        spread, _ = loss_sizes(noise_multiplier, rate)
        held = composable(interval, spread=spread, largest=largest, steps=steps, delta=delta)
        if not held or largest < _LEAST_LOSS:
            raise ArithmeticError("a grid that is too long")
        chances = binom.pmf(np.arange(notes_per_patient + 1), notes_per_patient, sample_rate)
        drawn = np.flatnonzero(chances > 0)
        if drawn.size > _MOST_PARTS:
            raise ArithmeticError("a mixture of too many")
        losses = pld.from_mixture_gaussian_mechanism(
            noise_multiplier,
            drawn.tolist(),
            chances[drawn].tolist(),
            value_discretization_interval=interval,
        )
        return epsilon_of_losses(losses, steps=steps, delta=delta)
