"""A stranger's folder, opened first in a process of its own, which stays and reads texts with its tokenizer.

A tokenizer is a program: rules rewrite a text, patterns cut it. Rules can make a text grow without end and
patterns can search for ever, when the folder is opened or at the first text that fits them. So none of it
ever runs in the process of the audit, which hands over texts and gets numbers back.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from privhelpers.errors import ConfinedFailed, UnsupportedModel
from privhelpers.models._folder import called
from privhelpers.models.architecture import read_tokenizer
from privhelpers.own_model._target import context_of, require_answers
from privhelpers.processes import Confined, one_thread

_SPARE = 2**31  # bytes of addresses beside the weights
_START, _READ = 30.0, 5.0  # seconds of processor time for the least folder and for the least text
_LOGITS, _WORK = 2**27, 5 * 10**10  # of the text that is tried; its tokens times the weights
# Texts, and characters of several, that the confined process reads at once: it holds some 400 bytes for each
# of their tokens, and hands over those that a model reads.
_AT_ONCE, _CHARACTERS = 500, 500_000
_GROWTH = 32  # tokens of one character: bytes of UTF-8 are four, the longest rewriting of Unicode is eighteen
_HALVINGS = 40  # of a long text, by a tokenizer that does not say where its tokens end
_SPECIAL = ("bos", "eos", "pad", "mask")


class _Opened:
    """What the confined process holds: a tokenizer, after a model was opened with it."""

    def __init__(self, open_whole: Callable, folder: Path, base: Path | None) -> None:
        os.environ["RAYON_NUM_THREADS"] = "4"  # each thread of the tokenizer takes addresses
        with one_thread():
            kind, model = open_whole(folder, base)
        self.width = model.get_output_embeddings().weight.shape[0]
        self.tokenizer = read_tokenizer(folder if base is None else base)
        tokens = self.tokenizer.get_vocab()
        highest = max(tokens.values(), default=0)
        if max(len(self.tokenizer), highest + 1) > self.width:
            raise UnsupportedModel(
                f"{called(folder.name)}: its tokenizer has {len(self.tokenizer)} tokens, the highest of them "
                f"{highest}, and the model {self.width}; they do not belong together"
            )
        self.name = folder.name
        longest = self.tokenizer.model_max_length
        longest = int(longest) if isinstance(longest, int | float) and longest < 2**31 else 2**31
        self.context = context_of(model, longest)
        # In full where that takes seconds; the audit's own process asks a large model again.
        most = max(8, min(_LOGITS // self.width, _WORK // model.num_parameters()))
        with one_thread():
            require_answers(self.name, model, kind, min(self.context, most))

    def facts(self) -> dict[str, int | None]:
        """Return the numbers that a reader shows."""
        numbers = {f"{name}_token_id": getattr(self.tokenizer, f"{name}_token_id") for name in _SPECIAL}
        numbers |= {"size": len(self.tokenizer), "context": self.context}
        return numbers | {"tries": 1 if self.tokenizer.is_fast else _HALVINGS}

    def encode(
        self, texts: list[str], special: bool
    ) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, bool]]:
        """Return for each text what a reader keeps of it, and whether any token is special.

        That is ids, marks of special tokens, and the character at which each token ends.
        """
        unread = {"return_attention_mask": False, "return_token_type_ids": False, "verbose": False}
        fast = {"return_offsets_mapping": True} if self.tokenizer.is_fast else {}
        read = self.tokenizer(
            texts, add_special_tokens=special, return_special_tokens_mask=True, **unread, **fast
        )
        rows = [
            (np.array(ids, dtype=np.int64), np.array(marks, dtype=bool))
            for ids, marks in zip(read["input_ids"], read["special_tokens_mask"], strict=True)
        ]
        for text, (ids, _) in zip(texts, rows, strict=True):
            if len(ids) > _GROWTH * (len(text) + 4):
                raise UnsupportedModel(
                    f"{called(self.name)}: its tokenizer makes {len(ids):,} tokens of {len(text):,} "
                    "characters; restore the tokenizer.json that the model was trained with"
                )
            if ids.size and not 0 <= ids.min() <= ids.max() < self.width:
                raise UnsupportedModel(
                    f"{called(self.name)}: its tokenizer gives token {ids.max()}, and the model has "
                    f"{self.width}; they do not belong together"
                )
        most = self.context + 1
        offsets = read.get("offset_mapping") or [None] * len(texts)
        return [
            (
                ids[:most],
                marks[:most],
                _ends(self.tokenizer, self.context, text, marks, one),
                bool(marks.any()),
            )
            for text, (ids, marks), one in zip(texts, rows, offsets, strict=True)
        ]

    def decode(self, rows: list[list[int]]) -> list[str]:
        """Return the text of each row, special tokens left out."""
        texts = self.tokenizer.batch_decode(rows, skip_special_tokens=True)
        most = 1000 * (
            max(map(len, rows), default=0) + 1
        )  # characters; the longest tokens have a few hundred
        if any(len(text) > most for text in texts):
            raise UnsupportedModel(
                f"{called(self.name)}: its tokenizer writes {max(map(len, texts)):,} characters for "
                f"{max(map(len, rows))} tokens; restore the tokenizer.json that the model was trained with"
            )
        return texts


def _ends(
    tokenizer: Callable,
    context: int,
    text: str,
    marks: np.ndarray,
    offsets: Sequence[tuple[int, int]] | None,
) -> np.ndarray:
    """Return the character at which each token of a text ends that is kept; -1 where nothing says so."""
    most = context + 1
    if offsets is not None:
        return np.array([end for _, end in offsets[:most]], dtype=np.int64)
    ends = np.full(min(len(marks), most), -1)
    if len(marks) >= most > 2:  # where a model stops, with a token of its own before the text or without
        special = int(np.cumprod(marks).sum())
        for last in (most - 3, most - 2):
            ends[last] = _end_of(tokenizer, text, last + 1 - special)
    return ends


def _end_of(tokenizer: Callable, text: str, count: int) -> int:
    """Return how many characters of a text the first tokens are about, by halving."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        size = len(tokenizer(text[:middle], add_special_tokens=False, verbose=False)["input_ids"])
        low, high = (middle, high) if size <= count else (low, middle - 1)
    return low


