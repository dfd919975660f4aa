"""A user's model: opened without running its code, asked how likely each token is, and let write.

It is a local folder, safetensors only; nothing is fetched. A folder that could make a library run or fetch
something is refused before any library reads it. The audit prints the hashes of the folder's files, uses
every tensor in them, and nothing else. A tokenizer is a program all the same: open a folder that you do not
trust in the container.

A causal model gives each token's probability after those before it, in one pass. A masked model gives it
among those around it: the tokens of a text are divided into seven groups, one group is hidden at a time, and
after seven passes each token was asked for once. So both kinds answer in the same form, and the same attacks
serve both.

Sources: Salazar et al. 2020, section 2.2, for scores of single tokens under a masked model.
"""

import contextlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import psutil
import torch
from safetensors.torch import load_file
from tqdm.auto import tqdm
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    GenerationConfig,
    PreTrainedModel,
    logging,
)
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
)

from privaudit.model_folder import find_model
from privhelpers import models, rng
from privhelpers.artifacts import sha256_of
from privhelpers.errors import PrivHelpersError, UnsupportedModel
from privhelpers.models._folder import ADAPTER, CONFIG, called, read_files, read_json, refuse_code
from privhelpers.models.architecture import preferred_device, read_model, read_tokenizer
from privhelpers.text import quoted
from privhelpers.validate import shown

CAUSAL, MASKED = "causal", "masked"
FOLDS = 7  # one token in seven is hidden at a time, close to the 15 % that masked models are trained with
_ROWS = 32  # texts of one batch, where the vocabulary is small
MOST_TOKENS = 1024  # of a text that are read, where the model reads more: attention grows with the square
_ROUNDING = 1e-3  # nats of a token, by which a batch of another shape may differ
_CELLS = 2**23  # logits of one batch: each tensor of them takes 32 MB at most, or one text's


@contextlib.contextmanager
def typed_answers(name: str) -> Iterator[None]:
    """Make a refusal of what a model's own code raises: by its configuration, that can be any error."""
    try:
        yield
    except PrivHelpersError:
        raise
    except Exception as error:
        said = quoted(f"{type(error).__name__}: {error}")
        raise UnsupportedModel(
            f"{called(name)}: opens, and fails at a text ({said}); restore the config.json that the weights "
            "were saved with, or take a machine with more memory"
        ) from error


def context_of(model: PreTrainedModel, longest: int) -> int:
    """Return how many tokens a text may have: what the model and its tokenizer say, 1024 at most.

    Args:
        model: RoBERTa and its kin count positions from the padding token on, and never use those before.
        longest: of the tokenizer.
    """
    names = ("max_position_embeddings", "n_positions", "n_ctx", "seq_length", "max_seq_len")
    tables = [m for name, m in model.named_modules() if name.endswith("position_embeddings")]
    unused = [m.padding_idx + 1 for m in tables if getattr(m, "padding_idx", None) is not None]
    said = [getattr(model.config, name, None) for name in names]
    said = [value - max(unused, default=0) for value in said if isinstance(value, int)]
    return min(value for value in (*said, longest, MOST_TOKENS) if value >= 8)


def _plain_tokens(model: PreTrainedModel, tokenizer: "TextTokenizer") -> list[int]:
    """Return the tokens that texts of an unknown tokenizer can be made of: all that are not special."""
    special = {
        tokenizer.bos_token_id,
        tokenizer.eos_token_id,
        tokenizer.pad_token_id,
        tokenizer.mask_token_id,
    }
    return [*({*range(len(tokenizer))} - special - {getattr(model.config, "pad_token_id", None)})] or [0]


def require_answers(name: str, model: PreTrainedModel, kind: str, length: int) -> None:
    """Refuse a model that opens and then fails at a text: one of `length` tokens, and two short ones.

    Raises:
        UnsupportedModel: its code raises anything.
    """
    ids = torch.full((1, length), int(getattr(model.config, "pad_token_id", None) == 0), device=model.device)
    with torch.inference_mode(), typed_answers(name):
        for count in (length, 8, 7):  # some cut a text into pieces of equal length
            mask = {"attention_mask": torch.ones_like(ids[:, :count])}
            model(input_ids=ids[:, :count], **mask if kind == MASKED else {"use_cache": False}).logits[0, -1]
        if kind == CAUSAL:
            start, ends = ids[:, :1], {"eos_token_id": None, "pad_token_id": 0}
            model.generate(start, attention_mask=torch.ones_like(start), max_new_tokens=2, **ends)


