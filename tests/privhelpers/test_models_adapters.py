"""Adapters start from the seed and change nothing yet."""

import torch
from test_dpsgd_training import hospital

from privhelpers import models
from privhelpers.models.adapters import with_adapters


def test_adapters_start_from_the_seed_and_change_nothing_yet():
    tokenizer = hospital()[1]
    plain = models.build("micro-llama", tokenizer, seed=0)
    assert plain.config.num_key_value_heads < plain.config.num_attention_heads, "grouped queries"
    ids = torch.tensor([[1, 2, 3, 4]], device=plain.device)
    before = plain(ids).logits
    nets = [
        with_adapters(models.build("micro-llama", tokenizer, seed=0), rank=2, targets=["q_proj"], seed=seed)
        for seed in (0, 0, 1)
    ]
    down = [{n: p for n, p in net.named_parameters() if "lora_A" in n} for net in nets]
    assert all(torch.equal(down[0][name], down[1][name]) for name in down[0])
    assert not any(torch.equal(down[0][name], down[2][name]) for name in down[0])
    for net in nets:
        torch.testing.assert_close(net(ids).logits, before)
    trained = [name for name, p in nets[0].named_parameters() if p.requires_grad]
    assert len(trained) == 4 and all("lora" in name for name in trained)
    sizes = [p.numel() for p in nets[0].parameters() if p.requires_grad]
    assert models.count_parameters(nets[0]) == sum(sizes)
