"""What a run of DP-SGD spends, and how much noise a budget asks for.

One step of DP-SGD is a Poisson-subsampled Gaussian mechanism; a run composes `steps` of them. The
default accountant is the privacy loss distribution (PLD) of Google's dp-accounting, whose
connect-the-dots discretisation is pessimistic: the epsilon it returns is an upper bound. The neighbouring
relation is add/remove of one privacy unit throughout.

>>> round(epsilon(noise_multiplier=1.5, sample_rate=0.04, steps=2249, delta=1e-5), 2)
6.77
>>> epsilon(noise_multiplier=0.0, sample_rate=0.04, steps=1, delta=1e-5)
inf
"""

import logging
import math
from dataclasses import dataclass

import dp_accounting
from dp_accounting import pld, rdp

from privhelpers import validate
from privhelpers.errors import InvalidParameter

ACCOUNTANTS = ("pld", "rdp", "prv")
# Dense low orders for small noise, a geometric tail for large noise: the best order grows with sigma.
RDP_ORDERS = [1 + x / 20 for x in range(1, 200)] + list(range(11, 64)) + [2**k for k in range(6, 14)]


@dataclass(frozen=True)
class PrivacySpent:
    """A budget with everything that gives it meaning.

    Attributes:
        epsilon: upper bound on the privacy loss, in nats; infinite without noise.
        delta: probability left outside the bound, in (0, 1).
        noise_multiplier: standard deviation of the noise over the clipping norm.
        sample_rate: probability that a unit enters a step.
        steps: number of steps, noise-only ones included.
        accountant, sampler, unit, adjacency: the words that must stand beside an epsilon.
    """

    epsilon: float
    delta: float
    noise_multiplier: float
    sample_rate: float
    steps: int
    accountant: str = "pld"
    sampler: str = "Poisson"
    unit: str = "patient"
    adjacency: str = "add/remove"

    def __str__(self) -> str:
        """Return the epsilon with everything that must stand beside it."""
        return (
            f"ε = {self.epsilon:.4g} at δ = {self.delta:g} ({self.adjacency} of one {self.unit}, "
            f"{self.sampler} sampling at rate {self.sample_rate:g}, {self.steps} steps, "
            f"noise multiplier {self.noise_multiplier:.4g}, {self.accountant.upper()} accountant)"
        )


def _check(noise_multiplier: float, sample_rate: float, steps: int, delta: float, accountant: str) -> None:
    validate.non_negative(noise_multiplier=noise_multiplier)
    validate.probability(sample_rate=sample_rate)
    validate.positive_int(steps=steps)
    validate.delta(delta)
    if accountant not in ACCOUNTANTS:
        raise InvalidParameter(f"accountant = {accountant!r}: must be one of {', '.join(ACCOUNTANTS)}")


def _epsilon_pld(sigma: float, q: float, steps: int, delta: float, interval: float) -> float:
    one_step = pld.privacy_loss_distribution.from_gaussian_mechanism(
        sigma, sampling_prob=q, value_discretization_interval=interval, use_connect_dots=True
    )
    return one_step.self_compose(steps).get_epsilon_for_delta(delta)


def _epsilon_rdp(sigma: float, q: float, steps: int, delta: float) -> float:
    event = dp_accounting.PoissonSampledDpEvent(q, dp_accounting.GaussianDpEvent(sigma))
    accountant = rdp.RdpAccountant(RDP_ORDERS)
    logger = logging.getLogger(
        "absl"
    )  # it warns once for each order that overflows; those are never the best
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        return accountant.compose(event, steps).get_epsilon(delta)
    finally:
        logger.setLevel(level)


def _epsilon_prv(sigma: float, q: float, steps: int, delta: float) -> float:
    from opacus.accountants import PRVAccountant  # loads torch: only for those who ask for it

    accountant = PRVAccountant()
    accountant.history = [(sigma, q, steps)]
    return accountant.get_epsilon(delta)