@dataclass(frozen=True)
class EncodedTexts:
    """Texts as a model reads them, each encoded once; the lists hold one entry a text.

    Attributes:
        ids: token ids, as far as the model reads.
        asked: the positions in `ids` that are scored.
        bounds: characters at which these tokens begin and end, as of `TokenScores`.
        cut: whether the text was longer than the model reads.
    """

    ids: list[list[int]]
    asked: list[list[int]]
    bounds: list[np.ndarray]
    cut: list[bool]

    @property
    def readable(self) -> np.ndarray:
        """Which texts have a token to ask for, shape [texts]."""
        return np.array([bool(places) for places in self.asked])

    def take(self, texts: Sequence[int]) -> "EncodedTexts":
        """Return some of the texts, by their numbers."""
        lists = self.ids, self.asked, self.bounds, self.cut
        return EncodedTexts(*([rows[n] for n in texts] for rows in lists))

    def head(self, counts: Sequence[int]) -> "EncodedTexts":
        """Return the first tokens of each text that are asked for, 1 or more, without those after them."""
        asked = [places[:count] for places, count in zip(self.asked, counts, strict=True)]
        return EncodedTexts(
            [row[: places[-1] + 1] for row, places in zip(self.ids, asked, strict=True)],
            asked,
            [row[: count + 1] for row, count in zip(self.bounds, counts, strict=True)],
            self.cut,
        )


