"""A model that is audited: it scores each token of a text, and a causal model writes texts.

A causal model predicts each token from those before it, in one pass. A masked model predicts it from those
around it: the tokens of a text are divided into seven groups, one group is masked at a time, and after seven
passes each token is scored once. So both kinds answer in the same form, and the same attacks serve both.

Sources: Salazar et al. 2020, section 2.2, for scores of single tokens under a masked model.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from tqdm.auto import tqdm
from transformers import PreTrainedModel

from privhelpers import models, rng
from privhelpers.errors import PrivHelpersError, UnsupportedModel
from privhelpers.models._folder import called
from privhelpers.text import quoted

CAUSAL, MASKED = "causal", "masked"
FOLDS = 7  # one token in seven is masked at a time, close to the 15% of usual training
_ROWS = 32  # texts of one batch with a small vocabulary
_ROUNDING = 1e-3  # nats of a token, by which two readings of one text may differ
_CELLS = 2**23  # logits of one batch, 32 MB a tensor, unless one text has more


@contextlib.contextmanager
def typed_answers(name: str) -> Iterator[None]:
    """Re-raise any error of a model's code as UnsupportedModel."""
    try:
        yield
    except PrivHelpersError:
        raise
    except Exception as error:
        said = quoted(f"{type(error).__name__}: {error}")
        raise UnsupportedModel(
            f"{called(name)}: opens, and fails at a text ({said}); restore the config.json that the weights "
            "were saved with, or use a machine with more memory"
        ) from error


def _plain_tokens(model: PreTrainedModel, tokenizer: Any) -> list[int]:
    """Return the tokens that are not special."""
    special = {
        tokenizer.bos_token_id,
        tokenizer.eos_token_id,
        tokenizer.pad_token_id,
        tokenizer.mask_token_id,
    }
    return [*({*range(len(tokenizer))} - special - {getattr(model.config, "pad_token_id", None)})] or [0]


@dataclass(frozen=True)
class EncodedTexts:
    """Encoded texts; each list has one entry a text.

    Attributes:
        ids: token ids, up to the context length.
        asked: the positions in `ids` that are scored.
        bounds: characters at which these tokens begin and end, as in `TokenScores`.
        cut: whether the text was longer than the context.
    """

    ids: list[list[int]]
    asked: list[list[int]]
    bounds: list[np.ndarray]
    cut: list[bool]

    @property
    def readable(self) -> np.ndarray:
        """Which texts have a token to score, shape [texts]."""
        return np.array([bool(places) for places in self.asked])

    def without_start(self) -> "EncodedTexts":
        """Return texts that begin with a start token without it; nothing predicts their first token then."""
        asked = [[place - 1 for place in places[1:]] for places in self.asked]
        rows, bounds = ([one[1:] for one in field] for field in (self.ids, self.bounds))
        return EncodedTexts(rows, asked, bounds, self.cut)

    def take(self, texts: Sequence[int]) -> "EncodedTexts":
        """Return some of the texts, by their numbers."""
        lists = self.ids, self.asked, self.bounds, self.cut
        return EncodedTexts(*([rows[n] for n in texts] for rows in lists))


