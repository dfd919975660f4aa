"""Sampling many continuations of a prompt at once, with the report's settings as defaults."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from privhelpers import rng, validate
from privhelpers.errors import InvalidParameter
from privhelpers.models.encoding import end_id


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
        validate.positive(temperature=self.temperature)
        validate.probability(top_p=self.top_p)
        validate.positive_int(max_length=self.max_length)
        validate.non_negative(top_k=self.top_k)


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
        samples: number of independent draws, all in one batch.
        seed: of the stream for this prompt; two prompts with one seed draw from different streams.

    Raises:
        InvalidParameter: the prompt already fills max_length.
    """
    validate.positive_int(samples=samples)
    sampling = sampling or Sampling()
    model.eval()
    start = [end_id(tokenizer), *tokenizer(prompt, add_special_tokens=False)["input_ids"]]
    length = min(sampling.max_length, model.config.max_position_embeddings)
    if len(start) >= length:
        raise InvalidParameter(f"prompt of {len(start)} tokens: leaves no room within max_length = {length}")
    ids = torch.tensor([start], device=model.device)
    with torch.random.fork_rng(devices=[] if model.device.type == "cpu" else None):
        torch.manual_seed(rng.derive(seed, f"generation/{prompt}"))
        out = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=True,
            num_return_sequences=samples,
            max_length=length,
            temperature=sampling.temperature,
            top_k=sampling.top_k,
            top_p=sampling.top_p,
            pad_token_id=end_id(tokenizer),
        )
    return [tokenizer.decode(row[1:], skip_special_tokens=True) for row in out]


@torch.inference_mode()
def greedy_continuations(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prefixes: Sequence[Sequence[int]],
    *,
    tokens: int,
    batch_size: int = 128,
) -> list[list[int]]:
    """Return the `tokens` most probable next ids after each prefix of ids, one token at a time.

    Prefixes of equal length are run together, so no padding enters the computation.
    """
    validate.positive_int(tokens=tokens)
    model.eval()
    result: list[list[int]] = [[] for _ in prefixes]
    by_length: dict[int, list[int]] = {}
    for number, prefix in enumerate(prefixes):
        by_length.setdefault(len(prefix), []).append(number)
    for numbers in by_length.values():
        for i in range(0, len(numbers), batch_size):
            chosen = numbers[i : i + batch_size]
            ids = torch.tensor([list(prefixes[n]) for n in chosen], device=model.device)
            cache = None
            for _ in range(tokens):
                out = model(input_ids=ids, past_key_values=cache, use_cache=True)
                cache, ids = out.past_key_values, out.logits[:, -1].argmax(-1, keepdim=True)
                for n, token in zip(chosen, ids[:, 0].tolist(), strict=True):
                    result[n].append(token)
    return result
