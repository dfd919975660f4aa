"""A whole audit of a model, its answers, or synthetic texts: every probe with its controls, and the verdict.

An audit of synthetic texts needs the records that they were made from, and records of other patients, whom
their maker never saw. A text that repeats a note is not a leak by itself, because standard phrases of a
hospital repeat for everyone. So every count is shown with the same count for held-out patients.

An audit of answers needs no weights: `probes.questions` writes the questions, and `probes.answers` searches.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from privaudit import verdict
from privaudit.encode import (
    Sample,
)
from privaudit.model import Target
from privaudit.probes import blind, canaries, likeness, membership, memorization
from privaudit.probes.answers import Answers
from privaudit.probes.blind import BlindBaseline
from privaudit.probes.counts import PatientShares
from privaudit.probes.questions import QueryTest
from privaudit.records import Files
from privaudit.settings import Settings
from privaudit.subjects import probes_of
from privhelpers.stats import Interval


class Kind(StrEnum):
    """What was audited: weights, texts, or answers; keys of the wording, apart from the first."""

    MODEL = "model"
    SYNTHETIC = "synthetic"
    QUERIES = "queries"


@dataclass(frozen=True)
class Audit:
    """Every figure of an audit, and its inputs.

    Attributes:
        files: the checked files.
        settings: of the audit.
        sample: the notes that were tested.
        attacks: on membership, each with its controls; the first was fixed before any result.
        blind: baselines that never saw the model or the texts.
        risks: singling out, linkability and inference from the texts, by `Check`; empty without texts.
        disclosures, canaries: None where they do not apply.
        sensitivity: the weakest leak that would have been found.
        verdict: the conclusion.
        target, reference: the audited model, and the model that it is compared with; None without a model.
        truncated: how many notes were longer than the model reads.
        top1: share of words that the model's first guess gets right, of members and of held-out patients.
        completions: None without a causal model.
        texts: what the model wrote.
        lost: sentences on what the tokenizers lose of the notes, and on a changed spelling, or "".
        copies: near copies of notes among synthetic texts; None if there are none.
        answers: the answers of a model behind an interface; None if its weights, or texts, were audited.
        leakage: patients whom the answers give away, for each cell of the table; empty without answers.
    """

    files: Files
    settings: Settings
    sample: Sample
    attacks: list[membership.Attack]
    blind: list[BlindBaseline]
    risks: dict[str, PatientShares]
    disclosures: memorization.Disclosures | None
    canaries: canaries.CanaryResult | None
    sensitivity: verdict.Sensitivity
    verdict: verdict.Verdict
    target: Target | None = None
    reference: Target | None = None
    truncated: int = 0
    top1: tuple[Interval, Interval] | None = None
    completions: memorization.Completions | None = None
    texts: Sequence[str] = ()
    lost: str = ""
    copies: likeness.Copies | None = None
    answers: Answers | None = None
    leakage: dict[QueryTest, PatientShares] = field(default_factory=dict)

    @property
    def kind(self) -> Kind:
        """What was audited."""
        if self.target is not None:
            return Kind.MODEL
        return Kind.SYNTHETIC if self.answers is None else Kind.QUERIES

    @property
    def is_of_model(self) -> bool:
        """Whether the weights of a model were audited."""
        return self.kind == Kind.MODEL


def run_audit(
    files: Files,
    settings: Settings | None = None,
    *,
    target: Target | None = None,
    reference: Target | None = None,
    answers: Answers | None = None,
    progress: bool = False,
    notify: Callable[[str], None] = lambda _: None,
) -> Audit:
    """Audit a model, its answers, or the synthetic texts in `files`: every probe, its controls, a verdict.

    Args:
        files: from `read_files`.
        settings: by default `Settings.for_model(target)`, or `Settings.for_texts()` without a model.
        target: the audited model; None: the answers, or the synthetic texts, are audited.
        reference: a model that saw neither file, such as the one that the target was trained from.
        answers: of a model behind an interface, from `probes.answers.read_answers`.
        progress: whether to show bars.
        notify: called with a sentence when a part of the work begins; the first estimates the time.

    Raises:
        BadRecords: too few notes can be read.
        UnsupportedModel: a tokenizer loses most of the notes, or a model fails.
        InvalidParameter: there is nothing to audit; an epsilon is claimed without canaries, which alone can
            refute it; canaries are given with answers; or there are too few permutations to flag anything.
    """
    settings = settings or (Settings.for_texts() if target is None else Settings.for_model(target))
    canaries.require_testable(files, settings)
    probes = probes_of(files, settings, target, reference, progress, answers)
    for sentence in probes.ahead():
        notify(sentence)
    scores, fresh = probes.membership_scores()
    settings.require_permutations(2 * len(scores) + probes.checks_at_most + (files.canaries is not None))
    notify(f"testing {len(scores)} attacks on membership, with {settings.permutations:,} permutations each")
    attacks = membership.measure_attacks(scores, probes.sample, settings, untrained=fresh, progress=progress)
    counts = probes.check(notify)
    judged = None
    if files.canaries is not None:
        file = files.canaries
        judged = canaries.audit_canaries(file.canaries, probes.canary_scores(), settings, file.kit)

    notify(f"comparing the two files without the {probes.name}")
    compared = probes.sample if answers is None else answers.plan.sample
    members, heldout = (compared.texts_by_patient(member=side) for side in (True, False))
    baselines = blind.blind_baselines(
        members,
        heldout,
        permutations=min(settings.permutations, blind.PERMUTATIONS),
        draws=settings.draws,
        seed=settings.seed,
        progress=progress,
    )
    p_values, swapped, invertible = verdict.p_values_by_test(
        attacks, counts, judged, exchanged=probes.exchanged
    )
    explanations = verdict.alternative_explanations(
        baselines, attacks, probes.reference_p(), alpha=settings.alpha
    )
    return Audit(
        files=files,
        settings=settings,
        sample=replace(probes.sample, encoded=()),  # not needed any more
        attacks=attacks,
        blind=baselines,
        risks=probes.risks,
        disclosures=probes.disclosures,
        canaries=judged,
        sensitivity=verdict.sensitivity(*probes.sample.sizes, tests=len(p_values), alpha=settings.share),
        verdict=verdict.decide(
            p_values, explanations, judged, swapped=swapped, invertible=invertible, alpha=settings.share
        ),
        **probes.facts(),
    )


def dry_run(
    files: Files,
    settings: Settings,
    *,
    target: Target | None = None,
    reference: Target | None = None,
    answers: Answers | None = None,
) -> str:
    """Describe the audit and estimate its run time from a small trial.

    Args:
        files: from `read_files`.
        settings: of the audit.
        target, reference, answers: as `run_audit` takes them.

    Raises:
        BadRecords: too few notes can be read.
        UnsupportedModel: a tokenizer loses most of the notes.
    """
    probes = probes_of(files, settings, target, reference, False, answers)
    patients = len(set(probes.sample.patients))
    told = (sentence.rstrip(".") for sentence in probes.ahead())
    return "; ".join([f"{patients:,} patients would be tested", *told])
