"""The models and batches on which `dpsgd.py` times a step: random weights and tokens, nothing to download."""

import contextlib
from dataclasses import dataclass

import torch
from torch import nn
from transformers import (
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
)

VOCABULARY, LARGE_VOCABULARY = 3000, 50257
TINY_GPT2 = {"vocab_size": VOCABULARY, "n_positions": 128, "n_embd": 128, "n_layer": 4, "n_head": 4}
TINY_BERT = {
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 128,
    "hidden_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 512,
}
# The shape of SmolLM2-135M.
LLAMA = {
    "vocab_size": 49152,
    "max_position_embeddings": 128,
    "hidden_size": 576,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "intermediate_size": 1536,
}
ADAPTED = {"gpt2": ["c_attn", "c_proj", "c_fc"], "llama": "all-linear"}


@dataclass(frozen=True)
class Cell:
    """A model and a batch."""

    name: str
    kind: str  # gpt2, bert or llama
    rows: int
    length: int
    large: bool = False  # 124 or 135 million parameters, else 1.2
    lora: bool = False

    def model(self, tied: bool) -> nn.Module:
        """Return the model, always with the same weights."""
        torch.manual_seed(0)
        model = {"gpt2": self._gpt2, "bert": self._bert, "llama": self._llama}[self.kind](tied)
        if self.kind == "bert":
            # A second name for decoder.bias: Opacus hands its parent to functorch, which then fails.
            del model.cls.predictions.bias
        return (self._adapted(model) if self.lora else model).train()

    def batch(self) -> dict[str, torch.Tensor]:
        """Return ids and labels; positions and types are given for each row, for Opacus needs them so."""
        generator = torch.Generator().manual_seed(1)
        shape = (self.rows, self.length)
        large = LLAMA["vocab_size"] if self.kind == "llama" else LARGE_VOCABULARY
        ids = torch.randint(large if self.large else VOCABULARY, shape, generator=generator)
        positions = torch.arange(self.length).repeat(self.rows, 1)
        batch = {"input_ids": ids, "labels": ids.clone(), "position_ids": positions}
        if self.kind == "bert":
            hidden = torch.rand(shape, generator=generator) < 0.15
            hidden[:, 0] = True  # no row without a label
            batch |= {"labels": ids.masked_fill(~hidden, -100), "token_type_ids": torch.zeros_like(ids)}
        return batch

    def _gpt2(self, tied: bool) -> nn.Module:
        none = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
        size = {} if self.large else TINY_GPT2
        return GPT2LMHeadModel(GPT2Config(tie_word_embeddings=tied, **none, **size))

    def _bert(self, tied: bool) -> nn.Module:
        none = dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), 0.0)
        return BertForMaskedLM(BertConfig(tie_word_embeddings=tied, **none, **TINY_BERT))

    def _llama(self, tied: bool) -> nn.Module:
        return LlamaForCausalLM(LlamaConfig(tie_word_embeddings=tied, **LLAMA))

    def _adapted(self, model: nn.Module) -> nn.Module:
        from peft import LoraConfig, get_peft_model

        # Random adapters: the usual zeros would leave half of their gradients zero.
        where = {"target_modules": ADAPTED[self.kind], "fan_in_fan_out": self.kind == "gpt2"}
        return get_peft_model(model, LoraConfig(r=8, lora_dropout=0.0, init_lora_weights=False, **where))


class Scene:
    """One cell on one device: the batch, and one model that all steps without hooks of their own share."""

    def __init__(self, cell: Cell, device: str = "cpu", bf16: bool = False) -> None:
        """Build batch and model."""
        self.cell, self.device, self.bf16 = cell, torch.device(device), bf16
        self.batch = {name: value.to(self.device) for name, value in cell.batch().items()}
        with self.device:  # a processor takes seconds to draw 100 million weights
            self.shared = cell.model(tied=True).to(self.device)
        self.shared_optimizer = self.optimizer_of(self.shared)

    def model(self, tied: bool) -> nn.Module:
        """Return a model of its own whose weights are the memory of the shared one's."""
        with self.device:
            model = self.cell.model(tied).to(self.device)
        weights = dict(self.shared.named_parameters(remove_duplicate=False))
        for name, parameter in model.named_parameters():
            parameter.data = weights[name].data
        return model

    def optimizer_of(self, model: nn.Module) -> torch.optim.Optimizer:
        """Return AdamW over what is trained."""
        return torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.0, fused=True)

    def precision(self) -> contextlib.AbstractContextManager:
        """Return the context of a forward pass."""
        return torch.autocast(self.device.type, torch.bfloat16) if self.bf16 else contextlib.nullcontext()
