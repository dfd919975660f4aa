"""Every score of membership that one model and its records allow, each beside its controls.

A score is HIGHER for what looks more like a member. A patient's score is the mean over the patient's notes:
the patient is the unit, of the tests as of the harm.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from privaudit.encode import Sample
from privaudit.settings import Settings
from privaudit.words import WORDING, AttackName
from privhelpers import stats
from privhelpers.attacks import controls, groups, signals
from privhelpers.attacks.scores import Measured, measure, split
from privhelpers.errors import ControlFailed
from privhelpers.models import TokenScores
from privhelpers.stats import Interval

# Attacks whose area a leak can take below 0.5: a model that read its notes in lower case gains less by it the
# better it knows one, and a maker may throw away the texts that come closest to its records.
LEAK_CAN_INVERT = (AttackName.LOWER_CASE, AttackName.CLOSEST, AttackName.COVERED)


@dataclass(frozen=True)
class Attack:
    """One attack on membership, and the same where it must fail.

    Attributes:
        name: key of `attacks` in `wording.yml`.
        patient, note: what it achieves for patients, and for single notes.
        p: chance of so high an area, and of so many members above all but 1 % of the others.
        reverse_p: the same with members and held-out patients exchanged.
        untrained, untrained_p: the same of patients on a model with fresh weights; None if it was not asked,
            and no p-values where it gives all the same score.
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

    @property
    def words(self) -> str:
        """What the attack looks at, in plain words."""
        return WORDING["attacks"][self.name]


def membership_scores(
    scored: TokenScores,
    texts: Sequence[str],
    *,
    lower: TokenScores | None = None,
    reference: TokenScores | None = None,
    against: TokenScores | None = None,
    same_tokens: bool = False,
) -> dict[str, np.ndarray]:
    """Return the score of each text under each attack that one model allows.

    Args:
        scored: the tokens of the texts by the audited model.
        texts: what was scored.
        lower: of the texts in lower case, by the same model.
        reference: of the texts by another model, whose tokens may be others, and which may read less.
        against: of the texts by the audited model, for the comparison with the reference, where that must
            see no more of a text than the reference does (`encode.read_alike`); by default `scored`.
        same_tokens: whether the tokens of the reference are the same, as EZ-MIA and WBC ask.

    Source: see `attacks.signals`.
    """
    lower_loss = None if lower is None else signals.lower_case_loss(scored, lower, texts)
    scores = signals.scores(signals.from_tokens(scored, texts, lower_loss=lower_loss))
    if reference is not None:
        against = against or scored
        if same_tokens:
            counts = np.minimum(against.tokens, reference.tokens)
            measured = signals.from_tokens(against.head(counts), texts)
            moved = signals.scores(measured, reference_log_p=reference.head(counts).log_p)
            scores |= {name: moved[name] for name in (AttackName.EZ_MIA, AttackName.WBC)}
        scores[AttackName.REFERENCE] = _reference_scores(against, reference, texts)
    return drop_constant_scores(scores)


def _reference_scores(one: TokenScores, other: TokenScores, texts: Sequence[str]) -> np.ndarray:
    """Return by how many nats a byte one model predicts each text better than another, where both read it.

    Dividing the losses of what each model reads by the whole text, or by what it reads, would score the
    length of long texts. A text without a part that both read says nothing, and gets the mean of the others.
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

    One that is the same says nothing: an uncased tokenizer has no lower case to tell apart. The first is kept
    as zeros then, with an area of 0.5: another one in its place would be chosen by what it found.
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
) -> list[Attack]:
    """Measure every attack for patients and notes, with intervals, tests and controls.

    Args:
        scores: of each note, by attack.
        sample: the notes.
        settings: of the audit.
        untrained: scores of the same notes under fresh weights; an attack that it lacks gives all the same.
    """
    patients, member = sample.patients, sample.member
    draws, seed = settings.draws, settings.seed
    fresh = {name: values for name, values in (untrained or {}).items() if name in scores and values.any()}
    p, fresh_p = p_values(scores, sample, settings), p_values(fresh, sample, settings)
    reverse_p = p_values(scores, replace(sample, member=~member), settings)
    attacks = []
    for name, values in scores.items():
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
