"""From text to rows of token ids: <end> note <end>, so that the first token of a note is predicted too.

The default tokenizer is a byte-level BPE trained on the public corpus alone: a vocabulary learnt from
private notes would publish their names. Digits stay single tokens, so that an identifier costs the same
number of tokens wherever it is and the space of a canary's secret is a product of digits.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from privhelpers import validate
from privhelpers.errors import InvalidParameter

END = "<|endoftext|>"
IGNORED = -100  # the label that cross entropy leaves out


@dataclass(frozen=True)
class Rows:
    """Token ids of several texts, and what was cut.

    Attributes:
        ids: one list of token ids a text, end tokens included.
        truncated: how many texts were longer than the model reads.
    """

    ids: list[list[int]]
    truncated: int

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.ids)


def train_tokenizer(texts: Sequence[str], *, vocab_size: int) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE with single digits on `texts`.

    Args:
        texts: public texts only.
        vocab_size: number of tokens, 257 or more (256 bytes and the end token).

    Source: Sennrich, Haddow and Birch 2016; byte level as in Radford et al. 2019, section 2.2.
    """
    vocab_size = validate.positive_int(1_000_000, vocab_size=vocab_size)
    if vocab_size < 257:
        raise InvalidParameter(f"vocab_size = {vocab_size}: must be 257 or more (256 bytes and an end token)")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=END,
        eos_token=END,
        pad_token=END,
        clean_up_tokenization_spaces=False,
    )


def end_id(tokenizer: PreTrainedTokenizerBase) -> int:
    """Return the id of the end token, which also starts a row."""
    if tokenizer.eos_token_id is None:
        raise InvalidParameter("tokenizer: has no end-of-text token, so rows cannot be delimited")
    return tokenizer.eos_token_id


def encode(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], *, max_length: int) -> Rows:
    """Return one row of ids a text, cut at `max_length` tokens (end tokens included).

    Raises:
        InvalidParameter: a text is empty or no Unicode text, or max_length leaves no room for a token between
            the ends.
    """
    if max_length < 3:
        raise InvalidParameter(f"max_length = {max_length}: must be 3 or more")
    for number, text in enumerate(texts):
        if not text:
            raise InvalidParameter(f"text {number}: is empty, so it has no loss; leave it out")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidParameter(
                f"text {number}: character {error.start} is half of a surrogate pair, and no character; "
                "read the text again from its source"
            ) from None
    if not texts:
        return Rows([], 0)
    end = end_id(tokenizer)
    encoded = tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]
    rows = [[end, *ids, end] for ids in encoded]
    return Rows([row[:max_length] for row in rows], sum(len(row) > max_length for row in rows))


def batches_by_length(rows: Sequence[Sequence], batch_size: int) -> list[list[int]]:
    """Return the numbers of the rows in batches of similar length, the shortest first."""
    order = sorted(range(len(rows)), key=lambda n: len(rows[n]))
    return [order[start : start + batch_size] for start in range(0, len(order), batch_size)]


def to_batch(rows: Sequence[Sequence[int]], pad_id: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ids and labels of shape [rows, longest], padded on the right; padding has no label.

    With padding on the right a causal model needs no attention mask: no real token sees a padded one.
    """
    longest = max(len(row) for row in rows)
    ids = torch.full((len(rows), longest), pad_id, dtype=torch.long)
    labels = torch.full((len(rows), longest), IGNORED, dtype=torch.long)
    for number, row in enumerate(rows):
        values = torch.tensor(row, dtype=torch.long)
        ids[number, : len(row)] = values
        labels[number, : len(row)] = values
    return ids, labels


def token_bounds(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], rows: Rows
) -> list[np.ndarray] | None:
    """Return the ends of the tokens of each row in its text, in characters; None without a fast tokenizer.

    Args:
        tokenizer: that made the rows.
        texts: what was encoded.
        rows: as `encode` returns them.

    Returns:
        For each text 0 and the end of every token but the first of its row, shape [tokens of the row].
    """
    if not tokenizer.is_fast:
        return None
    encoded = tokenizer(list(texts), add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    bounds = []
    for text, row, offsets in zip(texts, rows.ids, encoded["offset_mapping"], strict=True):
        ends = [0, *(end for _, end in offsets), len(text)][: len(row)]
        if len(row) > len(offsets):  # of the last token on, nothing of the text is left
            ends[len(offsets) :] = [len(text)] * (len(row) - len(offsets))
        bounds.append(np.maximum.accumulate(ends))
    return bounds


def whole_bounds(tokens: int, text: str) -> np.ndarray:
    """Return the known ends of the tokens of a text that was scored from end to end."""
    bounds = np.full(tokens + 1, -1)
    bounds[[0, -1]] = 0, len(text)
    return bounds
