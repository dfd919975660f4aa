"""Risk in three kinds that are never added: what was measured, what is declared, and their combination.

A measurement has an interval, a control and a source; a declaration has a person and a date; their
combination is a rule that anyone can read, with its reasons. There is no score: two models with opposite
risks can have the same one.

>>> say = [declare(subject, ANSWERS[subject][0], by="owner", on="2024-01-01") for subject in ANSWERS]
>>> combine("a model", [], say).category
'measure first'
"""

import datetime
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

import pandas as pd

from privhelpers import validate
from privhelpers.errors import InvalidParameter, NotOneNumber

Figure = tuple[float, float, float]  # an estimate and the ends of its interval

CONTENT, MEMBERSHIP = "content", "membership"  # what an attack brings out
KINDS = (CONTENT, MEMBERSHIP)
NOTHING, UNMEASURED = "nothing found", "not measured"

# Answers to each question, from the least risk to the most; the last is taken if none is declared.
ANSWERS = {
    "access": ("named staff", "partners", "anyone"),
    "form": ("queries", "weights"),
    "queries": ("limited", "logged", "unlimited"),
    "agreement": ("in force", "none"),
    "retention": ("deletion date", "kept"),
    "budget": ("tolerated", "exceeds tolerance", "none"),
}
INSIDE, BOUND, OPEN = "inside", "bound", "open"
REACH = (INSIDE, BOUND, OPEN)

KEEP, LIMIT, STOP, FIRST = "keep measuring", "limits must hold", "do not hand out", "measure first"
CATEGORIES = (KEEP, LIMIT, STOP)  # in this order; FIRST is outside of it, because its place is unknown
MATRIX = {
    (NOTHING, INSIDE): KEEP,
    (NOTHING, BOUND): LIMIT,
    (NOTHING, OPEN): STOP,  # nothing that is out can be called back when a better attack appears
    (MEMBERSHIP, INSIDE): LIMIT,
    (MEMBERSHIP, BOUND): LIMIT,
    (MEMBERSHIP, OPEN): STOP,
    (CONTENT, INSIDE): LIMIT,
    (CONTENT, BOUND): STOP,
    (CONTENT, OPEN): STOP,
}


@dataclass(frozen=True)
class Finding:
    """The result of one attack, and of its control, in which there is nothing to find.

    Attributes:
        attack: its name.
        kind: what it brings out: "content" (text of the notes) or "membership" (who is in them).
        unit: of the rate and of n, such as "patients".
        n: how many units were attacked.
        figure: estimate and the ends of its 95% interval; higher is worse.
        control: the same for the control, on which the attack must fail.
        source: of the figure.
    """

    attack: str
    kind: str
    unit: str
    n: int
    figure: Figure
    control: Figure
    source: str

    def __post_init__(self) -> None:
        """Refuse a figure without an interval, a control or a source."""
        validate.one_of(KINDS, kind=self.kind)
        if not self.source:
            raise InvalidParameter(f"{self.attack}: source is empty; a figure without a source is not used")
        for name in ("figure", "control"):
            ends = getattr(self, name)
            if len(ends) != 3 or not ends[1] <= ends[0] <= ends[2]:
                raise InvalidParameter(
                    f"{self.attack}: {name} = {ends}: must be an estimate with a lower and an upper end"
                )

    @property
    def above_control(self) -> bool:
        """Whether the interval is above the control's; this rule is strict, so False shows nothing."""
        return self.figure[1] > self.control[2]

    @property
    def text(self) -> str:
        """Figure and control with their intervals, in one line."""
        one, other = (
            f"{value:.3f} [{low:.3f}, {high:.3f}]" for value, low, high in (self.figure, self.control)
        )
        return f"{one} {'above' if self.above_control else 'not told apart from'} its control {other}"


@dataclass(frozen=True)
class Declared:
    """What a person states and no attack can measure.

    Attributes:
        subject: the question, a key of `ANSWERS`.
        answer: one of its answers.
        by: who declares it.
        on: since when.
        note: anything to add.
        source: of a declaration that comes with evidence, such as the ledger of a training run.
    """

    subject: str
    answer: str
    by: str
    on: datetime.date
    note: str = ""
    source: str = ""


def declare(subject: str, answer: str, *, by: str, on: str, note: str = "", source: str = "") -> Declared:
    """Return a declaration; `on` is a date like 2024-01-01.

    Raises:
        InvalidParameter: an unknown subject or answer, an empty `by`, or not a date.
    """
    validate.one_of(ANSWERS, subject=subject)
    validate.one_of(ANSWERS[subject], **{subject: answer})
    if not by.strip():
        raise InvalidParameter(f"{subject}: by is empty; a declaration has a person behind it")
    try:
        day = datetime.date.fromisoformat(on)
    except ValueError as error:
        raise InvalidParameter(f"on = {validate.shown(on)}: must be a date like 2024-01-01") from error
    return Declared(subject, answer, by, day, note, source)


