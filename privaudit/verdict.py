"""From tests to one of three words, none of which is "safe".

    flagged        an attack succeeds beyond chance, and only training explains it
    undecided      the files, or the tools, could explain it: the figures do not judge the model
    nothing found  at a stated sensitivity: weaker leaks, and stronger attackers, are not excluded

Canaries are judged separately: a coin chose them, so no difference between two files can explain their
result.

Attacks, canaries, and counts of repeated text are also tested with the groups swapped. A finding there is not
a leak of the records, but it rules out "nothing found": the files may be swapped, or the model may be trained
on the held-out patients. Tests that a leak itself can invert (`membership.LEAK_CAN_INVERT`, and the surest
few of every attack) excuse no finding, but rule out "nothing found", too. Singling out, and texts that a
model writes after openings of held-out notes, are not swapped.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from privaudit.probes.blind import BlindBaseline
from privaudit.probes.canaries import CanaryResult
from privaudit.probes.counts import Check, PatientShares
from privaudit.probes.membership import (
    LEAK_CAN_INVERT,
    Attack,
    AttackName,
    AttackTest,
    Part,
    broken_controls,
)
from privaudit.probes.questions import QueryTest
from privhelpers import stats
from privhelpers.stats import adjust

FLAGGED, UNDECIDED, NOTHING_FOUND = "flagged", "undecided", "nothing found"
POWER = 0.9  # probability of finding the weakest leak that a report states
_REPEATED = frozenset({Check.COMPLETIONS, Check.COPIES, Check.DISCLOSURES})

TestKey = AttackTest | Check | QueryTest


class Cause(StrEnum):
    """Explanations of a difference other than training; keys of `explanations`."""

    WORDS = "words"
    SHAPE = "shape"
    RARITY = "rarity"
    UNTRAINED = "untrained"
    REFERENCE = "reference"
    TOOLS = "tools"
    EXCHANGED = "exchanged"
    INVERTED = "inverted"


class Reason(StrEnum):
    """Reasons of a verdict; keys of `reasons`."""

    CANARIES = "canaries"
    CLAIM = "claim"
    CLAIM_GAUSSIAN = "claim_gaussian"
    BEYOND = "beyond"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Statement:
    """A reason or an explanation, with the values of its sentence.

    Attributes:
        key: of its sentence.
        values: in the order of the sentence's placeholders; for `Reason.BEYOND`, the last two are the test
            with the smallest p-value and whether others tie with it; for a claim, the last is its unit.
    """

    key: Reason | Cause
    values: tuple = ()


@dataclass(frozen=True)
class TestResult:
    """One test of the audit.

    Attributes:
        key: what was tested.
        p: its p-value.
        adjusted: the same after Holm's correction for all tests of the audit.
        coin: whether a coin chose the members, so only training can explain it.
        reverse: the p-value with the two groups swapped, corrected among these tests; None: not tested.
        turned: whether a leak can make `reverse` small, so that it excuses no finding.
    """

    key: TestKey | str
    p: float
    adjusted: float
    coin: bool = False
    reverse: float | None = None
    turned: bool = False


@dataclass(frozen=True)
class Verdict:
    """What the audit concludes.

    Attributes:
        outcome: "flagged", "undecided" or "nothing found".
        reasons: as keys with values; `words.sentence` words them.
        tests: every test that could have flagged the model.
        explanations: other than training, of a difference; empty if nothing was found.
    """

    outcome: str
    reasons: tuple[Statement, ...]
    tests: tuple[TestResult, ...]
    explanations: tuple[Statement, ...]


def p_values_by_test(
    attacks: Sequence[Attack],
    counts: Mapping[Check | QueryTest, PatientShares | None],
    canaries: CanaryResult | None,
    *,
    exchanged: Collection[Check | QueryTest],
) -> tuple[dict[TestKey, float], dict[TestKey, float], set[TestKey]]:
    """Return p-values by test, the same with the groups swapped, and which swapped tests a leak can trigger.

    Args:
        attacks: on membership.
        counts: affected patients, by test; None if not measured.
        canaries: the canaries, if there are any.
        exchanged: tests of counts that are swapped, too.
    """
    p_values: dict[TestKey, float] = {}
    reverse: dict[TestKey, float] = {}
    asked = {name: one for name, one in {**counts, Check.CANARIES: canaries}.items() if one is not None}
    for attack in attacks:
        tests = [AttackTest(attack.name, part) for part in Part]
        p_values |= zip(tests, attack.p, strict=True)
        reverse |= zip(tests, attack.reverse_p, strict=True)
    # The surest few: scores of members may be higher and vary less.
    turned = {test for test in reverse if test.part == Part.FEW or test.attack in LEAK_CAN_INVERT}
    for check, one in asked.items():
        p_values[check] = one.p
        if check in (*exchanged, Check.CANARIES):
            reverse[check] = one.reverse_p
    return p_values, reverse, turned


def alternative_explanations(
    blind: Sequence[BlindBaseline],
    attacks: Sequence[Attack],
    reference_p: float | None,
    *,
    alpha: float,
) -> tuple[Statement, ...]:
    """Return explanations of a difference between the two files other than training.

    Each baseline gets the whole error: a missed difference would blame the model, but a false one only leaves
    the verdict undecided.

    Args:
        blind: the baselines that never saw the model.
        attacks: with their control on fresh weights.
        reference_p: of the loss attack on the reference model, in either direction, or None.
        alpha: error of each, in (0, 1).
    """
    explanations = [
        Statement(Cause(baseline.name), (100 * baseline.auc.estimate,))
        for baseline in blind
        if baseline.p <= alpha
    ]
    fresh = {f"{a.name}/{n}": p for a in attacks for n, p in enumerate(a.untrained_p or ())}
    if fresh and min(adjust(fresh).values()) <= alpha:
        explanations.append(Statement(Cause.UNTRAINED))
    if reference_p is not None and reference_p <= alpha:
        explanations.append(Statement(Cause.REFERENCE))
    return (*explanations, *(Statement(Cause.TOOLS, (problem,)) for problem in broken_controls(attacks)))


def _holds_if_swapped(key: TestKey | str) -> bool:
    """Return whether swapped files cannot explain a finding: repeated text, or a tokenizer's few tokens."""
    of_tokenizer = isinstance(key, AttackTest) and key.attack == AttackName.TOKENS
    return of_tokenizer or isinstance(key, QueryTest) or key in _REPEATED


