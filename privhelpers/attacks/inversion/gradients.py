"""What a client sends, and where the parts of it lie that the attacks read."""

import copy
from collections.abc import Mapping

import torch
from torch import nn
from transformers import PreTrainedModel

from privhelpers.models import row_losses

Gradient = Mapping[str, torch.Tensor]

TOKENS, POSITIONS = "transformer.wte.weight", "transformer.wpe.weight"


def attention_weight(block: int) -> str:
    """Return the name of the weight through which block number `block` reads its tokens."""
    return f"transformer.h.{block}.attn.c_attn.weight"


def untied(model: PreTrainedModel) -> PreTrainedModel:
    """Return a copy of the model whose output matrix is a parameter of its own."""
    twin = copy.deepcopy(model)
    twin.config.tie_word_embeddings = False
    twin.lm_head.weight = nn.Parameter(model.lm_head.weight.detach().clone())
    return twin


def gradient_of(model: PreTrainedModel, rows: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the gradient of the mean loss of some notes, as a client would send it; by parameter name.

    Args:
        model: a GPT-2.
        rows: token ids, shape [notes, length].
    """
    named = dict(model.named_parameters())
    loss = row_losses(model(input_ids=rows).logits, rows).mean()
    return dict(zip(named, torch.autograd.grad(loss, list(named.values())), strict=True))
