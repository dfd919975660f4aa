"""Adapters that are audited: the model is what PEFT makes of base and adapter, tied matrices included."""

import json
from types import SimpleNamespace

import numpy as np
import peft
import pytest
import torch
import toy_audit as toy
from nights import sampled
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    BertConfig,
    GPT2Config,
    GPTNeoXConfig,
    LlamaConfig,
    PreTrainedTokenizerFast,
    RobertaConfig,
)

import privaudit
from privaudit import cli
from privaudit.loading import _model
from privhelpers.errors import UnsupportedModel

pytestmark = [
    pytest.mark.wrong_numbers,
    pytest.mark.filterwarnings("ignore:.*(tied|pattern|untie|embedding|ensure_weight_tying)"),
]

TEXT = "Seen today: ward seen mild pain left right knee. File SYN-12345678."
SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
SIZES |= {"max_position_embeddings": 64, "vocab_size": 330, "initializer_range": 0.2, "pad_token_id": 1}
GPT2 = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64, "vocab_size": 330}
# Configuration, layer of attention, input embedding and output layer.
FAMILIES = {
    "gpt2": (GPT2Config, GPT2 | {"initializer_range": 0.2}, "c_attn", "wte", "lm_head"),
    "llama": (LlamaConfig, SIZES, "q_proj", "embed_tokens", "lm_head"),
    "gpt_neox": (GPTNeoXConfig, SIZES, "query_key_value", "embed_in", "embed_out"),
    "bert": (BertConfig, SIZES, "query", "word_embeddings", "decoder"),
    "roberta": (RobertaConfig, SIZES, "query", "word_embeddings", "decoder"),
}
# What an adapter touches, of attention (A), input embedding (I) and output layer (O), and its other options.
TOUCHED = {
    "attention": ("A", {}),
    "output": ("AO", {}),
    "input": ("AI", {}),
    "both": ("IO", {}),
    "all": ("AIO", {}),
    "saved output": ("A", {"modules_to_save": "O"}),
    "saved input": ("A", {"modules_to_save": "I"}),
    "saved both": ("A", {"modules_to_save": "IO"}),
    "saved input, tied": ("A", {"modules_to_save": "I", "ensure_weight_tying": True}),
    "input, tied": ("AI", {"ensure_weight_tying": True}),
    "single tokens": ("A", {"trainable_token_indices": [5, 6, 7]}),
    "single tokens, tied": ("A", {"trainable_token_indices": [5, 6, 7], "ensure_weight_tying": True}),
    "DoRA": ("AO", {"use_dora": True}),
    "scaled by the root": ("AO", {"use_rslora": True}),
    "all biases": ("AO", {"bias": "all"}),
    "biases of its layers": ("AO", {"bias": "lora_only"}),
    "ranks of their own": ("AIO", {"rank_pattern": {"lm_head": 3}, "alpha_pattern": {"wte": 1}}),
    "one layer": ("A", {"layers_to_transform": [0]}),
}


@pytest.fixture(scope="module")
def tok():
    made = toy.tokenizer([row["text"] for row in toy.notes("x", 60, seed=9)])
    ends = {"bos_token": made.bos_token, "eos_token": made.eos_token, "mask_token": '"', "pad_token": "!"}
    return PreTrainedTokenizerFast(tokenizer_object=made.backend_tokenizer, **ends)


def reader(family):
    """Return the class that reads a family's models."""
    return AutoModelForMaskedLM if "bert" in family else AutoModelForCausalLM


@pytest.fixture(scope="module")
def base(tok, tmp_path_factory):
    """Return the folder of a family's base, made once."""
    home, made = tmp_path_factory.mktemp("bases"), {}

    def of(family, *, tied=True):
        if (family, tied) not in made:
            config, sizes, *_ = FAMILIES[family]
            torch.manual_seed(0)
            net = reader(family).from_config(config(**sizes, tie_word_embeddings=tied))
            made[family, tied] = toy.save(net, tok, home / f"{family}-{tied}")
        return made[family, tied]

    return of