def epsilon(
    *,
    noise_multiplier: float,
    sample_rate: float,
    steps: int,
    delta: float,
    accountant: str = "pld",
    interval: float = 1e-4,
) -> float:
    """Return the epsilon that `steps` Poisson-subsampled Gaussian steps spend, add/remove adjacency.

    Args:
        noise_multiplier: noise standard deviation over the clipping norm, 0 or more; 0 gives infinity.
        sample_rate: probability that a unit takes part in a step, in (0, 1].
        steps: number of steps, 1 or more; steps whose draw was empty count too.
        delta: in (0, 1).
        accountant: "pld" (tight upper bound, the default), "rdp" (looser bound) or "prv" (Opacus).
        interval: grid of the privacy loss in nats; finer is tighter and slower (PLD only).

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Koskela, Jalko and Honkela 2020, and Doroshenko et al. 2022, section 4 (PLD);
    Mironov, Talwar and Zhang 2019 (RDP); Gopi, Lee and Wutschitz 2021 (PRV).
    Taught in: 04_renyi_accounting.
    """
    _check(noise_multiplier, sample_rate, steps, delta, accountant)
    if noise_multiplier == 0:
        return math.inf
    if accountant == "rdp":
        return _epsilon_rdp(noise_multiplier, sample_rate, steps, delta)
    if accountant == "prv":
        return _epsilon_prv(noise_multiplier, sample_rate, steps, delta)
    return _epsilon_pld(noise_multiplier, sample_rate, steps, delta, interval)


def grid_for(target_epsilon: float) -> float:
    """Return the grid of the privacy loss, in nats, that keeps a PLD epsilon near the target tight."""
    return min(1e-2, max(1e-5, target_epsilon / 2000))


def _rdp_bracket(target: float, q: float, steps: int, delta: float) -> float:
    """Return a noise multiplier that is enough by RDP, within a few percent of the smallest such one."""
    low, high = 0.1, 1.0
    while _epsilon_rdp(high, q, steps, delta) > target:
        low, high = high, 2 * high
        if high > 2**20:
            raise InvalidParameter(f"target_epsilon = {target:g}: no noise multiplier up to 2**20 reaches it")
    for _ in range(6):
        middle = math.sqrt(low * high)
        if _epsilon_rdp(middle, q, steps, delta) > target:
            low = middle
        else:
            high = middle
    return high


def calibrate_noise_multiplier(
    *,
    target_epsilon: float,
    sample_rate: float,
    steps: int,
    delta: float,
    accountant: str = "pld",
    tolerance: float = 1e-3,
) -> float:
    """Return the smallest noise multiplier, to `tolerance`, whose epsilon does not exceed the target.

    An RDP bracket comes first because it is cheap and safe; a secant on log epsilon against log sigma
    then walks down to the accountant's own answer. Only a value whose epsilon was computed and found to
    be at or under the target is ever returned, so the budget cannot be overshot by interpolation.

    Args:
        target_epsilon: budget of the whole run, greater than 0.
        sample_rate, steps, delta, accountant: as in `epsilon`.
        tolerance: relative gap allowed between the returned epsilon and the target, in (0, 1].

    Raises:
        InvalidParameter: a value is out of its range, or no noise reaches the target.

    Taught in: 04_renyi_accounting.
    """
    validate.positive(target_epsilon=target_epsilon)
    validate.probability(tolerance=tolerance)
    _check(1.0, sample_rate, steps, delta, accountant)
    grid = grid_for(target_epsilon)

    def excess(sigma: float) -> float:
        spent = epsilon(
            noise_multiplier=sigma,
            sample_rate=sample_rate,
            steps=steps,
            delta=delta,
            accountant=accountant,
            interval=grid,
        )
        return math.log(max(spent, 1e-12) / target_epsilon)

    safe = _rdp_bracket(target_epsilon, sample_rate, steps, delta)
    safe_excess = excess(safe)
    while safe_excess > 0:  # an accountant with its own error term may sit above RDP
        safe *= 1.05
        safe_excess = excess(safe)
    unsafe, step = 0.0, 0.5
    for _ in range(30):
        if safe_excess > -tolerance:
            break
        trial = safe * math.exp(-step * -safe_excess)
        trial = max(trial, (safe + unsafe) / 2) if unsafe else trial
        trial_excess = excess(trial)
        if trial_excess > 0:
            unsafe = trial
            continue
        slope = (trial_excess - safe_excess) / (math.log(safe / trial))
        step = 0.98 / slope if slope > 0 else step
        safe, safe_excess = trial, trial_excess
    return safe