@dataclass(frozen=True)
class Target:
    """A model that is audited, or a control.

    Attributes:
        name: of its folder.
        kind: "causal" or "masked".
        model: as transformers loads it.
        tokenizer: called as one of transformers is.
        context: tokens that are read of a text.
        files: SHA-256 of the files that it was opened from, by name.
        together: whether several texts are asked in one padded batch, which `checked` decides.
    """

    name: str
    kind: str
    model: PreTrainedModel
    tokenizer: "TextTokenizer"
    context: int
    files: Mapping[str, str]
    together: bool = True

    @property
    def is_causal(self) -> bool:
        """Whether it predicts the next token, and not those under a mask."""
        return self.kind == CAUSAL

    @property
    def parameters(self) -> int:
        """Number of weights, a shared matrix counted once."""
        return sum(p.numel() for p in self.model.parameters())

    @property
    def start(self) -> int | None:
        """The token that a text starts with, if the tokenizer has one."""
        token_ids = (self.tokenizer.bos_token_id, self.tokenizer.eos_token_id)
        return next((token for token in token_ids if token is not None), None)

    def encode(self, texts: Sequence[str]) -> EncodedTexts:
        """Return the token ids of texts, and the positions to score."""
        if self.kind == MASKED:
            encoded = self.tokenizer(texts)
            ids, special, ends = encoded["input_ids"], encoded["special_tokens_mask"], encoded["ends"]
            if not any(map(any, special)) and self.start is not None:  # a tokenizer without template
                ids = [[self.start, *row, self.start] for row in ids]
                special = [[1, *row, 1] for row in special]
                ends = [[-1, *row, -1] for row in ends]
            asked = [[n for n, flag in enumerate(row) if not flag] for row in special]
        else:
            encoded = self.tokenizer(texts, add_special_tokens=False)
            ids, ends = encoded["input_ids"], encoded["ends"]
            if self.start is not None:
                ids, ends = [[self.start, *row] for row in ids], [[0, *row] for row in ends]
            asked = [list(range(1, len(row))) for row in ids]
        read = [_whole_characters(*row, self.context) for row in zip(asked, ends, strict=True)]
        bounds = [self._bounds(*one) for one in zip(texts, ends, asked, read, strict=True)]
        cut = [len(row) > self.context for row in ids]
        return EncodedTexts([row[: self.context] for row in ids], read, bounds, cut)

    def _bounds(
        self, text: str, ends: Sequence[int], asked: Sequence[int], read: Sequence[int]
    ) -> np.ndarray:
        """Return where the first of the tokens that are read begins, and where each of them ends."""
        start = ends[0] if self.kind == CAUSAL and ends else 0
        bounds = np.array([start, *(ends[place] for place in read)])
        if read and len(read) == len(asked):
            bounds[-1] = len(text)  # blanks at the end, which some tokenizers drop, are read as well
        known = bounds >= 0
        bounds[known] = np.maximum.accumulate(bounds[known])
        return bounds

    def give_back(self, encoded: EncodedTexts) -> list[str]:
        """Return what the tokenizer makes of the tokens of texts that it encoded, special tokens left out."""
        if self.kind == MASKED:
            pairs = zip(encoded.ids, encoded.asked, strict=True)
            rows = [[row[place] for place in places] for row, places in pairs]
        else:
            rows = [row[self.start is not None :] for row in encoded.ids]
        return self.tokenizer.batch_decode(rows) if rows else []

    def reads_as(self, other: "Target", own: EncodedTexts, others: EncodedTexts) -> bool:
        """Return whether another model is asked for the same tokens of the same texts, in the same way.

        One of them may read less of a long text: what both read is compared.

        Args:
            other: the other model.
            own, others: the texts as this model and as the other one encode them.
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
        """Return the same, asked for its texts one by one if what it says of a text changes with others.

        Texts in a batch are padded to one length. Some models read the padding in spite of the attention
        mask (convolutions, Fourier transforms, attention by hashes), and some compute a short text in
        another way where a long one lies with it.

        Raises:
            UnsupportedModel: it reads in another direction than its kind says; it says something else of the
                same text when it is asked again; or it fails.
        """
        require_answers(self.name, self.model, self.kind, self.context)  # on this device, the longest text
        tokens = _plain_tokens(self.model, self.tokenizer)
        # The longest text that is asked with another, shorter ones, and as many of a few tokens as fit.
        longest = max(8, min(self.context, _CELLS // (2 * self._cells_of_token)))
        lengths = [longest, longest // 2, longest // 4, *(6 + n % 7 for n in range(_ROWS - 3))]
        generator = rng.make(0, "audit/padding")
        rows = [generator.choice(tokens, n).tolist() for n in lengths if 3 <= n <= longest]
        asked = [[*range(1, len(row) - 1)] for row in rows]
        tried = [0, 1, 2, len(rows) - 1]
        one_by_one = replace(self, together=False)
        alone, again = (
            one_by_one._ask([rows[n] for n in tried], [asked[n] for n in tried]) for _ in range(2)
        )
        if not _same(alone, again):
            raise UnsupportedModel(
                f"{called(self.name)}: says something else of the same text when it is asked again, so that "
                "an audit of it cannot be repeated; let its config.json fix what it draws at random"
            )
        require_direction = models.require_causal if self.is_causal else models.require_both_ways
        with typed_answers(self.name):
            require_direction(self.model, self.name, tokens, self.context)
        if not self.together:
            return self
        together = self._ask(rows, asked)
        return replace(self, together=_same([together[n] for n in tried], alone))

    @torch.inference_mode()
    def score(
        self,
        texts: Sequence[str] | EncodedTexts,
        *,
        seed: int = 0,
        what: str | None = None,
    ) -> models.TokenScores:
        """Ask for every token of every text, in batches of similar length, or one by one: see `checked`.

        Args:
            texts: each with a token to ask for, perhaps encoded before.
            seed: of the groups in which a masked model's tokens are hidden, the same for every model.
            what: title of a progress bar; None shows none.

        Raises:
            UnsupportedModel: the model fails, or gives something that is not a number.
        """
        read = texts if isinstance(texts, EncodedTexts) else self.encode(texts)
        answers = self._ask(read.ids, read.asked, seed=seed, what=what)
        if not all(np.isfinite(text[:, 0]).all() for text in answers):
            raise UnsupportedModel(f"{called(self.name)}: gives probabilities that are not numbers")
        return models.token_scores(answers, sum(read.cut), read.bounds)

    @property
    def _cells_of_token(self) -> int:
        """Logits that a batch holds for each of its tokens: a masked model is asked in several passes."""
        width = self.model.get_output_embeddings().weight.shape[0]
        return width * (FOLDS if self.kind == MASKED else 1)

    @torch.inference_mode()
    def _ask(
        self,
        rows: Sequence[Sequence[int]],
        asked: Sequence[Sequence[int]],
        *,
        seed: int = 0,
        what: str | None = None,
    ) -> list[np.ndarray]:
        """Return what the model says of the asked places of each row of tokens, shape [places, 4] each."""
        answers: list = [None] * len(rows)
        order = sorted(range(len(rows)), key=lambda n: len(rows[n]))
        bar = tqdm(total=len(rows), desc=what, unit="note", disable=what is None)
        with bar, typed_answers(self.name):
            while order:
                size = max(1, min(_ROWS, _CELLS // (len(rows[order[-1]]) * self._cells_of_token)))
                size = size if self.together else 1
                # The longest first: memory fails at once or never.
                chosen, order = order[-size:], order[:-size]
                batch = models.padded([(rows[n], rows[n]) for n in chosen], self.tokenizer.pad_token_id or 0)
                ids, mask = (batch[name].to(self.model.device) for name in ("input_ids", "attention_mask"))
                if self.kind == MASKED:
                    batch_answers = self._fill_in(ids, mask, [asked[n] for n in chosen], seed)
                else:  # padding on the right: no real token sees it
                    batch_answers = _answers(
                        self.model(input_ids=ids, use_cache=False).logits[:, :-1], ids[:, 1:]
                    )
                for number, text in zip(chosen, batch_answers, strict=True):
                    answers[number] = text[: len(asked[number])]
                bar.update(len(chosen))
        return answers

    def _fill_in(
        self, ids: torch.Tensor, mask: torch.Tensor, asked: Sequence[Sequence[int]], seed: int
    ) -> list[np.ndarray]:
        """Return what a masked model says of the asked places of each row, one group of them at a time."""
        answers = [np.empty((len(places), 4)) for places in asked]
        # A text's groups depend on its length alone, so that two models, or two audits, hide the same tokens.
        groups = [rng.make(seed, f"checkup/masks/{len(p)}").permutation(len(p)) % FOLDS for p in asked]
        for fold in range(FOLDS):
            hidden = [(row, n) for row, group in enumerate(groups) for n in np.flatnonzero(group == fold)]
            if not hidden:
                continue
            row = torch.tensor([row for row, _ in hidden], device=ids.device)
            place = torch.tensor([asked[row][n] for row, n in hidden], device=ids.device)
            shown = ids.clone()
            shown[row, place] = self.tokenizer.mask_token_id
            logits = self.model(input_ids=shown, attention_mask=mask).logits[row, place]
            for (text, n), answer in zip(hidden, _answers(logits, ids[row, place]), strict=True):
                answers[text][n] = answer
        return answers

    def _given(self, opening: str) -> list[int]:
        """Return the tokens that the model goes on from after an opening."""
        ids = self.tokenizer([opening], add_special_tokens=False)["input_ids"][0] if opening else []
        return ids if self.start is None else [self.start, *ids]

    def continues(self, opening: str) -> bool:
        """Return whether an opening has a token to go on from, and leaves room for another."""
        return 0 < len(self._given(opening)) < self.context

    @torch.inference_mode()
    def write(self, opening: str, *, samples: int, tokens: int, seed: int) -> list[str]:
        """Return what a causal model writes after an opening, the opening left out.

        Args:
            opening: what every text begins with, one that it `continues`.
            samples: independent draws, at the settings that extraction studies use (0.8, top 50, 95 %).
            tokens: most tokens of a text.
            seed: of the draws.

        Raises:
            UnsupportedModel: the model fails, or gives something that is not a number.
        """
        ids = self._given(opening)
        given = torch.tensor([ids], device=self.model.device)
        end = self.tokenizer.eos_token_id
        padding = end if end is not None else 0
        lot = rng.torch_seeded(rng.derive(seed, f"checkup/write/{opening}"))
        at_once = [samples] if self.together else [1] * samples
        drawn: list[list[int]] = []
        with typed_answers(self.name), lot:
            for count in at_once:
                texts = self.model.generate(
                    given,
                    attention_mask=torch.ones_like(given),
                    do_sample=True,
                    temperature=0.8,
                    top_k=50,
                    top_p=0.95,
                    max_new_tokens=min(tokens, self.context - len(ids)),
                    num_return_sequences=count,
                    eos_token_id=end,
                    pad_token_id=padding,
                )
                drawn += texts[:, len(ids) :].tolist()
        return self.tokenizer.batch_decode(drawn)


def _whole_characters(asked: Sequence[int], ends: Sequence[int], context: int) -> list[int]:
    """Return the places of a text that are read, up to the last character of which all tokens are.

    A token can be a byte of a character; then all of its tokens end where the character does. Of a character
    that a model reads in part, another model may read the rest.

    Args:
        asked: places of the text's tokens.
        ends: the character at which the token at each place ends, -1 where that is not known.
        context: places that the model reads.
    """
    read = [place for place in asked if place < context]
    cut = ends[asked[len(read)]] if len(read) < len(asked) else -1
    return [place for place in read if ends[place] != cut or cut < 0] or read


def _same(some: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> bool:
    """Return whether two readings of the same texts give the same probabilities, up to rounding."""
    pairs = zip(some, others, strict=True)
    return all(np.allclose(a[:, 0], b[:, 0], rtol=0, atol=_ROUNDING, equal_nan=True) for a, b in pairs)


def _answers(logits: torch.Tensor, targets: torch.Tensor) -> np.ndarray:
    return models.token_answers(logits, targets).double().cpu().numpy()


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
        """Return the number of tokens."""
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


# Where the words of a tokenizer stand; one of bytes needs none, and its configuration says so.
_WORDS = ("tokenizer.json", "vocab.json", "*.txt", "*.model", "*.tiktoken", "*.codes")
_OF_BYTES = ("ByT5Tokenizer", "CanineTokenizer", "PerceiverTokenizer")
_ADAPTER_WEIGHTS = "adapter_model.safetensors"
_LORA = {
    *(
        "r",
        "lora_alpha",
        "target_modules",
        "exclude_modules",
        "fan_in_fan_out",
        "bias",
        "use_rslora",
        "use_dora",
    ),
    *(
        "rank_pattern",
        "alpha_pattern",
        "modules_to_save",
        "layers_to_transform",
        "layers_pattern",
        "lora_bias",
    ),
    *("trainable_token_indices", "ensure_weight_tying"),
}
# What changes no weight, or says how training began.
_LORA_NOTES = {
    *("auto_mapping", "base_model_name_or_path", "revision", "peft_type", "peft_version", "task_type"),
    *("inference_mode", "init_lora_weights", "lora_dropout", "megatron_core"),
}
# Starts of a training that leave the weights of the base as they are; others, such as PiSSA, change them.
_LORA_STARTS = (True, False, None, "gaussian", "eva", "orthogonal")
_SAME_BASE = "base is the model as it was when the adapter was trained, with its vocabulary as large as then"
_CLASSES = {CAUSAL: AutoModelForCausalLM, MASKED: AutoModelForMaskedLM}


def _kind(folder: Path, config: dict) -> str:
    """Return whether the folder holds a causal or a masked language model."""
    model_type, classes = config.get("model_type"), config.get("architectures") or []
    if not isinstance(model_type, str):
        raise UnsupportedModel(f"{called(folder.name)}: config.json names no model_type")
    if not isinstance(classes, list) or not all(isinstance(name, str) for name in classes):
        raise UnsupportedModel(
            f"{called(folder.name)}: config.json says architectures = {shown(classes)}; it must be a "
            'list of names, such as ["GPT2LMHeadModel"]'
        )
    if config.get("is_encoder_decoder"):
        raise UnsupportedModel(
            f"{called(folder.name)}: config.json says is_encoder_decoder; causal and masked models are "
            "none, and others cannot be audited"
        )
    known = {
        CAUSAL: MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.get(model_type),
        MASKED: MODEL_FOR_MASKED_LM_MAPPING_NAMES.get(model_type),
    }
    if known[CAUSAL] is not None and known[CAUSAL] == known[MASKED]:  # one class for both, such as XLM's
        del known[MASKED if config.get("causal") else CAUSAL]
    named = [kind for kind, name in known.items() if name is not None and name in classes]
    possible = [kind for kind, name in known.items() if name is not None]
    if not classes and len(possible) == 1:
        named = possible
    if len(named) != 1:
        raise UnsupportedModel(
            f"{called(folder.name)}: {quoted(', '.join(classes)) or 'no class'} of type {shown(model_type)} "
            "is neither a causal nor a masked language model that transformers knows; save it with its head"
        )
    return named[0]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Let transformers say nothing: its warnings are refusals here."""
    verbosity = logging.get_verbosity()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        logging.enable_progress_bar()