def _lots(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield texts, in their order, as many as are read at once."""
    start = characters = 0
    for end, text in enumerate(texts):
        if end > start and (end - start == _AT_ONCE or characters + len(text) > _CHARACTERS):
            yield texts[start:end]
            start, characters = end, 0
        characters += len(text)
    if texts:
        yield texts[start:]


class Reader:
    """The tokenizer of a folder: called as one of transformers is, and answered from a confined process."""

    _tries = 1  # how often a text is read

    def __init__(
        self, open_whole: Callable, folder: Path, base: Path | None, *, weights: int, other: int
    ) -> None:
        """Open model and tokenizer in a confined process.

        Args:
            open_whole: returns kind and model of a folder and its base.
            folder, base: what to open; the tokenizer is that of the base, if there is one.
            weights, other: bytes of the safetensors files, and of the others.

        Raises:
            PrivHelpersError: what opening them refuses.
            UnsupportedModel: it took too much time or memory, or ended the process.
        """
        self._name = folder.name
        # Weights of 16 bits double, and are held twice while they are converted.
        memory, seconds = _SPARE + 6 * weights + 20 * other, _START + weights / 2e7 + other / 1e5
        try:
            self._confined = Confined(_Opened, open_whole, folder, base, memory=memory, seconds=seconds)
        except ConfinedFailed as error:
            raise self._refusal("opening the folder", error) from None
        facts = self._ask("facts", seconds=_READ)
        self._size, self.context = facts.pop("size"), facts.pop("context")
        self._tries = facts.pop("tries")
        self.bos_token_id, self.eos_token_id, self.pad_token_id, self.mask_token_id = facts.values()

    def _refusal(self, what: str, error: ConfinedFailed) -> UnsupportedModel:
        return UnsupportedModel(
            f"{called(self._name)}: {what} failed in a process of its own ({error}); restore config.json and "
            "tokenizer files as they were saved with the weights"
        )

    def _ask(self, method: str, *arguments: object, seconds: float) -> object:
        try:
            return self._confined.ask(method, *arguments, seconds=seconds)
        except ConfinedFailed as error:
            raise self._refusal("its tokenizer", error) from None

    def __len__(self) -> int:
        return self._size

    def __call__(self, texts: str | Sequence[str], *, add_special_tokens: bool = True) -> dict:
        """Return `input_ids`, `special_tokens_mask` and `ends`, a list of each for each text, or of one.

        The ends are the characters at which the tokens end, -1 where the tokenizer does not say it.
        What stands more than one token beyond the context is left out: no model reads it, and a text of a
        million characters would hold hundreds of megabytes. `any_special` says of the whole texts whether a
        token is special.

        Raises:
            UnsupportedModel: it took too much time or memory, or gives tokens that the model does not have.
        """
        many = [texts] if isinstance(texts, str) else list(texts)
        ids, marks, ends, any_special = [], [], [], False
        for some in _lots(many):
            seconds = _READ + self._tries * sum(map(len, some)) / 2e4
            for row, special, places, one in self._ask("encode", some, add_special_tokens, seconds=seconds):
                ids.append(row.tolist())
                marks.append(special.tolist())
                ends.append(places.tolist())
                any_special |= one
        if isinstance(texts, str):
            ids, marks, ends = ids[0], marks[0], ends[0]
        return {"input_ids": ids, "special_tokens_mask": marks, "ends": ends, "any_special": any_special}

    def batch_decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """Return the text of each row of tokens, special tokens left out."""
        plain = [[int(token) for token in row] for row in rows]
        return self._ask("decode", plain, seconds=_READ + sum(map(len, plain)) / 2e4)
