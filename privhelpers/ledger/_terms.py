"""What a private run promises before its first step; the first line of its ledger seals it."""

import dataclasses
import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from privhelpers import accounting, validate
from privhelpers.accounting import POISSON, PrivacySpent, check_accountant, check_run, require_poisson
from privhelpers.artifacts import NAME
from privhelpers.errors import BudgetExceeded, InvalidParameter
from privhelpers.text import rounded_up

MODES = ("research", "release")
ADJACENCY = "add/remove"  # of one unit: what every accountant of ours counts
FINGERPRINTS = ("code", "data", "parameters")
MOST_STEPS = 10_000_000  # a PLD of more takes minutes and gigabytes
_SHA256 = re.compile(r"[0-9a-f]{64}")
_REALS = ("target_epsilon", "delta", "noise_multiplier", "sample_rate", "max_grad_norm")


def _positive(name: str, value: float) -> float:
    try:
        return float(validate.positive(**{name: value}))
    except OverflowError:
        raise InvalidParameter(f"{name}: is too large for a float64") from None


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InvalidParameter(f"{name} = {validate.shown(value)}: must be one of {', '.join(known)}")


def _word(name: str, value: str) -> None:
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise InvalidParameter(f"{name} = {validate.shown(value)}: use 1 to 63 of a-z, 0-9, '-', '_' and '.'")


def _parts(parts: Iterable[str]) -> tuple[str, ...]:
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
        raise InvalidParameter(f"not_counted = {validate.shown(parts)}: must be a list of parts in words")
    return tuple(parts)


def _hashes(fingerprint: Mapping[str, str]) -> dict[str, str]:
    if not isinstance(fingerprint, Mapping) or set(fingerprint) != set(FINGERPRINTS):
        raise InvalidParameter(f"fingerprint: must have exactly the keys {', '.join(FINGERPRINTS)}")
    for key, value in fingerprint.items():
        if not isinstance(value, str) or not _SHA256.fullmatch(value):
            raise InvalidParameter(
                f"fingerprint.{key} = {validate.shown(value)}: must be 64 hexadecimal digits"
            )
    return dict(fingerprint)


@functools.lru_cache(maxsize=256)
def _epsilon(steps: int, *run: float | str) -> float:
    names = ("noise_multiplier", "sample_rate", "delta", "accountant", "sampler")
    return accounting.epsilon(steps=steps, **dict(zip(names, run, strict=True)))


def epsilon_of(run: "Terms | PrivacySpent", steps: int) -> float:
    """Return the epsilon of the first `steps` steps of a run, 0 to the planned number, in nats.

    The loss of a part is no larger than that of the whole, so neither is its bound, whatever the rounding of
    the accountant: what is reserved within the plan never exceeds the budget.
    """
    values = (run.noise_multiplier, run.sample_rate, run.delta, run.accountant, run.sampler)
    return min(_epsilon(steps, *values), _epsilon(run.steps, *values)) if steps else 0.0


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The sealed settings of one private run; every value is checked.

    Attributes:
        run: name of the run, as of an artifact.
        target_epsilon: budget, greater than 0, in nats; the planned steps must fit it.
        delta: in (0, 1).
        noise_multiplier: noise standard deviation over the clipping norm, greater than 0.
        sample_rate: probability that a unit enters a step, in (0, 1].
        steps: planned number of steps, 1 to 10 million; no more can be reserved.
        max_grad_norm: clipping bound of one unit's gradient, Euclidean norm, greater than 0.
        mode: "research" (the noise seed is disclosed, so the guarantee is void) or "release" (the noise
            comes from the operating system's entropy and is not recorded).
        fingerprint: SHA-256, in hexadecimal, of "data", "parameters" and "code".
        accountant: "pld", "rdp" or "prv".
        sampler, adjacency: what the accountants count: "Poisson" and "add/remove".
        unit: whom the guarantee protects, as "patient".
        not_counted: parts that stand in for those that the accountants count, in words; with one or more,
            the steps are counted and no epsilon is.

    Raises:
        InvalidParameter: a value is of the wrong type or out of its range; the message names it.
        SamplerMismatch: the batches are not drawn by Poisson sampling.
    """

    run: str
    target_epsilon: float
    delta: float
    noise_multiplier: float
    sample_rate: float
    steps: int
    max_grad_norm: float
    mode: str
    fingerprint: Mapping[str, str]
    accountant: str = "pld"
    sampler: str = POISSON
    adjacency: str = ADJACENCY
    unit: str = "patient"
    not_counted: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check every value, and make 8 and 8.0 the same budget."""
        for name in _REALS:
            object.__setattr__(self, name, _positive(name, getattr(self, name)))
        object.__setattr__(self, "fingerprint", _hashes(self.fingerprint))
        run = check_run(
            noise_multiplier=self.noise_multiplier,
            sample_rate=self.sample_rate,
            steps=self.steps,
            delta=self.delta,
        )
        object.__setattr__(self, "steps", run["steps"])
        if self.steps > MOST_STEPS:
            raise InvalidParameter(f"steps: must be {MOST_STEPS:,} or fewer")
        check_accountant(self.accountant)
        require_poisson(self.sampler, accountant=self.accountant)
        _one_of("adjacency", self.adjacency, (ADJACENCY,))
        _one_of("mode", self.mode, MODES)
        _word("run", self.run)
        _word("unit", self.unit)
        object.__setattr__(self, "not_counted", _parts(self.not_counted))

    def content(self) -> dict[str, object]:
        """Return the values as the opening line holds them: without `not_counted` where all is counted."""
        content = dataclasses.asdict(self)
        if not self.not_counted:
            del content["not_counted"]
        return content

    def epsilon_of(self, steps: int) -> float:
        """Return the epsilon of the first `steps` steps, 0 to the planned number, in nats."""
        return epsilon_of(self, steps)

    def require_budget(self) -> None:
        """Refuse a plan whose epsilon exceeds its budget.

        Raises:
            BudgetExceeded: the planned steps do not fit.
        """
        planned = self.epsilon_of(self.steps)
        if not planned <= self.target_epsilon:
            raise BudgetExceeded(
                f"steps = {self.steps}: the planned run would spend epsilon {rounded_up(planned, 6):g}, more "
                f"than its target_epsilon = {self.target_epsilon:g}: plan fewer steps or more noise"
            )

    def differences(self, other: "Terms") -> list[str]:
        """Return one text for each value in which `other` differs from these, with both values."""
        sealed, asked = _flat(dataclasses.asdict(self)), _flat(dataclasses.asdict(other))
        return [
            "{} was sealed as {} and is now {}".format(name, *_shown(sealed[name], asked[name]))
            for name in sealed
            if sealed[name] != asked[name]
        ]


def _shown(*two: object) -> Iterable[str]:
    """Return two values that differ as a message shows them: in six digits, or in all where six are equal."""
    short = [float(f"{value:.6g}") if isinstance(value, float) else value for value in two]
    return map(repr, two if short[0] == short[1] else short)


def _flat(content: dict) -> dict[str, object]:
    parts = {f"fingerprint.{key}": value for key, value in content["fingerprint"].items()}
    return {**{name: value for name, value in content.items() if name != "fingerprint"}, **parts}
