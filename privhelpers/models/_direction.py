"""Which way a model reads, tested on the model itself.

A causal model predicts a token from the ones before it; one whose logits also depend on later tokens
has no probabilities of texts. The name of a class is not enough: `BertLMHeadModel` reads both ways unless its
configuration has `is_decoder`.
"""

from collections.abc import Mapping, Sequence

import torch
from transformers import PreTrainedModel
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
)

from privhelpers.errors import UnsupportedModel
from privhelpers.models._folder import called

_NOISE = 1e-4  # of the logits' spread: rounding moves them by a hundredth of that
_FAINT = 1e-3  # of the effect of earlier tokens: a model that later ones move by less reads forward only
_TEXTS = 3  # rounding can send a token to another expert, but not in every text


def _change(
    model: PreTrainedModel, ids: torch.Tensor, length: int, cut: int, seed: int, *, later: bool, masked: bool
) -> float:
    """Return how much the logits on one side of a cut change with the tokens on its other side.

    Args:
        model: in evaluation mode.
        ids: tokens that a text is made of.
        length: of the text, in tokens.
        cut: place of the first later token.
        seed: of the text.
        later: whether the later tokens are replaced, or the earlier ones.
        masked: whether the model is given an attention mask, as a masked model is.

    Returns:
        The largest change of a logit, in standard deviations of the logits over the vocabulary.
    """
    generator = torch.Generator().manual_seed(seed)
    text, other = (ids[torch.randint(len(ids), (length,), generator=generator)] for _ in range(2))
    replaced = (torch.arange(length) >= cut) == later
    before, after = (
        model(
            input_ids=(one := tokens[None].to(model.device)),
            **({"attention_mask": torch.ones_like(one)} if masked else {"use_cache": False}),
        )
        .logits[0, (~replaced).to(model.device)]
        .float()
        for tokens in (text, torch.where(replaced, other, text))
    )
    spread = before.std(-1).mean()
    return ((before - after).abs().max() / spread).item() if spread > 0 else 0.0


def _said(model: PreTrainedModel, flag: bool, meant: str, other: Mapping[str, str], head: str) -> str:
    """Return what to do about a model that reads another way than its class."""
    cures = []
    if getattr(model.config, "is_decoder", None) is flag:
        now, then = str(flag).lower(), str(not flag).lower()
        cures.append(f"config.json has is_decoder = {now}: if it was trained {meant}, set it to {then}")
    if named := other.get(model.config.model_type):
        cures.append(f"if it was trained as a {head} model, save it as {named}")
    return "; ".join(cures or ["restore the config.json that the weights were saved with"])


@torch.inference_mode()
def require_causal(model: PreTrainedModel, name: str, tokens: Sequence[int], length: int) -> None:
    """Refuse a model whose logits depend on later tokens.

    Args:
        model: in evaluation mode.
        name: of its folder.
        tokens: ids that texts are made of, without special ones.
        length: tokens of the longest text, 8 or more.

    Raises:
        UnsupportedModel: in each of several texts later tokens change an earlier logit.
    """
    ids = torch.tensor(tokens)
    # Some look ahead in long texts only, and some only a few tokens far.
    for size, cut in sorted({(8, 4), *((length, cut) for cut in (length // 8, length // 2, length - 1))}):
        changes = (_change(model, ids, size, cut, n, later=True, masked=False) for n in range(_TEXTS))
        if all(change > _NOISE for change in changes):
            cure = _said(model, False, "as a decoder", MODEL_FOR_MASKED_LM_MAPPING_NAMES, "masked")
            raise UnsupportedModel(
                f"{called(name)}: is not causal, because what {type(model).__name__} predicts changes "
                f"with later tokens; {cure}"
            )


@torch.inference_mode()
def require_both_ways(model: PreTrainedModel, name: str, tokens: Sequence[int], length: int) -> None:
    """Refuse a masked model that reads forward only, and so fills in a token without those behind it.

    Args:
        model, name, tokens, length: as for `require_causal`.

    Raises:
        UnsupportedModel: earlier tokens change its logits, and later ones do not.
    """
    ids = torch.tensor(tokens)
    for seed in range(_TEXTS):
        later, earlier = (
            _change(model, ids, length, length // 2, seed, later=side, masked=True) for side in (True, False)
        )
        if earlier <= _NOISE or later > _FAINT * earlier:
            return
    cure = _said(model, True, "to fill in tokens", MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, "causal")
    raise UnsupportedModel(
        f"{called(name)}: is a masked model that reads forward only, because what {type(model).__name__} "
        f"predicts at a token does not change with later tokens; {cure}"
    )
