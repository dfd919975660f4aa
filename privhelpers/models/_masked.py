"""Small BERT and DistilBERT architectures, as large as the small GPT-2 of the same name.

tokenizer = with_mask(tokenizer)                       # a copy with one more token
model = build_masked("tiny-bert", tokenizer, seed=0)   # within 3 % of tiny-gpt2's parameters

Each layer of the three families has equally many parameters; BERT's differ from GPT-2's in what stands
before and after the layers. DistilBERT is BERT without token types; what makes the published one small is
that it has half of BERT's layers, which the name with `-half` does here.
"""

import copy
import math
from dataclasses import dataclass

from transformers import (
    BertConfig,
    BertForMaskedLM,
    DistilBertConfig,
    DistilBertForMaskedLM,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from privhelpers import rng
from privhelpers.errors import InvalidParameter, UnsupportedModel
from privhelpers.models._shapes import ARCHITECTURES, Shape
from privhelpers.models.architecture import preferred_device
from privhelpers.validate import shown

MASK = "<|mask|>"


@dataclass(frozen=True)
class MaskedShape:
    """The size of a small masked language model.

    Attributes:
        family: "bert" or "distilbert".
        like: the small GPT-2 whose width, heads and positions it has.
        layers: number of layers.
    """

    family: str
    like: str
    layers: int

    @property
    def shape(self) -> Shape:
        """The size of the small GPT-2 that it is compared with."""
        return ARCHITECTURES[self.like]


def _like(gpt2: str) -> dict[str, MaskedShape]:
    size, layers = gpt2.removesuffix("-gpt2"), ARCHITECTURES[gpt2].layers
    return {
        f"{size}-bert": MaskedShape("bert", gpt2, layers),
        f"{size}-distilbert": MaskedShape("distilbert", gpt2, layers),
        f"{size}-distilbert-half": MaskedShape("distilbert", gpt2, layers // 2),
    }


MASKED_ARCHITECTURES = {name: shape for gpt2 in ARCHITECTURES for name, shape in _like(gpt2).items()}


def with_mask(tokenizer: PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
    """Return a copy of a tokenizer that has a mask token; the ids of all other tokens stay."""
    copied = copy.deepcopy(tokenizer)
    if copied.mask_token_id is None:
        copied.add_special_tokens({"mask_token": MASK})
    return copied


def _spread(width: int) -> float:
    """Return the standard deviation of fresh weights: BERT's 0.02 at its width of 768, larger below.

    With 0.02 at a width of 96 a masked model stays for long at the frequencies of words.
    """
    return 0.02 * math.sqrt(768 / width)


def _bert(shape: MaskedShape, vocabulary: int, dropout: float) -> PreTrainedModel:
    like = shape.shape
    return BertForMaskedLM(
        BertConfig(
            vocab_size=vocabulary,
            hidden_size=like.width,
            num_hidden_layers=shape.layers,
            num_attention_heads=like.heads,
            intermediate_size=4 * like.width,
            max_position_embeddings=like.positions,
            hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=dropout,
            initializer_range=_spread(like.width),
            pad_token_id=None,  # our padding is the end token, which has a meaning and is trained
        )
    )


def _distilbert(shape: MaskedShape, vocabulary: int, dropout: float) -> PreTrainedModel:
    like = shape.shape
    return DistilBertForMaskedLM(
        DistilBertConfig(
            vocab_size=vocabulary,
            dim=like.width,
            n_layers=shape.layers,
            n_heads=like.heads,
            hidden_dim=4 * like.width,
            max_position_embeddings=like.positions,
            dropout=dropout,
            attention_dropout=dropout,
            initializer_range=_spread(like.width),
            pad_token_id=None,
        )
    )


FAMILIES = {"bert": _bert, "distilbert": _distilbert}


def build_masked(
    architecture: str, tokenizer: PreTrainedTokenizerBase, *, seed: int, dropout: float = 0.0
) -> PreTrainedModel:
    """Return a small masked language model with fresh weights; input and output embeddings are tied.

    Args:
        architecture: a key of `MASKED_ARCHITECTURES`.
        tokenizer: with a mask token.
        seed: of the initial weights.
        dropout: probability in [0, 1) for embeddings, attention and residuals.

    Raises:
        UnsupportedModel: the name is not known.
        InvalidParameter: the tokenizer has no mask token.

    Source: Devlin et al. 2019, section 3; Sanh et al. 2019, section 3.
    """
    shape = MASKED_ARCHITECTURES.get(architecture)
    if shape is None:
        raise UnsupportedModel(
            f"architecture {shown(architecture)}: known are {', '.join(MASKED_ARCHITECTURES)}"
        )
    if tokenizer.mask_token_id is None:
        raise InvalidParameter("tokenizer: has no mask token; models.with_mask(tokenizer) adds one")
    with rng.torch_seeded(rng.derive(seed, "initial weights")):
        model = FAMILIES[shape.family](shape, len(tokenizer), dropout)
    return model.to(preferred_device())
