"""What an audit asks a model: how likely is each token of a text, and what does it write.

A causal model gives each token's probability after those before it, in one pass. A masked model gives it
among those around it: the tokens of a text are dealt into seven groups, one group is hidden at a time, and
after seven passes each token was asked for once. So both kinds answer in the same form, and the same attacks
serve both.

Sources: Salazar et al. 2020, section 2.2, for scores of single tokens under a masked model.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from tqdm.auto import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from privhelpers import rng
from privhelpers.errors import UnsupportedModel
from privhelpers.models import vocabulary_moments

CAUSAL, MASKED = "causal", "masked"
FOLDS = 7  # one token in seven is hidden at a time, close to the 15 % that masked models are trained with
_ROWS = 32  # texts of one batch, where the vocabulary is small
_CELLS = 2**25  # logits of one batch: each tensor of them takes 128 MB at most


@dataclass(frozen=True)
class Reading:
    """What a model says of each token of several texts; each list holds one array a text.

    Attributes:
        log_p: natural log of the probability of each token.
        mean, deviation: of that over the vocabulary, weighted by the model itself.
        first: whether the token is the most probable one at its place.
        truncated: how many texts were longer than the model reads.
    """

    log_p: list[np.ndarray]
    mean: list[np.ndarray]
    deviation: list[np.ndarray]
    first: list[np.ndarray]
    truncated: int

    @property
    def tokens(self) -> np.ndarray:
        """Number of tokens of each text that were asked for."""
        return np.array([len(values) for values in self.log_p])

    @property
    def loss(self) -> np.ndarray:
        """Mean loss of each text, nats per token."""
        return np.array([-values.mean() for values in self.log_p])


@dataclass(frozen=True)
class Target:
    """A model that is audited, or a control.

    Attributes:
        name: of its folder.
        kind: "causal" or "masked".
        model, tokenizer: as transformers loads them.
        context: tokens that are read of a text.
    """

    name: str
    kind: str
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    context: int

    @property
    def parameters(self) -> int:
        """Number of weights, a shared matrix counted once."""
        return sum(p.numel() for p in self.model.parameters())

    @property
    def start(self) -> int | None:
        """The token that a text starts with, if the tokenizer has one."""
        own = (self.tokenizer.bos_token_id, self.tokenizer.eos_token_id)
        return next((token for token in own if token is not None), None)

    def encode(self, texts: Sequence[str]) -> tuple[list[list[int]], list[list[int]], int]:
        """Return rows of ids, the places of each row that are asked for, and how many texts were cut."""
        if self.kind == MASKED:
            found = self.tokenizer(
                list(texts), return_special_tokens_mask=True, return_attention_mask=False, verbose=False
            )
            ids, special = found["input_ids"], found["special_tokens_mask"]
            if not any(map(any, special)) and self.start is not None:  # a tokenizer without template
                ids = [[self.start, *row, self.start] for row in ids]
                special = [[1, *row, 1] for row in special]
            asked = [[n for n, flag in enumerate(row) if not flag] for row in special]
        else:
            plain = self.tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]
            ids = [row if self.start is None else [self.start, *row] for row in plain]
            asked = [list(range(1, len(row))) for row in ids]
        cut = sum(len(row) > self.context for row in ids)
        asked = [[place for place in row if place < self.context] for row in asked]
        return [row[: self.context] for row in ids], asked, cut

    def readable(self, texts: Sequence[str]) -> np.ndarray:
        """Return which texts have a token to ask for, shape [texts]."""
        return np.array([bool(places) for places in self.encode(texts)[1]])

    @torch.inference_mode()
    def read(self, texts: Sequence[str], *, seed: int = 0, bar: tqdm | None = None) -> Reading:
        """Ask for every token of every text, in batches of similar length.

        Args:
            texts: each with a token to ask for.
            seed: of the groups in which a masked model's tokens are hidden, the same for every model.
            bar: a progress bar, moved on by the number of texts done.

        Raises:
            UnsupportedModel: the model gives something that is not a number.
        """
        rows, asked, cut = self.encode(texts)
        out: list = [None] * len(rows)
        order = sorted(range(len(rows)), key=lambda n: len(rows[n]))
        width = self.model.get_output_embeddings().weight.shape[0]
        passes = FOLDS if self.kind == MASKED else 1
        while order:
            longest = len(rows[order[-1]])
            size = max(1, min(_ROWS, _CELLS // (longest * width * passes)))
            chosen, order = order[-size:], order[:-size]  # the longest first: memory fails at once or never
            ask = self._ask_masked if self.kind == MASKED else self._ask_causal
            for number, found in zip(chosen, ask(rows, asked, chosen, seed), strict=True):
                out[number] = found
            if bar is not None:
                bar.update(len(chosen))
        if not all(np.isfinite(found[0]).all() for found in out):
            raise UnsupportedModel(f"model {self.name!r}: gives probabilities that are not numbers")
        columns = [[found[k] for found in out] for k in range(4)]
        columns[3] = [first > 0 for first in columns[3]]
        return Reading(*columns, cut)

    def _batch(self, rows: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return ids and attention mask, padded on the right."""
        longest, padding = max(map(len, rows)), self.tokenizer.pad_token_id or 0
        ids = torch.tensor([[*row, *[padding] * (longest - len(row))] for row in rows])
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
        return ids.to(self.model.device), mask.to(self.model.device)

    def _ask_causal(self, rows: list, asked: list, chosen: list[int], seed: int) -> list[np.ndarray]:
        ids, _ = self._batch([rows[n] for n in chosen])  # padding on the right: no real token sees it
        four = _answers(self.model(input_ids=ids, use_cache=False).logits[:, :-1], ids[:, 1:])
        return [four[:, k, : len(asked[n])] for k, n in enumerate(chosen)]

    def _ask_masked(self, rows: list, asked: list, chosen: list[int], seed: int) -> list[np.ndarray]:
        found = [np.empty((4, len(asked[n]))) for n in chosen]
        # A text's groups depend on its length alone, so that two models, or two audits, hide the same tokens.
        dealt = [rng.make(seed, f"checkup/masks/{len(asked[n])}").permutation(len(asked[n])) for n in chosen]
        ids, mask = self._batch([rows[n] for n in chosen])
        for fold in range(FOLDS):
            hidden = [np.flatnonzero(order % FOLDS == fold) for order in dealt]
            row = torch.tensor([k for k, own in enumerate(hidden) for _ in own], device=ids.device)
            place = [asked[n][i] for n, own in zip(chosen, hidden, strict=True) for i in own]
            place = torch.tensor(place, device=ids.device)
            if not len(row):
                continue
            shown = ids.clone()
            shown[row, place] = self.tokenizer.mask_token_id
            logits = self.model(input_ids=shown, attention_mask=mask).logits[row, place]
            four = np.split(
                _answers(logits, ids[row, place]), np.cumsum([len(own) for own in hidden])[:-1], 1
            )
            for k, own in enumerate(hidden):
                found[k][:, own] = four[k]
        return found

    @torch.inference_mode()
    def write(self, opening: str, *, samples: int, tokens: int, seed: int) -> list[str]:
        """Return what a causal model writes after an opening, the opening left out.

        Args:
            opening: what every text begins with; may be empty if the tokenizer has a start token.
            samples: independent draws, at the settings that extraction studies use (0.8, top 50, 95 %).
            tokens: most tokens of a text.
            seed: of the draws.
        """
        ids = self.tokenizer(opening, add_special_tokens=False)["input_ids"] if opening else []
        ids = ids if self.start is None else [self.start, *ids]
        given = torch.tensor([ids], device=self.model.device)
        end = self.tokenizer.eos_token_id
        padding = end if end is not None else 0
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(rng.derive(seed, f"checkup/write/{opening}"))
            drawn = self.model.generate(
                given,
                attention_mask=torch.ones_like(given),
                do_sample=True,
                temperature=0.8,
                top_k=50,
                top_p=0.95,
                max_new_tokens=min(tokens, self.context - len(ids)),
                num_return_sequences=samples,
                eos_token_id=end,
                pad_token_id=padding,
            )
        return self.tokenizer.batch_decode(drawn[:, len(ids) :], skip_special_tokens=True)


def _answers(logits: torch.Tensor, targets: torch.Tensor) -> np.ndarray:
    """Return log-probability, its mean and deviation over the vocabulary, and first place; four in front."""
    log_p = logits.float().log_softmax(-1)
    mean, spread = vocabulary_moments(log_p)
    own = log_p.gather(-1, targets[..., None])[..., 0]
    return torch.stack([own, mean, spread, (log_p.argmax(-1) == targets).float()]).double().cpu().numpy()
