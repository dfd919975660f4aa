"""A claim of a document: what it prints, where, and a function that finds out.

The values that a document prints are data here; what is set against them is computed when the page runs.

>>> topic = Topic("sums", document="a report")
>>> @topic.claim("three", where="table 1", says="One and one are three.", published="3", severity="B")
... def three() -> Finding:
...     return Finding("2", WRONG, "Whoever adds on will be wrong too.", {"sum": 1 + 1})
>>> [(row.id, row.finding.verdict) for row in audit(topic.claims)]
[('three', 'wrong number')]
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from privhelpers.errors import InvalidParameter

HOLDS = "holds"
WRONG = "wrong number"
CONTRADICTS = "contradicts itself"
UNSUPPORTED = "cannot follow"
UNMEASURED = "not measurable"
VERDICTS = (HOLDS, WRONG, CONTRADICTS, UNSUPPORTED, UNMEASURED)
SEVERITIES = MappingProxyType(
    {"A": "voids a headline", "B": "wrong number or contradiction", "C": "wording, or minor", "": "none"}
)


@dataclass(frozen=True)
class Finding:
    """What a recomputation found.

    Attributes:
        value: the recomputed value, as text for a table.
        verdict: one of `VERDICTS`.
        why: why the difference, or the agreement, matters.
        figures: the numbers behind `value`, by name, for tests and figures.
    """

    value: str
    verdict: str
    why: str
    figures: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a verdict that no table knows, and a figure that is no number."""
        if self.verdict not in VERDICTS:
            raise InvalidParameter(f"verdict = {self.verdict!r}: must be one of {', '.join(VERDICTS)}")
        for name, number in self.figures.items():
            if not math.isfinite(number):
                raise InvalidParameter(f"figures[{name!r}] = {number!r}: must be a finite number")


@dataclass(frozen=True)
class Claim:
    """A statement of a document, in our words.

    Attributes:
        id: short name, unique among all claims.
        document: which document says it.
        topic: group in the tables.
        where: section or table of the document.
        says: the claim in our words.
        published: what is printed there, as text.
        severity: weight of the fault if there is one: A, B, C, or "" where the claim is expected to hold.
        recompute: finds out; no arguments.
    """

    id: str
    document: str
    topic: str
    where: str
    says: str
    published: str
    severity: str
    recompute: Callable[[], Finding]


@dataclass(frozen=True)
class Audited:
    """A claim with its finding; the severity is empty where the claim holds."""

    claim: Claim
    finding: Finding

    @property
    def id(self) -> str:
        """Short name of the claim."""
        return self.claim.id

    @property
    def severity(self) -> str:
        """Weight of the fault, or "" if there is none."""
        return "" if self.finding.verdict == HOLDS else self.claim.severity


class Topic:
    """Collects the claims of one topic in the order in which they are written down."""

    def __init__(self, name: str, *, document: str) -> None:
        """Start a topic."""
        self.name, self.document = name, document
        self.claims: list[Claim] = []

    def claim(
        self, id: str, *, where: str, says: str, published: str, severity: str = ""
    ) -> Callable[[Callable[[], Finding]], Callable[[], Finding]]:
        """Register the decorated function as the recomputation of a claim.

        Raises:
            InvalidParameter: the severity is unknown.
        """
        if severity not in SEVERITIES:
            raise InvalidParameter(f"severity = {severity!r}: must be one of {', '.join(SEVERITIES)}")

        def register(recompute: Callable[[], Finding]) -> Callable[[], Finding]:
            self.claims.append(
                Claim(id, self.document, self.name, where, says, published, severity, recompute)
            )
            return recompute

        return register


def audit(claims: Iterable[Claim]) -> list[Audited]:
    """Recompute every claim.

    Raises:
        InvalidParameter: a claim that fails has no severity, or two claims share an id.
    """
    rows: dict[str, Audited] = {}
    for claim in claims:
        if claim.id in rows:
            raise InvalidParameter(f"id = {claim.id!r}: is given twice")
        rows[claim.id] = row = Audited(claim, claim.recompute())
        if row.finding.verdict != HOLDS and not claim.severity:
            raise InvalidParameter(f"{claim.id}: {row.finding.verdict}, but it has no severity")
    return list(rows.values())


def agrees(printed: float, found: float, digits: int) -> bool:
    """Say whether `found`, rounded to the printed number of digits, is what was printed."""
    return abs(printed - found) <= 0.5 * 10.0**-digits * (1 + 1e-9)


def listed(numbers: Iterable[float], digits: int = 2) -> str:
    """Return numbers as text, separated by slashes."""
    return " / ".join(f"{number:,.{digits}f}" for number in numbers)
