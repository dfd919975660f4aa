"""The settings that a ledger fixes before the first step, and the budget check at its opening."""

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass

from privhelpers import validate
from privhelpers.accounting import PrivacyPlan
from privhelpers.artifacts import check_name
from privhelpers.errors import InvalidParameter

MODES = ("research", "release")
FINGERPRINTS = ("code", "data", "parameters")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class Header:
    """The sealed settings of one private run; every value is checked.

    Attributes:
        run: name of the run, as of an artifact.
        plan: noise, sampling, steps and budget; no more steps than planned can be reserved.
        mode: "research" (the noise seed is disclosed, so the guarantee is void) or "release" (the noise
            comes from the operating system's entropy and is not recorded).
        fingerprint: SHA-256, in hexadecimal, of "data", "parameters" and "code".
        not_counted: parts of the run that the accountant's proof does not cover, in words; with one or more,
            the ledger counts steps and states no epsilon.

    Raises:
        InvalidParameter: a value is of the wrong type or out of its range; the message names it.
    """

    run: str
    plan: PrivacyPlan
    mode: str
    fingerprint: Mapping[str, str]
    not_counted: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check every value."""
        check_name(self.run)
        if not isinstance(self.plan, PrivacyPlan):
            raise InvalidParameter(f"plan = {validate.shown(self.plan)}: must be a PrivacyPlan")
        validate.one_of(MODES, mode=self.mode)
        if not isinstance(self.fingerprint, Mapping) or set(self.fingerprint) != set(FINGERPRINTS):
            raise InvalidParameter(f"fingerprint: must have exactly the keys {', '.join(FINGERPRINTS)}")
        for key, value in self.fingerprint.items():
            if not isinstance(value, str) or not _SHA256.fullmatch(value):
                raise InvalidParameter(
                    f"fingerprint.{key} = {validate.shown(value)}: must be 64 hexadecimal digits"
                )
        parts = self.not_counted
        if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
            raise InvalidParameter(f"not_counted = {validate.shown(parts)}: must be a list of parts in words")
        object.__setattr__(self, "fingerprint", dict(self.fingerprint))
        object.__setattr__(self, "not_counted", tuple(parts))

    @classmethod
    def of(cls, content: dict[str, object]) -> "Header":
        """Return the header in the opening line.

        Raises:
            TypeError: a value is missing, or has no place in a header.
            PrivHelpersError: a value is out of its range.
        """
        return cls(**{**content, "plan": PrivacyPlan(**content.get("plan", {}))})

    def content(self) -> dict[str, object]:
        """Return the values of the opening line: without `not_counted` if all is counted."""
        content = dataclasses.asdict(self)
        if not self.not_counted:
            del content["not_counted"]
        return content

    def epsilon_after(self, steps: int) -> float | None:
        """Return the plan's epsilon of the first `steps` steps; None if a part is not counted."""
        return None if self.not_counted else self.plan.epsilon_after(steps)

    def differences(self, other: "Header") -> list[str]:
        """Return one text for each value in which `other` differs from these, with both values."""
        sealed, asked = _flat(self), _flat(other)
        return [
            f"{name} was sealed as {sealed[name]!r} and is now {asked[name]!r}"
            for name in sealed
            if sealed[name] != asked[name]
        ]


def _flat(header: Header) -> dict[str, object]:
    content = dataclasses.asdict(header)
    fingerprint = {f"fingerprint.{key}": value for key, value in content.pop("fingerprint").items()}
    return {**content.pop("plan"), **content, **fingerprint}
