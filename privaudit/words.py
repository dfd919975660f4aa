"""The words of a report, above all of its first page: what was found, what was not tested, what to do next.

Every decision uses keys. The words come last, from `wording.yml`: rewording, translating or reordering that
file changes no figure and no verdict.
"""

import math
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from privaudit.audit import Audit, Kind
from privaudit.probes.counts import Check
from privaudit.probes.membership import AttackName, AttackTest, Part
from privaudit.probes.questions import QueryTest
from privaudit.verdict import (
    FLAGGED,
    NOTHING_FOUND,
    UNDECIDED,
    Cause,
    Reason,
    Statement,
    TestKey,
    clearest,
)
from privhelpers.artifacts import parse_yaml
from privhelpers.attacks.scores import as_plain
from privhelpers.stats import Interval

WORDING = parse_yaml(Path(__file__).with_name("wording.yml").read_text(encoding="utf-8"))
# Attacks with a reference model, attacks on synthetic texts and on answers, and risks of written texts.
_REFERENCE = (AttackName.REFERENCE, AttackName.EZ_MIA, AttackName.WBC)
_TEXTS = (AttackName.WORDS, AttackName.CLOSEST, AttackName.COVERED)
_ANSWERS = (AttackName.GIVEN_BACK,)
_RISKS = (Check.SINGLING_OUT, Check.LINKABILITY, Check.INFERENCE)
_CHECKED = (Cause.EXCHANGED, Cause.INVERTED, Cause.REFERENCE)  # what to check before anything else


class Recipient(StrEnum):
    """Recipients of what was audited, in the order of the report; keys of `recipients`."""

    READERS = "readers"
    CONTRACT = "contract"
    ANYONE = "anyone"


def name_of_test(test: TestKey | str) -> str:
    """Return the name of a test in plain words; an unknown test keeps its name."""
    if isinstance(test, AttackTest):
        words = WORDING["attacks"][test.attack], WORDING["attack_tests"][test.part]
        return WORDING["attack_test"].format(*words)
    if isinstance(test, QueryTest):
        return WORDING["query_test"].format(WORDING["knowledge"][test.knowledge], test.queries)
    return WORDING["tests"].get(test, test)


def name_of_clearest(test: TestKey | str, tied: bool) -> str:
    """Return a phrase for the test with the smallest p-value, perhaps tied."""
    return WORDING["reasons"]["tied" if tied else "clearest"].format(name_of_test(test))


def sentence(statement: Statement) -> str:
    """Return a reason or an explanation in words."""
    key, values = statement.key, statement.values
    if key == Reason.BEYOND:
        values = (*values[:2], name_of_clearest(*values[2:]))
    elif key in (Reason.CLAIM, Reason.CLAIM_GAUSSIAN):
        values = (*values[:3], WORDING["units"][values[3]])
    words = WORDING["explanations" if isinstance(key, Cause) else "reasons"]
    return words[key].format(*values)


def format_percent(value: float, *, up: bool = False) -> str:
    """Return a share as a number out of 100; small ones keep a decimal.

    Args:
        value: in [0, 1].
        up: whether to round up.

    >>> [format_percent(share) for share in (0.974, 0.004, 0.0, 0.732)], format_percent(0.732, up=True)
    (['97', '0.4', '0', '73'], '74')
    """
    places = 0 if value >= 0.095 or value == 0 else 1
    if up:
        value = math.ceil(round(value * 10 ** (2 + places), 6)) / 10 ** (2 + places)
    return f"{100 * value:.{places}f}"


def format_p(p: float) -> str:
    """Return a p-value with two digits.

    >>> format_p(0.0312), format_p(0.00031)
    ('0.031', '3.1e-04')
    """
    return f"{p:.2g}" if p >= 0.001 else f"{p:.1e}"


def words_of(audit: Audit) -> dict:
    """Return the sentences for what was audited."""
    return WORDING if audit.is_of_model else _over(WORDING, WORDING[audit.kind])


def _over(usual: Mapping, own: Mapping) -> dict:
    """Return a mapping updated with another one, at every depth."""
    deeper = {
        key: _over(usual[key], value) if isinstance(usual.get(key), Mapping) else value
        for key, value in own.items()
    }
    return {**usual, **deeper}


def short_coverage(coverage: Mapping) -> str:
    """Return how many patients were tested, or "" if all were."""
    people = (*coverage["members"]["patients"], *coverage["held_out"]["patients"])
    return "" if coverage["whole"] else WORDING["coverage"].format(*people)


