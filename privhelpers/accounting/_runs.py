"""The epsilon of several runs on the same units, all of whose models are released."""

import functools
import math
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from dp_accounting.pld import privacy_loss_distribution as pld

from privhelpers import validate
from privhelpers.accounting import _renyi
from privhelpers.accounting._bounds import (
    BEYOND_GRIDS,
    check_run,
    composable,
    composed,
    epsilon,
    epsilon_of_losses,
    grid_for,
    in_float64,
    loss_sizes,
    rounding,
    unsampled_epsilon,
)
from privhelpers.accounting._spent import ADJACENCY, PrivacySpent, require_poisson
from privhelpers.errors import InvalidParameter

ACCOUNTANTS = ("pld", "rdp")
Steps = dict[tuple[float, float], int]  # (noise multiplier, sample rate) -> steps


def check_runs(runs: Sequence[PrivacySpent], accountant: str) -> list[PrivacySpent]:
    """Return runs in Python's numbers, and refuse wrong values, or runs whose losses do not add up."""
    checked = []
    for i, run in enumerate(runs):
        if not isinstance(run, PrivacySpent):
            raise InvalidParameter(f"runs[{i}] is a {type(run).__name__}: must be a PrivacySpent")
        plain = check_run(
            noise_multiplier=run.noise_multiplier,
            sample_rate=run.sample_rate,
            steps=run.steps,
            delta=run.delta,
        )
        checked.append(replace(run, **plain))
        require_poisson(run.sampler, accountant=accountant)
        if run.adjacency != ADJACENCY:
            raise InvalidParameter(f"runs[{i}].adjacency = {run.adjacency!r}: must be {ADJACENCY!r}")
        if run.unit != runs[0].unit:
            raise InvalidParameter(
                f"runs[{i}].unit = {run.unit!r}: runs[0] protects one {runs[0].unit!r}, and losses of "
                "different units do not add up"
            )
    return checked


def _rdp_epsilon(steps: Steps, delta: float) -> float:
    curve = sum(
        _renyi.rdp(noise_multiplier=sigma, sample_rate=rate, steps=count)
        for (sigma, rate), count in steps.items()
    )
    return _renyi.rdp_to_epsilon(orders=_renyi.RDP_ORDERS, rdp=curve, delta=delta).epsilon


def _common_grid(steps: Steps, near: float) -> float:
    """Return one grid for all: as fine as the quietest run wants, as coarse as the largest loss needs."""

    def grids(epsilon: float) -> list[float]:
        return [
            grid_for(epsilon=epsilon, noise_multiplier=sigma, sample_rate=rate, steps=count)
            for (sigma, rate), count in steps.items()
        ]

    # Near an epsilon of 0, only the limit on the number of points limits `grid_for`.
    return max(min(grids(near)), *grids(sys.float_info.min))


def _pld_epsilon(steps: Steps, delta: float) -> float:
    by_rdp = _rdp_epsilon(steps, delta)
    mu = math.sqrt(sum(count / sigma / sigma for (sigma, _), count in steps.items()))
    by_formula = min(by_rdp, unsampled_epsilon(mu, delta))
    if by_rdp > BEYOND_GRIDS or by_rdp == 0:
        return by_formula
    interval = _common_grid(steps, by_rdp)
    for (sigma, rate), count in steps.items():
        spread, largest = loss_sizes(sigma, rate)
        if not composable(interval, spread=spread, largest=largest, steps=count, delta=delta):
            return by_formula
    try:
        with in_float64(delta=delta):
            grid = {"value_discretization_interval": interval, "use_connect_dots": True}
            losses = [
                composed(pld.from_gaussian_mechanism(sigma, sampling_prob=rate, **grid), count)
                for (sigma, rate), count in steps.items()
            ]
            together = functools.reduce(lambda one, other: one.compose(other), losses)
            # All are upper bounds: if a loss is too large for the grid, another one is the smaller.
            left = delta - rounding(sum(steps.values()))
            return min(by_formula, epsilon_of_losses(together, steps=1, delta=left))
    except InvalidParameter:
        return by_formula


def compose_runs(runs: Sequence[PrivacySpent], *, delta: float, accountant: str = "pld") -> float:
    """Return the epsilon of releasing the models of all these runs, trained on the same units.

    A sweep that publishes every model spends this, and not the largest epsilon in its table. One that only
    publishes the best spends up to this too, unless the choice was itself private (`search_epsilon`).

    Args:
        runs: at least one, all with the same unit, add/remove adjacency and Poisson sampling; the epsilon,
            delta and accountant that each states are not used.
        delta: of the whole, in (0, 1).
        accountant: "pld" (tight upper bound: the privacy loss distributions are convolved, in both
            directions) or "rdp" (the curves are added).

    Raises:
        InvalidParameter: there is no run, a value is out of its range, or units or adjacencies differ.
        SamplerMismatch: the batches of a run were not drawn by Poisson sampling.

    Source: Koskela, Jalko and Honkela 2020, and Doroshenko et al. 2022 (PLD); Mironov 2017, proposition 1
    (RDP).

    >>> run = PrivacySpent(epsilon=6.77, delta=1e-5, noise_multiplier=1.5, sample_rate=0.04, steps=2249)
    >>> round(compose_runs([run], delta=1e-5), 2), round(compose_runs([run, run], delta=1e-5), 2)
    (6.77, 10.19)
    """
    delta = validate.delta(delta)
    validate.one_of(ACCOUNTANTS, accountant=accountant)
    runs = validate.row("runs", runs)
    if not runs:
        raise InvalidParameter("runs: must be at least one")
    runs = check_runs(runs, accountant)
    steps: Steps = Counter()
    # Sorted, so that the order of the runs does not show in the last digit.
    for run in sorted(runs, key=lambda run: (run.noise_multiplier, run.sample_rate)):
        steps[run.noise_multiplier, run.sample_rate] += run.steps
    if len(steps) == 1:  # one kind of step: nothing to convolve
        [((sigma, rate), count)] = steps.items()
        run = {"noise_multiplier": sigma, "sample_rate": rate, "steps": count, "delta": delta}
        return epsilon(**run, accountant=accountant)
    return _rdp_epsilon(steps, delta) if accountant == "rdp" else _pld_epsilon(steps, delta)
