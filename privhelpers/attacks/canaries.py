"""Canary exposure and exact memorization.

A canary is a fictitious patient whose secret was drawn uniformly from a declared space; as many others
were drawn the same way and kept out. What the model says of the kept-out ones is what chance gives.

>>> exposure(rank=1, references=1023)
10.0
>>> exposure(rank=1024, references=1023)
0.0
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from tqdm.auto import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from privhelpers import rng, validate
from privhelpers.errors import InvalidParameter
from privhelpers.models import candidate_log_probabilities, greedy_continuations
from privhelpers.models.encoding import end_id


@dataclass(frozen=True)
class CanaryResult:
    """What a model knows of one canary.

    Attributes:
        canary_id: its name in the records.
        planted: it was in the training notes; False is a control.
        copies: how often it was inserted, 0 for a control.
        rank: place of the secret among itself and the references, 1 is the most probable.
        exposure_bits: log2(references + 1) - log2(rank).
        extracted: greedy decoding from the prefix gives the whole secret.
    """

    canary_id: str
    planted: bool
    copies: int
    rank: float
    exposure_bits: float
    extracted: bool


def exposure(*, rank: float, references: int) -> float:
    """Return the exposure in bits of a secret ranked among `references` other secrets of its space.

    By sampling, exposure is bounded by log2(references + 1); under the null the rank is uniform and the
    mean is close to log2(e), 1.44 bits.

    Args:
        rank: 1 to references + 1; ties may give halves.
        references: number of other secrets drawn, 1 or more.

    Source: Carlini et al. 2019, sections 4.2 and 4.3. Taught in: 09_extraction.
    """
    validate.positive_int(references=references)
    if not 1 <= rank <= references + 1:
        raise InvalidParameter(f"rank = {rank}: must be in [1, {references + 1}]")
    return math.log2(references + 1) - math.log2(rank)


def draw_references(digits: int, count: int, seed: int) -> list[str]:
    """Draw `count` different secrets uniformly from all strings of `digits` digits."""
    validate.positive_int(digits=digits, count=count)
    if count > 10**digits // 2:
        raise InvalidParameter(f"count = {count}: must be at most half of the space of 10**{digits}")
    generator = rng.make(seed, "exposure/references")
    drawn: dict[int, None] = {}
    while len(drawn) < count:
        drawn.update(dict.fromkeys(generator.integers(10**digits, size=count - len(drawn)).tolist()))
    return [f"{secret:0{digits}d}" for secret in drawn]


def measure(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    canaries: Sequence[dict],
    *,
    digits: int,
    references: int,
    seed: int,
    progress: bool = True,
) -> list[CanaryResult]:
    """Rank each canary's secret among random ones of its space, and try to extract it greedily.

    Args:
        canaries: planted and controls, as in `canaries.json`: prefix, secret, planted, copies.
        digits: length of a secret.
        references: other secrets to rank against; the exposure measured is at most log2(references + 1).
        seed: of the references, which are the same for every canary and every model.
    """
    others = draw_references(digits, references, seed)
    prefixes = [
        [end_id(tokenizer), *tokenizer(c["prefix"], add_special_tokens=False)["input_ids"]] for c in canaries
    ]
    greedy = greedy_continuations(model, tokenizer, prefixes, tokens=digits)
    results = []
    for canary, guess in zip(
        tqdm(canaries, desc="exposure", unit="canary", disable=not progress), greedy, strict=True
    ):
        log_p = candidate_log_probabilities(model, tokenizer, canary["prefix"], [canary["secret"], *others])
        rank = 1 + int(np.sum(log_p[1:] > log_p[0])) + 0.5 * int(np.sum(log_p[1:] == log_p[0]))
        secret = tokenizer(canary["secret"], add_special_tokens=False)["input_ids"]
        results.append(
            CanaryResult(
                canary_id=canary["canary_id"],
                planted=canary["planted"],
                copies=canary["copies"],
                rank=rank,
                exposure_bits=exposure(rank=rank, references=references),
                extracted=guess[: len(secret)] == secret,
            )
        )
    return results


@dataclass(frozen=True)
class SuffixResult:
    """Exact memorization: how many notes a model completes word for word.

    Attributes:
        recalled: notes whose second half greedy decoding reproduced exactly.
        notes: notes tried.
        patients: the patient of each note tried.
        hits: whether each note was recalled, in the order of the notes.
    """

    recalled: int
    notes: int
    patients: list[str]
    hits: list[bool]


def recall_suffixes(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, notes: Sequence[dict]
) -> SuffixResult:
    """Give the first half of each note's tokens and ask whether greedy decoding returns the other half.

    Half a note, not its first few tokens: a short prefix measures whether the template is known.

    Source: Carlini et al. 2023, definition 3.1. Taught in: 09_extraction.
    """
    if not notes:
        raise InvalidParameter("notes: there is nothing to complete")
    encoded = tokenizer([n["text"] for n in notes], add_special_tokens=False)["input_ids"]
    limit = model.config.max_position_embeddings - 1
    halves = [(ids[: len(ids) // 2], ids[len(ids) // 2 : limit]) for ids in encoded]
    longest = max(len(suffix) for _, suffix in halves)
    prefixes = [[end_id(tokenizer), *prefix] for prefix, _ in halves]
    tokens = min(longest, limit + 1 - max(len(p) for p in prefixes))
    guesses = greedy_continuations(model, tokenizer, prefixes, tokens=tokens)
    hits = [g[: len(s)] == s for g, (_, s) in zip(guesses, halves, strict=True)]
    return SuffixResult(sum(hits), len(hits), [n["patient_id"] for n in notes], hits)
