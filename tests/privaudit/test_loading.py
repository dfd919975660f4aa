"""Folders that someone brings: a model that uses every tensor, or a refusal that says which file and why."""

import copy
import json
import shutil

import pytest
import torch
import toy_audit as toy
from safetensors.torch import load_file, save_file
from tokenizers import processors
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

import privaudit
from privaudit.model import Target
from privhelpers import models
from privhelpers.artifacts import sha256_of
from privhelpers.errors import MissingArtifact, UnsupportedModel

TEXT = "Seen today: ward seen mild pain left right knee. File SYN-12345678."
INDEX = "model.safetensors.index.json"


@pytest.fixture(scope="module")
def tok():
    return toy.tokenizer([row["text"] for row in toy.notes("x", 60, seed=9)])


@pytest.fixture(scope="module")
def good(tok, tmp_path_factory):
    return toy.save(toy.causal(tok), tok, tmp_path_factory.mktemp("folders") / "good")


@pytest.fixture
def submitted(good, tmp_path):
    return shutil.copytree(good, tmp_path / "submitted")


def change(folder, name, **values):
    read = json.loads((folder / name).read_text())
    (folder / name).write_text(json.dumps(read | values))


def sharded(folder, **names):
    """Write the weights as two files with an index, which says of some tensors what `names` says."""
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    files = {name: f"part-{number % 2}.safetensors" for number, name in enumerate(sorted(tensors))}
    for file in set(files.values()):
        save_file(
            {name: tensors[name] for name in tensors if files[name] == file}, folder / file, {"format": "pt"}
        )
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": files | names}))
    return sorted(tensors)


def of_whole_numbers(folder):
    """Keep a weight as whole numbers, as a quantized model does."""
    tensors = load_file(folder / "model.safetensors")
    name = "transformer.wpe.weight"
    save_file(tensors | {name: tensors[name].to(torch.int64)}, folder / "model.safetensors", {"format": "pt"})


def sparse(folder):
    with open(folder / "model.safetensors", "wb") as out:
        out.truncate(10**13)


def broken_vocabulary(folder):
    read = json.loads((folder / "tokenizer.json").read_text())
    read["model"]["vocab"]["a"] = 999_999
    (folder / "tokenizer.json").write_text(json.dumps(read))


def outside(folder):
    shutil.copy(folder / "model.safetensors", folder.parent / "x.safetensors")
    sharded(folder, **{"transformer.wte.weight": "../x.safetensors"})


def config(**values):
    return lambda folder: change(folder, "config.json", **values)


def text(name, content):
    return lambda folder: (folder / name).write_text(content)


def without(*names):
    return lambda folder: [(folder / name).unlink() for name in names]


def renamed(name, other):
    return lambda folder: (folder / name).rename(folder / other)


