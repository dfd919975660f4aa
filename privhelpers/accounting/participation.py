"""What the same noise is worth under three readings of who takes part in which step.

>>> run = {"noise_multiplier": 2.0, "sample_rate": 0.0064, "steps": 782, "delta": 1e-6}
>>> three = three_epsilons(**run, notes_per_patient=3)
>>> f"{three.poisson:.2f} {three.without_amplification:.2f} {three.patient:.2f}"
'0.39 6.16 1.29'
"""

import math
from dataclasses import dataclass

import numpy as np
from dp_accounting import get_epsilon_gaussian
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.optimize import brentq
from scipy.stats import binom

from privhelpers import validate
from privhelpers.accounting.bounds import check_run, epsilon, epsilon_of_losses, grid_for
from privhelpers.errors import InvalidParameter

# How much one unit can move the sum, in clipping norms: taken out, or replaced by its opposite.
MOVES = {"zero-out": 1.0, "replacement": 2.0}

_COARSER = 3  # grid of a mixture, which is slow to build, over that of one Gaussian: 0.1 % looser at most


@dataclass(frozen=True)
class ThreeEpsilons:
    """One noise multiplier, three guarantees; only the one whose assumptions hold may be stated.

    Attributes:
        poisson: of one note, if every note joined every batch independently; add/remove.
        without_amplification: of one note, if it was used `participations` times in batches drawn in any
            other way; zero-out.
        patient: of all notes of a patient, if every note was drawn and clipped alone, by Poisson sampling;
            add/remove of the patient.
        delta: at which all three hold, in (0, 1).
        participations: number of steps that used the note.
        notes_per_patient: most notes that one patient has.
    """

    poisson: float
    without_amplification: float
    patient: float
    delta: float
    participations: int
    notes_per_patient: int


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
    which the unit is absent cost it nothing. It holds for any order of the batches fixed beforehand.

    Args:
        noise_multiplier: noise standard deviation over the clipping norm, greater than 0.
        participations: steps that use the unit (the epochs, where each uses it once), 1 or more.
        delta: in (0, 1).
        notes_per_patient: notes of the unit that one step may use together, 1 or more.
        adjacency: "zero-out" (the unit's gradients are taken out, the batches stay) or "replacement".

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Balle and Wang 2018, theorem 8; Dong, Roth and Su 2022, corollary 3.3 (composition).
    """
    validate.positive(noise_multiplier=noise_multiplier)
    validate.positive_int(participations=participations, notes_per_patient=notes_per_patient)
    validate.delta(delta)
    if adjacency not in MOVES:
        raise InvalidParameter(f"adjacency = {adjacency!r}: must be one of {', '.join(MOVES)}")
    move = MOVES[adjacency] * notes_per_patient * math.sqrt(participations)
    return float(get_epsilon_gaussian(noise_multiplier / move, delta))


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
        noise_multiplier, sample_rate, steps, delta: as in `epsilon`; the rate is that of a note.
        notes_per_patient: most notes that one patient has, 1 or more; 1 gives `epsilon`.
        interval: grid of the privacy loss in nats; left out, three times that of `grid_for`.

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Choquette-Choo, Ganesh, Steinke and Thakurta 2024 (mixture of Gaussians).
    """
    run = {"noise_multiplier": noise_multiplier, "sample_rate": sample_rate, "steps": steps, "delta": delta}
    check_run(**run)
    validate.positive_int(notes_per_patient=notes_per_patient)
    if interval is None:
        interval = _COARSER * grid_for(
            epsilon=notes_per_patient * epsilon(**run),
            noise_multiplier=noise_multiplier,
            sample_rate=min(1.0, sample_rate * math.sqrt(notes_per_patient)),
        )
    drawn = np.arange(notes_per_patient + 1)
    chances = binom.pmf(drawn, notes_per_patient, sample_rate)
    losses = pld.from_mixture_gaussian_mechanism(
        noise_multiplier,
        drawn[chances > 0].tolist(),
        chances[chances > 0].tolist(),
        value_discretization_interval=interval,
    )
    return epsilon_of_losses(losses, steps=steps, delta=delta)


def group_epsilon(
    *,
    noise_multiplier: float,
    sample_rate: float,
    steps: int,
    delta: float,
    notes_per_patient: int,
    accountant: str = "pld",
) -> float:
    """Return the epsilon of a whole patient by group privacy: k epsilon, at a delta that grows with it.

    The guarantee of a note is taken at the delta whose k e^((k - 1) epsilon)-fold is the delta asked for.
    Always a bound and seldom a good one; `patient_epsilon` is tight.

    Args:
        noise_multiplier, sample_rate, steps, delta, accountant: as in `epsilon`.
        notes_per_patient: most notes that one patient has, 1 or more.

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Vadhan 2017, lemma 2.2.
    """
    run = {"noise_multiplier": noise_multiplier, "sample_rate": sample_rate, "steps": steps}
    check_run(**run, delta=delta)
    validate.positive_int(notes_per_patient=notes_per_patient)
    k = notes_per_patient

    def of_note(log_delta: float) -> float:
        return epsilon(**run, delta=math.exp(log_delta), accountant=accountant)

    def excess(log_delta: float) -> float:
        return log_delta + math.log(k) + (k - 1) * of_note(log_delta) - math.log(delta)

    low = math.log(delta)
    if k == 1:
        return of_note(low)
    while excess(low) > 0:
        low *= 1.5
        if low < math.log(1e-290):
            return math.inf
    # The safe end of the bracket is returned: there the delta asked for is kept.
    root = brentq(excess, low, math.log(delta), xtol=1e-3)
    while excess(root) > 0:
        root -= 1e-3
    return k * of_note(root)


def three_epsilons(
    *,
    noise_multiplier: float,
    sample_rate: float,
    steps: int,
    delta: float,
    notes_per_patient: int = 1,
    participations: int | None = None,
) -> ThreeEpsilons:
    """Return the three readings of one run side by side.

    Args:
        noise_multiplier, sample_rate, steps, delta: as in `epsilon`.
        notes_per_patient: most notes that one patient has, 1 or more.
        participations: steps that use one note; left out, sample_rate * steps rounded up.

    Raises:
        InvalidParameter: a value is out of its range.
    """
    run = {"noise_multiplier": noise_multiplier, "sample_rate": sample_rate, "steps": steps, "delta": delta}
    check_run(**run)
    if participations is None:
        participations = math.ceil(sample_rate * steps * (1 - 1e-12))
    alone = epsilon_without_amplification(
        noise_multiplier=noise_multiplier, participations=participations, delta=delta
    )
    patient = patient_epsilon(**run, notes_per_patient=notes_per_patient)
    return ThreeEpsilons(epsilon(**run), alone, patient, delta, participations, notes_per_patient)