def trained(family, under, folder, touched, *, save=(), **options):
    """Write an adapter whose weights all moved, and return its folder."""
    names = dict(zip("AIO", FAMILIES[family][2:], strict=True))
    if "modules_to_save" in options:
        options["modules_to_save"] = [names[letter] for letter in options["modules_to_save"]]
    options |= {"fan_in_fan_out": family == "gpt2", "target_modules": [names[letter] for letter in touched]}
    adapted = peft.get_peft_model(reader(family).from_pretrained(under), peft.LoraConfig(r=2, **options))
    moved = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in adapted.parameters():
            if weight.requires_grad:
                weight.add_(0.3 * torch.randn(weight.shape, generator=moved))
    adapted.save_pretrained(folder, **dict(save))
    return folder


def theirs(family, under, folder):
    """Return the logits of some tokens by PEFT's own model."""
    net = peft.PeftModel.from_pretrained(reader(family).from_pretrained(under), folder).eval()
    return net(input_ids=torch.arange(3, 40)[None]).logits


CASES = [(family, case, True) for family in FAMILIES for case in TOUCHED]
CASES += [(family, case, False) for family in FAMILIES for case in ("both", "saved both", "DoRA")]
# Every kind once, from family to family, and matrices that are not tied.
QUICK = [(list(FAMILIES)[(n + 4) % len(FAMILIES)], case, True) for n, case in enumerate(TOUCHED)]
QUICK += [("llama", "both", False), ("bert", "saved both", False)]


@pytest.mark.parametrize(("family", "case", "tied"), sampled(CASES, QUICK))
def test_an_adapted_model_answers_as_pefts_own(base, tmp_path, family, case, tied):
    under = base(family, tied=tied)
    touched, options = TOUCHED[case]
    folder = trained(family, under, tmp_path / "adapter", touched, **options)
    _, net = _model(folder, under)
    with torch.inference_mode():
        ours = net(input_ids=torch.arange(3, 40)[None]).logits
        right = theirs(family, under, folder)
    assert not torch.equal(right, reader(family).from_pretrained(under)(torch.arange(3, 40)[None]).logits)
    torch.testing.assert_close(ours, right)


@pytest.mark.parametrize("save", [{"save_embedding_layers": True}, {"save_embedding_layers": False}])
@pytest.mark.parametrize("touched", sampled(["A", "AI", "AIO"], ["AI"]))
def test_a_file_with_the_embeddings_of_the_base_or_without_them_is_read(base, tmp_path, touched, save):
    under = base("gpt2")
    folder = trained("gpt2", under, tmp_path / "adapter", touched, save=save)
    _, net = _model(folder, under)
    torch.testing.assert_close(net(torch.arange(3, 40)[None]).logits, theirs("gpt2", under, folder))


@pytest.mark.parametrize("family", sampled(["gpt2", "bert"], ["gpt2"]))
def test_a_whole_target_of_a_tied_output_layer_scores_and_writes_as_pefts_own(base, tok, tmp_path, family):
    under = base(family)
    folder = trained(family, under, tmp_path / "adapter", "AIO")
    opened = privaudit.open_model(folder, base=under)
    net = peft.PeftModel.from_pretrained(reader(family).from_pretrained(under), folder).eval()
    plain = privaudit.Target("it", opened.kind, net.get_base_model(), opened.tokenizer, opened.context, {})
    ours, right = (target.score([TEXT, TEXT[:30]]) for target in (opened, plain))
    assert np.concatenate(ours.log_p) == pytest.approx(np.concatenate(right.log_p), abs=1e-5)
    fresh = privaudit.untrained(opened, seed=0)
    assert fresh.score([TEXT]).losses[0] != pytest.approx(ours.losses[0], abs=1e-3)
    assert not any("lora" in name for name, _ in fresh.model.named_parameters())
    if opened.is_causal:
        wanted = {"samples": 2, "tokens": 8, "seed": 0}
        assert opened.write("Seen", **wanted) == plain.write("Seen", **wanted)