# What is wrong with a folder, and what the refusal names.
BAD = {
    "no layers": (config(n_layer=0), "does not use all of its weights"),
    "more layers": (config(n_layer=2), "do not fill the model"),
    "parts of layers": (config(n_layer=1.5), "n_layer"),
    "no heads": (config(n_head=0), "ZeroDivisionError"),
    "a word": (config(n_head="two"), "n_head"),
    "vocabulary": (config(vocab_size=10**9), "vocab_size"),
    "width": (config(n_embd=50), "do not fill the model"),
    "activation": (config(activation_function="unknown"), "unknown"),
    "architectures": (config(architectures=5), "5 of type"),
    "classifier": (config(architectures=["GPT2ForSequenceClassification"]), "neither a causal nor"),
    "encoder and decoder": (config(is_encoder_decoder=True), "neither a causal nor"),
    "unknown type": (config(model_type="unknown"), "unknown"),
    "another file": (config(transformers_weights="../x.safetensors"), "transformers_weights"),
    "files of configuration": (config(configuration_files=["config.4.0.0.json"]), "configuration_files"),
    "kernel": (config(attn_implementation="someone/kernel"), "attn_implementation"),
    "private kernel": (
        config(_attn_implementation_internal="someone/kernel"),
        "_attn_implementation_internal",
    ),
    "code": (config(auto_map={"AutoModel": "x--y.Z"}), "auto_map"),
    "quantized": (config(text_config={"quantization_config": {}}), "quantization_config"),
    "Python": (text("modeling.py", "raise SystemExit"), "Python code"),
    "pickled": (renamed("model.safetensors", "pytorch_model.bin"), "pytorch_model.bin"),
    "broken JSON": (text("config.json", "{"), "config.json is not clean JSON"),
    "list": (text("config.json", "[]"), "config.json must be an object"),
    "whole numbers": (of_whole_numbers, r"transformer\.wpe\.weight contains whole numbers"),
    "too large": (sparse, "of memory are free"),
    "cut": (text("model.safetensors", "0" * 500), "cannot be read as safetensors"),
    "no tokenizer": (without("tokenizer.json"), "the tokenizer cannot be read"),
    "broken tokenizer": (text("tokenizer.json", "[]"), "the tokenizer cannot be read"),
    "tokens of another model": (broken_vocabulary, "tokens up to 999999"),
    "files of tokenizers": (
        lambda folder: change(folder, "tokenizer_config.json", fast_tokenizer_files=["x.json"]),
        "fast_tokenizer_files",
    ),
    "other weights": (
        lambda folder: shutil.copy(folder / "model.safetensors", folder / "better.safetensors"),
        "better.safetensors",
    ),
    "weights elsewhere": (outside, r"\.\./x\.safetensors"),
    "missing shard": (lambda folder: sharded(folder) and (folder / "part-1.safetensors").unlink(), "part-1"),
    "an index of nothing": (text(INDEX, "{}"), "model.safetensors"),
    "an adapter beside it": (text("adapter_config.json", '{"peft_type": "LORA"}'), "adapter_config.json"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_spoiled_folder_is_refused_by_its_fault(submitted, kind, monkeypatch):
    spoil, words = BAD[kind]
    spoil(submitted)
    monkeypatch.chdir(submitted)
    for place in (submitted, "."):  # the folder has a name, too, if it is the current one
        with pytest.raises(UnsupportedModel, match=words) as refused:
            privaudit.open_model(place)
        assert "'submitted'" in str(refused.value) and len(str(refused.value)) < 600


@pytest.mark.parametrize("kind", ["no layers", "an adapter beside it", "files of configuration", "code"])
def test_the_books_own_loader_has_the_same_door(submitted, kind):
    spoil, words = BAD[kind]
    spoil(submitted)
    with pytest.raises(UnsupportedModel, match=words):
        models.load(submitted)


def test_a_missing_folder_or_base_is_told_from_a_wrong_one(submitted, tmp_path):
    for place in ("none/..", "\0", "x" * 5000, tmp_path):
        with pytest.raises(MissingArtifact):
            privaudit.open_model(place)
    with pytest.raises(UnsupportedModel, match="has no base"):
        privaudit.open_model(submitted, base=submitted)
    (submitted / "config.json").rename(submitted / "adapter_config.json")
    for base in (None, tmp_path, "\0"):
        with pytest.raises(MissingArtifact, match="base"):
            privaudit.open_model(submitted, base=base)


def test_shards_are_read_whole(submitted, good):
    sharded(submitted)
    opened, alone = privaudit.open_model(submitted), privaudit.open_model(good)
    assert opened.score([TEXT]).losses == pytest.approx(alone.score([TEXT]).losses)
    assert opened.files["part-1.safetensors"] == sha256_of(submitted / "part-1.safetensors")


def test_a_head_of_its_own_is_used_whatever_the_configuration_ties(tok, tmp_path):
    config = LlamaConfig(
        vocab_size=len(tok), hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
        max_position_embeddings=64,
    )  # fmt: skip
    folder = toy.save(LlamaForCausalLM(config), tok, tmp_path / "tied")
    losses = privaudit.open_model(folder).score([TEXT]).losses
    change(folder, "config.json", tie_word_embeddings=True)
    assert privaudit.open_model(folder).score([TEXT]).losses == pytest.approx(losses)


def test_a_saved_constant_of_whole_numbers_is_accepted(submitted):
    tensors = load_file(submitted / "model.safetensors")
    mask = {"transformer.h.0.attn.bias": torch.ones(1, 1, 96, 96, dtype=torch.uint8)}
    save_file(tensors | mask, submitted / "model.safetensors", {"format": "pt"})
    assert privaudit.open_model(submitted).score([TEXT]).losses


def test_the_hashes_are_of_the_files_of_the_folder(submitted):
    files = privaudit.open_model(submitted).files
    assert files == {name: sha256_of(submitted / name) for name in files}
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= set(files)


def test_a_template_with_a_token_of_no_vocabulary_is_refused(submitted):
    template = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "X", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [],
        "special_tokens": {"X": {"id": "X", "ids": [10**8], "tokens": ["X"]}},
    }
    change(submitted, "tokenizer.json", post_processor=template)
    opened = privaudit.open_model(submitted)
    opened.score([TEXT])  # a causal model is asked without its template
    with pytest.raises(UnsupportedModel, match="gives token 100000000"):
        opened.tokenizer([TEXT])


@pytest.mark.parametrize("at_once", [2, 500])
def test_the_tokenizer_says_what_transformers_says_of_the_folder(good, tok, monkeypatch, at_once):
    monkeypatch.setattr("privaudit.loading._AT_ONCE", at_once)
    tokenizer, texts = privaudit.open_model(good).tokenizer, [TEXT, "", "naïve  \u4e2d"]
    plain = tok(texts, return_special_tokens_mask=True, return_offsets_mapping=True)
    plain["ends"] = [[end for _, end in row] for row in plain["offset_mapping"]]
    names = ("input_ids", "special_tokens_mask", "ends")
    assert tokenizer(texts) == {name: plain[name] for name in names}
    assert tokenizer([]) == {name: [] for name in names}
    assert len(tokenizer) == len(tok)
    assert tokenizer.batch_decode(plain["input_ids"]) == tok.batch_decode(
        plain["input_ids"], skip_special_tokens=True
    )
    assert (tokenizer.bos_token_id, tokenizer.pad_token_id) == (tok.bos_token_id, tok.pad_token_id)


TEMPLATES = {
    "causal": None,
    "masked without a template": None,
    "masked between two": "[CLS] $A [SEP]",
    "masked before one": "$A [SEP]",
}
LONG = [
    *("e" * n for n in (0, 1, 7, 8, 9, 10, 11, 12, 40)),
    *(TEXT[:n] for n in (30, 36, 37, 38, 39, 67)),
    *("\u4e2d\u6587" * 9, "nai\u0308ve \u200d" * 5, " " * 30, "\U0001f600" * 12, f"[SEP] {TEXT * 3} [CLS]"),
]


@pytest.mark.parametrize("case", TEMPLATES)
@pytest.mark.parametrize("texts", [LONG, LONG[8:9], LONG[:1]], ids=["all", "long", "empty"])
def test_a_text_is_cut_where_the_model_stops(tok, case, texts):
    """Against all tokens of each text, cut afterwards."""
    kind, template, context = case.split()[0], TEMPLATES[case], 10
    tok = copy.deepcopy(tok)
    tok.add_special_tokens({"additional_special_tokens": ["[CLS]", "[SEP]"]})
    if template:
        ends = [(name, tok.convert_tokens_to_ids(name)) for name in ("[CLS]", "[SEP]")]
        tok.backend_tokenizer.post_processor = processors.TemplateProcessing(template, None, ends)
    reader = toy.wrapped(tok, context)
    reader.eos_token_id = tok.bos_token_id

    told_too = {"return_special_tokens_mask": True, "return_offsets_mapping": True}
    whole = tok(texts, add_special_tokens=kind == "masked", **told_too)
    rows, special, spans = (whole[name] for name in ("input_ids", "special_tokens_mask", "offset_mapping"))
    if kind == "causal":
        rows, special = [[tok.bos_token_id, *row] for row in rows], [[1, *row] for row in special]
        spans = [[None, *row] for row in spans]
    elif not any(map(any, special)):
        rows = [[tok.bos_token_id, *row, tok.bos_token_id] for row in rows]
        special = [[1, *row, 1] for row in special]
        spans = [[None, *row, None] for row in spans]
    places = [[n for n, mark in enumerate(row) if not mark] for row in special]
    beyond = [{span[n] for n in row if n >= context} for span, row in zip(spans, places, strict=True)]
    asked = [  # a character of several tokens is read whole or not at all
        [n for n in row if n < context and span[n] not in unread]
        for span, row, unread in zip(spans, places, beyond, strict=True)
    ]
    told = Target("it", kind, None, reader, context, {}).encode(texts)
    assert (told.ids, told.asked) == ([row[:context] for row in rows], asked)
    assert told.cut == [len(row) > context for row in rows]


SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
SIZES |= {"max_position_embeddings": 34, "pad_token_id": 1, "vocab_size": 330}


def small(tok, folder, family, kind=AutoModelForMaskedLM, **values):
    """Save a model of a family with fresh weights, and a tokenizer that can hide a token."""
    ends = {"bos_token": tok.bos_token, "eos_token": tok.eos_token, "mask_token": '"'}
    hiding = PreTrainedTokenizerFast(tokenizer_object=tok.backend_tokenizer, pad_token="!", **ends)
    return toy.save(kind.from_config(AutoConfig.for_model(family, **SIZES | values)), hiding, folder)


@pytest.mark.parametrize(
    ("family", "padding", "context"),
    [("mpnet", 1, 32), ("esm", 1, 32), ("ibert", 1, 32), ("roberta", 9, 24), ("bert", 1, 34)],
)
def test_positions_that_are_counted_from_the_padding_token_are_not_asked_for(
    tok, tmp_path, family, padding, context
):
    ids = {"mask_token_id": 2} if family == "esm" else {}
    folder = small(tok, tmp_path / family, family, pad_token_id=padding, **ids)
    opened = privaudit.open_model(folder)
    assert opened.context == context and opened.score([TEXT * 3]).losses


@pytest.mark.parametrize(
    ("family", "kind", "values", "words"),
    [
        ("roberta", AutoModelForMaskedLM, {"pad_token_id": None}, "TypeError"),
        ("bert", AutoModelForMaskedLM, {"chunk_size_feed_forward": 17}, "chunk size 17"),
        ("mistral", AutoModelForCausalLM, {"sliding_window": 0}, "sliding|Error"),
    ],
)
def test_a_model_that_opens_and_fails_at_a_text_is_refused(tok, tmp_path, family, kind, values, words):
    grouped = {"num_key_value_heads": 1} if kind is AutoModelForCausalLM else {}
    folder = small(tok, tmp_path / "submitted", family, kind, **grouped)
    change(folder, "config.json", **values)
    with pytest.raises(
        UnsupportedModel, match=rf"'submitted': opens, and fails.*({words}).*restore the config"
    ):
        privaudit.open_model(folder)


def test_a_model_answers_in_one_form_whatever_its_configuration_says(submitted, good):
    change(submitted, "config.json", return_dict=False)
    texts = privaudit.open_model(submitted).score([TEXT]).losses
    assert texts == pytest.approx(privaudit.open_model(good).score([TEXT]).losses)


def test_settings_that_transformers_writes_are_accepted(tok, tmp_path):
    deberta = small(tok, tmp_path / "deberta", "deberta-v2", relative_attention=True)
    assert json.loads((deberta / "config.json").read_text())["max_relative_positions"] == -1
    assert privaudit.open_model(deberta).score([TEXT]).losses
    sizes = {"ffn_dim": 16, "word_embed_proj_dim": 16}
    opt = small(tok, tmp_path / "opt", "opt", AutoModelForCausalLM, **sizes)
    assert "_remove_final_layer_norm" in (opt / "config.json").read_text()
    assert privaudit.open_model(opt).score([TEXT]).losses
