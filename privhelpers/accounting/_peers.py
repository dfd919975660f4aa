"""Opacus' own accountants, loaded without torch.

They are numpy and scipy code, but importing them by name runs the files of the packages around them, which
load torch and the whole training side. The files of the accountants alone are loaded here, with empty
modules standing in for those packages, and nothing of it stays in `sys.modules`.
"""

import functools
import importlib
import importlib.util
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from privhelpers import validate
from privhelpers.errors import InvalidParameter

MOST_POINTS = 2_000_000  # composed in seconds
_MOST_PRV = 600.0  # nats; near 709, the log of the largest float64, it says less than was spent
_PACKAGES = ("opacus", "opacus.accountants")


class _History:
    """Stands in for Opacus' base class, of which its accountants only use the list."""

    def __init__(self) -> None:
        self.history: list[tuple[float, float, int]] = []


@contextmanager
def _without_torch() -> Iterator[None]:
    kept = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "opacus"}
    for name in kept:
        del sys.modules[name]
    root = Path(importlib.util.find_spec("opacus").submodule_search_locations[0])
    for name in _PACKAGES:
        package = ModuleType(name)
        package.__path__ = [str(root.joinpath(*name.split(".")[1:]))]
        sys.modules[name] = package
    base = ModuleType("opacus.accountants.accountant")
    base.IAccountant = _History
    sys.modules[base.__name__] = base
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == "opacus"]:
            del sys.modules[name]
        sys.modules.update(kept)


@functools.cache
def _accountant(name: str) -> type:
    with _without_torch():
        module = importlib.import_module(f"opacus.accountants.{name}")
        accountant = getattr(module, f"{name.upper()}Accountant")
    return _bounded(accountant) if name == "prv" else accountant


def _bounded(accountant: type) -> type:
    """Return the PRV accountant with a limit on its grid, which grows with steps and losses."""

    class Bounded(accountant):
        def _get_domain(self, **asked: object) -> object:
            domain = super()._get_domain(**asked)
            if domain.size > MOST_POINTS:
                raise InvalidParameter(
                    f"accountant = 'prv': this run needs a grid of {domain.size:.2g} points, at most "
                    f"{MOST_POINTS:,} are composed; use pld"
                )
            return domain

    return Bounded


def opacus_epsilon(
    name: str, *, noise_multiplier: float, sample_rate: float, steps: int, delta: float
) -> float:
    """Return what Opacus' "rdp" or "prv" accountant says, with its own orders and its own error term.

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
    accountant = _accountant(name)()
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
            f"accountant = 'prv': {spent:.4g} nats are beyond what its sums hold ({_MOST_PRV:g}), and may be "
            "too few; use pld"
        )
    return spent
