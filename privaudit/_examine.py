"""A whole audit, step by step, with every figure in one place."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from privaudit import _canaries, _membership, _memorization, _verdict
from privaudit._ahead import tests_ahead
from privaudit._blind import DEALINGS, BlindBaseline, blind_baselines
from privaudit._files import Files
from privaudit._likeness import Likeness
from privaudit._names import AttackName, Check
from privaudit._normal_form import Form, form_the_model_knows, in_form, rewrite
from privaudit._open import untrained
from privaudit._reading import read_alike
from privaudit._returned import require_text_back
from privaudit._risks import risks
from privaudit._sample import Sample, draw_sample
from privaudit._settings import Settings
from privaudit._target import Target
from privaudit._wording import in_time
from privhelpers import stats
from privhelpers.attacks import groups
from privhelpers.errors import BadRecords
from privhelpers.models import TokenScores
from privhelpers.stats import Interval
from privhelpers.stats.clustered import opened
from privhelpers.validate import shown


@dataclass(frozen=True)
class Sensitivity:
    """The weakest leak that so many patients would have shown with the stated power.

    Attributes:
        auc: smallest area under the ROC curve of one attack.
        tpr: smallest share of members that can be told at 1 % wrong accusations.
        power: probability with which they would have been found.
    """

    auc: float
    tpr: float
    power: float


def sensitivity(members: int, heldout: int, *, tests: int, alpha: float, power: float = 0.9) -> Sensitivity:
    """Return what an audit of this size would have found, had it been there.

    Args:
        members, heldout: patients of each group.
        tests: one-sided ones, among which the error is divided.
        alpha: error of the whole audit, in (0, 1).
        power: wanted probability of finding it, in (0, 1).

    >>> found = sensitivity(1000, 1000, tests=10, alpha=0.01)
    >>> round(found.auc, 3), round(found.tpr, 3)
    (0.556, 0.039)
    """
    one_sided = {"power": power, "alpha": 2 * alpha / tests}
    return Sensitivity(
        stats.detectable_auc(members, heldout, **one_sided),
        stats.detectable_rate(members, control=0.01, control_units=heldout, **one_sided),
        power,
    )


@dataclass(frozen=True)
class Audit:
    """Every figure of an audit, and what it was made of.

    Attributes:
        target, reference: the audited model, and the one that it is compared with, if any.
        files: what was brought.
        settings: how it was run.
        sample: the notes that were asked about.
        truncated: how many of them were longer than the model reads.
        attacks: on membership, each with its controls; the first is the loss, fixed before any result.
        blind: baselines that never saw the model.
        top1: share of words that the model's first guess gets right, of members and of held-out patients.
        completions, disclosures, canaries: None where they do not apply.
        risks: singling out, linkability and inference from what the model wrote, by their keys under `tests`
            in `wording.yml`; empty where it writes nothing.
        sensitivity: the weakest leak that would have been found.
        verdict: what follows.
        texts: what the model wrote.
        lost: sentences on what the tokenizers do not give back of the notes, and on another spelling in which
            they were read, or "".
    """

    target: Target
    reference: Target | None
    files: Files
    settings: Settings
    sample: Sample
    truncated: int
    attacks: list[_membership.Attack]
    blind: list[BlindBaseline]
    top1: tuple[Interval, Interval]
    completions: _memorization.Completions | None
    disclosures: _memorization.Disclosures | None
    risks: dict[str, _memorization.PatientShares]
    canaries: _canaries.CanaryResult | None
    sensitivity: Sensitivity
    verdict: _verdict.Verdict
    texts: list[str]
    lost: str = ""


def _lower_case(model: Target, sample: Sample, settings: Settings, progress: bool) -> TokenScores | None:
    """Return the notes as read in lower case; None if nobody asks, or the tokenizer makes nothing of some."""
    texts = [text.lower() for text in sample.texts] if settings.lower_case else []
    if not texts or not model.readable(texts).all():
        return None
    title = f"in lower case ({model.name})" if progress else None
    return model.score(texts, seed=settings.seed, what=title)


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
        intervals.append(opened(share, np.arange(count)))
    return intervals[0], intervals[1]


def _score_canaries(
    files: Files, target: Target, reference: Target | None, settings: Settings, form: Form | None
) -> _canaries.CanaryResult | None:
    """Score the canaries, against the reference model if there is one, and judge them."""
    if files.canaries is None:
        return None
    texts = rewrite([canary.text for canary in files.canaries.canaries], form)
    scored = []
    for model in filter(None, (target, reference)):
        if not model.readable(texts).all():
            raise BadRecords(
                f"{files.canaries.name}: the tokenizer of {shown(model.name)} makes nothing of some"
            )
        scored.append(model.score(texts, seed=settings.seed))
    scores = -scored[0].losses
    if reference is not None:
        against, other = read_alike((target, reference), tuple(scored), texts, seed=settings.seed)
        found = _membership.membership_scores(scored[0], texts, reference=other, against=against)
        scores = found.get(AttackName.REFERENCE, scores)
    return _canaries.audit_canaries(files.canaries.canaries, scores, settings)


def work_ahead(target: Target, reference: Target | None, sample: Sample, settings: Settings) -> str:
    """Return what the model will be asked, and about how long that takes, from asking a little of it."""
    few = sample.texts[:: max(1, len(sample.texts) // 12)]
    readings = (1 + settings.lower_case) * (1 + settings.control) + (reference is not None)
    clock = time.perf_counter()
    target.score(few, seed=settings.seed)
    seconds = (time.perf_counter() - clock) * readings * len(sample.texts) / len(few)
    written = ""
    if target.is_causal and target.start is not None:
        clock = time.perf_counter()
        target.write("", samples=2, tokens=min(8, settings.tokens), seed=settings.seed)
        seconds += (time.perf_counter() - clock) * settings.texts * settings.tokens / 16
        written = f", and to write {settings.texts:,} texts"
    attacks = 4 + settings.lower_case + 3 * (reference is not None)
    return (
        f"the models are asked to read {len(sample.texts):,} notes {readings} times{written}: at most about "
        f"{in_time(seconds)}; {tests_ahead(sample, settings, attacks=attacks)}"
    )


def examine(
    target: Target,
    files: Files,
    settings: Settings | None = None,
    *,
    reference: Target | None = None,
    progress: bool = True,
    told: Callable[[str], None] = lambda _: None,
) -> Audit:
    """Run every attack that applies, with its controls, and conclude.

    Args:
        target: the model.
        files: from `read_files`.
        settings: by default what the size of the model allows.
        reference: a model that saw neither file, such as the one that the target was trained from.
        progress: whether to show bars.
        told: called with a sentence when a part of the work begins, the first of them with an estimate.

    Raises:
        BadRecords: too few notes can be read.
        UnsupportedModel: its tokenizer, or that of the reference, loses most of the notes.
        InvalidParameter: an epsilon is claimed without canaries, which alone could refute it; or there are
            so few permutations that no test could flag anything.
    """
    settings = settings or Settings.for_model(target)
    _canaries.require_testable(files, settings)
    seed = settings.seed
    sample = draw_sample(files, [target, *filter(None, [reference])], settings)

    form = form_the_model_knows(target, sample, seed=seed)
    sample = in_form(sample, form)

    def ask(model: Target) -> TokenScores:
        return model.score(sample.texts, seed=seed, what=f"reading ({model.name})" if progress else None)

    lost = [require_text_back(model, sample.notes) for model in filter(None, (target, reference))]
    if form:
        lost.append(
            f"The notes are read in {form}: the model knows accents in this spelling better than as "
            "the files write them."
        )
    for sentence in filter(None, lost):
        told(sentence)
    told(work_ahead(target, reference, sample, settings))

    # Who was in the records: the same scores of the model, and of its architecture with fresh weights.
    other = ask(reference) if reference else None
    same = reference is not None and target.reads_as(reference, sample.texts)

    def scores_of(model: Target, tokens: TokenScores) -> dict[str, np.ndarray]:
        lower, against, known = _lower_case(model, sample, settings, progress), None, other
        if reference is not None:
            against, known = read_alike((model, reference), (tokens, other), sample.texts, seed=seed)
        return _membership.membership_scores(
            tokens, sample.texts, lower=lower, reference=known, against=against, same_tokens=same
        )

    scored = ask(target)
    scores, fresh = scores_of(target, scored), None
    if settings.control:
        control = untrained(target, seed=seed)
        fresh = scores_of(control, ask(control))
    written = 5 * target.is_causal  # tests: completions, disclosures and three risks
    settings.require_dealings(2 * len(scores) + written + (files.canaries is not None))
    told(f"testing {len(scores)} attacks on membership, with {settings.permutations:,} dealings each")
    attacks = _membership.measure_attacks(scores, sample, settings, untrained=fresh)

    # What the model gives back in words.
    completions, disclosures, texts, regulated = None, None, [], {}
    if target.is_causal:
        completions = _memorization.completions(scored, sample)
        told(f"letting it write {settings.texts:,} texts")
        texts = _memorization.write_texts(target, sample, settings, progress=progress)
        disclosures = _memorization.disclosures(texts, sample)
        regulated = (
            risks(texts, sample, Likeness(texts, sample.texts, progress=progress), settings) if texts else {}
        )
    canaries = _score_canaries(files, target, reference, settings, form)

    # What could explain a difference between the files, other than training; and what follows.
    told("comparing the two files without the model")
    members, heldout = (sample.texts_by_patient(member=side) for side in (True, False))
    blind = blind_baselines(
        members, heldout, permutations=min(settings.permutations, DEALINGS), draws=settings.draws, seed=seed
    )
    reference_p = None
    if other is not None:  # it may have seen either file: the smallest of four p-values counts four times
        both = sample, replace(sample, member=~sample.member)
        dealt = [_membership.p_values({"loss": -other.losses}, one, settings)["loss"] for one in both]
        reference_p = 4 * min(map(min, dealt))
    explanations = _verdict.alternative_explanations(blind, attacks, reference_p, alpha=settings.alpha)
    counts = {
        Check.COMPLETIONS: completions and completions.by_patient,
        Check.DISCLOSURES: disclosures and disclosures.by_patient,
        **regulated,
    }
    # What it wrote began as held-out notes do, so that no exchange is asked about these texts.
    p_values, reverse, turned = _verdict.p_values_by_test(
        attacks, counts, canaries, exchanged=(Check.COMPLETIONS,)
    )
    return Audit(
        target=target,
        reference=reference,
        files=files,
        settings=settings,
        sample=sample,
        truncated=scored.truncated,
        attacks=attacks,
        blind=blind,
        top1=_top1(scored, sample, settings),
        completions=completions,
        disclosures=disclosures,
        risks=regulated,
        canaries=canaries,
        sensitivity=sensitivity(len(members), len(heldout), tests=len(p_values), alpha=settings.share),
        verdict=_verdict.decide(
            p_values, explanations, canaries, reverse=reverse, turned=turned, alpha=settings.share
        ),
        texts=texts,
        lost=" ".join(filter(None, lost)),
    )
