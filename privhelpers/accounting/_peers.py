"""Opacus' own accountants; importing them loads torch, so that is done when they are first asked."""

import functools
import sys
import warnings

from privhelpers import validate
from privhelpers.errors import InvalidParameter

MOST_POINTS = 2_000_000  # composed in seconds
_MOST_PRV = 600.0  # nats; near 709, the log of the largest float64, it states less than was spent


@functools.cache
def _accountants() -> dict[str, type]:
    """Return Opacus' accountants by name, the PRV one with a limit on its grid of losses."""
    from opacus.accountants import PRVAccountant, RDPAccountant

    class BoundedPRV(PRVAccountant):
        def _get_domain(self, *given: object, **named: object) -> object:
            domain = super()._get_domain(*given, **named)
            if domain.size > MOST_POINTS:
                raise InvalidParameter(
                    f"accountant = 'prv': this run needs a grid of {domain.size:.2g} points, at most "
                    f"{MOST_POINTS:,} are composed; use pld"
                )
            return domain

    return {"rdp": RDPAccountant, "prv": BoundedPRV}


def opacus_epsilon(
    name: str, *, noise_multiplier: float, sample_rate: float, steps: int, delta: float
) -> float:
    """Return the epsilon of Opacus' "rdp" or "prv" accountant, with its own orders and its own error term.

    Its warning that the best order is the largest of its list is silenced: the caller compares.

    Args:
        name: "rdp" or "prv".
        noise_multiplier, sample_rate, steps, delta: as in `accounting.epsilon`.

    Raises:
        InvalidParameter: a value is out of its range, or the accountant cannot count this run in float64 or
            in seconds.

    Source: Opacus (Yousefpour et al. 2021); Gopi, Lee and Wutschitz 2021 (PRV).
    """
    validate.one_of(("rdp", "prv"), name=name)
    noise_multiplier = validate.positive(noise_multiplier=noise_multiplier)
    sample_rate = validate.probability(sample_rate=sample_rate)
    steps = validate.positive_int(steps=steps)
    delta = validate.delta(delta)
    lost = (steps + 100) * sys.float_info.epsilon if name == "prv" and steps < sys.maxsize else 0.0
    if lost > delta / 2:
        raise InvalidParameter(
            f"accountant = 'prv': {validate.shown(steps)} steps in float64 may lose {lost:.2g} of "
            f"probability, too much for a delta of {delta:g}; use pld"
        )
    accountant = _accountants()[name]()
    accountant.history = [(noise_multiplier, sample_rate, steps)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            spent = max(0.0, float(accountant.get_epsilon(delta - lost)))
        except (ValueError, ArithmeticError, RuntimeError) as error:
            if isinstance(error, InvalidParameter):
                raise
            raise InvalidParameter(
                f"accountant = {name!r}: cannot count this run ({error}); use pld"
            ) from error
    if name == "prv" and spent > _MOST_PRV:
        raise InvalidParameter(
            f"accountant = 'prv': {spent:.4g} nats exceed the range of its sums ({_MOST_PRV:g}), and may be "
            "too few; use pld"
        )
    return spent