@dataclass(frozen=True)
class Target:
    """A model that is audited, or a control.

    Attributes:
        name: of its folder.
        kind: "causal" or "masked".
        model: as transformers loads it.
        tokenizer: a `loading.TextTokenizer`.
        context: most tokens of a text.
        files: SHA-256 of its files, by name.
        starts: whether a causal model reads a text after the tokenizer's start token; see
            `encode.read_as_trained`.
    """

    name: str
    kind: str
    model: PreTrainedModel
    tokenizer: Any
    context: int
    files: Mapping[str, str]
    starts: bool = True

    @property
    def is_causal(self) -> bool:
        """Whether it predicts the next token, not masked ones."""
        return self.kind == CAUSAL

    @property
    def parameters(self) -> int:
        """Number of weights, a shared matrix counted once."""
        return sum(p.numel() for p in self.model.parameters())

    @property
    def start_token(self) -> int | None:
        """The token that can begin a text, if the tokenizer has one."""
        token_ids = (self.tokenizer.bos_token_id, self.tokenizer.eos_token_id)
        return next((token for token in token_ids if token is not None), None)

    @property
    def start(self) -> int | None:
        """The token after which a causal model reads a text, or None."""
        return self.start_token if self.starts else None

    def encode(self, texts: Sequence[str]) -> EncodedTexts:
        """Return the token ids of texts, and the positions to score."""
        if self.kind == MASKED:
            encoded = self.tokenizer(texts)
            ids, special, ends = encoded["input_ids"], encoded["special_tokens_mask"], encoded["ends"]
            end = self.start_token
            if not any(map(any, special)) and end is not None:  # a tokenizer without a template
                ids = [[end, *row, end] for row in ids]
                special = [[1, *row, 1] for row in special]
                ends = [[-1, *row, -1] for row in ends]
            asked = [[n for n, flag in enumerate(row) if not flag] for row in special]
        else:
            encoded = self.tokenizer(texts, add_special_tokens=False)
            ids, ends = encoded["input_ids"], encoded["ends"]
            if self.start_token is not None:
                ids, ends = [[self.start_token, *row] for row in ids], [[0, *row] for row in ends]
            asked = [list(range(1, len(row))) for row in ids]
        read = [_whole_characters(*row, self.context) for row in zip(asked, ends, strict=True)]
        bounds = [self._bounds(*one) for one in zip(texts, ends, asked, read, strict=True)]
        cut = [len(row) > self.context for row in ids]
        made = EncodedTexts([row[: self.context] for row in ids], read, bounds, cut)
        return made if self.starts or self.start_token is None else made.without_start()

    def _bounds(
        self, text: str, ends: Sequence[int], asked: Sequence[int], read: Sequence[int]
    ) -> np.ndarray:
        """Return the character at which the first scored token begins, and those at which each ends."""
        start = ends[0] if self.kind == CAUSAL and ends else 0
        bounds = np.array([start, *(ends[place] for place in read)])
        if read and len(read) == len(asked):
            bounds[-1] = len(text)  # with trailing blanks, which some tokenizers drop
        known = bounds >= 0
        bounds[known] = np.maximum.accumulate(bounds[known])
        return bounds

    def give_back(self, encoded: EncodedTexts) -> list[str]:
        """Decode encoded texts without their special tokens."""
        if self.kind == MASKED:
            pairs = zip(encoded.ids, encoded.asked, strict=True)
            rows = [[row[place] for place in places] for row, places in pairs]
        else:
            rows = [row[self.start is not None :] for row in encoded.ids]
        return self.tokenizer.batch_decode(rows) if rows else []

    def reads_as(self, other: "Target", own: EncodedTexts, others: EncodedTexts) -> bool:
        """Return whether two models score the same tokens of the same texts in the same way.

        One of them may read less of a long text: only the shared part is compared.

        Args:
            other: the other model.
            own, others: the texts as encoded by this and by the other model.
        """
        if self.kind != other.kind:
            return False
        least = min(self.context, other.context)
        return all(
            row[:least] == another[:least] and places[:count] == others[:count]
            for row, another, places, others in zip(own.ids, others.ids, own.asked, others.asked, strict=True)
            for count in [min(len(places), len(others))]
        )

    def checked(self) -> "Target":
        """Return the model if it can be audited.

        Raises:
            UnsupportedModel: it reads in another direction than its kind; its scores of the same text change;
                or it fails.
        """
        tokens = _plain_tokens(self.model, self.tokenizer)
        generator = rng.make(0, "audit/repeated")
        # On this device, the longest text; some models divide a text into pieces of equal length.
        rows = [generator.choice(tokens, n).tolist() for n in (self.context, 8, 7)]
        once, again = (self._ask(rows, [range(1, len(row) - 1) for row in rows]) for _ in range(2))
        differences = [np.abs(a[:, 0] - b[:, 0]).max() for a, b in zip(once, again, strict=True)]
        if max(differences) > _ROUNDING:  # NaN is refused by `score`
            raise UnsupportedModel(
                f"{called(self.name)}: gives other scores when the same text is read again, so an audit of "
                "it cannot be repeated; let its config.json fix what it draws at random"
            )
        require_direction = models.require_causal if self.is_causal else models.require_both_ways
        with typed_answers(self.name):
            require_direction(self.model, self.name, tokens, self.context)
        if self.is_causal:
            self._go_on(tokens[:1], samples=1, tokens=2)
        return self

    @torch.inference_mode()
    def score(
        self,
        texts: Sequence[str] | EncodedTexts,
        *,
        seed: int = 0,
        what: str | None = None,
    ) -> models.TokenScores:
        """Score every token of every text.

        Args:
            texts: each with a token to score, plain or encoded.
            seed: of the groups in which tokens are masked, the same for every model.
            what: title of a progress bar; None shows none.

        Raises:
            UnsupportedModel: the model fails, or gives NaN or infinity.
        """
        read = texts if isinstance(texts, EncodedTexts) else self.encode(texts)
        answers = self._ask(read.ids, read.asked, seed=seed, what=what)
        if not all(np.isfinite(text[:, 0]).all() for text in answers):
            raise UnsupportedModel(f"{called(self.name)}: gives probabilities that are not numbers")
        return models.token_scores(answers, sum(read.cut), read.bounds)

    @torch.inference_mode()
    def _ask(
        self,
        rows: Sequence[Sequence[int]],
        asked: Sequence[Sequence[int]],
        *,
        seed: int = 0,
        what: str | None = None,
    ) -> list[np.ndarray]:
        """Return the answers at the asked positions of each row of tokens, shape [positions, 4] each.

        The rows of a batch have one length. Some models read padding in spite of the attention mask
        (convolutions, Fourier transforms, attention by hashes), and some compute a short text in another way
        if a long one is in its batch.
        """
        answers: list = [None] * len(rows)
        width = self.model.get_output_embeddings().weight.shape[0]
        bar = tqdm(total=len(rows), desc=what, unit="note", disable=what is None)
        with bar, typed_answers(self.name):
            for chosen in _batches(list(map(len, rows)), _CELLS // width):
                ids = torch.tensor([rows[n] for n in chosen], device=self.model.device)
                if self.kind == MASKED:
                    batch_answers = self._fill_in(ids, [asked[n] for n in chosen], seed)
                else:
                    logits = self.model(input_ids=ids, use_cache=False).logits
                    batch_answers = _answers(logits[:, :-1], ids[:, 1:])
                for number, text in zip(chosen, batch_answers, strict=True):
                    answers[number] = text[: len(asked[number])]
                bar.update(len(chosen))
        return answers

    def _fill_in(self, ids: torch.Tensor, asked: Sequence[Sequence[int]], seed: int) -> list[np.ndarray]:
        """Return the answers of a masked model at the asked positions of each row, group by group."""
        answers = [np.empty((len(places), 4)) for places in asked]
        # A text's groups depend on its length alone, so two models, or two audits, mask the same tokens.
        groups = [rng.make(seed, f"checkup/masks/{len(p)}").permutation(len(p)) % FOLDS for p in asked]
        for fold in range(FOLDS):
            hidden = [(row, n) for row, group in enumerate(groups) for n in np.flatnonzero(group == fold)]
            if not hidden:
                continue
            row = torch.tensor([row for row, _ in hidden], device=ids.device)
            place = torch.tensor([asked[row][n] for row, n in hidden], device=ids.device)
            shown = ids.clone()
            shown[row, place] = self.tokenizer.mask_token_id
            logits = self.model(input_ids=shown, attention_mask=torch.ones_like(ids)).logits[row, place]
            for (text, n), answer in zip(hidden, _answers(logits, ids[row, place]), strict=True):
                answers[text][n] = answer
        return answers

    def _given(self, opening: str) -> list[int]:
        """Return the tokens of an opening; without one, a text can begin with the start token alone."""
        ids = self.tokenizer([opening], add_special_tokens=False)["input_ids"][0] if opening else []
        start = self.start if opening else self.start_token
        return ids if start is None else [start, *ids]

    def continues(self, opening: str) -> bool:
        """Return whether an opening has a token, and leaves room for another."""
        return 0 < len(self._given(opening)) < self.context

    def write(self, opening: str, *, samples: int, tokens: int, seed: int) -> list[str]:
        """Return what a causal model writes after an opening, the opening left out.

        Args:
            opening: the beginning of every text, one that it `continues`.
            samples: independent samples, with the settings of extraction studies (0.8, top 50, 95%).
            tokens: most tokens of a text.
            seed: of the samples.

        Raises:
            UnsupportedModel: the model fails, or gives NaN or infinity.
        """
        with rng.torch_seeded(rng.derive(seed, f"checkup/write/{opening}")):
            return self.tokenizer.batch_decode(
                self._go_on(self._given(opening), samples=samples, tokens=tokens)
            )

    @torch.inference_mode()
    def _go_on(self, ids: Sequence[int], *, samples: int, tokens: int) -> list[list[int]]:
        """Return the tokens that a causal model samples after some others."""
        given = torch.tensor([ids], device=self.model.device)
        end = self.tokenizer.eos_token_id
        with typed_answers(self.name):
            texts = self.model.generate(
                given,
                attention_mask=torch.ones_like(given),
                do_sample=True,
                temperature=0.8,
                top_k=50,
                top_p=0.95,
                max_new_tokens=min(tokens, self.context - len(ids)),
                num_return_sequences=samples,
                eos_token_id=end,
                pad_token_id=0 if end is None else end,
            )
        return texts[:, len(ids) :].tolist()


def _whole_characters(asked: Sequence[int], ends: Sequence[int], context: int) -> list[int]:
    """Return the positions that are read, up to the last character whose tokens all fit the context.

    A token can be a byte of a character; all tokens of a character end at the same place. A character that
    one model reads in part may be read whole by another.

    Args:
        asked: positions of the text's tokens.
        ends: the character at which the token at each position ends, -1 if unknown.
        context: positions that the model reads.
    """
    read = [place for place in asked if place < context]
    cut = ends[asked[len(read)]] if len(read) < len(asked) else -1
    return [place for place in read if ends[place] != cut or cut < 0] or read


def _batches(lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Yield the numbers of rows of one length, the longest first, so memory runs out at once or never.

    Args:
        lengths: of the rows.
        tokens: most of a batch, unless one row has more.
    """
    by_length: dict[int, list[int]] = {}
    for number, length in enumerate(lengths):
        by_length.setdefault(length, []).append(number)
    for length in sorted(by_length, reverse=True):
        size = max(1, min(_ROWS, tokens // max(1, length)))
        for first in range(0, len(by_length[length]), size):
            yield by_length[length][first : first + size]


def _answers(logits: torch.Tensor, targets: torch.Tensor) -> np.ndarray:
    return models.token_answers(logits, targets).double().cpu().numpy()
