"""Losses of many texts at once: batched by length, padding excluded, every text scored once a model.

A text's loss is the mean over its own tokens of minus the natural log of the predicted probability
(nats per token). Perplexity is the exponential of the token-weighted mean over a set of texts.
"""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from privhelpers import validate
from privhelpers.errors import InvalidParameter
from privhelpers.models.encoding import (
    IGNORED,
    Rows,
    batches_by_length,
    encode,
    end_id,
    to_batch,
    token_bounds,
    whole_bounds,
)

_CACHED = 64  # positions whose logits stay in a core's cache while they are worked on
_IMPOSSIBLE = -1000.0  # the log of what is zero in every precision


@dataclass(frozen=True)
class Scores:
    """One model's scores of several texts.

    Attributes:
        losses: mean loss of each text, nats per token, shape [texts].
        tokens: number of predicted tokens of each text, shape [texts].
        truncated: how many texts were cut to the model's length.
    """

    losses: np.ndarray
    tokens: np.ndarray
    truncated: int

    @property
    def perplexity(self) -> float:
        """Perplexity over all tokens of the set."""
        return float(np.exp(np.average(self.losses, weights=self.tokens)))


@dataclass(frozen=True)
class TokenScores:
    """One model's scores of every token of several texts; each list has one array a text.

    Attributes:
        log_p: natural log of the probability of each token, the end token included.
        mean: of the log-probability at that place over the vocabulary, weighted by the model itself.
        deviation: standard deviation of the same.
        greedy: whether greedy decoding writes it at its place; of equally probable tokens, the lowest id.
        truncated: how many texts were cut to the model's length.
        bounds: the character of its text at which the first token begins, and where each ends, shape
            [tokens + 1] a text; -1 if that is not known. None if every text was scored from end to end.
    """

    log_p: list[np.ndarray]
    mean: list[np.ndarray]
    deviation: list[np.ndarray]
    greedy: list[np.ndarray]
    truncated: int
    bounds: list[np.ndarray] | None = None

    def bounds_of(self, number: int, text: str) -> np.ndarray:
        """Return the bounds of one text, shape [tokens + 1]; those that are not known are -1."""
        if self.bounds is not None:
            return self.bounds[number]
        return whole_bounds(len(self.log_p[number]), text)

    def part_read(self, number: int, text: str) -> str:
        """Return the part of one text that its tokens are about; all of it if that is not known."""
        start, *_, end = self.bounds_of(number, text)
        return text[max(start, 0) : end if end >= 0 else None]

    def head(self, counts: Sequence[int]) -> "TokenScores":
        """Return the first tokens of each text, as many as in `counts`."""
        fields = self.log_p, self.mean, self.deviation, self.greedy
        log_p, mean, deviation, greedy = (
            [values[:count] for values, count in zip(field, counts, strict=True)] for field in fields
        )
        bounds = self.bounds and [
            values[: count + 1] for values, count in zip(self.bounds, counts, strict=True)
        ]
        return TokenScores(log_p, mean, deviation, greedy, self.truncated, bounds)

    @property
    def losses(self) -> np.ndarray:
        """Mean loss of each text, nats per token, as `score` gives it."""
        return np.array([-values.mean() for values in self.log_p])

    @property
    def tokens(self) -> np.ndarray:
        """Number of predicted tokens of each text."""
        return np.array([len(values) for values in self.log_p])

    @property
    def perplexity(self) -> float:
        """Perplexity over all tokens of the set."""
        return float(np.exp(np.average(self.losses, weights=self.tokens)))


