"""Attacks on membership with one model, a set of texts, or answers, each with its controls.

A score is HIGHER for a text that looks more like a member's. A patient's score is the mean over the patient's
notes: the patient is the unit of the tests and of the harm.

A tokenizer belongs to the model, and it needs fewer tokens for texts that it learned from. A control with
fresh weights keeps the tokenizer, so this attack has another one: a tokenizer that learned from both groups.

Source of the attack on the tokenizer: Tong et al. 2025.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from privaudit.encode import Sample
from privaudit.settings import Settings
from privhelpers import stats
from privhelpers.attacks import controls, groups, signals
from privhelpers.attacks.scores import Measured, measure, split
from privhelpers.errors import ControlFailed
from privhelpers.models import TokenScores, train_tokenizer
from privhelpers.stats import Interval


class AttackName(StrEnum):
    """An attack on membership; keys of `attacks`."""

    LOSS = "loss"
    ZLIB = "zlib"
    MIN_K = "min_k"
    MIN_K_PLUS_PLUS = "min_k_plus_plus"
    LOWER_CASE = "lower_case"
    TOKENS = "tokens"
    REFERENCE = "reference"
    EZ_MIA = "ez_mia"
    WBC = "wbc"
    WORDS = "words"
    CLOSEST = "closest"
    COVERED = "covered"
    GIVEN_BACK = "given_back"


class Part(StrEnum):
    """The two tests of an attack, in the order of its p-values; keys of `attack_tests`."""

    ALL = "all"
    FEW = "few"


class AttackTest(NamedTuple):
    """One test of an attack."""

    attack: str
    part: Part


# Attacks whose area a leak can push below 0.5: lower case costs a model less the better it knows a note that
# it was trained on in lower case, a maker may drop the texts that are closest to its records, and an
# interface may withhold what it recognizes.
LEAK_CAN_INVERT = (AttackName.LOWER_CASE, AttackName.CLOSEST, AttackName.COVERED, AttackName.GIVEN_BACK)


@dataclass(frozen=True)
class Attack:
    """One attack on membership, with its controls.

    Attributes:
        name: key of `attacks` in `wording.yml`.
        patient, note: what it achieves for patients, and for single notes.
        p: p-values of the area, and of the members above all but 1% of the others.
        reverse_p: the same with members and held-out patients swapped.
        untrained, untrained_p: the same for patients on a model with fresh weights; None if not measured,
            and no p-values if its scores are constant.
        nulls: area of one half of the held-out patients against the other (`held_out`), and after the labels
            were permuted (`permuted`).
    """

    name: str
    patient: Measured
    note: Measured
    p: tuple[float, float]
    reverse_p: tuple[float, float]
    untrained: Measured | None
    untrained_p: tuple[float, float] | None
    nulls: dict[str, Interval]


def membership_scores(
    scored: TokenScores,
    texts: Sequence[str],
    *,
    lower: TokenScores | None = None,
    reference: TokenScores | None = None,
    same_tokens: bool = False,
) -> dict[str, np.ndarray]:
    """Return the score of each text under each attack that applies.

    Args:
        scored: the tokens of the texts by the audited model.
        texts: what was scored.
        lower: of the texts in lower case, by the same model.
        reference: of the texts by another model, with perhaps other tokens and a shorter context.
        same_tokens: whether the reference has the same tokens, as EZ-MIA and WBC need.

    Source: see `attacks.signals`.
    """
    lower_loss = None if lower is None else signals.lower_case_loss(scored, lower, texts)
    scores = signals.scores(signals.from_tokens(scored, texts, lower_loss=lower_loss))
    if reference is not None:
        if same_tokens:
            counts = np.minimum(scored.tokens, reference.tokens)
            measured = signals.from_tokens(scored.head(counts), texts)
            moved = signals.scores(measured, reference_log_p=reference.head(counts).log_p)
            scores |= {name: moved[name] for name in (AttackName.EZ_MIA, AttackName.WBC)}
        scores[AttackName.REFERENCE] = _reference_scores(scored, reference, texts)
    read = [scored.part_read(number, text) for number, text in enumerate(texts)]
    scores[AttackName.TOKENS] = _few_tokens(scored.tokens, read)
    return drop_constant_scores(scores)


def _few_tokens(counts: np.ndarray, texts: Sequence[str]) -> np.ndarray:
    """Return minus the tokens a byte of each text."""
    return -counts / np.maximum(1, [len(text.encode()) for text in texts])


def tokens_of_both(texts: Sequence[str], size: int) -> np.ndarray:
    """Return the score of few tokens under a tokenizer that learned from all texts, whoever they belong to.

    Args:
        texts: of both groups.
        size: number of tokens of the audited model's tokenizer; fewer than 257 count as 257.
    """
    tokenizer = train_tokenizer(texts, vocab_size=max(257, size))
    return _few_tokens(np.array([len(row) for row in tokenizer(list(texts))["input_ids"]]), texts)


def _reference_scores(one: TokenScores, other: TokenScores, texts: Sequence[str]) -> np.ndarray:
    """Return how many nats a byte one model predicts the shared part of each text better than another.

    Dividing by the whole text, or by what each model reads, would score the length of long texts. A text
    without a shared part gets the mean of the others.
    """
    gains = np.full(len(texts), np.nan)
    for number, text in enumerate(texts):
        part = signals.shared_part(one.bounds_of(number, text), other.bounds_of(number, text))
        if part is not None and (size := len(text[part[2]].encode())):
            gain = one.log_p[number][part[0]].sum() - other.log_p[number][part[1]].sum()
            gains[number] = gain / size
    known = ~np.isnan(gains)
    return np.where(known, gains, gains[known].mean() if known.any() else 0.0)


def drop_constant_scores(scores: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Drop constant scores; keep the primary one, as zeros, so that no result chooses the key figure.

    A constant score tells nothing, such as the lower-case score with an uncased tokenizer. The first score is
    kept as zeros, with an area of 0.5: a replacement would be chosen by its result.
    """
    first = next(iter(scores))
    same = {name for name, values in scores.items() if np.ptp(values) <= 1e-9}
    return {
        name: np.zeros_like(values) if name in same else values
        for name, values in scores.items()
        if name == first or name not in same
    }


