"""The small Llamas that are built by name."""

import torch
from test_dpsgd_training import hospital

from privhelpers import models


def test_the_toy_is_a_llama_with_grouped_queries():
    tokenizer = hospital()[1]
    config = models.build("micro-llama", tokenizer, seed=0).config
    assert config.model_type == "llama" and config.num_key_value_heads < config.num_attention_heads
    first, again = (models.build("micro-llama", tokenizer, seed=1).state_dict() for _ in "ab")
    other = models.build("micro-llama", tokenizer, seed=2).state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)
