"""What of the records a model gives back: second halves of notes, strings that name a patient, and canaries.

Halves and strings are counted by patient and compared with the same count for held-out patients, whom the
model never saw: a standard phrase, or a number that many could have, comes back for them as often.

Canaries are texts made for the audit; a coin decided which of them were trained on. The coin makes them the
one part of an audit that needs no likeness between two files, and the only one that can refute an epsilon.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from scipy.stats import binom, fisher_exact
from tqdm.auto import tqdm

from privaudit.encode import Sample, content_key, naming_strings
from privaudit.kit import Manifest, Unit
from privaudit.model import Target
from privaudit.records import FEWEST_CANARIES, Canary, Files, Note, Settings
from privhelpers import spelling, stats
from privhelpers.errors import InvalidParameter
from privhelpers.lower_bounds import (
    ADD_REMOVE,
    BINOMIAL,
    BY_RANK,
    BY_SIGN,
    FDP,
    REPLACEMENT,
    SHARES,
    AuditResult,
    audit_in_one_run,
    most_certifiable,
    swap_pairs,
)
from privhelpers.models import TokenScores
from privhelpers.stats import Interval
from privhelpers.text import found_among

SHORTEST = 20  # tokens of a note whose second half is tested
_OPENING = 2  # words that a text is begun with


class Check(StrEnum):
    """A test other than an attack on membership; keys of `tests`."""

    COMPLETIONS = "completions"
    DISCLOSURES = "disclosures"
    CANARIES = "canaries"
    COPIES = "copies"
    SINGLING_OUT = "singling_out"
    LINKABILITY = "linkability"
    INFERENCE = "inference"


@dataclass(frozen=True)
class Share:
    """How many of some patients or notes are affected."""

    hits: int
    of: int

    @property
    def interval(self) -> Interval:
        """The share with its exact interval."""
        return stats.clopper_pearson(self.hits, self.of)


@dataclass(frozen=True)
class PatientShares:
    """Affected patients of those who could be tested.

    Attributes:
        members, heldout: of each group.
        p: one-sided p-value of Fisher's exact test for more members.
        reverse_p: the same for more held-out patients.
    """

    members: Share
    heldout: Share
    p: float
    reverse_p: float

    @property
    def difference(self) -> Interval:
        """The members' share minus the held-out share, which chance and standard phrases explain."""
        return stats.newcombe_difference(self.members.interval, self.heldout.interval)


def compare_patients(hits: Iterable[str], asked: Iterable[str], members: Collection[str]) -> PatientShares:
    """Compare how many member and held-out patients are affected."""
    hits, asked, members = set(hits), set(asked), set(members)
    inside = Share(len(hits & members), len(asked & members))
    outside = Share(len(hits - members), len(asked - members))
    table = [[share.hits, share.of - share.hits] for share in (inside, outside)]
    p, reverse_p = (float(fisher_exact(table, side).pvalue) for side in ("greater", "less"))
    return PatientShares(inside, outside, p, reverse_p)


@dataclass(frozen=True)
class Completions:
    """Second halves of notes that greedy decoding returns word for word.

    Attributes:
        by_patient: patients with at least one such note.
        notes, heldout_notes: such notes.
        lines: the numbers of the members' such notes in their file.
        too_short: notes that were too short to test.
    """

    by_patient: PatientShares
    notes: Share
    heldout_notes: Share
    lines: tuple[int, ...]
    too_short: int


