"""The audit of a synthetic data set: texts in place of a model, and the same controls, tests and verdict.

Whoever brings it brings the records that it was made from, and records of other patients, whom its maker
never saw. A text that repeats a note is no leak by itself: formulas of the house come back for people nobody
looked at. So every count stands beside the same count for held-out patients.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from privaudit import _canaries, _membership, _memorization, _verdict
from privaudit._ahead import tests_ahead
from privaudit._blind import DEALINGS, BlindBaseline, blind_baselines
from privaudit._examine import Sensitivity, sensitivity
from privaudit._files import Files
from privaudit._likeness import Likeness, near_copies, word_losses
from privaudit._memorization import PatientShares, compare_patients
from privaudit._names import Check
from privaudit._risks import risks
from privaudit._sample import Sample, draw_sample
from privaudit._settings import Settings
from privaudit._wording import in_time
from privhelpers.stats import Interval

_PASSES = 5  # over notes, halves and rests, each compared with every synthetic text
_COUNTED = 5  # tests: copies, disclosures and three risks


@dataclass(frozen=True)
class Copies:
    """Patients with a note that some synthetic text nearly repeats, and what of that is no leak.

    Attributes:
        by_patient: members and held-out patients with such a note.
        texts: synthetic texts that nearly repeat a member's note: the count that is often given alone.
        heldout_texts: those that nearly repeat a held-out patient's note.
        phantoms: how many member patients such a set would "copy" without having seen any: the held-out
            share, of as many as the members are, with its exact interval.
    """

    by_patient: PatientShares
    texts: int
    heldout_texts: int
    phantoms: Interval


@dataclass(frozen=True)
class SyntheticAudit:
    """Every figure of an audit of a synthetic data set; attributes of the same name are those of `Audit`.

    Attributes:
        files: what was brought, the synthetic texts among it.
        settings, sample, attacks, blind, disclosures, canaries, risks, sensitivity, verdict: see `Audit`.
        copies: near copies of notes.
    """

    files: Files
    settings: Settings
    sample: Sample
    attacks: list[_membership.Attack]
    blind: list[BlindBaseline]
    copies: Copies
    disclosures: _memorization.Disclosures | None
    risks: dict[str, PatientShares]
    canaries: _canaries.CanaryResult | None
    sensitivity: Sensitivity
    verdict: _verdict.Verdict


def _copies(texts: tuple[str, ...], sample: Sample, *, progress: bool) -> Copies:
    """Count near copies of members, and of held-out patients."""
    counts, copied = [], []
    for side in (True, False):
        notes = sample.of(member=side)
        repeated, repeats = near_copies([note.text for note in notes], texts, progress=progress)
        copied += [notes[n].patient for n in np.flatnonzero(repeated)]
        counts.append(int(repeats.sum()))
    members = {note.patient for note in sample.of(member=True)}
    shares = compare_patients(copied, (note.patient for note in sample.notes), members)
    chance, of = shares.heldout.interval, shares.members.of
    ends = (of * end for end in (chance.estimate, chance.low, chance.high))
    return Copies(shares, *counts, Interval(*ends, chance.level, chance.method))


def work_ahead(
    texts: tuple[str, ...], sample: Sample, settings: Settings, *, progress: bool = False
) -> tuple[Likeness, str]:
    """Return the comparison of notes with synthetic texts, ready to be asked, and about how long it takes."""
    likeness = Likeness(texts, sample.texts, progress=progress)
    few, clock = sample.texts[:: max(1, len(sample.texts) // 50)], time.perf_counter()
    likeness.nearest(few)
    seconds = _PASSES * (time.perf_counter() - clock) * len(sample.texts) / len(few)
    tests = tests_ahead(sample, replace(settings, control=False), attacks=3)
    return likeness, f"the comparisons take about {in_time(seconds)}; {tests}"


def examine_synthetic(
    files: Files,
    settings: Settings | None = None,
    *,
    progress: bool = False,
    blind: list[BlindBaseline] | None = None,
    told: Callable[[str], None] = lambda _: None,
) -> SyntheticAudit:
    """Run every attack on a synthetic data set, with its controls, and conclude.

    Args:
        files: from `read_files`, with synthetic texts.
        settings: by default those of a small model, with twice the dealings.
        progress: whether to show bars.
        blind: of an audit of another set with the same settings and the same two files, whose texts they
            never see; None: they are measured.
        told: called with a sentence when a part of the work begins.

    Raises:
        InvalidParameter: an epsilon is claimed without canaries, which alone could refute it; or there are
            so few permutations that no test could flag anything.
    """
    settings = settings or Settings.for_texts()
    _canaries.require_testable(files, settings)
    texts, sample = files.synthetic.texts, draw_sample(files, [], settings)
    told(f"comparing {len(sample.texts):,} notes with {len(texts):,} synthetic texts")
    likeness, ahead = work_ahead(texts, sample, settings, progress=progress)
    told(ahead)
    scores = {
        "words": -word_losses(texts, sample.texts, progress=progress),
        "closest": likeness.nearest(sample.texts)[0],
        "covered": likeness.covered(sample.texts),
    }
    scores = _membership.told_apart(scores)
    settings.require_dealings(2 * len(scores) + _COUNTED + (files.canaries is not None))
    told(f"testing {len(scores)} attacks on membership, with {settings.permutations:,} dealings each")
    attacks = _membership.measure_attacks(scores, sample, settings)
    told("looking for near copies, for what names a patient, and for the three risks of the regulators")
    copies, disclosures = _copies(texts, sample, progress=progress), _memorization.disclosures(texts, sample)
    regulated = risks(texts, sample, likeness, settings)
    canaries = None
    if files.canaries is not None:
        brought = files.canaries.canaries
        echoes = -word_losses(texts, [canary.text for canary in brought])
        canaries = _canaries.audit_canaries(brought, echoes, settings)

    told("comparing the two files without the synthetic texts")
    members, heldout = (sample.texts_by_patient(member=side) for side in (True, False))
    blind = blind or blind_baselines(
        members,
        heldout,
        permutations=min(settings.permutations, DEALINGS),
        draws=settings.draws,
        seed=settings.seed,
    )
    named = disclosures and disclosures.by_patient
    counts = {Check.COPIES: copies.by_patient, Check.DISCLOSURES: named, **regulated}
    exchanged = Check.COPIES, Check.DISCLOSURES
    p_values, reverse, turned = _verdict.p_values_by_test(attacks, counts, canaries, exchanged=exchanged)
    explanations = _verdict.alternative_explanations(blind, attacks, None, alpha=settings.alpha)
    return SyntheticAudit(
        files=files,
        settings=settings,
        sample=sample,
        attacks=attacks,
        blind=blind,
        copies=copies,
        disclosures=disclosures,
        risks=regulated,
        canaries=canaries,
        sensitivity=sensitivity(len(members), len(heldout), tests=len(p_values), alpha=settings.share),
        verdict=_verdict.decide(
            p_values, explanations, canaries, reverse=reverse, turned=turned, alpha=settings.share
        ),
    )
