"""The plain training loop: AdamW, warm-up and decay, accumulation, clipping, early stopping.

It serves the public pretraining and the baseline; the private loop is `privhelpers.dpsgd`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
import torch
from tqdm.auto import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from privhelpers import rng, validate
from privhelpers.errors import InvalidParameter, TrainingFailed
from privhelpers.models.encoding import encode, end_id, to_batch
from privhelpers.models.masking import Masking, masked_losses, padded, score_masked
from privhelpers.models.precision import check_precision, training_in
from privhelpers.models.repeatable import repeatable_on
from privhelpers.models.scoring import row_losses, score


@dataclass(frozen=True)
class Settings:
    """How to train.

    Attributes:
        epochs: passes over the texts, 1 or more.
        learning_rate: peak of the schedule, greater than 0.
        batch_size: texts of one physical batch.
        accumulation_steps: physical batches of one optimizer step, fewer in the last step of an epoch. The
            gradient of a step is as for one large batch: the mean over its rows of each row's own mean loss
            per token, so a row counts alike in a long or short text, a full or a small batch.
        weight_decay: of AdamW, 0 or more.
        warm_up: share of the steps with rising learning rate, in [0, 1]; it then falls linearly to zero.
        max_grad_norm: bound on the norm of a step's gradient (of the batch, not of a record: no privacy).
        patience: stop after so many epochs without a better validation loss; 0 runs all epochs.
        matmul_precision: "highest", or "medium": linear layers multiply in bfloat16 if that is faster.
    """

    epochs: int
    learning_rate: float
    batch_size: int = 16
    accumulation_steps: int = 1
    weight_decay: float = 0.0
    warm_up: float = 0.05
    max_grad_norm: float = 1.0
    patience: int = 0
    matmul_precision: str = "highest"

    def __post_init__(self) -> None:
        """Refuse settings out of range."""
        validate.fields(self, validate.positive_int, "epochs", "batch_size", "accumulation_steps")
        validate.fields(self, validate.positive, "learning_rate", "max_grad_norm")
        validate.fields(self, validate.non_negative, "weight_decay", "warm_up", "patience")
        if self.warm_up > 1:
            raise InvalidParameter(f"warm_up = {self.warm_up}: must be in [0, 1]")
        check_precision(self.matmul_precision)


@dataclass
class TrainingLog:
    """Losses epoch by epoch, in nats per token.

    Attributes:
        train_loss: mean over the notes seen in each epoch of a note's mean loss, dropout included.
        validation_loss: after each epoch, empty without validation texts.
        best_epoch: epoch (from 1) with the lowest validation loss, 0 without validation.
        stopped_early: patience ran out before the last epoch.
    """

    train_loss: list[float] = field(default_factory=list)
    validation_loss: list[float] = field(default_factory=list)
    best_epoch: int = 0
    stopped_early: bool = False

    def as_dict(self) -> dict:
        """Return the log as plain values."""
        return asdict(self)


def _factor(step: int, steps: int, warm_up: float) -> float:
    rising = max(1, round(warm_up * steps))
    return (step + 1) / rising if step < rising else (steps - step) / max(1, steps - rising)


def _copy_weights(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


class _Stepper:
    """Applies accumulated gradients with the schedule of the settings."""

    def __init__(self, model: torch.nn.Module, settings: Settings, steps: int) -> None:
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(
            self.parameters,
            lr=settings.learning_rate,
            betas=(0.9, 0.98),
            weight_decay=settings.weight_decay,
            fused=True,
        )
        self.settings, self.steps, self.done = settings, steps, 0

    def __call__(self) -> None:
        norm = torch.nn.utils.clip_grad_norm_(self.parameters, self.settings.max_grad_norm)
        if not torch.isfinite(norm):
            raise TrainingFailed(f"step {self.done}: the gradient is not finite; lower the learning rate")
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.learning_rate * _factor(self.done, self.steps, self.settings.warm_up)
        self.optimizer.step()
        torch.clear_autocast_cache()  # of weights in fewer digits, as they were before the step
        self.optimizer.zero_grad(set_to_none=True)
        self.done += 1


def epoch_batches(rows: list[list[int]], size: int, generator: np.random.Generator) -> list[list[list[int]]]:
    """Shuffle, then put rows of similar length together within windows: less padding, still random."""
    order = generator.permutation(len(rows)).tolist()
    window = size * 8
    batches = []
    for i in range(0, len(order), window):
        near = sorted(order[i : i + window], key=lambda n: len(rows[n]))
        batches += [[rows[n] for n in near[j : j + size]] for j in range(0, len(near), size)]
    return [batches[i] for i in generator.permutation(len(batches))]


def train(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    settings: Settings,
    *,
    seed: int,
    validation_texts: Sequence[str] = (),
    masking: Masking | None = None,
    after_epoch: Callable[[int], None] | None = None,
    progress: bool = True,
) -> tuple[TrainingLog, dict[str, torch.Tensor]]:
    """Train `model` in place and return the log and the weights of the best epoch.

    After the call the model has the weights of the last epoch run; `model.load_state_dict(best)` brings
    back the weights of the lowest validation loss (without validation texts, of the last epoch).

    Args:
        texts: one training example each.
        validation_texts: scored after every epoch; needed for early stopping.
        masking: how a masked model's tokens are masked, again in every epoch; None for a causal model.
        after_epoch: called with the number of each finished epoch (from 1), the model in evaluation mode.
        seed: of shuffling, dropout and masks.

    Raises:
        InvalidParameter: nothing to train on, or patience without validation texts.
        TrainingFailed: a gradient was not finite.
    """
    if not texts:
        raise InvalidParameter("texts: there is nothing to train on")
    if settings.patience and not validation_texts:
        raise InvalidParameter("patience: early stopping needs validation texts")
    rows = encode(tokenizer, texts, max_length=model.config.max_position_embeddings).ids
    shuffler = rng.make(seed, "training/shuffle")
    objective = _Objective(model, end_id(tokenizer), masking, rng.make(seed, "training/masks"))
    batches_an_epoch = math.ceil(len(rows) / settings.batch_size)
    steps = math.ceil(batches_an_epoch / settings.accumulation_steps) * settings.epochs
    stepper, log = _Stepper(model, settings, steps), TrainingLog()
    best = _copy_weights(model)
    with (
        rng.torch_seeded(rng.derive(seed, "training/dropout")),
        repeatable_on(model.device),
        tqdm(total=steps, desc="training", unit="step", disable=not progress) as bar,
    ):
        for epoch in range(1, settings.epochs + 1):
            model.train()
            with training_in(model, settings.matmul_precision):
                log.train_loss.append(_one_epoch(objective, rows, settings, shuffler, stepper, bar))
            if after_epoch:
                model.eval()
                after_epoch(epoch)
            if validation_texts:
                loss = _mean_loss(model, tokenizer, validation_texts, masked=masking is not None, seed=seed)
                log.validation_loss.append(loss)
            if not validation_texts or log.validation_loss[-1] == min(log.validation_loss):
                best, log.best_epoch = _copy_weights(model), epoch if validation_texts else 0
            elif settings.patience and epoch - log.best_epoch >= settings.patience:
                log.stopped_early = True
                break
    model.eval()
    return log, best


class _Objective:
    """The loss of each row of a physical batch: of the next token, or of hidden tokens."""

    def __init__(self, model: PreTrainedModel, pad_id: int, masking: Masking | None, masks) -> None:
        self.model, self.pad_id, self.masking, self.masks = model, pad_id, masking, masks

    def __call__(self, rows: list[list[int]]) -> torch.Tensor:
        if self.masking:
            hidden = [self.masking(row, self.masks) for row in rows]
            return masked_losses(self.model, padded(hidden, self.pad_id))
        ids, labels = to_batch(rows, self.pad_id)
        # A causal model's last token predicts nothing, so it is not read.
        logits = self.model(input_ids=ids[:, :-1].to(self.model.device), use_cache=False).logits
        return row_losses(logits, labels[:, 1:].to(self.model.device), shift=False)


def _one_epoch(objective: _Objective, rows, settings, shuffler, stepper, bar) -> float:
    batches = epoch_batches(rows, settings.batch_size, shuffler)
    total = 0.0
    for first in range(0, len(batches), settings.accumulation_steps):
        group = batches[first : first + settings.accumulation_steps]
        rows_of_step = sum(map(len, group))  # fewer in the last group, or with the epoch's small batch
        for batch in group:
            losses = objective(batch)
            (losses.sum() / rows_of_step).backward()
            total += float(losses.detach().sum())
        stepper()
        bar.update()
    return total / len(rows)


def _mean_loss(model: PreTrainedModel, tokenizer, texts: Sequence[str], *, masked: bool, seed: int) -> float:
    if masked:
        return math.log(score_masked(model, tokenizer, texts, masks=2, seed=seed).perplexity)
    return math.log(score(model, tokenizer, texts, batch_size=64).perplexity)
