"""Membership: attacks with one model, each with its controls, and baselines that never see the model.

A score is HIGHER for a text that looks more like a member's. A patient's score is the mean over the patient's
notes: the patient is the unit of the tests and of the harm.

If the texts alone tell members from held-out patients, the two groups differ in more than membership (other
years, another ward, another template), and an attack that separates them may have found that difference
instead. Then the figures show nothing about the model, whichever way they come out.

Source of the baselines: Das, Zhang and Tramer 2024.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import linalg, sparse
from scipy.stats import rankdata
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import StandardScaler

from privaudit.encode import Sample
from privaudit.records import Settings
from privhelpers import rng, spelling, stats
from privhelpers.artifacts import parse_yaml
from privhelpers.attacks import controls, groups, signals
from privhelpers.attacks.scores import Measured, measure, split
from privhelpers.errors import ControlFailed
from privhelpers.models import TokenScores
from privhelpers.stats import Interval


class AttackName(StrEnum):
    """An attack on membership; keys of `attacks`."""

    LOSS = "loss"
    ZLIB = "zlib"
    MIN_K = "min_k"
    MIN_K_PLUS_PLUS = "min_k_plus_plus"
    LOWER_CASE = "lower_case"
    REFERENCE = "reference"
    EZ_MIA = "ez_mia"
    WBC = "wbc"
    WORDS = "words"
    CLOSEST = "closest"
    COVERED = "covered"


class Part(StrEnum):
    """The two tests of an attack, in the order of its p-values; keys of `attack_tests`."""

    ALL = "all"
    FEW = "few"


class AttackTest(NamedTuple):
    """One test of an attack."""

    attack: str
    part: Part


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


WORDING = parse_yaml(Path(__file__).with_name("wording.yml").read_text(encoding="utf-8"))
NAMES = ("words", "shape", "rarity")
PARTS = 5  # of the patients; each is judged by what was learned from the other four
RIDGE = 1.0  # of the regression; a text's likeness to itself is 1
_CELLS = 16  # numbers a patient that one permutation takes in memory
_LONGEST = 40_000  # characters of one patient that are looked at
_STRETCH = 400  # characters; where there are more, so many stretches are sampled from all notes
_ROWS = 256  # of the table of products that are made at once
PERMUTATIONS = 999  # that an audit asks for at most: a program learns again from each
_MOST = 2000  # patients of a group that are judged, sampled at random: likeness is a table of every two


@dataclass(frozen=True)
class BlindBaseline:
    """What one baseline achieves without the model.

    Attributes:
        name: one of `NAMES`.
        auc: of held-out judgements, patient by patient.
        p: chance of so much if the files do not differ.
        parts: the one of five random parts that each patient is in, members first; a patient is judged by
            what the other four teach.
    """

    name: str
    auc: Interval
    p: float
    parts: np.ndarray = field(repr=False, compare=False)


def _units(text: str) -> list[str]:
    """Return the words of two letters or more, as they are written, and characters of scripts without blanks.

    They keep their spelling: what differs in spelling alone differs for a model, too.
    """
    units = (unit[0] for unit in spelling.units(text))
    return [unit for unit in units if len(unit) > 1 or spelling.without_blanks(unit)]


def _words(texts: Sequence[str]) -> sparse.csr_matrix:
    """Return weighted counts of words, pairs of words and short runs of letters, one row a text."""
    size = {"n_features": 2**16, "alternate_sign": False}
    letters = HashingVectorizer(analyzer="char_wb", ngram_range=(3, 4), **size)
    words = HashingVectorizer(ngram_range=(1, 2), tokenizer=_units, token_pattern=None, **size)
    # The weights see every text and no label, so that they cannot tell anything about membership.
    return make_pipeline(make_union(letters, words), TfidfTransformer(sublinear_tf=True)).fit_transform(texts)


def _looked_at(text: str, generator: np.random.Generator) -> str:
    """Return a text, or stretches of a longer one from all over it: what differs late differs, too."""
    if len(text) <= _LONGEST:
        return text
    stretches = [text[start : start + _STRETCH] for start in range(0, len(text), _STRETCH)]
    return "".join(
        stretches[n] for n in sorted(generator.permutation(len(stretches))[: _LONGEST // _STRETCH])
    )


def _shape(texts: Sequence[str], generator: np.random.Generator) -> list[float]:
    """Return figures of a patient's notes that no single word decides."""
    lengths = [len(text) for text in texts]
    joined = _looked_at("".join(texts), generator)
    kinds = (str.isdigit, str.isupper, str.isspace)
    shares = [sum(map(kind, joined)) / max(1, len(joined)) for kind in kinds]
    words = [len(text.split()) + sum(map(spelling.without_blanks, text)) for text in texts]
    return [len(texts), min(lengths), max(lengths), float(np.mean(lengths)), float(np.mean(words)), *shares]


