"""One cell of the factorial: train under its layers, then run every attack and keep what they saw.

    outcomes = run_all(store, trials, suite)                    # one Outcome a trial
    outcomes[0].raw[suite.member]                               # losses of the members' notes as written

The attacks read nothing but a trained model, so the outcome of a cell is a few arrays and texts; the model
itself is not kept. A trial without texts is the public checkpoint: the control, trained on no patient.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from privhelpers import dpsgd, models, training
from privhelpers.artifacts import Store
from privhelpers.attacks import attributes, canaries, extraction, memorization
from privhelpers.defenses._pipeline import Pipeline
from privhelpers.defenses.factorial import Layers
from privhelpers.processes import side_by_side
from privhelpers.records import ALL_CONDITIONS

_START = "public"  # every cell starts from the public checkpoint


@dataclass(frozen=True)
class Trial:
    """One training.

    Attributes:
        cell: its layers, the filter off.
        texts: to train on, by patient; empty for the public checkpoint as it is.
        plan: sealed budget, None without DP.
        settings: of `dpsgd` with a plan, else of `training`.
        seed: of shuffling, or of draws and noise.
    """

    cell: Layers
    texts: Mapping[str, Sequence[str]]
    plan: dpsgd.PrivacyPlan | None
    settings: training.Settings | dpsgd.Settings
    seed: int


@dataclass(frozen=True)
class Suite:
    """What every model of the factorial is asked.

    Attributes:
        notes: of members, canaries left out, then of never-trained patients.
        member: whether each note is a member's, shape [notes].
        scrubbed: the same texts after scrubbing.
        canaries: planted ones of the members, and as many controls.
        digits, references: of the exposure.
        per_prompt: generations after each of the 14 prompts.
        people: profiles of members, and of equally many never-trained patients.
        seed: of references and generations.
    """

    notes: Sequence[dict]
    member: np.ndarray
    scrubbed: Sequence[str]
    canaries: Sequence[dict]
    digits: int
    references: int
    per_prompt: int
    people: tuple[Sequence[extraction.Profile], Sequence[extraction.Profile]]
    seed: int

    @property
    def patients(self) -> np.ndarray:
        """The patient of each note, shape [notes]."""
        return np.array([note["patient_id"] for note in self.notes])


@dataclass(frozen=True)
class Outcome:
    """What the attacks saw of one model.

    Attributes:
        cell: its layers; None for the public checkpoint.
        raw, scrubbed: loss of each note of the suite as written, and after scrubbing, nats per token.
        raw_tokens, scrubbed_tokens: predicted tokens of each note.
        recalled: greedy decoding of the first half of the note as written returns the second.
        canaries: one row a canary, as `canaries.measure` gives it.
        generations: after the 14 prompts.
        first_guess: whether the most probable condition after the name is right, of members and of others.
        texts, seconds: training texts, and seconds of training.
        epsilon: spent; None without DP.
    """

    cell: Layers | None
    raw: np.ndarray
    scrubbed: np.ndarray
    raw_tokens: np.ndarray
    scrubbed_tokens: np.ndarray
    recalled: np.ndarray
    canaries: tuple[canaries.CanaryResult, ...]
    generations: tuple[extraction.Generation, ...]
    first_guess: tuple[np.ndarray, np.ndarray]
    texts: int
    seconds: float
    epsilon: float | None


def _losses(model, tokenizer, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Score each different text once."""
    different = list(dict.fromkeys(texts))
    scores = models.score(model, tokenizer, different, batch_size=64)
    place = {text: number for number, text in enumerate(different)}
    rows = [place[text] for text in texts]
    return scores.losses[rows], scores.tokens[rows]


def _first_guesses(model, tokenizer, suite: Suite) -> tuple[np.ndarray, np.ndarray]:
    right = []
    for people in suite.people:
        asked = attributes.questions(suite.notes, people)
        table = attributes.candidate_table(model, tokenizer, [q.by_name for q in asked], ALL_CONDITIONS)
        ranks = attributes.ranks(table, ALL_CONDITIONS, [q.conditions for q in asked])
        right.append(ranks == 1)
    return tuple(right)


def _attack(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, suite: Suite, trial: Trial
) -> Outcome:
    """Run the suite on a trained model; costs and budget are filled in by `_train_and_attack`."""
    raw, raw_tokens = _losses(model, tokenizer, [note["text"] for note in suite.notes])
    clean, clean_tokens = _losses(model, tokenizer, list(suite.scrubbed))
    halves = memorization.halve(tokenizer, suite.notes, longest=model.config.max_position_embeddings)
    options = {"seed": suite.seed, "progress": False}
    ranked = canaries.measure(
        model,
        tokenizer,
        suite.canaries,
        digits=suite.digits,
        references=suite.references,
        texts=[note["text"] for note in suite.notes],
        **options,
    )
    return Outcome(
        cell=trial.cell if trial.texts else None,
        raw=raw,
        scrubbed=clean,
        raw_tokens=raw_tokens,
        scrubbed_tokens=clean_tokens,
        recalled=memorization.recall(model, halves, batch_size=64).recalled,
        canaries=tuple(ranked),
        generations=tuple(extraction.attempt(model, tokenizer, per_prompt=suite.per_prompt, **options)),
        first_guess=_first_guesses(model, tokenizer, suite),
        texts=sum(len(patient_texts) for patient_texts in trial.texts.values()),
        seconds=0.0,
        epsilon=None,
    )


def _train_and_attack(store: Store, trial: Trial, suite: Suite) -> Outcome:
    """Train one trial and attack the model."""
    begin = time.process_time()
    model, tokenizer = models.take(store, _START)
    epsilon = None
    if trial.texts:
        pipeline = Pipeline(plan=trial.plan)
        epsilon = pipeline.train(model, tokenizer, trial.texts, trial.settings, seed=trial.seed)
    seconds = time.process_time() - begin
    outcome = _attack(model, tokenizer, suite, trial)
    return replace(outcome, seconds=seconds, epsilon=epsilon)


def run_all(store: Store, trials: Sequence[Trial], suite: Suite) -> list[Outcome]:
    """Run several trials one after the other, on one thread; the outcomes are in their order.

    Args:
        store: contains the public checkpoint.
        trials: what to train.
        suite: what to ask of each model.
    """
    jobs = [(store, trial, suite) for trial in trials]
    return [outcome for _, outcome in side_by_side(_train_and_attack, jobs)]
