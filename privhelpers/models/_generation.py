"""Sampling many continuations of a prompt at once, with the report's settings as defaults.

All rows of a prompt are decoded side by side with their keys and values kept, only the tokens that can be
drawn are normalized, and rows that have ended leave the batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from privhelpers import rng, validate
from privhelpers.errors import InvalidParameter
from privhelpers.models.encoding import batches_by_length, end_id

MOST_ENDED = 1 / 8  # ended rows are dropped when they are this share: each drop copies the cache


@dataclass(frozen=True)
class Sampling:
    """How a continuation is drawn.

    Attributes:
        temperature: divides the logits, greater than 0.
        top_k: only the k most probable tokens stay; 0 keeps all.
        top_p: only the smallest set of tokens with this probability stays, in (0, 1].
        max_length: tokens of prompt and continuation together.
    """

    temperature: float = 0.8
    top_k: int = 50
    top_p: float = 0.95
    max_length: int = 80

    def __post_init__(self) -> None:
        """Refuse settings that transformers would silently ignore."""
        validate.fields(self, validate.positive, "temperature")
        validate.fields(self, validate.probability, "top_p")
        validate.fields(self, validate.positive_int, "max_length")
        validate.fields(self, validate.non_negative, "top_k")


def kept_tokens(logits: torch.Tensor, sampling: Sampling) -> tuple[torch.Tensor, torch.Tensor]:
    """Return which tokens can be drawn and with what probability.

    Temperature, then top k, then top p of what top k left, as transformers does; only among tokens that tie
    with the k-th does the library keep more than k. A token that top p removed has probability 0.

    Args:
        logits: of the next token, shape [..., vocabulary].
        sampling: what to keep.

    Returns:
        Token ids and probabilities, both of shape [..., kept].

    Source: Fan et al. 2018 (top k); Holtzman et al. 2020, section 3.1 (top p).
    """
    width = logits.shape[-1]
    if sampling.top_p == 1 and not 0 < sampling.top_k < width:  # everything stays: nothing to sort
        tokens = torch.arange(width, device=logits.device).expand(logits.shape)
        return tokens, (logits / sampling.temperature).softmax(-1)
    best, tokens = logits.topk(min(sampling.top_k or width, width), dim=-1)
    p = (best / sampling.temperature).softmax(-1)
    if sampling.top_p < 1:
        p = p * (p.cumsum(-1) - p < sampling.top_p)  # of the tokens before it, so that one always stays
        p = p / p.sum(-1, keepdim=True)
    return tokens, p


def draw_probabilities(logits: torch.Tensor, targets: torch.Tensor, sampling: Sampling) -> torch.Tensor:
    """Return the log probability with which each target is drawn, in nats; minus infinity if it cannot be.

    Args:
        logits: of the next token, shape [..., vocabulary].
        targets: token ids, shape [...].
        sampling: how tokens are drawn.
    """
    tokens, p = kept_tokens(logits, sampling)
    return (p * (tokens == targets[..., None])).sum(-1).log()


def _draw(logits: torch.Tensor, uniforms: torch.Tensor, sampling: Sampling) -> torch.Tensor:
    """Draw one token a row by inverting the distribution function at a uniform number; shape [rows]."""
    tokens, p = kept_tokens(logits, sampling)
    cumulative = p.cumsum(-1)
    place = (cumulative < uniforms[:, None] * cumulative[:, -1:]).sum(-1, keepdim=True)
    return tokens.gather(-1, place)[:, 0]


@torch.inference_mode()
def generate(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompt: str,
    *,
    samples: int,
    seed: int,
    sampling: Sampling | None = None,
) -> list[str]:
    """Return `samples` texts, each the prompt and one sampled continuation up to the end token.

    Args:
        prompt: what every text begins with; the empty prompt lets the model start a text of its own.
        samples: number of independent draws, all in one batch, 1 to a million.
        seed: of the stream for this prompt; two prompts with one seed draw from different streams.
        sampling: how tokens are drawn; default: the report's settings.

    Raises:
        InvalidParameter: the prompt already fills max_length.
    """
    samples = validate.positive_int(1_000_000, samples=samples)
    sampling = sampling or Sampling()
    model.eval()
    end = end_id(tokenizer)
    start = [end, *tokenizer(prompt, add_special_tokens=False)["input_ids"]]
    length = min(sampling.max_length, model.config.max_position_embeddings)
    if len(start) >= length:
        raise InvalidParameter(f"prompt of {len(start)} tokens: leaves no room within max_length = {length}")
    stream = rng.torch_generator(seed, f"generation/{prompt}")
    drawn = torch.full((samples, length - len(start)), end, device=model.device)
    out = model(input_ids=torch.tensor([start], device=model.device), use_cache=True, logits_to_keep=1)
    cache, logits = out.past_key_values, out.logits[:, -1].expand(samples, -1)
    cache.batch_repeat_interleave(samples)
    rows = torch.arange(samples, device=model.device)  # the texts that are still in the batch
    ended = torch.zeros(samples, dtype=torch.bool, device=model.device)
    for step in range(drawn.shape[1]):
        uniforms = torch.rand(samples, generator=stream).to(model.device)  # one a text, drawn or not
        ids = _draw(logits, uniforms[rows], sampling).masked_fill_(ended, end)
        drawn[rows, step] = ids
        ended = ids == end
        if ended.all() or step + 1 == drawn.shape[1]:
            break
        if ended.sum() >= MOST_ENDED * len(rows):
            stay = (~ended).nonzero()[:, 0]
            rows, ids, ended = rows[stay], ids[stay], ended[stay]
            cache.batch_select_indices(stay)
        logits = model(input_ids=ids[:, None], past_key_values=cache, logits_to_keep=1).logits[:, -1]
    texts = [start[1:] + row for row in drawn.tolist()]
    return tokenizer.batch_decode(texts, skip_special_tokens=True)


@torch.inference_mode()
def greedy_guesses(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prefixes: Sequence[Sequence[int]],
    *,
    tokens: int,
    batch_size: int = 128,
) -> tuple[list[list[int]], list[list[float]]]:
    """Return the `tokens` most probable next ids after each prefix, and the log probability of each, in nats.

    Prefixes are padded on the left and the padding is masked, so that all of a batch go on side by side.

    Args:
        prefixes: token ids, the end token first; at least one id each.
        tokens: how many to write, past an end token too.
        batch_size: prefixes that are run together.
    """
    tokens, batch_size = validate.positive_int(tokens=tokens, batch_size=batch_size)
    model.eval()
    written: list[list[int]] = [[] for _ in prefixes]
    sure: list[list[float]] = [[] for _ in prefixes]
    for chosen in batches_by_length(prefixes, batch_size):
        longest = len(prefixes[chosen[-1]])
        padding = torch.tensor([longest - len(prefixes[n]) for n in chosen], device=model.device)[:, None]
        rows = [[end_id(tokenizer)] * (longest - len(prefixes[n])) + list(prefixes[n]) for n in chosen]
        ids, cache = torch.tensor(rows, device=model.device), None
        for step in range(tokens):
            places = torch.arange(longest + step, device=model.device)
            mask = (places >= padding).long()
            position = (places - padding).clamp_min(0)[:, -ids.shape[1] :]
            out = model(
                input_ids=ids,
                attention_mask=mask,
                position_ids=position,
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
            )
            best, ids = out.logits[:, -1].log_softmax(-1).max(-1, keepdim=True)
            cache = out.past_key_values
            for n, token, log_p in zip(chosen, ids[:, 0].tolist(), best[:, 0].tolist(), strict=True):
                written[n].append(token)
                sure[n].append(log_p)
    return written, sure
