"""Where the tokens of a text end in it: what two readings of a text can be compared on."""

from collections.abc import Sequence

import numpy as np
from transformers import PreTrainedTokenizerBase

from privhelpers.models.encoding import Rows


def token_bounds(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], rows: Rows
) -> list[np.ndarray] | None:
    """Return where the tokens of each row end in its text, in characters; None without a fast tokenizer.

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
    """Return what is known of where the tokens of a text end that was scored from end to end."""
    bounds = np.full(tokens + 1, -1)
    bounds[[0, -1]] = 0, len(text)
    return bounds
