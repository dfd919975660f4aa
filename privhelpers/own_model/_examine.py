"""A whole audit, step by step, with every figure in one place.

files = read_files("members.jsonl", "nonmembers.jsonl")
found = examine(open_model("my-model"), files, seed=0)
found.verdict.outcome
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from tqdm.auto import tqdm

from privhelpers import stats, validate
from privhelpers.attacks import groups
from privhelpers.errors import BadRecords, InvalidParameter
from privhelpers.own_model import _canaries, _chance, _membership, _memorization, _verdict
from privhelpers.own_model._blind import BlindBaseline, blind_baselines
from privhelpers.own_model._open import untrained
from privhelpers.own_model._sample import Effort, Files, Sample, draw_sample
from privhelpers.own_model._target import CAUSAL, Reading, Target
from privhelpers.stats import Interval

ALARM = 0.01


@dataclass(frozen=True)
class Audit:
    """Every figure of an audit, and what it was made of.

    Attributes:
        target, reference: the audited model, and the one that it is compared with, if any.
        files: what was brought.
        effort: how much was asked.
        asked: the notes.
        truncated: how many of them were longer than the model reads.
        attacks: on membership, each with its controls.
        blind: baselines that never saw the model.
        guessed: share of words that the model's first guess gets right, of members and of others.
        completed, named, planted: None where they do not apply.
        sensitivity: the weakest leak that would have been found.
        verdict: what follows.
        seed, alarm: of everything drawn; chance of flagging a model that learned nothing.
        texts: what the model wrote.
    """

    target: Target
    reference: Target | None
    files: Files
    effort: Effort
    asked: Sample
    truncated: int
    attacks: list[_membership.Attack]
    blind: list[BlindBaseline]
    guessed: tuple[Interval, Interval]
    completed: _memorization.Completions | None
    named: _memorization.Disclosures | None
    planted: _canaries.CanaryResult | None
    sensitivity: _chance.Sensitivity
    verdict: _verdict.Verdict
    seed: int
    alarm: float
    texts: list[str]


def _read(model: Target, texts: Sequence[str], what: str, seed: int, progress: bool) -> Reading:
    with tqdm(total=len(texts), desc=what, unit="note", disable=not progress) as bar:
        return model.read(texts, seed=seed, bar=bar)


def scored(
    model: Target,
    asked: Sample,
    *,
    lower: bool,
    seed: int,
    reference: Reading | None = None,
    progress: bool = True,
) -> tuple[dict[str, np.ndarray], Reading]:
    """Ask a model about the notes; return the score of each under each attack, and what it said.

    Args:
        model: to ask.
        asked: the notes.
        lower: whether to ask about them in lower case too.
        seed: of a masked model's masks.
        reference: what another model said of them.
        progress: whether to show bars.
    """
    reading = _read(model, asked.texts, f"reading ({model.name})", seed, progress)
    lowered = None
    if lower:
        small = [text.lower() for text in asked.texts]
        lowered = _read(model, small, f"in lower case ({model.name})", seed, progress)
    return _membership.scores_of(reading, asked.texts, lower=lowered, reference=reference), reading


def _guessed(reading: Reading, asked: Sample, seed: int) -> tuple[Interval, Interval]:
    """Return the share of words guessed right at the first attempt, of members and of others."""
    rates = np.array([first.mean() for first in reading.first])
    sides = (
        groups.group_means(rates[side], asked.patients[side])[0] for side in (asked.member, ~asked.member)
    )
    members, others = (
        stats.clustered_bootstrap(np.mean, np.arange(len(own)), own, draws=500, seed=seed) for own in sides
    )
    return members, others


def _audited_canaries(
    files: Files, target: Target, reference: Target | None, how: dict
) -> _canaries.CanaryResult | None:
    """Score the canaries, against the reference model if there is one, and judge them."""
    if files.canaries is None:
        return None
    texts = [row.text for row in files.canaries.canaries]
    for model in filter(None, (target, reference)):
        if not model.readable(texts).all():
            raise BadRecords(f"{files.canaries.name}: the tokenizer of {model.name!r} makes nothing of some")
    own = target.read(texts, seed=how["seed"])
    other = reference.read(texts, seed=how["seed"]) if reference else None
    found = _membership.scores_of(own, texts, reference=other)
    return _canaries.audit_canaries(files.canaries.canaries, found.get("reference", -own.loss), **how)


def examine(
    target: Target,
    files: Files,
    *,
    reference: Target | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    effort: Effort | None = None,
    seed: int = 0,
    alarm: float = ALARM,
    times: int = 9999,
    draws: int = 500,
    progress: bool = True,
) -> Audit:
    """Run every attack that applies, with its controls, and conclude.

    Args:
        target: the model.
        files: from `read_files`.
        reference: a model that saw neither file, such as the one that the target was trained from.
        epsilon, delta: a claimed budget, for one record more or less; only canaries can refute it.
        effort: default: what the size of the model allows.
        seed: of everything that is drawn.
        alarm: chance of flagging a model that learned nothing of its records, in (0, 0.5).
        times: shuffles of each test; 1 / (times + 1) must lie well below the alarm over the tests.
        draws: bootstrap resamples of patients.
        progress: whether to show bars.

    Raises:
        BadRecords: too few notes can be read.
        InvalidParameter: a value is out of its range.
    """
    _canaries.check_claim(epsilon, delta)
    validate.positive_int(times=times, draws=draws)
    if not 0 < alarm < 0.5:
        raise InvalidParameter(f"alarm = {alarm!r}: must be in (0, 0.5)")
    effort = effort or Effort.of(target)
    asked = draw_sample(files, [target, *filter(None, [reference])], effort, seed=seed)
    other = _read(reference, asked.texts, "reading (reference)", seed, progress) if reference else None
    show = {"lower": effort.lower, "reference": other, "seed": seed, "progress": progress}
    scores, reading = scored(target, asked, **show)
    fresh = scored(untrained(target, seed=seed), asked, **show)[0] if effort.control else None
    resampling = {"draws": draws, "times": times, "seed": seed}
    attacks = _membership.measure_attacks(scores, asked.patients, asked.member, untrained=fresh, **resampling)
    blind = blind_baselines(asked.of(True), asked.of(False), times=min(times, 999), draws=draws, seed=seed)
    completed, named, texts = None, None, []
    if target.kind == CAUSAL:
        completed = _memorization.completions(reading, asked.notes, asked.member)
        texts = _written(target, asked, effort, seed, progress)
        named = _memorization.named(texts, asked.notes, asked.member)
    claim = {"epsilon": epsilon, "delta": delta, "confidence": 1 - alarm}
    canaries = _audited_canaries(files, target, reference, {**claim, **resampling})
    reference_p = (
        _membership.loss_p(other, asked.patients, asked.member, times=times, seed=seed) if other else None
    )
    tests = _verdict.test_names(attacks, completed, named, canaries)
    explained = _verdict.alternative_explanations(blind, attacks, reference_p, alarm=alarm)
    people = {"members": len(asked.of(True)), "others": len(asked.of(False))}
    return Audit(
        target=target,
        reference=reference,
        files=files,
        effort=effort,
        asked=asked,
        truncated=reading.truncated,
        attacks=attacks,
        blind=blind,
        guessed=_guessed(reading, asked, seed),
        completed=completed,
        named=named,
        planted=canaries,
        sensitivity=_chance.sensitivity(**people, tests=len(tests), alarm=alarm),
        verdict=_verdict.decide(tests, explained, canaries, alarm=alarm),
        seed=seed,
        alarm=alarm,
        texts=texts,
    )


def _written(target: Target, asked: Sample, effort: Effort, seed: int, progress: bool) -> list[str]:
    others = [note for note, own in zip(asked.notes, asked.member, strict=True) if not own]
    with tqdm(total=effort.texts, desc="writing", unit="text", disable=not progress) as bar:
        return _memorization.write_texts(
            target, others, texts=effort.texts, tokens=effort.tokens, seed=seed, bar=bar
        )