def _lora_config(folder: Path) -> dict:
    """Return the options of an adapter, of the keys that we know: others can name libraries to load."""
    import peft

    given = read_json(folder, ADAPTER)
    if given.get("peft_type") != "LORA":
        raise UnsupportedModel(
            f"adapter {shown(folder.name)}: is {shown(given.get('peft_type'))}; only LORA is known"
        )
    if (start := given.get("init_lora_weights", True)) not in _LORA_STARTS:
        raise UnsupportedModel(
            f"adapter {shown(folder.name)}: {ADAPTER} sets init_lora_weights to {shown(start)}, which may "
            "change its base; save it as a plain LoRA (path_initial_model_for_weight_conversion of peft's "
            "save_pretrained)"
        )
    options = {key: value for key, value in given.items() if key in _LORA}
    usual = peft.LoraConfig().to_dict()
    for key in sorted(given.keys() - _LORA - _LORA_NOTES):
        if given[key] not in (None, False, {}, [], usual.get(key)):
            raise UnsupportedModel(
                f"adapter {shown(folder.name)}: {ADAPTER} sets {shown(key)}, which is not known here"
            )
    return options


def _with_adapter(model: PreTrainedModel, folder: Path) -> PreTrainedModel:
    """Return the model with the LoRA adapter of a folder in its layers, as `peft.PeftModel` computes it.

    The adapter is not merged: the change of one of two tied matrices would become a change of both.
    """
    import peft  # late: it takes as long to load as transformers, and few bring an adapter

    refuse_code(folder)
    if over := sorted(path.name for path in folder.glob("*.safetensors") if path.name != _ADAPTER_WEIGHTS):
        raise UnsupportedModel(
            f"adapter {shown(folder.name)}: {quoted(over[0])} is no part of an adapter; move it away"
        )
    config = peft.LoraConfig(**_lora_config(folder))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a library that it will change one day
            adapted = peft.get_peft_model(model, config)
        weights = load_file(folder / _ADAPTER_WEIGHTS)
        if whole := sorted(name for name, weight in weights.items() if not weight.is_floating_point()):
            raise ValueError(f"{whole[0]} holds whole numbers")
        needed, possible = (
            peft.get_peft_model_state_dict(adapted, save_embedding_layers=with_base).keys()
            for with_base in (False, True)  # a file may hold the embeddings of the base as well
        )
        missing = (needed - weights.keys()) | (weights.keys() - needed - possible)
        if not missing:
            missing = set(peft.set_peft_model_state_dict(adapted, weights).unexpected_keys)
    except Exception as error:  # a stranger's folder can fail with any error
        said = quoted(f"{type(error).__name__}: {error}".replace(str(folder), folder.name))
        raise UnsupportedModel(
            f"adapter {shown(folder.name)}: does not fit its base model ({said}); {_SAME_BASE}"
        ) from error
    if missing:
        raise UnsupportedModel(
            f"adapter {shown(folder.name)}: does not fit its base model ({len(missing)} weights, such as "
            f"{quoted(min(missing))}); {_SAME_BASE}"
        )
    return adapted.get_base_model()