def change(folder, **config):
    file = folder / "adapter_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | config))


def keep(folder, choose):
    """Write the weights of an adapter again, as a function changes them."""
    file = folder / "adapter_model.safetensors"
    save_file(choose(load_file(file)), file, {"format": "pt"})


# What is wrong with an adapter, and what the refusal names; None: nothing is.
BAD = {
    "another kind": ({"peft_type": "IA3"}, "peft_type"),
    "code": ({"auto_map": {"a": "b"}}, "auto_map"),
    "a library": ({"megatron_config": {"x": 1}, "megatron_core": "os"}, "megatron_config"),
    "an unset library": ({"megatron_config": {}, "megatron_core": "os"}, None),
    "unknown": ({"someone": 7}, "someone"),
    "gaussian": ({"init_lora_weights": "gaussian"}, None),
    "PiSSA": ({"init_lora_weights": "pissa_niter_4"}, "init_lora_weights"),
    "OLoRA": ({"init_lora_weights": "olora"}, "init_lora_weights"),
    "a list": ({"init_lora_weights": ["gaussian"]}, "init_lora_weights"),
    "fewer modules": ({"target_modules": ["c_attn"]}, "does not fit its base"),
}
SPOILED = {
    "missing weights": lambda all_: {name: one for name, one in all_.items() if "lm_head.lora" not in name},
    "whole numbers": lambda all_: {name: one.int() for name, one in all_.items()},
    "more weights": lambda all_: all_ | {"other": torch.ones(2)},
}


@pytest.mark.parametrize("kind", [*BAD, *SPOILED, "pickled", "other base", "another vocabulary"])
def test_a_special_or_foreign_adapter_is_refused(base, tmp_path, kind):
    under, words = base("gpt2"), "does not fit its base"
    start = base("gpt2")
    if kind == "another vocabulary":
        larger = AutoModelForCausalLM.from_pretrained(under)
        larger.resize_token_embeddings(340)
        larger.save_pretrained(start := tmp_path / "larger")
    options = {"save": {"save_embedding_layers": True}} if kind == "another vocabulary" else {}
    folder = trained("gpt2", start, tmp_path / "adapter", "AO", **options)
    if kind in BAD:
        values, words = BAD[kind]
        change(folder, **values)
    elif kind in SPOILED:
        keep(folder, SPOILED[kind])
    elif kind == "pickled":
        (folder / "adapter_model.safetensors").rename(folder / "adapter_model.bin")
        words = "safetensors"
    elif kind == "other base":
        under = base("bert")
    if words is None:
        assert privaudit.open_model(folder, base=under).name == "adapter"
        return
    with pytest.raises(UnsupportedModel, match=words):
        privaudit.open_model(folder, base=under)


def test_a_reference_that_is_an_adapter_is_opened_on_the_same_base(base, tmp_path, monkeypatch):
    under, folder = str(base("gpt2")), tmp_path / "adapter"
    folder.mkdir()
    (folder / "adapter_config.json").write_text("{}")
    opened = []

    def opening(source, base):
        opened.append((source, base))
        return SimpleNamespace(name="it", kind="causal", parameters=10**9, is_causal=True)

    def bases(model, reference, base=under):
        options = cli.Options(model=str(model), reference=str(reference) or None, base=base)
        opened.clear()
        cli.open_parts(options)
        return [base for _, base in opened]

    no_records = SimpleNamespace(name="none", patients=())
    files = SimpleNamespace(members=no_records, heldout=no_records)
    monkeypatch.setattr(privaudit, "read_files", lambda *_, **__: files)
    monkeypatch.setattr(privaudit, "open_model", opening)
    assert bases(folder, folder) == [under, under]
    assert bases(under, folder) == [None, under]
    assert bases(folder, under) == [under, None]
    assert bases(folder, "") == [under]
