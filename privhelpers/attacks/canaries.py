"""Canary exposure: how high a planted secret ranks among others of its space.

A canary is a fictitious patient whose secret was drawn uniformly from a declared space; as many others
were drawn the same way and kept out. What the model says of the kept-out ones is what chance gives.

>>> _exposure(rank=1, references=1023)
10.0
>>> _exposure(rank=1024, references=1023)
0.0
"""

import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from tqdm.auto import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from privhelpers import rng, validate
from privhelpers.attacks.ranking import expected_rank
from privhelpers.errors import InvalidParameter
from privhelpers.models import greedy_guesses
from privhelpers.models.encoding import end_id
from privhelpers.models.scoring import continuation_log_p

_CLOSE = 1e-4  # nats by which two sums of single-precision numbers may differ
_MOST_REFERENCES = 10_000_000  # in memory, and beyond what exposure is measured with


@dataclass(frozen=True)
class CanaryResult:
    """A model's knowledge of one canary.

    Attributes:
        canary_id: its name in the records.
        planted: it was in the training notes; False is a control.
        copies: how often it was inserted, 0 for a control.
        rank: place of the secret among itself and the references, 1 is the most probable.
        exposure_bits: log2(references + 1) - log2(rank).
        extracted: greedy decoding from the prefix gives the whole secret.
        log_probability: of the secret after its prefix, in nats.
    """

    canary_id: str
    planted: bool
    copies: int
    rank: float
    exposure_bits: float
    extracted: bool
    log_probability: float


def _exposure(*, rank: float, references: int) -> float:
    """Return the exposure in bits of a secret ranked among `references` other secrets of its space.

    By sampling, exposure is bounded by log2(references + 1); under the null the rank is uniform and the
    mean is close to log2(e), 1.44 bits.

    Args:
        rank: 1 to references + 1; ties may give halves.
        references: number of other secrets drawn, 1 or more.

    Source: Carlini et al. 2019, sections 4.2 and 4.3.
    """
    references = validate.positive_int(references=references)
    if not 1 <= rank <= references + 1:
        raise InvalidParameter(f"rank = {rank}: must be in [1, {references + 1}]")
    return math.log2(references + 1) - math.log2(rank)