def completions(scored: TokenScores, sample: Sample) -> Completions | None:
    """Count notes of which a causal model returns the second half, given the first.

    Greedy decoding returns a half exactly if each of its tokens is the most probable one after those before
    it, so the pass that scored the notes already has the answer.

    Args:
        scored: the tokens of the notes by a causal model.
        sample: the notes.

    Returns:
        The counts, or None if a group has no note of 20 tokens.

    Source: Carlini et al. 2023, definition 3.1.
    """
    member, patients = sample.member, sample.patients
    asked = scored.tokens >= SHORTEST
    recalled = asked & np.array([bool(greedy[len(greedy) // 2 :].all()) for greedy in scored.greedy])
    if not (asked & member).any() or not (asked & ~member).any():
        return None
    return Completions(
        compare_patients(patients[recalled], patients[asked], patients[member]),
        Share(int((recalled & member).sum()), int((asked & member).sum())),
        Share(int((recalled & ~member).sum()), int((asked & ~member).sum())),
        tuple(sorted(sample.notes[n].line for n in np.flatnonzero(recalled & member))),
        int((~asked).sum()),
    )


def _first_words(text: str, count: int) -> str:
    """Return the beginning of a text; a letter of a script without blanks counts as half a word."""
    left, end = 2 * count, 0
    for word in re.finditer(r"\S+", text):
        if any(map(spelling.without_blanks, word[0])):
            ends = [(word.start() + unit.end(), unit[0]) for unit in spelling.units(word[0])]
        else:
            ends = [(word.end(), word[0])]
        for unit_end, unit in ends:
            if left > 0:
                left, end = left - 1 - spelling.says_a_word(unit), unit_end
    return " ".join(text[:end].split())


def openings(notes: Sequence[Note], *, most: int) -> list[str]:
    """Return common openings of notes: first words that several held-out patients share, most common first.

    Openings with digits are left out, because a number may belong to a person.

    Args:
        notes: held-out notes: an attacker knows the style of the hospital, but no patient.
        most: how many at most, 1 or more.
    """
    shared: dict[str, set[str]] = {}
    for note in notes:
        first = _first_words(note.text, _OPENING)
        if first and not any(map(str.isdigit, first)):
            shared.setdefault(first, set()).add(note.patient)
    counts = Counter({opening: len(people) for opening, people in shared.items() if len(people) > 1})
    return [opening for opening, _ in counts.most_common(most)]


def write_texts(target: Target, sample: Sample, settings: Settings, *, progress: bool) -> list[str]:
    """Let a causal model write `settings.texts` texts, without and with common openings."""
    begin = list(filter(target.continues, ["", *openings(sample.of(member=False), most=11)]))
    begin = begin[: settings.texts]
    texts: list[str] = []
    for number, opening in enumerate(tqdm(begin, desc="writing", unit="opening", disable=not progress)):
        samples = len(range(number, settings.texts, len(begin)))  # the first ones get the remainder
        texts += target.write(opening, samples=samples, tokens=settings.tokens, seed=settings.seed)
    return texts


@dataclass(frozen=True)
class Disclosures:
    """Patients who are named in what the model wrote.

    Attributes:
        by_patient: patients with one of their strings in some text, of those who have a string.
        texts, distinct: numbers of texts, and of distinct texts.
        strings: numbers of strings of members and of held-out patients.
        disclosed: the members' strings that were written.
    """

    by_patient: PatientShares
    texts: int
    distinct: int
    strings: tuple[int, int]
    disclosed: tuple[str, ...]


def disclosures(texts: Sequence[str], sample: Sample) -> Disclosures | None:
    """Search what the model wrote for strings of members and of held-out patients.

    Args:
        texts: what it wrote.
        sample: the notes of both groups.

    Returns:
        The counts, or None if a group has no such string.

    Source: Lukas et al. 2023, for extraction with a control.
    """
    owners = naming_strings(sample.notes)
    members = {note.patient for note in sample.of(member=True)}
    inside = sum(patient in members for patient in owners.values())
    if inside in (0, len(owners)):
        return None
    written = found_among(owners, texts)
    return Disclosures(
        compare_patients((owners[value] for value in written), owners.values(), members),
        len(texts),
        len(set(texts)),
        (inside, len(owners) - inside),
        tuple(sorted(value for value in written if owners[value] in members)),
    )


@dataclass(frozen=True)
class Claim:
    """A claimed epsilon, and the lower bounds that the canaries certify.

    The claim is refuted if `gaussian` is above it. Only then `lower` is looked at, which says whether it is
    refuted whatever the mechanism. What is claimed of a training with Gaussian noise is claimed of a
    mechanism, so the two tests in this order share one error (Maurer, Hothorn and Lehmacher 1995).

    Attributes:
        epsilon, delta: as claimed, for one unit added or removed.
        unit: a record, or a patient with all records.
        lower: the bound that the canaries certify for any mechanism, at the same delta.
        gaussian: the bound for a training with Gaussian noise, such as DP-SGD.
        most_certifiable, most_gaussian: the largest bounds that this many canaries can certify.
    """

    epsilon: float
    delta: float
    unit: Unit
    lower: AuditResult
    gaussian: AuditResult
    most_certifiable: float
    most_gaussian: float

    @property
    def refuted(self) -> bool:
        """Whether the claim is refuted, at least of a training with Gaussian noise."""
        return self.gaussian.epsilon_lower > self.epsilon

    @property
    def refuted_for_any(self) -> bool:
        """Whether the claim is refuted whatever the mechanism."""
        return self.refuted and self.lower.epsilon_lower > self.epsilon

    @property
    def decisive(self) -> AuditResult:
        """The bound with which the claim is refuted, or which came closest."""
        return self.lower if self.refuted_for_any else self.gaussian


@dataclass(frozen=True)
class Tier:
    """Canaries with the same number of copies; attributes as in `CanaryResult`."""

    copies: int
    inserted: int
    kept_out: int
    auc: Interval


@dataclass(frozen=True)
class CanaryResult:
    """How well scores tell inserted canaries from those that were kept out.

    Attributes:
        inserted, kept_out: how many.
        auc: of the score; each canary is a unit of the interval.
        p, reverse_p: p-value of higher scores for inserted canaries, and for those kept out.
        claim: None if no epsilon was claimed.
        tiers: the same by number of copies, if there are several numbers.
    """

    inserted: int
    kept_out: int
    auc: Interval
    p: float
    reverse_p: float
    claim: Claim | None
    tiers: tuple[Tier, ...] = ()


def require_testable(files: Files, settings: Settings) -> None:
    """Refuse a claim without canaries, and settings with which no test could flag anything.

    Raises:
        InvalidParameter: an epsilon is claimed without canaries; or too few permutations.
    """
    settings.require_permutations(2 + (files.canaries is not None))  # of one attack at least
    if settings.epsilon is not None and files.canaries is None:
        raise InvalidParameter(
            "epsilon and delta: a claim can only be tested with canaries; give a file of them, or "
            "leave the claim out"
        )
    if settings.epsilon is not None and files.canaries.kit is None:
        single = sum(canary.copies == 1 for canary in files.canaries.canaries)
        if single < FEWEST_CANARIES:
            raise InvalidParameter(
                f"epsilon and delta: {single} canaries have one copy, and only these test a claim for one "
                f"record; give {FEWEST_CANARIES} or more of them, or leave the claim out"
            )


def audit_canaries(
    canaries: Sequence[Canary], scores: np.ndarray, settings: Settings, kit: Manifest | None = None
) -> CanaryResult:
    """Tell inserted canaries from the others, and test a claimed epsilon.

    Args:
        canaries: with the outcome of each coin, fair and independent of the others; or, without a kit, one
            half of them was chosen at random.
        scores: higher for those that look inserted, made without the coins.
        settings: of the audit; the confidence of the lower bound is 1 - alpha / 2, the tests have the rest.
        kit: the kit of the canaries, if they have one: its coins are independent, and it has the unit of the
            claim.

    Source: Steinke, Nasr and Jagielski 2023; Mahloujifar, Melis and Chaudhuri 2025.
    """
    # The order of the file must not decide ties, pairs, or samples.
    order = sorted(range(len(canaries)), key=lambda n: content_key(settings.seed, [canaries[n].text]))
    coins, scores = np.array([canaries[n].inserted for n in order]), np.asarray(scores)[order]
    copies = np.array([canaries[n].copies for n in order])
    for number in np.unique(copies):  # more copies move a score more, so each number has its own middle
        scores = np.where(copies == number, scores - np.median(scores[copies == number]), scores)
    p, reverse_p = (
        stats.permutation_scores(scores[:, None], side, draws=settings.permutations, seed=settings.seed)[0]
        for side in (coins, ~coins)
    )
    whole, *tiers = (
        Tier(number, int(coins[which].sum()), int((~coins[which]).sum()), area)
        for number, which in [(0, copies > 0), *((n, copies == n) for n in np.unique(copies).tolist())]
        if (area := _area(coins[which], scores[which], settings)) is not None
    )
    claim = None if settings.epsilon is None else _claim(coins, scores, copies, settings, kit)
    return CanaryResult(
        whole.inserted,
        whole.kept_out,
        whole.auc,
        float(p[0]),
        float(reverse_p[0]),
        claim,
        tuple(tiers) if len(tiers) > 1 else (),
    )


def _area(coins: np.ndarray, scores: np.ndarray, settings: Settings) -> Interval | None:
    """Return the area under the ROC curve of canaries, or None if all coins fell on one side."""
    inside, outside = scores[coins], scores[~coins]
    if not inside.size or not outside.size:
        return None
    units = np.arange(len(inside)), np.arange(len(outside))
    return stats.auc_interval(inside, units[0], outside, units[1], draws=settings.draws, seed=settings.seed)


def countable(copies: np.ndarray, unit: Unit) -> np.ndarray:
    """Return which canaries a claim for a unit is about, shape [canaries].

    The copies of a canary have one patient_id. A claim for one patient covers them all. One for one record
    does not: to add a canary with four copies is to add four records, which the claim lets show more.
    """
    return (copies == 1) | (unit == Unit.PATIENT)


def _claim(
    coins: np.ndarray, scores: np.ndarray, copies: np.ndarray, settings: Settings, kit: Manifest | None
) -> Claim:
    """Return the lower bounds on epsilon, and the largest that this many canaries can give.

    The binomial bound holds for any mechanism; the f-DP bound for one whose trade-off curve is Gaussian or
    above it, as in DP-SGD where such guesses look. Without a kit, if exactly one half is inserted, that half
    may have been sampled, so the coins are not independent; pairs of an inserted canary and another one are,
    and independent coins that happen to split evenly may be paired, too. The error is divided so that
    choosing between the two after looking stays within it.
    """
    unit = Unit.RECORD if kit is None else kit.unit
    counted = countable(copies, unit)
    coins, scores = coins[counted], scores[counted]
    half = kit is None and 2 * int(coins.sum()) == coins.size
    even = kit is None and coins.size % 2 == 0
    chance = float(binom.pmf(coins.size // 2, coins.size, 0.5)) if even else 0.0
    bound = {"delta": settings.delta, "confidence": 1 - settings.share / (1 + chance)}
    adjacency, by = ADD_REMOVE, BY_RANK
    if half:
        pairs, coins = swap_pairs(coins, settings.seed)
        scores, adjacency, by = scores[pairs[:, 0]] - scores[pairs[:, 1]], REPLACEMENT, BY_SIGN
    bound["adjacency"] = adjacency
    lower, gaussian = (
        audit_in_one_run(coins, scores, by=by, method=method, **bound) for method in (BINOMIAL, FDP)
    )
    most, most_gaussian = (
        most_certifiable(canaries=len(coins), shares=SHARES, method=method, **bound)
        for method in (BINOMIAL, FDP)
    )
    lower, gaussian = (replace(one, confidence=1 - settings.share) for one in (lower, gaussian))
    return Claim(settings.epsilon, settings.delta, unit, lower, gaussian, most, most_gaussian)