def _model(folder: Path, base: Path | None) -> tuple[str, PreTrainedModel]:
    """Return kind and model of a folder, or of an adapter's folder and its base."""
    whole = folder if base is None else base
    kind = _kind(whole, read_json(whole, CONFIG))
    with _quiet():
        model = read_model(whole, _CLASSES[kind])
        if base is not None:
            model = _with_adapter(model, folder)
    if not all(torch.isfinite(p).all() for p in model.parameters()):
        raise UnsupportedModel(f"{called(folder.name)}: some of its weights are not finite numbers")
    model.generation_config = GenerationConfig()  # what the folder says of sampling is not asked
    model.config.return_dict = True  # as it is asked here, whatever the folder says
    return kind, model.eval()


def _require_tokenizer(folder: Path) -> None:
    """Refuse a folder without a tokenizer, before a library says so in words of its own."""
    settings = "tokenizer_config.json"
    named = read_json(folder, settings).get("tokenizer_class") if (folder / settings).is_file() else None
    if named not in _OF_BYTES and not any(next(folder.glob(pattern), None) for pattern in _WORDS):
        raise UnsupportedModel(
            f"{called(folder.name)}: the tokenizer cannot be read, as the folder has no tokenizer.json or "
            "vocabulary; save there the one that the model was trained with: "
            "tokenizer.save_pretrained('folder')"
        )


