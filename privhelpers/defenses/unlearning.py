"""Unlearning after the fact: gradient ascent on what is to be forgotten, and how to judge the result.

    log = ascend(model, tokenizer, forget, Ascent(steps=40, learning_rate=5e-4), seed=0, watch=watch)
    verdict(stats.auc_interval(...))     # "member-like", "over-forgotten" or "no difference found"

The standard is a model that never saw the forgotten patients. A score that is lower for them than for
people who were never there betrays them as surely as one that is higher.

Sources: Jang et al. 2023 for ascent on language models and its stopping rule; Golatkar,
Achille and Soatto 2020 for the name of the Streisand effect; Chen et al. 2021 for attacks that hold both
versions of the model.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import ArrayLike
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from privhelpers import rng, validate
from privhelpers.errors import InvalidParameter, TrainingFailed
from privhelpers.models.encoding import encode, end_id, to_batch
from privhelpers.models.scoring import row_losses, score
from privhelpers.stats import Interval

MEMBER_LIKE, OVER_FORGOTTEN, NO_DIFFERENCE = "member-like", "over-forgotten", "no difference found"


@dataclass(frozen=True)
class Ascent:
    """How to unlearn by gradient ascent.

    Attributes:
        steps: optimizer steps, 1 or more; fewer are taken if `watch` stops the run.
        learning_rate: of Adam, constant, greater than 0.
        batch_size: forgotten texts of a step, and kept texts of a step, 1 or more.
        retain_weight: of the descent on kept texts beside the ascent, 0 or more; 0 is plain ascent.
        max_grad_norm: bound on the norm of a step's gradient, greater than 0.
    """

    steps: int
    learning_rate: float
    batch_size: int = 16
    retain_weight: float = 0.0
    max_grad_norm: float = 1.0

    def __post_init__(self) -> None:
        """Refuse settings out of range."""
        validate.positive_int(steps=self.steps, batch_size=self.batch_size)
        validate.positive(learning_rate=self.learning_rate, max_grad_norm=self.max_grad_norm)
        validate.non_negative(retain_weight=self.retain_weight)


@dataclass
class AscentLog:
    """What a run of ascent did.

    Attributes:
        forget_loss: mean loss of the forgotten texts of each step before it was taken, nats per token.
        rows: texts that went forward and back, kept ones included: the cost.
        stopped: `watch` ended the run before its last step.
    """

    forget_loss: list[float] = field(default_factory=list)
    rows: int = 0
    stopped: bool = False

    @property
    def steps(self) -> int:
        """Number of steps taken."""
        return len(self.forget_loss)


def _endless(rows: list[list[int]], size: int, generator):
    while True:
        order = generator.permutation(len(rows)).tolist()
        for first in range(0, len(order), size):
            yield [rows[n] for n in order[first : first + size]]


def _mean_loss(model: PreTrainedModel, rows: list[list[int]], pad_id: int) -> torch.Tensor:
    ids, labels = to_batch(rows, pad_id)
    logits = model(input_ids=ids.to(model.device)).logits
    return row_losses(logits, labels.to(model.device)).mean()


def ascend(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    forget: Sequence[str],
    settings: Ascent,
    *,
    seed: int,
    retain: Sequence[str] = (),
    watch: Callable[[int], bool] | None = None,
) -> AscentLog:
    """Raise the loss of the texts `forget` under `model`, in place.

    The objective that is minimized is minus the mean loss of forgotten texts, plus `retain_weight` times
    the mean loss of kept ones. The first term has no floor: without a stopping rule it runs away.

    Args:
        forget: texts whose influence is to be undone.
        settings: steps, learning rate and weight.
        seed: of the order of the texts.
        retain: texts that stay, needed if `retain_weight` is above 0.
        watch: called before the first step and after each one with the number of steps taken; a true
            answer ends the run. This is where a stopping rule and the controls of a curve belong.

    Raises:
        InvalidParameter: there is nothing to forget, or nothing is given to hold on to.
        TrainingFailed: a gradient was not finite.

    Source: Jang et al. 2023; with kept texts, Liu, Liu and Stone 2022.
    """
    if not forget:
        raise InvalidParameter("forget: there is nothing to forget")
    if settings.retain_weight and not retain:
        raise InvalidParameter("retain: a retain_weight above 0 needs texts that stay")
    longest = model.config.max_position_embeddings
    streams = {
        name: _endless(encode(tokenizer, own, max_length=longest).ids, settings.batch_size, made)
        for name, own, made in (
            ("forget", forget, rng.make(seed, "unlearning/forget")),
            ("retain", retain, rng.make(seed, "unlearning/retain")),
        )
    }
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.learning_rate)
    log, pad_id = AscentLog(), end_id(tokenizer)
    model.eval()  # no dropout: what is to be forgotten should be all that moves
    for step in range(settings.steps + 1):
        if watch and watch(step):
            log.stopped = step < settings.steps
            break
        if step == settings.steps:
            break
        batch = next(streams["forget"])
        loss = _mean_loss(model, batch, pad_id)
        log.forget_loss.append(float(loss.detach()))
        log.rows += len(batch)
        objective = -loss
        if settings.retain_weight:
            kept = next(streams["retain"])
            objective = objective + settings.retain_weight * _mean_loss(model, kept, pad_id)
            log.rows += len(kept)
        objective.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), settings.max_grad_norm)
        if not torch.isfinite(norm):
            raise TrainingFailed(f"step {step}: the gradient is not finite; lower the learning rate")
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return log


@dataclass(frozen=True)
class Path:
    """An ascent that was watched on its way.

    Attributes:
        steps: numbers of steps taken when it was looked at, 0 first.
        losses: of the watched texts at each look, shape [looks, texts].
        stop: the first of `steps` at which the stopping rule held; the last one if it never did.
        stopped: the model at that moment.
        log: of the whole run.
    """

    steps: tuple[int, ...]
    losses: np.ndarray
    stop: int
    stopped: PreTrainedModel
    log: AscentLog


def follow(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    forget: Sequence[str],
    settings: Ascent,
    *,
    seed: int,
    watched: Sequence[str],
    gone: ArrayLike,
    calm: ArrayLike,
    every: int,
    retain: Sequence[str] = (),
) -> Path:
    """Run an ascent to its end, and keep what watched texts lose and where a rule would have stopped it.

    The rule: stop when the forgotten texts among those watched have, on average, the loss of texts that
    were never there, both under the model of that moment.

    Args:
        forget, settings, seed, retain: as of `ascend`; `model` is changed in place, to the end of the run.
        watched: texts to score at every look.
        gone: which of them are forgotten, shape [watched].
        calm: which of them were never trained on and serve the rule alone, shape [watched].
        every: steps between two looks, 1 or more.

    Raises:
        InvalidParameter: `gone` or `calm` marks nothing, or has another shape.

    Source: Jang et al. 2023, for a rule of this kind.
    """
    validate.positive_int(every=every)
    masks = [np.asarray(mask, dtype=bool) for mask in (gone, calm)]
    if any(mask.shape != (len(watched),) or not mask.any() for mask in masks):
        raise InvalidParameter(f"gone and calm: must each mark some of {len(watched)} watched texts")
    looks: dict[int, np.ndarray] = {}
    stops: list[tuple[int, PreTrainedModel]] = []

    def watch(step: int) -> bool:
        if step % every == 0 or step == settings.steps:
            looks[step] = score(model, tokenizer, watched, batch_size=64).losses
            means = [looks[step][mask].mean() for mask in masks]
            if means[0] >= means[1] and not stops:
                stops.append((step, copy.deepcopy(model)))
        return False

    log = ascend(model, tokenizer, forget, settings, seed=seed, retain=retain, watch=watch)
    stop, stopped = stops[0] if stops else (settings.steps, model)
    return Path(tuple(looks), np.stack(list(looks.values())), stop, stopped, log)


def verdict(interval: Interval, *, null: float = 0.5) -> str:
    """Say on which side of "never trained" a membership figure of the forgotten patients lies.

    Args:
        interval: of the AUC of forgotten patients against never-trained ones, or of any figure with a null.
        null: what never-trained patients give.

    Returns:
        `member-like` above the null, `over-forgotten` below it, and otherwise `no difference found`, which
        is no proof that there is none: the width of the interval says what could have been seen.

    >>> verdict(Interval(0.31, 0.24, 0.38, 0.95, "bootstrap"))
    'over-forgotten'
    """
    if interval.low > null:
        return MEMBER_LIKE
    return OVER_FORGOTTEN if interval.high < null else NO_DIFFERENCE


def reversed_exposure(rank: float, *, references: int) -> float:
    """Return in bits how far down the list a secret stands: exposure counted from the other end.

    A secret that a model was driven away from is the least probable of all, so an attacker who reads the
    list from below finds it as fast as it was found from above before.

    Args:
        rank: 1 for the most probable, to `references` + 1; ties may give halves.
        references: other secrets it was ranked among, 1 or more.

    >>> reversed_exposure(1024, references=1023)
    10.0
    """
    # Late, so that this room can be read without the attacks.
    from privhelpers.attacks.canaries import exposure

    return exposure(rank=references + 2 - rank, references=references)