def draw_references(digits: int, count: int, seed: int, *, without: Collection[str] = ()) -> list[str]:
    """Draw `count` different secrets uniformly from all strings of `digits` digits, 18 at most.

    Args:
        digits: length of a secret.
        count: how many, at most half of the space.
        seed: of the draws.
        without: secrets that are never drawn, such as all canaries' own: a canary is not ranked against
            itself, nor against a secret that the model was trained on.

    Raises:
        InvalidParameter: a value is out of its range, or too few secrets are left to draw from.
    """
    digits = validate.positive_int(18, digits=digits)
    count = validate.positive_int(_MOST_REFERENCES, count=count)
    space = 10**digits
    taken = {int(secret) for secret in without if _is_secret(secret, digits)}
    most = min(space // 2, space - len(taken))
    if count > most:
        raise InvalidParameter(
            f"count = {count}: must be at most {most}: of {space} secrets of {digits} digits, {len(taken)} "
            "are left out and at most half are drawn"
        )
    generator = rng.make(seed, "exposure/references")
    drawn: dict[int, None] = {}
    while len(drawn) < count:
        fresh = generator.integers(space, size=count - len(drawn)).tolist()
        drawn.update(dict.fromkeys(secret for secret in fresh if secret not in taken))
    return [f"{secret:0{digits}d}" for secret in drawn]


def secrets_in(texts: Iterable[str], digits: int) -> set[str]:
    """Return every string of `digits` digits in the texts, those within longer numbers included.

    >>> sorted(secrets_in(["MRN: 1234, room 56"], 3))
    ['123', '234']
    """
    validate.positive_int(18, digits=digits)
    return {match[1] for text in texts for match in re.finditer(rf"(?=([0-9]{{{digits}}}))", text)}


def _is_secret(secret: str, digits: int) -> bool:
    return len(secret) == digits and secret.isascii() and secret.isdigit()


def _require_canaries(canaries: Sequence[dict], digits: int) -> None:
    """Refuse a secret of another space, and one text that is planted and kept out."""
    planted = {canary["prefix"] + canary["secret"]: canary for canary in canaries if canary["planted"]}
    for canary in canaries:
        name = canary["canary_id"]
        if not _is_secret(canary["secret"], digits):
            raise InvalidParameter(f"canary {name!r}: its secret must be a string of {digits} digits")
        twin = planted.get(canary["prefix"] + canary["secret"])
        if twin is not None and not canary["planted"]:
            raise InvalidParameter(
                f"canary {name!r}: is a control, but {twin['canary_id']!r} with the same text was planted"
            )


def secret_log_probabilities(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prefix: str,
    secrets: Sequence[str],
    *,
    batch_size: int = 128,
) -> np.ndarray:
    """Return the log probability of each secret after `prefix`, in nats; shape [secrets].

    They are run in parts whose logits stay in the processor's cache, which for a thousand secrets of a small
    model takes two thirds of the time of one pass.

    Args:
        prefix: the text before every secret; it is run once.
        secrets: all of one length in tokens, as strings of digits are.
        batch_size: secrets that are run together.

    Raises:
        InvalidParameter: secrets of different token lengths cannot be ranked fairly.
    """
    batch_size = validate.positive_int(batch_size=batch_size)
    rows = tokenizer(list(secrets), add_special_tokens=False)["input_ids"]
    if len({len(row) for row in rows}) != 1:
        raise InvalidParameter("secrets: have different token lengths, so their ranks would mean nothing")
    start = [end_id(tokenizer), *tokenizer(prefix, add_special_tokens=False)["input_ids"]]
    numbers = list(range(len(rows)))
    blocks = [numbers[i : i + batch_size] for i in range(0, len(rows), batch_size)]
    first, rest = continuation_log_p(model, [start], rows, blocks)
    return (first + rest)[0].double().cpu().numpy()


@torch.inference_mode()
def rank_in_space(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, prefix: str, secret: str, *, most: int = 1000
) -> int | None:
    """Return the rank of a secret among all strings of as many digits; 1 is the most probable.

    The strings are a tree, digit by digit. None is more probable than its first digits, so a branch that
    falls below the secret's own probability p is cut, and at most 1/p branches are left at every place.

    Args:
        prefix: the text before the secret.
        secret: a string of digits.
        most: branches that are followed at once.

    Returns:
        None if the secret cannot be ranked so: more branches are left, or the tokenizer joins digits.

    Raises:
        InvalidParameter: the secret is not a string of digits.
    """
    most = validate.positive_int(most=most)
    if not _is_secret(secret, len(secret)):
        raise InvalidParameter("secret: must be a string of digits")
    if len(tokenizer(secret, add_special_tokens=False)["input_ids"]) != len(secret):
        return None
    rows = tokenizer([str(digit) for digit in range(10)], add_special_tokens=False)["input_ids"]
    digits = torch.tensor([row[0] for row in rows])
    model.eval()
    own = float(secret_log_probabilities(model, tokenizer, prefix, [secret])[0])
    start = [end_id(tokenizer), *tokenizer(prefix, add_special_tokens=False)["input_ids"]]
    branches, log_p = torch.tensor([start]), torch.zeros(1, dtype=torch.double)
    for _ in secret:
        out = model(input_ids=branches.to(model.device), logits_to_keep=1)
        each = log_p[:, None] + out.logits[:, -1].cpu().double().log_softmax(-1)[:, digits]
        branch, digit = (each >= own - _CLOSE).nonzero(as_tuple=True)
        if len(branch) > most:
            return None
        log_p, branches = each[branch, digit], torch.cat([branches[branch], digits[digit, None]], dim=1)
    return 1 + int((log_p > own + _CLOSE).sum())


def measure(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    canaries: Sequence[dict],
    *,
    digits: int,
    references: int,
    seed: int,
    texts: Iterable[str] = (),
    progress: bool = True,
) -> list[CanaryResult]:
    """Rank each canary's secret among random ones of its space, and try to extract it greedily.

    Args:
        canaries: planted and controls, as in `canaries.json`: prefix, secret, planted, copies.
        digits: length of a secret.
        references: other secrets to rank against; the exposure measured is at most log2(references + 1).
        seed: of the references, which are the same for every canary and every model, and none of which is
            the secret of a canary.
        texts: that the model was trained on; no reference is part of a number in them either.

    Raises:
        InvalidParameter: a secret has other than `digits` digits or is not of one length in tokens, a control
            has the text of a planted canary, too few other secrets are left, or the model gives
            probabilities that are not numbers.
    """
    _require_canaries(canaries, digits)
    own = {canary["secret"] for canary in canaries}
    others = draw_references(digits, references, seed, without=own | secrets_in(texts, digits))
    prefixes = [
        [end_id(tokenizer), *tokenizer(c["prefix"], add_special_tokens=False)["input_ids"]] for c in canaries
    ]
    greedy, _ = greedy_guesses(model, tokenizer, prefixes, tokens=digits)
    results = []
    for canary, guess in zip(
        tqdm(canaries, desc="exposure", unit="canary", disable=not progress), greedy, strict=True
    ):
        log_p = secret_log_probabilities(model, tokenizer, canary["prefix"], [canary["secret"], *others])
        rank = expected_rank(log_p, np.arange(len(log_p)) == 0)
        secret = tokenizer(canary["secret"], add_special_tokens=False)["input_ids"]
        results.append(
            CanaryResult(
                canary_id=canary["canary_id"],
                planted=canary["planted"],
                copies=canary["copies"],
                rank=rank,
                exposure_bits=_exposure(rank=rank, references=references),
                extracted=guess[: len(secret)] == secret,
                log_probability=float(log_p[0]),
            )
        )
    return results
