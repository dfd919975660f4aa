"""The settings of an audit, and the usual ones for a model of a size or for texts."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from privaudit.records import FEWEST_PATIENTS
from privhelpers import validate
from privhelpers.errors import InvalidParameter

if TYPE_CHECKING:  # it loads torch
    from privaudit.model import Target

_SMALL, _MIDDLE = 20_000_000, 250_000_000  # weights
EFFORTS = {"quick": 1 / 4, "standard": 1, "thorough": 4}  # times the usual patients and texts


@dataclass(frozen=True)
class Settings:
    """Everything that determines an audit, apart from the model and the files.

    Attributes:
        patients: most patients of each file, 50 or more, sampled at random; None for all.
        notes: most notes of a patient, sampled at random; None for all.
        texts: number of texts that a causal model writes.
        tokens: most tokens of each.
        lower_case: whether notes are also read in lower case.
        control: whether a model with fresh weights is a control.
        epsilon, delta: a claimed budget, for one record added or removed; only canaries can refute it.
        budget: answers of a model behind an interface; None if its weights, or texts, are audited.
        alpha: probability of flagging a model that learned nothing of its records, in (0, 0.5); if an epsilon
            is claimed, one half is for the tests and one for the bound that may refute it.
        permutations: of each test; 1 / (permutations + 1) must be well below alpha over the tests.
        draws: bootstrap resamples of patients.
        seed: of all randomness.

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
    budget: int | None = None
    alpha: float = 0.01
    permutations: int = 9999
    draws: int = 500
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse invalid settings."""
        limited = [name for name in ("patients", "notes", "budget") if getattr(self, name) is not None]
        validate.fields(self, validate.positive_int, *limited)
        if self.patients is not None and self.patients < FEWEST_PATIENTS:
            raise InvalidParameter(
                f"patients = {self.patients}: at least {FEWEST_PATIENTS} of each file are needed to tell a "
                "leak from chance; give that many or more, or all"
            )
        validate.fields(self, validate.positive_int, "texts", "tokens", "permutations", "draws")
        validate.fields(self, validate.non_negative_int, "seed")
        validate.fields(self, validate.finite, "alpha")
        if not 0 < self.alpha < 0.5:
            raise InvalidParameter(f"alpha = {validate.shown(self.alpha)}: must be in (0, 0.5)")
        if (self.epsilon is None) != (self.delta is None):
            raise InvalidParameter("epsilon and delta: each needs the other; give both or neither")
        if self.epsilon is not None:
            validate.fields(self, validate.positive, "epsilon")
            object.__setattr__(self, "delta", validate.delta(self.delta))

    @property
    def share(self) -> float:
        """The error of all tests together: alpha, or one half of it if an epsilon is claimed."""
        return self.alpha if self.epsilon is None else self.alpha / 2

    def require_permutations(self, tests: int) -> None:
        """Refuse too few permutations to flag any model.

        Args:
            tests: number of tests, among which Holm's correction divides `share`.

        Raises:
            InvalidParameter: the least possible p-value is above `share` after the correction.
        """
        if tests > self.share * (self.permutations + 1):
            raise InvalidParameter(
                f"permutations = {self.permutations:,}: among {tests} tests the least p-value would be "
                f"{min(1, tests / (self.permutations + 1)):.2g}, above alpha = {self.share:g} for all of "
                f"them, so nothing could be found; give {math.ceil(tests / self.share) - 1:,} or more"
            )

    @classmethod
    def for_model(cls, target: "Target", *, effort: str = "standard", **changes: Any) -> "Settings":
        """Return settings for a model of this size that take minutes on two cores.

        Args:
            target: the model.
            effort: "quick" (a quarter of the patients, but 50 or more, and of the texts), "standard", or
                "thorough" (four times as many).
            changes: values of fields that differ.

        Raises:
            InvalidParameter: the effort is unknown, or a value is out of its range.
        """
        causal = target.is_causal
        if target.parameters <= _SMALL:
            usual = cls(patients=2000 if causal else 500, lower_case=causal)
        elif target.parameters <= _MIDDLE:
            usual = cls(patients=250, notes=5, texts=120, lower_case=False)
        else:
            usual = cls(patients=100, notes=3, texts=48, lower_case=False, control=False)
        return usual._scaled(effort, changes)

    @classmethod
    def for_texts(cls, *, effort: str = "standard", **changes: Any) -> "Settings":
        """Return settings for synthetic texts that take minutes; arguments and errors as in `for_model`.

        A permutation costs little here, and there are more tests: twice as many let one of them be found.
        """
        return cls(permutations=19_999)._scaled(effort, changes)

    def _scaled(self, effort: str, changes: dict[str, Any]) -> "Settings":
        if effort not in EFFORTS:
            raise InvalidParameter(f"effort = {validate.shown(effort)}: must be one of {', '.join(EFFORTS)}")
        patients, texts = (round(EFFORTS[effort] * number) for number in (self.patients, self.texts))
        return replace(self, **{"patients": max(FEWEST_PATIENTS, patients), "texts": texts} | changes)