def p_values(
    scores: Mapping[str, np.ndarray], sample: Sample, settings: Settings
) -> dict[str, tuple[float, float]]:
    """Return both p-values of each attack, by permuting patients in the same way for all attacks."""
    if not scores:
        return {}
    patients = sample.patients
    means = [groups.group_means(values, patients) for values in scores.values()]
    member = np.isin(means[0][1], patients[sample.member])
    table = np.stack([values for values, _ in means], axis=1)
    both = stats.permutation_scores(table, member, draws=settings.permutations, seed=settings.seed)
    return dict(zip(scores, zip(*(p.tolist() for p in both), strict=True), strict=True))


def measure_attacks(
    scores: Mapping[str, np.ndarray],
    sample: Sample,
    settings: Settings,
    *,
    untrained: Mapping[str, np.ndarray] | None = None,
    progress: bool = False,
) -> list[Attack]:
    """Measure every attack for patients and notes, with intervals, tests and controls.

    Args:
        scores: of each note, by attack.
        sample: the notes.
        settings: of the audit.
        untrained: scores of the same notes under fresh weights; a missing attack counts as constant.
        progress: whether to show a bar.
    """
    patients, member = sample.patients, sample.member
    draws, seed = settings.draws, settings.seed
    fresh = {name: values for name, values in (untrained or {}).items() if name in scores and values.any()}
    p, fresh_p = p_values(scores, sample, settings), p_values(fresh, sample, settings)
    reverse_p = p_values(scores, replace(sample, member=~member), settings)
    attacks = []
    for name, values in tqdm(scores.items(), desc="attacks", unit="attack", disable=not progress):
        notes = split(values, patients, member)
        null = None
        if untrained is not None:
            same = np.zeros(len(values))
            arms = split(fresh.get(name, same), patients, member).by_patient()
            null = measure(arms, draws=draws, seed=seed)
        attacks.append(
            Attack(
                name=name,
                patient=measure(notes.by_patient(), draws=draws, seed=seed),
                note=measure(notes, draws=draws, seed=seed),
                p=p[name],
                reverse_p=reverse_p[name],
                untrained=null,
                untrained_p=fresh_p.get(name),
                nulls=controls.nulls(notes.by_patient(), trained=True, draws=max(100, draws // 2), seed=seed),
            )
        )
    return attacks


def broken_controls(attacks: Sequence[Attack]) -> list[str]:
    """Return null controls (permuted labels, held-out halves) whose AUC is not 0.5, one sentence each."""
    problems = []
    for attack in attacks:
        for name, area in attack.nulls.items():
            try:
                controls.require_null(f"{attack.name}, {name.replace('_', ' ')}", area)
            except ControlFailed as error:
                problems.append(str(error))
    return problems