def clearest(tests: Sequence[TestResult]) -> tuple[TestKey | str, bool]:
    """Return the test with the smallest p-value, and whether others tie with it."""
    least = min(test.p for test in tests)
    first = [test.key for test in tests if test.p == least]
    return first[0], len(first) > 1


def decide(
    p_values: Mapping[TestKey | str, float],
    explanations: Sequence[Statement],
    canaries: CanaryResult | None = None,
    *,
    swapped: Mapping[TestKey | str, float] = MappingProxyType({}),
    invertible: Collection[TestKey | str] = (),
    alpha: float,
) -> Verdict:
    """Return the verdict.

    A finding with the groups swapped turns "nothing found" into "undecided". It also explains findings of
    attacks and risks, but not notes or strings of members that come back, nor a tokenizer that learned from
    members: with swapped files, those of the other group would. Canaries that were kept out and look inserted
    explain no finding about the files.

    Args:
        p_values: of every test; `Check.CANARIES` is the one that a coin decided.
        explanations: from `alternative_explanations`.
        canaries: the canaries, if any; the bound against a claim has its own error.
        swapped: p-values with the groups swapped, corrected among themselves.
        invertible: swapped tests that a leak can trigger: they rule out "nothing found", but excuse nothing.
        alpha: probability of flagging a model that learned nothing by any of the tests, in (0, 1).

    Source: Holm 1979.
    """
    adjusted, coin = adjust(dict(p_values)), Check.CANARIES
    swapped = adjust(dict(swapped)) if swapped else {}
    tests = tuple(
        TestResult(one, p, adjusted[one], one == coin, swapped.get(one), one in invertible)
        for one, p in p_values.items()
    )
    beyond = [test for test in tests if test.adjusted <= alpha]
    certain = [Statement(Reason.CANARIES) for test in beyond if test.coin]
    claim = canaries and canaries.claim
    if claim and claim.refuted:
        bound, key = claim.decisive, Reason.CLAIM if claim.refuted_for_any else Reason.CLAIM_GAUSSIAN
        certified = math.floor(100 * bound.epsilon_lower) / 100  # with the digits of the sentence
        certain.append(Statement(key, (claim.epsilon, certified, 100 * bound.confidence, claim.unit)))
    others = [test for test in beyond if not test.coin]
    reasons = list(certain)
    if others:
        of_files = sum(not test.coin for test in tests)
        reasons.append(Statement(Reason.BEYOND, (len(others), of_files, *clearest(others))))
    held_out = {test for test, p in swapped.items() if p <= alpha}
    inverted = [Statement(Cause.INVERTED)] if coin in held_out else []
    other_way = [Statement(Cause.EXCHANGED)] if held_out - {coin} else []
    exchanged = other_way if held_out - {coin, *invertible} else []
    certainly = any(_holds_if_swapped(test.key) for test in others)
    if certain or (others and not explanations and (certainly or not exchanged)):
        # Swapped files do not explain it, so they are a further reason.
        also, why = (exchanged, ()) if certainly else ((), exchanged)
        return Verdict(FLAGGED, (*reasons, *also, *inverted), tests, (*explanations, *why))
    explanations = (*explanations, *other_way, *inverted)
    if explanations:
        return Verdict(UNDECIDED, explanations, tests, explanations)
    return Verdict(NOTHING_FOUND, (Statement(Reason.NOTHING, (len(tests),)),), tests, ())


@dataclass(frozen=True)
class Sensitivity:
    """The weakest leak that this many patients would have shown with the stated power.

    Attributes:
        auc: smallest area under the ROC curve of one attack.
        tpr: smallest share of members that can be identified at 1% wrong accusations.
        power: probability with which they would have been found.
    """

    auc: float
    tpr: float
    power: float


def sensitivity(members: int, heldout: int, *, tests: int, alpha: float) -> Sensitivity:
    """Return the weakest leak that an audit of this size would have found.

    Args:
        members, heldout: patients of each group.
        tests: number of one-sided tests, which share the error.
        alpha: error of the whole audit, in (0, 1).

    >>> found = sensitivity(1000, 1000, tests=10, alpha=0.01)
    >>> round(found.auc, 3), round(found.tpr, 3)
    (0.556, 0.039)
    """
    one_sided = {"power": POWER, "alpha": 2 * alpha / tests}
    return Sensitivity(
        stats.detectable_auc(members, heldout, **one_sided),
        stats.detectable_rate(members, control=0.01, control_units=heldout, **one_sided),
        POWER,
    )