def _figure(words: Mapping, share: Interval, against: Interval | None, control: str = "") -> dict:
    """Return one of the three figures; guessing replaces a control that was not measured."""
    figure = dict(words)
    shares = []
    for one in filter(None, (share, against)):
        value, *ends = (format_percent(rate) for rate in as_plain(one))
        shares.append({"value": value, "interval": WORDING["interval"].format(*ends)})
    if against is None:
        shares.append({"value": figure["guessing"], "interval": ""})
        control, figure["guessing"] = WORDING["details"]["by_guessing"], ""
    return {**figure, **shares[0], "control": control or figure["control"], "control_figures": shares[1]}


def key_figure(audit: Audit) -> dict:
    """Return the figure of the first page with its interval and its control."""
    loss, words, controls = audit.attacks[0], words_of(audit)["key_figure"], WORDING["controls"]
    if loss.untrained is None:
        return _figure(words, loss.patient.auc, loss.nulls["held_out"], controls["halves"])
    return _figure(words, loss.patient.auc, loss.untrained.auc, controls["untrained"])


def more_figures(audit: Audit) -> list[dict]:
    """Return the two figures of the details."""
    loss, words = audit.attacks[0], words_of(audit)["details"]["key_figures"]
    null, nothing = loss.untrained, WORDING["controls"]["untrained"]
    few = _figure(words["few"], loss.patient.tpr_at_1pct_fpr, null and null.tpr_at_1pct_fpr, nothing)
    if audit.kind == Kind.QUERIES:
        return [few, _most_known(audit, words["queries"])]
    if audit.kind == Kind.SYNTHETIC:
        name, patients = "copies", audit.copies.by_patient
    elif audit.completions is None:
        return [few, _figure(words["top1"], *audit.top1)]
    else:
        name, patients = "completions", audit.completions.by_patient
    return [few, _figure(words[name], patients.members.interval, patients.heldout.interval)]


def _most_known(audit: Audit, words: Mapping) -> dict:
    """Return the figure of the attacker who knows the most, with the most queries."""
    test, patients = list(audit.leakage.items())[-1]
    told = words["sentence"].format(WORDING["knowledge"][test.knowledge], test.queries)
    return _figure({**words, "sentence": told}, patients.members.interval, patients.heldout.interval)


def _tested(audit: Audit) -> list[str]:
    """Return what was tested, one phrase each."""
    words, asked = words_of(audit)["tested"], []
    for member in (True, False):
        notes = audit.sample.of(member=member)
        asked += [len({note.patient for note in notes}), len(notes)]
    done = [words["sample"].format(*asked), words["attacks"].format(len(audit.attacks))]
    if audit.kind == Kind.QUERIES:
        done.insert(1, words["answers"].format(audit.answers.given))
    elif audit.kind == Kind.SYNTHETIC:
        texts = audit.files.synthetic.texts
        done.insert(1, words["texts"].format(len(texts), len(set(texts))))
        done.append(words["copies"])
    elif audit.completions is not None:
        done.append(words["completions"])
    if len(audit.risks) == len(_RISKS):
        done.append(words["risks"])
    else:
        done += [WORDING["tests"][name] for name in audit.risks]
    if audit.disclosures is not None:
        done.append(words["disclosures"].format(audit.disclosures.texts))
    if audit.canaries is not None:
        done.append(words["canaries"].format(audit.canaries.inserted + audit.canaries.kept_out))
    return [*done, words["blind"]]


def _not_tested(audit: Audit) -> list[str]:
    """Return what was not tested."""
    left, not_applied = list(words_of(audit)["not_tested"]), words_of(audit)["not_applied"]
    if audit.is_of_model and not audit.target.is_causal:
        left.insert(2, not_applied["texts"])
    elif audit.kind != Kind.QUERIES and (
        audit.disclosures is None or (audit.is_of_model and audit.completions is None)
    ):
        left.insert(2, not_applied["copies"])
    if audit.canaries is None:
        left.insert(2, not_applied["canaries"])
    if audit.is_of_model and audit.reference:
        left.insert(2, not_applied["reference"])
    return [*left, *(not_applied["here"].format(what) for what in _inapplicable(audit))]


def _inapplicable(audit: Audit) -> list[str]:
    """Return the attacks and risks that could not be measured, in plain words.

    The tokenizer ignores case, the reference model has other tokens, every note scores the same, or the files
    contain too little.
    """
    asked = list(_TEXTS if audit.kind == Kind.SYNTHETIC else _ANSWERS)
    writes = audit.kind == Kind.SYNTHETIC
    if audit.is_of_model:
        writes = audit.target.is_causal
        unasked = {*_TEXTS, *_ANSWERS, *(() if audit.reference else _REFERENCE)}
        unasked |= set() if audit.settings.lower_case else {AttackName.LOWER_CASE}
        asked = [name for name in AttackName if name not in unasked]
    missing = [WORDING["attacks"][name] for name in asked if name not in {one.name for one in audit.attacks}]
    return missing + [WORDING["tests"][name] for name in _RISKS if writes and name not in audit.risks]


