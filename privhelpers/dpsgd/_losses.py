"""The loss of each row, as a Hugging Face model returns it for that row alone."""

from collections.abc import Mapping

import torch
from torch.nn import functional
from transformers import PreTrainedModel

from privhelpers.errors import UnsupportedModel
from privhelpers.models.scoring import row_losses

Batch = Mapping[str, torch.Tensor]  # what a model is called with, and `labels`
LANGUAGE = {"ForCausalLM": True, "ForMaskedLM": False}  # whether position t is predicted from position t - 1


def losses_by_row(model: PreTrainedModel, batch: Batch) -> torch.Tensor:
    """Return the loss of every row, shape [rows], in nats (per target token for a language model).

    Args:
        model: causal, masked, encoder-decoder, or a sequence classifier of one label; with or without LoRA
            adapters. An encoder-decoder reads `input_ids` and predicts `labels`.
        batch: what the model is called with, and `labels`: shape [rows, length] with -100 if nothing is
            predicted, or [rows] for a classifier.

    Raises:
        UnsupportedModel: a model with another loss.

    Source: the batch's own `.loss` weighs rows by their length, so that one row's gradient depends on its
    neighbors: the sensitivity of a sum of such gradients is not the clipping bound.
    """
    kind = getattr(model, "loss_type", None) or "ForCausalLM"  # what the library falls back to
    labels = batch["labels"].to(model.device)
    inputs = {name: value.to(model.device) for name, value in batch.items() if name != "labels"}
    if getattr(model.config, "is_encoder_decoder", False) and labels.dim() == 2:
        if "decoder_input_ids" not in inputs:
            shift = getattr(model, "prepare_decoder_input_ids_from_labels", None)
            if shift is None:
                raise UnsupportedModel(
                    f"{type(model).__name__}: does not say what its decoder reads; put decoder_input_ids "
                    "into the batch"
                )
            inputs["decoder_input_ids"] = shift(labels)
        return row_losses(model(**inputs).logits, labels, shift=False)
    if kind in LANGUAGE:
        return row_losses(model(**inputs).logits, labels, shift=LANGUAGE[kind])
    if kind == "ForSequenceClassification" and labels.dim() == 1 and not labels.is_floating_point():
        return functional.cross_entropy(model(**inputs).logits, labels, reduction="none")
    raise UnsupportedModel(
        f"{type(model).__name__}: its loss ({kind}) has no known value for one row; known are language "
        "models and classifiers of one label"
    )
