"""A whole audit of a model, its answers, or synthetic texts: every probe with its controls, and the verdict.

An audit of synthetic texts needs the records that they were made from, and records of other patients, whom
their maker never saw. A text that repeats a note is not a leak by itself, because standard phrases of a
hospital repeat for everyone. So every count is shown with the same count for held-out patients.

An audit of answers needs no weights: `queries` writes the questions and searches the answers.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np

from privaudit import membership, memorization, queries, risks, verdict
from privaudit.console import duration
from privaudit.encode import (
    Sample,
    draw_sample,
    form_the_model_knows,
    in_form,
    read_alike,
    require_text_back,
    rewrite,
)
from privaudit.loading import untrained
from privaudit.membership import AttackName, BlindBaseline
from privaudit.memorization import Check, PatientShares
from privaudit.model import EncodedTexts, Target
from privaudit.queries import Answers, Knowledge, QueryTest
from privaudit.records import Files, Settings
from privhelpers import stats
from privhelpers.attacks import groups
from privhelpers.errors import BadRecords, InvalidParameter
from privhelpers.models import TokenScores
from privhelpers.stats import Interval
from privhelpers.stats.clustered import widen_point_interval
from privhelpers.validate import shown

POWER = 0.9  # probability of finding the weakest leak that a report states
_PASSES = 5  # over notes, halves and rests, each compared with every synthetic text


class Kind(StrEnum):
    """What was audited: weights, texts, or answers; keys of the wording, apart from the first."""

    MODEL = "model"
    SYNTHETIC = "synthetic"
    QUERIES = "queries"


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
    canaries: memorization.CanaryResult | None
    sensitivity: Sensitivity
    verdict: verdict.Verdict
    target: Target | None = None
    reference: Target | None = None
    truncated: int = 0
    top1: tuple[Interval, Interval] | None = None
    completions: memorization.Completions | None = None
    texts: Sequence[str] = ()
    lost: str = ""
    copies: risks.Copies | None = None
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


class _Model:
    """The probes of a model, which scores the notes and, if it is causal, writes texts."""

    exchanged = (Check.COMPLETIONS,)  # what it wrote began as held-out notes do, so that is not exchanged
    name = "model"

    def __init__(
        self, target: Target, reference: Target | None, files: Files, settings: Settings, progress: bool
    ) -> None:
        self.target, self.reference, self.files, self.settings = target, reference, files, settings
        self.progress = progress
        self.models = (target,) if reference is None else (target, reference)
        sample = draw_sample(files, self.models, settings)
        self.form = form_the_model_knows(target, sample, seed=settings.seed)
        self.sample = in_form(sample, self.form, self.models)
        pairs = zip(self.models, self.sample.encoded, strict=True)
        lost = (require_text_back(model, self.sample.notes, encoded) for model, encoded in pairs)
        self.lost = list(filter(None, lost))
        if self.form:
            self.lost.append(
                f"The notes are read in {self.form}: the model knows accents in this spelling better than as "
                "the files write them."
            )
        self.checks_at_most = 5 * target.is_causal  # completions, disclosures and three risks

    def ahead(self) -> list[str]:
        """Return what the tokenizers lose, what is measured, and an estimate of the time."""
        target, sample, settings = self.target, self.sample, self.settings
        numbers = range(0, len(sample.notes), max(1, len(sample.notes) // 12))
        few = sample.encoded[0].take(numbers)
        readings = (1 + settings.lower_case) * (1 + settings.control) + (self.reference is not None)
        seconds = seconds_of(lambda: target.score(few, seed=settings.seed))
        seconds *= readings * len(sample.notes) / len(numbers)
        written = ""
        if target.is_causal and target.start is not None:
            tokens = min(8, settings.tokens)
            writing = seconds_of(lambda: target.write("", samples=2, tokens=tokens, seed=settings.seed))
            seconds += writing * settings.texts * settings.tokens / 16
            written = f", and to write {settings.texts:,} texts"
        return [
            *self.lost,
            f"the models read {len(sample.texts):,} notes {readings} times{written}: at most "
            f"about {duration(seconds)}, and more for tests and the comparison of the two files",
        ]

    def membership_scores(self) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray] | None]:
        """Return the scores of each note, and under fresh weights if the settings include that control."""
        target, reference, sample, seed = self.target, self.reference, self.sample, self.settings.seed
        own, others = sample.encoded[0], sample.encoded[-1]

        def ask(model: Target, texts: EncodedTexts, title: str) -> TokenScores:
            return model.score(texts, seed=seed, what=f"{title} ({model.name})" if self.progress else None)

        lower = target.encode([text.lower() for text in sample.texts]) if self.settings.lower_case else None
        if lower and not lower.readable.all():
            lower = None
        other = ask(reference, others, "reading") if reference else None
        same = reference is not None and target.reads_as(reference, own, others)

        def scores_of(model: Target, tokens: TokenScores) -> dict[str, np.ndarray]:
            lower_case = ask(model, lower, "in lower case") if lower else None
            against, known = None, other
            if reference is not None:
                against, known = read_alike(
                    (model, reference), (tokens, other), sample.texts, (own, others), seed=seed
                )
            return membership.membership_scores(
                tokens, sample.texts, lower=lower_case, reference=known, against=against, same_tokens=same
            )

        self.scored, self.other = ask(target, own, "reading"), other
        scores, fresh = scores_of(target, self.scored), None
        if self.settings.control:
            control = untrained(target, seed=seed)
            fresh = scores_of(control, ask(control, own, "reading"))
        return scores, fresh

    def check(self, notify: Callable[[str], None]) -> dict[Check, PatientShares | None]:
        """Count the patients whose notes or strings the model gives back."""
        self.completions, self.disclosures, self.texts, self.risks = None, None, [], {}
        if not self.target.is_causal:
            return {}
        self.completions = memorization.completions(self.scored, self.sample)
        notify(f"letting it write {self.settings.texts:,} texts")
        self.texts = memorization.write_texts(self.target, self.sample, self.settings, progress=self.progress)
        self.disclosures = memorization.disclosures(self.texts, self.sample)
        if self.texts:
            likeness = risks.Likeness(self.texts, self.sample.texts)
            self.risks = risks.risks(self.texts, self.sample, likeness, self.settings)
        return {
            Check.COMPLETIONS: self.completions and self.completions.by_patient,
            Check.DISCLOSURES: self.disclosures and self.disclosures.by_patient,
            **self.risks,
        }

    def canary_scores(self) -> np.ndarray:
        """Score the canaries, against the reference model if there is one."""
        file, seed = self.files.canaries, self.settings.seed
        texts = rewrite([canary.text for canary in file.canaries], self.form)
        encoded = tuple(model.encode(texts) for model in self.models)
        for model, read in zip(self.models, encoded, strict=True):
            if not read.readable.all():
                raise BadRecords(
                    f"{file.name}: the tokenizer of {shown(model.name)} turns some into no tokens"
                )
        scored = [model.score(read, seed=seed) for model, read in zip(self.models, encoded, strict=True)]
        scores = -scored[0].losses
        if self.reference is None:
            return scores
        against, other = read_alike(self.models, tuple(scored), texts, encoded, seed=seed)
        found = membership.membership_scores(scored[0], texts, reference=other, against=against)
        return found.get(AttackName.REFERENCE, scores)

    def reference_p(self) -> float | None:
        """Return the p-value of the reference model, which may have seen either file.

        Two tests, each with the groups swapped too, share the error: the smallest p-value counts four times.
        """
        if self.reference is None:
            return None
        swapped = replace(self.sample, member=~self.sample.member)
        losses = {"loss": -self.other.losses}
        both = [membership.p_values(losses, one, self.settings)["loss"] for one in (self.sample, swapped)]
        return 4 * min(map(min, both))

    def facts(self) -> dict[str, Any]:
        """Return the fields of `Audit` that a model alone has."""
        return {
            "target": self.target,
            "reference": self.reference,
            "truncated": self.scored.truncated,
            "top1": _top1(self.scored, self.sample, self.settings),
            "completions": self.completions,
            "texts": self.texts,
            "lost": " ".join(self.lost),
        }


class _Texts:
    """The probes of a synthetic data set."""

    exchanged = (Check.COPIES, Check.DISCLOSURES)
    name = "synthetic texts"
    checks_at_most = 5  # copies, disclosures and three risks

    def __init__(self, files: Files, settings: Settings) -> None:
        self.files, self.settings = files, settings
        self.texts, self.sample = files.synthetic.texts, draw_sample(files, [], settings)

    def ahead(self) -> list[str]:
        """Return what is compared, and an estimate of the time."""
        texts = self.sample.texts
        self.likeness = risks.Likeness(self.texts, texts)
        few = texts[:: max(1, len(texts) // 50)]
        seconds = _PASSES * seconds_of(lambda: self.likeness.nearest(few)) * len(texts) / len(few)
        return [
            f"{len(texts):,} notes are compared with {len(self.texts):,} synthetic texts: about "
            f"{duration(seconds)}, and more for tests and the comparison of the two files"
        ]

    def membership_scores(self) -> tuple[dict[str, np.ndarray], None]:
        """Return the scores of each note."""
        texts = self.sample.texts
        scores = {
            AttackName.WORDS: -risks.word_losses(self.texts, texts),
            AttackName.CLOSEST: self.likeness.nearest(texts),
            AttackName.COVERED: self.likeness.covered(texts),
        }
        return membership.drop_constant_scores(scores), None

    def check(self, notify: Callable[[str], None]) -> dict[Check, PatientShares | None]:
        """Count the patients whom the texts reveal."""
        notify("looking for near copies, strings that name a patient, and the three risks of the regulators")
        self.copies = risks.copies(self.texts, self.sample)
        self.disclosures = memorization.disclosures(self.texts, self.sample)
        self.risks = risks.risks(self.texts, self.sample, self.likeness, self.settings)
        named = self.disclosures and self.disclosures.by_patient
        return {Check.COPIES: self.copies.by_patient, Check.DISCLOSURES: named, **self.risks}

    def canary_scores(self) -> np.ndarray:
        """Score the canaries by how well the texts predict their words."""
        return -risks.word_losses(self.texts, [canary.text for canary in self.files.canaries.canaries])

    def reference_p(self) -> None:
        """Return None: there is no reference model."""

    def facts(self) -> dict[str, Any]:
        """Return the fields of `Audit` that texts alone have."""
        return {"copies": self.copies}


class _Answers:
    """The probes of a model behind an interface, which only answers."""

    name = "answers"
    disclosures, risks = None, {}

    def __init__(self, answers: Answers, files: Files) -> None:
        if files.canaries is not None:
            raise InvalidParameter("canaries: their scores need the weights of the model; leave them out")
        self.answers, self.sample, tests = answers, answers.plan.asked, answers.plan.tests
        self.checks_at_most = len(tests)
        # Texts without knowledge begin as held-out notes do, so these tests are not exchanged.
        self.exchanged = [test for test in tests if test.knowledge != Knowledge.NOTHING]

    def ahead(self) -> list[str]:
        """Return how many answers are searched."""
        return [
            f"{self.answers.given:,} of {self.answers.wanted:,} answers are searched for words of "
            f"{len(self.answers.plan.sample.notes):,} notes, and for strings that name a patient"
        ]

    def membership_scores(self) -> tuple[dict[str, np.ndarray], None]:
        """Return the score of each note that was asked about."""
        scores = {AttackName.GIVEN_BACK: queries.given_back(self.answers)}
        return membership.drop_constant_scores(scores), None

    def check(self, notify: Callable[[str], None]) -> dict[QueryTest, PatientShares]:
        """Count the patients whom the answers give away."""
        notify("looking for strings that name a patient, and for words of notes")
        self.leakage = queries.leakage(self.answers)
        return self.leakage

    def reference_p(self) -> None:
        """Return None: there is no reference model."""

    def facts(self) -> dict[str, Any]:
        """Return the fields of `Audit` that answers alone have."""
        return {"answers": self.answers, "leakage": self.leakage}


def _top1(scored: TokenScores, sample: Sample, settings: Settings) -> tuple[Interval, Interval]:
    """Return the share of words guessed right at the first attempt, of members and of held-out patients."""
    rates = np.array([greedy.mean() for greedy in scored.greedy])
    intervals = []
    for side in (sample.member, ~sample.member):
        means, patients = groups.group_means(rates[side], sample.patients[side])
        count = len(patients)
        share = stats.clustered_bootstrap(
            np.mean, np.arange(count), means, draws=settings.draws, seed=settings.seed
        )
        intervals.append(widen_point_interval(share, np.arange(count)))
    return intervals[0], intervals[1]


def _probes(
    files: Files,
    settings: Settings,
    target: Target | None,
    reference: Target | None,
    progress: bool,
    answers: Answers | None,
) -> _Model | _Texts | _Answers:
    """Return the probes of a model, of its answers, or of the synthetic texts among the files."""
    if target is not None:
        return _Model(target, reference, files, settings, progress)
    if answers is not None:
        return _Answers(answers, files)
    if files.synthetic is None:
        raise InvalidParameter("target: neither a model nor synthetic texts are given; give one of them")
    return _Texts(files, settings)


def run_audit(
    files: Files,
    settings: Settings | None = None,
    *,
    target: Target | None = None,
    reference: Target | None = None,
    answers: Answers | None = None,
    blind_results: list[BlindBaseline] | None = None,
    progress: bool = False,
    notify: Callable[[str], None] = lambda _: None,
) -> Audit:
    """Audit a model, its answers, or the synthetic texts in `files`: every probe, its controls, a verdict.

    Args:
        files: from `read_files`.
        settings: by default `Settings.for_model(target)`, or `Settings.for_texts()` without a model.
        target: the audited model; None: the answers, or the synthetic texts, are audited.
        reference: a model that saw neither file, such as the one that the target was trained from.
        answers: of a model behind an interface, from `queries.read_answers`.
        blind_results: of another audit with the same settings and the same two files; None: measured here.
        progress: whether to show bars.
        notify: called with a sentence when a part of the work begins; the first estimates the time.

    Raises:
        BadRecords: too few notes can be read.
        UnsupportedModel: a tokenizer loses most of the notes, or a model fails.
        InvalidParameter: there is nothing to audit; an epsilon is claimed without canaries, which alone can
            refute it; canaries are given with answers; or there are too few permutations to flag anything.
    """
    settings = settings or (Settings.for_texts() if target is None else Settings.for_model(target))
    memorization.require_testable(files, settings)
    probes = _probes(files, settings, target, reference, progress, answers)
    for sentence in probes.ahead():
        notify(sentence)
    scores, fresh = probes.membership_scores()
    settings.require_permutations(2 * len(scores) + probes.checks_at_most + (files.canaries is not None))
    notify(f"testing {len(scores)} attacks on membership, with {settings.permutations:,} permutations each")
    attacks = membership.measure_attacks(scores, probes.sample, settings, untrained=fresh)
    counts = probes.check(notify)
    judged = None
    if files.canaries is not None:
        file = files.canaries
        judged = memorization.audit_canaries(file.canaries, probes.canary_scores(), settings, file.kit)

    notify(f"comparing the two files without the {probes.name}")
    compared = probes.sample if answers is None else answers.plan.sample
    members, heldout = (compared.texts_by_patient(member=side) for side in (True, False))
    blind_results = blind_results or membership.blind_baselines(
        members,
        heldout,
        permutations=min(settings.permutations, membership.PERMUTATIONS),
        draws=settings.draws,
        seed=settings.seed,
    )
    p_values, swapped, invertible = verdict.p_values_by_test(
        attacks, counts, judged, exchanged=probes.exchanged
    )
    explanations = verdict.alternative_explanations(
        blind_results, attacks, probes.reference_p(), alpha=settings.alpha
    )
    return Audit(
        files=files,
        settings=settings,
        sample=replace(probes.sample, encoded=()),  # not needed any more
        attacks=attacks,
        blind=blind_results,
        risks=probes.risks,
        disclosures=probes.disclosures,
        canaries=judged,
        sensitivity=sensitivity(*probes.sample.sizes, tests=len(p_values), alpha=settings.share),
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
    probes = _probes(files, settings, target, reference, False, answers)
    patients = len(set(probes.sample.patients))
    told = (sentence.rstrip(".") for sentence in probes.ahead())
    return "; ".join([f"{patients:,} patients would be tested", *told])


def seconds_of(function: Callable[[], object]) -> float:
    """Return how long a call takes."""
    clock = time.perf_counter()
    function()
    return time.perf_counter() - clock
