"""The tokenizer of an audited model, which says at which character each of its tokens ends."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from transformers import PreTrainedModel

from privaudit._target import context_of
from privhelpers.errors import UnsupportedModel
from privhelpers.models._folder import called
from privhelpers.models.architecture import read_tokenizer

_AT_ONCE = 500  # texts: the offsets of a token take some 400 bytes
_NO_LIMIT = 2**31  # tokens of a text, where a tokenizer names no limit


class TextTokenizer:
    """The tokenizer of a folder, called as one of transformers is.

    Attributes:
        context: tokens of a text that the model reads.
        bos_token_id, eos_token_id, pad_token_id, mask_token_id: as in transformers; None where there is none.
    """

    def __init__(self, folder: Path, model: PreTrainedModel) -> None:
        """Open the tokenizer of a folder.

        Raises:
            UnsupportedModel: it has tokens that the model does not have.
        """
        self._name, self._width = folder.name, model.get_output_embeddings().weight.shape[0]
        self._tokenizer = read_tokenizer(folder)
        highest = max(self._tokenizer.get_vocab().values(), default=0)
        if max(len(self._tokenizer), highest + 1) > self._width:
            raise UnsupportedModel(
                f"{called(folder.name)}: its tokenizer has {len(self._tokenizer)} tokens up to {highest}, "
                f"and the model has {self._width}; they do not belong together"
            )
        longest = self._tokenizer.model_max_length
        known = isinstance(longest, int | float) and longest < _NO_LIMIT
        self.context = context_of(model, int(longest) if known else _NO_LIMIT)
        self.bos_token_id = self._tokenizer.bos_token_id
        self.eos_token_id = self._tokenizer.eos_token_id
        self.pad_token_id = self._tokenizer.pad_token_id
        self.mask_token_id = self._tokenizer.mask_token_id

    def __len__(self) -> int:
        return len(self._tokenizer)

    def __call__(self, texts: str | Sequence[str], *, add_special_tokens: bool = True) -> dict[str, list]:
        """Return `input_ids`, `special_tokens_mask` and `ends`: a list of numbers for each text, or for one.

        The ends are the characters at which the tokens end, -1 where the tokenizer does not say it.

        Raises:
            UnsupportedModel: it gives tokens that the model does not have.
        """
        if isinstance(texts, str):
            read = self([texts], add_special_tokens=add_special_tokens)
            return {name: rows[0] for name, rows in read.items()}
        rows: dict[str, list] = {"input_ids": [], "special_tokens_mask": [], "ends": []}
        for start in range(0, len(texts), _AT_ONCE):
            some = list(texts[start : start + _AT_ONCE])
            read = self._tokenizer(
                some,
                add_special_tokens=add_special_tokens,
                return_special_tokens_mask=True,
                return_offsets_mapping=self._tokenizer.is_fast,
                return_attention_mask=False,
                return_token_type_ids=False,
                verbose=False,
            )
            rows["input_ids"] += read["input_ids"]
            rows["special_tokens_mask"] += read["special_tokens_mask"]
            if self._tokenizer.is_fast:
                rows["ends"] += [[end for _, end in offsets] for offsets in read["offset_mapping"]]
            else:
                marks = read["special_tokens_mask"]
                rows["ends"] += [self._ends(*one) for one in zip(some, marks, strict=True)]
        highest = max((max(ids) for ids in rows["input_ids"] if ids), default=0)
        if highest >= self._width:
            raise UnsupportedModel(
                f"{called(self._name)}: its tokenizer gives token {highest}, and the model has "
                f"{self._width}; they do not belong together"
            )
        return rows

    def batch_decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """Return the text of each row of tokens, special tokens left out."""
        return self._tokenizer.batch_decode(rows, skip_special_tokens=True)

    def _ends(self, text: str, special: Sequence[int]) -> list[int]:
        """Return where tokens end that the model stops at; -1 for the others.

        The model may put a token of its own before the text, so two tokens can be the last one.
        """
        ends = [-1] * len(special)
        if len(special) > self.context >= 2:
            leading = int(np.cumprod(special).sum())
            for last in (self.context - 2, self.context - 1):
                ends[last] = self._end_of(text, last + 1 - leading)
        return ends

    def _end_of(self, text: str, count: int) -> int:
        """Return how many characters of a text its first tokens cover, by bisection."""
        low, high = 0, len(text)
        while low < high:
            middle = (low + high + 1) // 2
            size = len(self._tokenizer(text[:middle], add_special_tokens=False, verbose=False)["input_ids"])
            low, high = (middle, high) if size <= count else (low, middle - 1)
        return low