class _TokenLosses(torch.autograd.Function):
    """Cross entropy of every position whose gradient is made in the buffer of its own forward pass.

    The vocabulary is the widest axis of a small model, so each exponential and each fresh tensor of that
    width counts: there is one of both, the probabilities. One backward pass only.
    """

    @staticmethod
    def forward(ctx, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        p, index = torch.softmax(logits, -1), targets.clamp_min(0)[..., None]
        ctx.p, ctx.index = p, index
        asked = p.gather(-1, index)[..., 0]
        losses = -asked.log()
        lost = asked < torch.finfo(p.dtype).tiny  # has too few digits, or none: a NaN stays one
        if lost.any():
            losses[lost] = -torch.log_softmax(logits[lost], -1).gather(-1, index[lost])[..., 0]
        return losses

    @staticmethod
    def backward(ctx, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        p, ctx.p = ctx.p, None
        p.scatter_add_(-1, ctx.index, torch.full_like(gradient, -1.0)[..., None])
        return p.mul_(gradient[..., None]), None


def _token_losses(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return the cross entropy of every position, in the shape of `targets`; one below 0 means any token."""
    if torch.is_grad_enabled():
        return _TokenLosses.apply(logits, targets)
    # Without a gradient nothing of the vocabulary's width is kept: a piece at a time stays in the cache.
    losses = [
        piece.logsumexp(-1) - piece.gather(-1, asked[:, None])[:, 0]
        for piece, asked in _pieces(logits, targets)
    ]
    return torch.cat(losses).view(targets.shape)


def _pieces(logits: torch.Tensor, targets: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield logits, [positions, vocabulary], and targets, [positions], of a few positions at a time."""
    flat, asked = logits.flatten(0, -2), targets.flatten().clamp_min(0)
    return zip(flat.split(_CACHED), asked.split(_CACHED), strict=True)


def row_losses(logits: torch.Tensor, labels: torch.Tensor, *, shift: bool = True) -> torch.Tensor:
    """Return the mean loss of each row over its own labeled tokens, shape [rows], in nats per token.

    This is what the Hugging Face model returns as `.loss` for that row alone; the `.loss` of a batch
    weighs rows by their length instead, which makes one row's gradient depend on its neighbors.

    Args:
        logits: [rows, length, vocabulary].
        labels: [rows, length]; -100 marks padding.
        shift: position t is predicted from position t - 1 (a causal model); else from t (a masked one).
    """
    targets = functional.pad(labels[:, 1:], (0, 1), value=IGNORED) if shift else labels
    counted = targets != IGNORED
    losses = _token_losses(logits, targets)
    return (losses * counted).sum(1) / counted.sum(1).clamp_min(1)


@contextmanager
def evaluating(model: torch.nn.Module) -> Iterator[None]:
    """Put a model into evaluation mode within this context."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


def _rows(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]) -> Rows:
    if not texts:
        raise InvalidParameter("texts: there is nothing to score")
    return encode(tokenizer, texts, max_length=model.config.max_position_embeddings)


def _passes(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, rows: Rows, batch_size: int
) -> Iterator[tuple[list[int], torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Yield places, targets, their labels and logits of batches of similar length, [rows, length - 1].

    The model is in evaluation mode. It is causal, so the last token, which predicts nothing, is not read.
    """
    batch_size = validate.positive_int(batch_size=batch_size)
    with evaluating(model):
        for chosen in batches_by_length(rows.ids, batch_size):
            ids, labels = to_batch([rows.ids[i] for i in chosen], end_id(tokenizer))
            ids, labels = ids.to(model.device), labels.to(model.device)
            yield chosen, ids[:, 1:], labels[:, 1:], model(input_ids=ids[:, :-1], use_cache=False).logits


@torch.inference_mode()
def score(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], *, batch_size: int = 32
) -> Scores:
    """Score `texts` in batches of similar length; the order of the result is the order of the texts.

    Raises:
        InvalidParameter: a text is empty or there is none.
    """
    rows = _rows(model, tokenizer, texts)
    losses = np.zeros(len(rows))
    for chosen, _, labels, logits in _passes(model, tokenizer, rows, batch_size):
        losses[chosen] = row_losses(logits, labels, shift=False).double().cpu().numpy()
    return Scores(losses, np.array([len(row) - 1 for row in rows.ids]), rows.truncated)


def _vocabulary_moments(log_p: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return mean and standard deviation of the log-probability of a token drawn from each distribution.

    Args:
        log_p: normalized, [..., vocabulary]; minus infinity is a probability of zero.
    """
    p = log_p.exp()
    # A token of probability zero has weight zero: 0 x inf must not become NaN. A NaN of a broken model
    # must stay.
    log_p = log_p.clamp_min(_IMPOSSIBLE)
    mean = torch.linalg.vecdot(p, log_p)
    spread = torch.linalg.vecdot(p, (log_p - mean[..., None]).square_())
    return mean, spread.sqrt()


def _is_first(log_p: torch.Tensor, asked: torch.Tensor, asked_log_p: torch.Tensor) -> torch.Tensor:
    """Return whether each target is the first of the most probable tokens; `log_p` is written over.

    A maximum, and a look at the few ties, take a sixth of the time of `argmax`.
    """
    others = log_p.scatter_(-1, asked[:, None], -torch.inf)
    highest = others.amax(-1)
    first = asked_log_p > highest
    tied = (asked_log_p == highest).nonzero()[:, 0]
    first[tied] = asked[tied] < others[tied].argmax(-1)
    return first


def token_answers(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return a model's scores of each target: the first four fields of `TokenScores`, along a new last axis.

    Args:
        logits: [..., vocabulary].
        targets: ids, [...].
    """
    answers = []
    for piece, asked in _pieces(logits, targets):
        log_p = piece.float().log_softmax(-1)
        target_log_p = log_p.gather(-1, asked[:, None])[:, 0]
        moments = _vocabulary_moments(log_p)
        greedy = _is_first(log_p, asked, target_log_p).float()
        answers.append(torch.stack([target_log_p, *moments, greedy], -1))
    return torch.cat(answers).view(*targets.shape, 4)


def token_scores(
    answers: Sequence[np.ndarray], truncated: int, bounds: list[np.ndarray] | None = None
) -> TokenScores:
    """Return the answers about several texts, each of shape [tokens, 4], field by field."""
    log_p, mean, deviation, greedy = ([text[:, field] for text in answers] for field in range(4))
    return TokenScores(log_p, mean, deviation, [values > 0 for values in greedy], truncated, bounds)


@torch.inference_mode()
def score_tokens(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], *, batch_size: int = 32
) -> TokenScores:
    """Score every token of `texts` in one pass; the order of the result is the order of the texts.

    Raises:
        InvalidParameter: a text is empty or there is none.
    """
    rows = _rows(model, tokenizer, texts)
    answers_by_text: list[np.ndarray] = [np.empty(0)] * len(rows)
    for chosen, targets, _, logits in _passes(model, tokenizer, rows, batch_size):
        answers = token_answers(logits, targets).double().cpu().numpy()
        for row, number in zip(answers, chosen, strict=True):
            answers_by_text[number] = row[: len(rows.ids[number]) - 1]
    bounds = token_bounds(tokenizer, texts, rows) if rows.truncated else None
    return token_scores(answers_by_text, rows.truncated, bounds)


@torch.inference_mode()
def continuation_log_p(
    model: PreTrainedModel,
    starts: Sequence[Sequence[int]],
    continuations: Sequence[Sequence[int]],
    blocks: Sequence[Sequence[int]],
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the log probability of each continuation after each start, in nats, each start run once.

    Args:
        starts: token ids, all of one length.
        continuations: token ids, one or more of each.
        blocks: which continuations are run together, by number.

    Returns:
        Log probability of the first token of each continuation, and of the rest, shape
        [starts, continuations] each.
    """
    device = model.device
    ids = pad_sequence([torch.tensor(row) for row in continuations], batch_first=True).to(device)
    lengths = torch.tensor([len(row) for row in continuations], device=device)
    first = model(input_ids=torch.tensor(starts, device=device), use_cache=True, logits_to_keep=1)
    log_p = first.logits[:, -1].float().log_softmax(-1)[:, ids[:, 0]]
    rest = torch.zeros_like(log_p)
    for block in blocks:
        longest = int(lengths[block].max())
        if longest > 1:
            part = ids[block, :longest].repeat(len(starts), 1)
            cache = copy.deepcopy(first.past_key_values)
            cache.batch_repeat_interleave(len(block))
            logits = model(input_ids=part[:, :-1], past_key_values=cache).logits.float()
            each = logits.gather(2, part[:, 1:, None])[..., 0] - logits.logsumexp(-1)
            within = torch.arange(1, longest, device=device) < lengths[block].repeat(len(starts))[:, None]
            rest[:, block] = (each * within).sum(1).view(len(starts), len(block))
    return log_p, rest
