"""From tests to one of three words, none of which is "safe".

    flagged        an attack succeeds beyond chance, and nothing but training explains it
    undecided      the files, or the tools, could explain it as well: the figures do not judge the model
    nothing found  at a stated sensitivity: weaker leaks, and stronger attackers, are not excluded

Canaries are judged apart: a coin dealt them, so no difference between two files can explain what is found.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from privhelpers.own_model._blind import BlindBaseline
from privhelpers.own_model._canaries import CanaryResult
from privhelpers.own_model._membership import Attack, broken_controls
from privhelpers.own_model._memorization import Completions, Disclosures
from privhelpers.stats import adjust

FLAGGED, UNDECIDED, NOTHING_FOUND = "flagged", "undecided", "nothing found"
CANARIES = "canaries"


@dataclass(frozen=True)
class Test:
    """One test of the audit.

    Attributes:
        name: what was tested, in plain words.
        p: its p-value.
        adjusted: the same after Holm's correction for all tests of the audit.
        coin: whether a coin dealt who is in, so that nothing but training can explain it.
    """

    name: str
    p: float
    adjusted: float
    coin: bool = False


@dataclass(frozen=True)
class Verdict:
    """What the audit concludes.

    Attributes:
        outcome: "flagged", "undecided" or "nothing found".
        reasons: one plain sentence each.
        tests: every test that could have flagged the model.
        explanations: what else than training could explain a difference; empty where nothing was found.
    """

    outcome: str
    reasons: tuple[str, ...]
    tests: tuple[Test, ...]
    explanations: tuple[str, ...]


def p_values_by_test(
    attacks: Sequence[Attack],
    completions: Completions | None,
    disclosures: Disclosures | None,
    canaries: CanaryResult | None,
) -> dict[str, float]:
    """Return the p-value of each test that these figures allow, by a plain name."""
    found: dict[str, float] = {}
    for attack in attacks:
        for which, p in zip(("over all patients", "the surest few"), attack.p, strict=True):
            found[f"{attack.words}: {which}"] = p
    if completions is not None:
        found["second halves of notes, word for word"] = completions.by_patient.p
    if disclosures is not None:
        found["numbers and addresses that name a patient"] = disclosures.by_patient.p
    if canaries is not None:
        found[CANARIES] = canaries.p
    return found


def alternative_explanations(
    blind: Sequence[BlindBaseline],
    attacks: Sequence[Attack],
    reference_p: float | None,
    *,
    alpha: float,
) -> tuple[str, ...]:
    """Return in plain words what else than training could explain a difference between the two files.

    Each baseline gets the whole error: to overlook a difference would blame the model for it, to see one that
    is not there costs a verdict and wrongs nobody.

    Args:
        blind: the baselines that never saw the model.
        attacks: with their control on fresh weights.
        reference_p: of the loss attack on the reference model, if there is one.
        alpha: error of each, in (0, 1).
    """
    kinds = {"words": "by the words of their notes", "shape": "by the number and length of their notes"}
    found = [
        f"A program that never sees the model tells the two files apart {kinds[one.name]} "
        f"(right in {100 * one.auc.estimate:.0f} of 100 pairs, where 50 is guessing)."
        for one in blind
        if one.p <= alpha
    ]
    fresh = {f"{a.name}/{n}": p for a in attacks for n, p in enumerate(a.untrained_p or ())}
    if fresh and min(adjust(fresh).values()) <= alpha:
        found.append("The same attacks tell the two files apart on a model that was trained on nothing.")
    if reference_p is not None and reference_p <= alpha:
        found.append(
            "The reference model, which is said to have seen neither file, tells them apart: they differ, or "
            "it saw one of them."
        )
    return (*found, *(f"A control of the tools failed: {one}." for one in broken_controls(attacks)))


def decide(
    p_values: Mapping[str, float],
    explanations: Sequence[str],
    canaries: CanaryResult | None = None,
    *,
    alpha: float,
) -> Verdict:
    """Conclude.

    Args:
        p_values: of every test, by a plain name; `CANARIES` is the one that a coin dealt.
        explanations: from `alternative_explanations`.
        canaries: the canaries, if there are any.
        alpha: chance of flagging a model that learned nothing, over all tests together, in (0, 1).

    Source: Holm 1979.
    """
    adjusted = adjust(dict(p_values))
    tests = tuple(Test(name, p, adjusted[name], name == CANARIES) for name, p in p_values.items())
    positive = [test for test in tests if test.adjusted <= alpha]
    certain = [
        "The canaries that were trained on can be told from those that were not." for t in positive if t.coin
    ]
    claim = canaries and canaries.claim
    if claim and claim.refuted:
        certain.append(
            f"The claimed epsilon of {claim.epsilon:g} is refuted: the canaries certify at least "
            f"{claim.lower.epsilon_lower:.2f} (same delta, {100 * claim.lower.confidence:g} % confidence)."
        )
    others = [test for test in positive if not test.coin]
    clearest = min(others, key=lambda test: test.p).name if others else ""
    beyond = (
        f"{len(others)} of {len(tests)} tests tell trained from held-out patients beyond chance; the "
        f"clearest is {clearest}."
    )
    if certain or (others and not explanations):
        return Verdict(FLAGGED, (*certain, *([beyond] if others else [])), tests, tuple(explanations))
    if explanations:
        return Verdict(UNDECIDED, tuple(explanations), tests, tuple(explanations))
    return Verdict(NOTHING_FOUND, (f"None of {len(tests)} tests finds anything beyond chance.",), tests, ())