def _rarity(texts: Sequence[str]) -> np.ndarray:
    """Return how rare the words, pairs of words and runs of letters of each patient are, shape [patients, 6].

    For each of the three, the mean rarity over the patient's, and the share that nobody else has: one slip in
    a long note hardly moves a mean. A slip of the pen teaches a program that counts words nothing about
    another patient's slip; a language model finds both surprising, and a stray capital as well. Every digit
    counts as the same: numbers differ from patient to patient anyway.
    """
    columns = []
    for analyzer, run in (("word", (1, 1)), ("word", (2, 2)), ("char_wb", (4, 4))):
        size = {"n_features": 2**18, "alternate_sign": False, "binary": True, "norm": None}
        cut = {"tokenizer": _units, "token_pattern": None} if analyzer == "word" else {}
        table = HashingVectorizer(analyzer=analyzer, ngram_range=run, lowercase=False, **cut, **size)
        digits_alike = (re.sub(r"\d", "0", text) for text in texts)
        has = table.fit_transform(digits_alike)
        patients, runs = (np.maximum(1, np.asarray(has.sum(axis)).ravel()) for axis in (0, 1))
        columns += [has @ np.log(len(texts) / patients) / runs, has @ (patients == 1) / runs]
    return np.array(columns).T


def _smoother(kernel: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """Return the matrix that turns labels into judgements of patients by what the other parts teach.

    Ridge regression is linear in the labels: one matrix serves the true labels and every shuffle of them.
    """
    matrix = np.zeros_like(kernel)
    for part in range(PARTS):
        judge, learn = np.flatnonzero(parts == part), np.flatnonzero(parts != part)
        inner = kernel[np.ix_(learn, learn)]
        inner[np.diag_indices_from(inner)] += RIDGE
        rows = linalg.solve(inner, kernel[np.ix_(learn, judge)], overwrite_a=True, assume_a="pos").T
        # Without the mean of the labels: a part with more members leaves fewer to learn from.
        matrix[np.ix_(judge, learn)] = rows - rows.mean(1, keepdims=True)
    return matrix


def _areas(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the area under the ROC curve of each row of scores for its own row of labels."""
    members = labels.sum(1)
    ranks = (labels * rankdata(scores, axis=1)).sum(1)
    return (ranks - members * (members + 1) / 2) / (members * (labels.shape[1] - members))


def _products(rows: sparse.csr_matrix) -> np.ndarray:
    """Return the inner product of every two rows, in blocks: a sparse table of all would be larger."""
    table = np.empty((rows.shape[0], rows.shape[0]))
    for start in range(0, len(table), _ROWS):
        table[start : start + _ROWS] = (rows[start : start + _ROWS] @ rows.T).toarray()
    return table


def _kernels(people: Sequence[Sequence[str]]) -> Iterator[tuple[str, np.ndarray]]:
    """Yield what `text_kernels` returns, one table at a time: each takes 128 MB for 4,000 patients."""
    generator = rng.make(0, "checkup/blind/stretches")
    joined = [_looked_at("\n".join(texts), generator) for texts in people]
    rarity, tables = _rarity(joined), [_products(_words(joined))]
    del joined  # nothing here outlives its use
    yield "words", tables.pop()
    shape = np.array([_shape(texts, generator) for texts in people])
    yield "shape", rbf_kernel(StandardScaler().fit_transform(shape))
    yield "rarity", rbf_kernel(StandardScaler().fit_transform(rarity))


def text_kernels(people: Sequence[Sequence[str]]) -> dict[str, np.ndarray]:
    """Return how alike the notes of every two patients are, shape [patients, patients], in three ways.

    Args:
        people: the texts of each patient.

    Returns:
        `words`: by shared words and short runs of letters; `shape`: by number, length and make-up alone;
        `rarity`: by how few other patients share their words and runs of letters.
    """
    return dict(_kernels(people))


def blind_baselines(
    members: Sequence[Sequence[str]],
    heldout: Sequence[Sequence[str]],
    *,
    permutations: int = 999,
    draws: int = 500,
    seed: int = 0,
) -> list[BlindBaseline]:
    """Try to tell two groups of patients apart by words, shape and rarity of their notes.

    Args:
        members, heldout: the texts of each patient; of more than 2,000, as many are sampled.
        permutations: of the test, which learns again from every permutation of the labels.
        draws: bootstrap draws of the intervals.
        seed: of the parts, the permutations and the draws.

    Source: Das, Zhang and Tramer 2024.
    """
    generator = rng.make(seed, "checkup/blind/drawn")
    members, heldout = (
        [side[n] for n in sorted(generator.permutation(len(side))[:_MOST])] for side in (members, heldout)
    )
    member = np.repeat([True, False], [len(members), len(heldout)])
    units = np.arange(len(members)), np.arange(len(heldout))
    parts = rng.make(seed, "checkup/blind").permutation(member.size) % PARTS
    baselines = []
    for name, kernel in _kernels([*members, *heldout]):
        learner = _smoother(kernel, parts)
        del kernel  # neither table outlives its use

        def areas(labels: np.ndarray, learner: np.ndarray = learner) -> np.ndarray:
            return _areas((labels.astype(float) @ learner.T).round(12), labels)[:, None]

        p = stats.permutation_test(areas, member, draws=permutations, seed=seed, cells=_CELLS * member.size)
        scores = (learner @ member.astype(float)).round(12)  # what is equal but for rounding ties
        area = stats.auc_interval(scores[member], units[0], scores[~member], units[1], draws=draws, seed=seed)
        baselines.append(BlindBaseline(name, area, float(p[0]), parts))
        del areas, learner
    return baselines