def _found(audit: Audit) -> str:
    """Return what was found beyond chance, in one sentence."""
    words, verdict = WORDING["answers"]["found"], audit.verdict
    beyond = [test for test in verdict.tests if test.adjusted <= audit.settings.share]
    if verdict.outcome == NOTHING_FOUND:
        weakest = format_percent(audit.sensitivity.auc, up=True)
        return words[NOTHING_FOUND].format(len(verdict.tests), weakest)
    if verdict.explanations or not beyond:  # not blamed on training, or not a test
        return sentence(verdict.reasons[0])
    claim = audit.canaries and audit.canaries.claim
    by_claim = "refuted" if claim and claim.refuted_for_any else "refuted_gaussian"
    refuted = claim and claim.refuted and WORDING["reasons"][by_claim].format(claim.epsilon)
    return words[FLAGGED].format(
        len(beyond), len(verdict.tests), refuted or name_of_clearest(*clearest(beyond))
    )


def _checked_first(audit: Audit) -> list[str]:
    """Return what to check in the files first, if that may explain an undecided verdict."""
    told = {one.key for one in audit.verdict.explanations} if audit.verdict.outcome == UNDECIDED else ()
    return [words_of(audit)["check"][cause] for cause in _CHECKED if cause in told]


def _advised(audit: Audit) -> str:
    """Return the key of the advice: another one if nothing but the tokenizer was flagged."""
    beyond = {test.key for test in audit.verdict.tests if test.adjusted <= audit.settings.share}
    of_tokenizer = {AttackTest(AttackName.TOKENS, part) for part in Part}
    alone = audit.verdict.outcome == FLAGGED and beyond and beyond <= of_tokenizer
    return "tokenizer" if alone else audit.verdict.outcome


def _next(audit: Audit) -> list[str]:
    """Return what to do next."""
    first, verdict = _checked_first(audit), audit.verdict
    if first and [one.key for one in verdict.explanations] == [Cause.INVERTED]:
        return first  # the held-out patients are not in question
    return [*first, *words_of(audit)["next"][_advised(audit)]]


def _four_answers(audit: Audit) -> dict[str, str]:
    """Return the answers to the four questions of the person who decides, one sentence each."""
    words, verdict, first = words_of(audit)["answers"], audit.verdict, _checked_first(audit)
    return {
        "tested": words["tested"].format(*audit.sample.sizes, len(verdict.tests)),
        "found": _found(audit),
        "not_tested": words["not_tested"],
        "next": first[0] if first else words["next"][_advised(audit)],
    }


def _terms(audit: Audit) -> list[list[str]]:
    """Return the glossary of the first page."""
    terms = dict(WORDING["terms"])
    if audit.canaries is None:
        del terms["canaries"]
    if audit.verdict.outcome == UNDECIDED:
        del terms["differential_privacy"]
    percent = 100 * audit.settings.alpha
    return [[one["term"], one["meaning"].format(percent)] for one in terms.values()]


def answers(audit: Audit, coverage: Mapping) -> dict:
    """Return what was found in words: the first page shows it, and the file has it for itself."""
    words, verdict = words_of(audit), audit.verdict
    name = next(one.name for one in (audit.target, audit.answers, audit.files.synthetic) if one)
    headline = words["headlines"][verdict.outcome]
    return {
        "title": words["title"].format(name),
        "headline": f"{headline} {short_coverage(coverage)}".strip(),
        "answers": _four_answers(audit),
        "reasons": [sentence(reason) for reason in verdict.reasons],
        "tested": _tested(audit),
        "not_tested": _not_tested(audit),
        "next": _next(audit),
    }


def first_page(audit: Audit, made: str) -> dict:
    """Return the words of the first page that are nowhere else in the report."""
    words, outcome = words_of(audit), audit.verdict.outcome
    first, named = words["first_page"], ""
    about = [first["about"].format(audit.files.members.name)]
    if made:
        about.append(first["made"].format(made))
    counts, known = audit.disclosures and audit.disclosures.by_patient, ""
    if audit.leakage:
        test, counts = list(audit.leakage.items())[-1]
        known = WORDING["knowledge"][test.knowledge]
    if counts:
        sides = counts.members, counts.heldout
        named = first["named"].format(*(number for side in sides for number in (side.hits, side.of)), known)
    levels = [
        [first["recipient"].format(words["recipients"][who]), words["severity"][outcome][who]]
        for who in Recipient
    ]
    return {
        "about": " ".join(about),
        "beside": first["judges_nothing"] if outcome == UNDECIDED else "",
        "named": named,
        "severity": levels,
        "terms": _terms(audit),
        "labels": dict(WORDING["labels"]),
    }
