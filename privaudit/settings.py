"""How an audit is run: how much is asked of the model, what is claimed, and how much chance is allowed."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privaudit.records import FEWEST_PATIENTS
from privhelpers import validate
from privhelpers.errors import InvalidParameter

if TYPE_CHECKING:  # it loads torch
    from privaudit.model import Target

_SMALL, _MIDDLE = 20_000_000, 250_000_000  # weights
EFFORTS = {"quick": 1 / 4, "standard": 1, "thorough": 4}  # times the usual patients and texts


def _scaled(effort: str, *, patients: int, **numbers: int) -> dict[str, int]:
    """Scale default sample sizes by effort; 50 patients are asked about at least."""
    if effort not in EFFORTS:
        raise InvalidParameter(f"effort = {validate.shown(effort)}: must be one of {', '.join(EFFORTS)}")
    scaled = {
        name: round(EFFORTS[effort] * number) for name, number in (numbers | {"patients": patients}).items()
    }
    return scaled | {"patients": max(FEWEST_PATIENTS, scaled["patients"])}


@dataclass(frozen=True)
class Settings:
    """Everything that decides an audit, apart from the model and the files.

    Attributes:
        patients: of each file, at most, 50 or more; sampled at random. None for all of them.
        notes: of a patient, at most; sampled at random. None for all of them.
        texts: that a causal model writes.
        tokens: of each.
        lower_case: whether notes are read in lower case too.
        control: whether a model with fresh weights is asked the same.
        epsilon, delta: a claimed budget, for one record more or less; only canaries can refute it.
        alpha: chance of flagging a model that learned nothing of its records, in (0, 0.5); where an epsilon
            is claimed, one half is for the tests and one for the bound that may refute it.
        permutations: of each test; 1 / (permutations + 1) must lie well below alpha over the tests.
        draws: bootstrap resamples of patients.
        seed: of everything that is drawn.

    Raises:
        InvalidParameter: a value is out of its range, or one of epsilon and delta is missing.
    """

    patients: int | None = 2000
    notes: int | None = 20
    texts: int = 600
    tokens: int = 64
    lower_case: bool = True
    control: bool = True
    epsilon: float | None = None
    delta: float | None = None
    alpha: float = 0.01
    permutations: int = 9999
    draws: int = 500
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse settings with which no audit can be run."""
        limited = [name for name in ("patients", "notes") if getattr(self, name) is not None]
        validate.fields(self, validate.positive_int, *limited)
        if self.patients is not None and self.patients < FEWEST_PATIENTS:
            raise InvalidParameter(
                f"patients = {self.patients}: at least {FEWEST_PATIENTS} of each file are needed to tell a "
                "leak from chance; give so many or more, or all"
            )
        validate.fields(self, validate.positive_int, "texts", "tokens", "permutations", "draws")
        validate.fields(self, validate.non_negative_int, "seed")
        validate.fields(self, validate.finite, "alpha")
        if not 0 < self.alpha < 0.5:
            raise InvalidParameter(f"alpha = {validate.shown(self.alpha)}: must be in (0, 0.5)")
        if (self.epsilon is None) != (self.delta is None):
            raise InvalidParameter(
                "epsilon and delta: one means nothing without the other; give both or neither"
            )
        if self.epsilon is not None:
            validate.fields(self, validate.positive, "epsilon")
            object.__setattr__(self, "delta", validate.delta(self.delta))

    @property
    def share(self) -> float:
        """The error of all tests together; a bound against a claimed epsilon has as much, both are alpha."""
        return self.alpha if self.epsilon is None else self.alpha / 2

    def require_permutations(self, tests: int) -> None:
        """Refuse so few permutations that no result could flag a model.

        Args:
            tests: of the audit, among which Holm's correction divides `share`.

        Raises:
            InvalidParameter: the least p-value is above `share` after the correction.
        """
        if tests > self.share * (self.permutations + 1):
            raise InvalidParameter(
                f"permutations = {self.permutations:,}: among {tests} tests the least p-value would be "
                f"{min(1, tests / (self.permutations + 1)):.2g}, above alpha = {self.share:g} for all of "
                f"them, so that nothing could be found; give {math.ceil(tests / self.share) - 1:,} or more"
            )

    @classmethod
    def for_model(cls, target: "Target", *, effort: str = "standard", **changes: Any) -> "Settings":
        """Return what can be asked of a model of this size in minutes on two cores.

        Args:
            target: the model.
            effort: quick (a quarter of the patients, but 50 or more, and of the texts), standard, or thorough
                (four times as many).
            changes: other fields, and those that shall differ.

        Raises:
            InvalidParameter: there is no such effort, or a value is out of its range.
        """
        causal = target.is_causal
        patients, texts = 100, 48
        size: dict[str, Any] = {"notes": 3, "lower_case": False, "control": False}
        if target.parameters <= _SMALL:
            patients, texts, size = 2000 if causal else 500, cls.texts, {"lower_case": causal}
        elif target.parameters <= _MIDDLE:
            patients, texts, size = 250, 120, {"notes": 5, "lower_case": False}
        return cls(**size | _scaled(effort, patients=patients, texts=texts) | changes)

    @classmethod
    def for_texts(cls, *, effort: str = "standard", **changes: Any) -> "Settings":
        """Return what can be asked about synthetic texts in minutes; arguments as those of `for_model`.

        A permutation costs little here, and more tests are made: twice as many let one of them be told.

        Raises:
            InvalidParameter: there is no such effort, or a value is out of its range.
        """
        return cls(**{"permutations": 19_999} | _scaled(effort, patients=cls.patients) | changes)