def _weight_bytes(folder: Path, base: Path | None) -> int:
    """Return the bytes of the weights of a folder and its base."""
    files = [*read_files(folder), *([] if base is None else read_files(base))]
    return sum(path.stat().st_size for path in files if path.suffix == ".safetensors")


def _hashes(folder: Path, base: Path | None) -> dict[str, str]:
    """Return the SHA-256 of every file that may be opened, by name, those of a base marked so."""
    hashes = {ascii(path.name)[1:-1]: sha256_of(path) for path in read_files(folder)}
    if base is None:
        return hashes
    return hashes | {f"base: {name}": digest for name, digest in _hashes(base, None).items()}


def open_model(source: str | Path, *, base: str | Path | None = None) -> Target:
    """Return the model of a local Hugging Face folder, ready to be asked.

    Args:
        source: a folder with config.json, safetensors and a tokenizer, or one with a LoRA adapter
            (adapter_config.json, adapter_model.safetensors); nothing is fetched or run.
        base: the folder of the model that the adapter was trained on; its tokenizer is used.

    Raises:
        MissingArtifact: there is no such folder, a file of it cannot be read, or an adapter has no base.
        UnsupportedModel: it has pickled weights, code, or keys that load some; weights that do not fill it,
            or that it leaves out; an adapter that nobody named; a tokenizer that does not fit; it is neither
            a causal nor a masked language model, or reads in another direction than its kind says; it fails
            at a text, or says something else each time; or an adapter is not of its base.
    """
    folder, under = find_model(source, base)
    weights = _weight_bytes(folder, under)
    if weights > (free := psutil.virtual_memory().available):
        raise UnsupportedModel(
            f"{called(folder.name)}: its weights have {weights:,} bytes, and {free:,} bytes of memory are "
            "free; open it on a larger machine"
        )
    whole = folder if under is None else under
    _require_tokenizer(whole)
    kind, model = _model(folder, under)
    tokenizer = TextTokenizer(whole, model)
    if kind == MASKED and tokenizer.mask_token_id is None:
        raise UnsupportedModel(f"{called(folder.name)}: a masked model, but its tokenizer has no mask token")
    name, files = ascii(folder.name)[1:-1], _hashes(folder, under)
    return Target(name, kind, model.to(preferred_device()), tokenizer, tokenizer.context, files).checked()


def untrained(target: Target, *, seed: int) -> Target:
    """Return the same architecture and tokenizer with fresh weights: a model that was trained on nothing.

    Whatever an attack finds in it comes from the records, and not from what the model learned.

    Args:
        target: an opened model.
        seed: of the weights.
    """
    with rng.torch_seeded(rng.derive(seed, "checkup/untrained")), typed_answers(target.name):
        model = _CLASSES[target.kind].from_config(target.model.config)
    model = model.float().eval().to(target.model.device)
    model.generation_config = GenerationConfig()
    return replace(target, name="untrained", model=model, files={}).checked()