@dataclass(frozen=True)
class Combined:
    """The reading of both by the rules of this module.

    Attributes:
        model: whose.
        category: one of `CATEGORIES`, or "measure first".
        evidence: the worst that was measured.
        reach: how far the model goes by what is declared.
        reasons: why, one sentence each.
        measured, declared: all that was read.
    """

    model: str
    category: str
    evidence: str
    reach: str
    reasons: tuple[str, ...]
    measured: tuple[Finding, ...] = field(repr=False)
    declared: tuple[Declared, ...] = field(repr=False)

    def __float__(self) -> float:
        """Refuse: a risk is not one number."""
        raise NotOneNumber(
            f"{self.model}: a risk is not one number; read category and reasons, or compare attack by attack"
        )

    def as_json(self) -> dict:
        """Return everything that was read, with every source, as plain values for a file."""
        record = asdict(self)
        for one in record["declared"]:
            one["on"] = one["on"].isoformat()
        return record


def _evidence(measured: Sequence[Finding]) -> tuple[str, list[str]]:
    reasons = [f"{one.attack}: {one.text}, n = {one.n:,} {one.unit} ({one.source})" for one in measured]
    missing = [kind for kind in KINDS if not any(one.kind == kind for one in measured)]
    for kind in KINDS:  # the text of a note is worse than the fact that it was there
        if any(one.above_control and one.kind == kind for one in measured):
            return kind, reasons
    if missing:
        return UNMEASURED, [*reasons, f"not measured: {' and '.join(missing)}"]
    return NOTHING, [*reasons, "no attack told members from controls, which is not proof that none can"]


def _reach(answers: dict[str, str]) -> str:
    outside = answers["access"] != "named staff"
    if answers["access"] == "anyone" or (outside and answers["form"] == "weights"):
        return OPEN
    held = answers["agreement"] == "in force" and answers["queries"] != "unlimited"
    if not outside:  # staff with the weights ask without a limit
        return INSIDE if answers["queries"] != "unlimited" and answers["form"] == "queries" else BOUND
    return BOUND if held else OPEN


def combine(model: str, measured: Sequence[Finding], declared: Sequence[Declared]) -> Combined:
    """Read measurements and declarations together, by `MATRIX`, and list every reason.

    Two rules come on top of the matrix. A subject without a declaration counts as its last answer in
    `ANSWERS`, the one with the most risk. If nothing was found, a tolerated budget takes the place of
    limits, because it holds for attacks that no one has tried; it does not excuse what an attack did find.
    Retention is listed and decides nothing.

    Args:
        model: whose risk.
        measured: what the attacks found.
        declared: one declaration for each subject at most.

    Raises:
        InvalidParameter: a subject is declared twice.
    """
    subjects = [one.subject for one in declared]
    twice = {subject for subject in subjects if subjects.count(subject) > 1}
    if twice:
        raise InvalidParameter(f"declared twice: {', '.join(sorted(twice))}; keep the one that holds")
    answers = {subject: options[-1] for subject, options in ANSWERS.items()}
    answers |= {one.subject: one.answer for one in declared}
    evidence, reasons = _evidence(measured)
    reach = _reach(answers)
    for one in declared:
        evidence_of = f" ({one.source})" if one.source else ""
        note = f", {one.note}" if one.note else ""
        reasons.append(f"{one.subject}: {one.answer}{note}; says {one.by}, {one.on}{evidence_of}")
    silent = [subject for subject in ANSWERS if subject not in subjects]
    reasons += [f"{subject}: not declared, read as {answers[subject]!r}" for subject in silent]
    category = FIRST if evidence == UNMEASURED else MATRIX[evidence, reach]
    if evidence == NOTHING and category != KEEP and answers["budget"] == "tolerated":
        category = KEEP
        reasons.append(
            "the budget bounds attacks that no one has tried, so the limits do not carry the weight"
        )
    return Combined(model, category, evidence, reach, tuple(reasons), tuple(measured), tuple(declared))


def findings_table(measured: Sequence[Finding]) -> pd.DataFrame:
    """Return measurements as text, each with its control; `Combined.reasons` adds the sources."""
    rows = [
        {
            "attack": one.attack,
            "found": "{:.3f} [{:.3f}, {:.3f}]".format(*one.figure),
            "control": "{:.3f} [{:.3f}, {:.3f}]".format(*one.control),
            "n": f"{one.n:,} {one.unit}",
            "above control": "yes" if one.above_control else "not shown",
        }
        for one in measured
    ]
    return pd.DataFrame(rows).set_index("attack")


def reading_table(readings: Sequence[Combined]) -> pd.DataFrame:
    """Return readings as text: what was found, how far the model goes, its budget, and the category."""
    rows = {}
    for one in readings:
        budget = [said.answer for said in one.declared if said.subject == "budget"]
        rows[one.model] = {
            "found": one.evidence,
            "reach": one.reach,
            "budget": budget[0] if budget else "not declared",
            "reading": one.category,
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("model")
