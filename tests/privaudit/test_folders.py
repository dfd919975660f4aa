"""Folders that somebody brings: a model that uses every tensor, or a refusal that says which file and why."""

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
from privaudit import cli
from privaudit.model import Target
from privhelpers import models
from privhelpers.artifacts import sha256_of
from privhelpers.errors import MissingArtifact, PrivHelpersError, UnsupportedModel

TEXT = "Seen today: ward seen mild pain left right knee. File SYN-12345678."
INDEX = "model.safetensors.index.json"


@pytest.fixture(scope="module")
def tok():
    return toy.tokenizer([row["text"] for row in toy.notes("x", 60, seed=9)])


@pytest.fixture(scope="module")
def good(tok, tmp_path_factory):
    return toy.save(toy.causal(tok), tok, tmp_path_factory.mktemp("folders") / "good")


@pytest.fixture
def brought(good, tmp_path):
    return shutil.copytree(good, tmp_path / "brought")


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


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"n_layer": 0}, r"does not use all of its weights .*transformer\.h\.0\."),
        ({"n_layer": -1}, r"n_layer = -1, .*16 tensors.*restore the config\.json"),
        ({"n_layer": 10**9}, r"n_layer = 1000000000, .*16 tensors"),
        ({"n_layer": 1.5}, "n_layer"),
        ({"n_head": 0}, "ZeroDivisionError"),
        ({"n_head": "two"}, "n_head.*two"),
        ({"vocab_size": 10**9}, "vocab_size = 1000000000"),
        ({"n_positions": 10**12}, "n_positions = 1000000000000"),
        ({"n_embd": 50}, r"do not fill the model \(mismatched keys.*transformer\.h\.0"),
        ({"num_labels": 10**9}, "num_labels = 1000000000"),
        ({"activation_function": "nobody"}, "nobody"),
        ({"architectures": 5}, "architectures = 5; it must be a list"),
        ({"architectures": [5]}, r"architectures = \[5\]; it must be a list"),
        ({"is_encoder_decoder": True}, "is_encoder_decoder"),
        ({"model_type": ["gpt2"]}, "names no model_type"),
        ({"transformers_weights": "../x.safetensors"}, "transformers_weights"),
        ({"attn_implementation": "someone/kernel"}, "may load code"),
    ],
)  # fmt: skip
def test_a_configuration_that_is_not_of_its_weights_is_refused(brought, values, words):
    change(brought, "config.json", **values)
    with pytest.raises(UnsupportedModel, match=words) as refused:
        privaudit.open_model(brought)
    assert "'brought'" in str(refused.value) and len(str(refused.value)) < 600


@pytest.mark.parametrize(
    ("name", "key"),
    [("config.json", "configuration_files"), ("tokenizer_config.json", "fast_tokenizer_files")],
)
def test_a_file_that_names_another_in_its_place_is_refused(brought, name, key):
    change(brought, name, **{key: [name.replace(".json", ".4.0.0.json")]})
    with pytest.raises(UnsupportedModel, match=rf"{name} has '{key}', which may load .*other files"):
        privaudit.open_model(brought)
    with pytest.raises(UnsupportedModel, match=rf"{name} has '{key}', which may load .*other files"):
        models.load(brought)  # one door for the book's own models and for those that are audited


def test_a_folder_without_a_model_is_refused_before_the_records_are_read(brought, tmp_path, monkeypatch):
    def refused(**places):
        with pytest.raises(PrivHelpersError) as error:
            cli.open_parts(cli.Options(**places))
        return str(error.value)

    monkeypatch.setattr(privaudit, "read_files", lambda *_, **__: pytest.fail("the records were read"))
    whole, empty = str(brought), str(tmp_path)
    assert "no folder with a config.json" in refused(model=empty)
    assert "no folder with a config.json" in refused(model=whole, reference=empty)
    assert "so it has no base" in refused(model=whole, base=whole)
    (brought / "config.json").rename(brought / "adapter_config.json")
    assert "trained on as base" in refused(model=whole)
    assert f"base {tmp_path.name!r}" in refused(model=whole, base=empty)


def test_a_refusal_names_the_folder_that_is_the_current_one(brought, monkeypatch):
    monkeypatch.chdir(brought)
    (brought / "config.json").write_text("{")
    with pytest.raises(UnsupportedModel, match=r"model 'brought': config\.json is no clean JSON"):
        privaudit.open_model(".")
    (brought / "config.json").rename("adapter_config.json")
    for place in ("none/..", "\0", "x" * 5000):
        with pytest.raises(MissingArtifact):
            privaudit.open_model(".", base=place)


def test_the_books_own_loader_refuses_unused_weights_too(brought):
    change(brought, "config.json", n_layer=0)
    with pytest.raises(UnsupportedModel, match="does not use all"):
        models.load(brought)


def test_a_head_of_its_own_is_used_whatever_the_configuration_ties(tok, tmp_path):
    config = LlamaConfig(
        vocab_size=len(tok), hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
        max_position_embeddings=64,
    )  # fmt: skip
    folder = toy.save(LlamaForCausalLM(config), tok, tmp_path / "tied")
    losses = privaudit.open_model(folder).score([TEXT]).losses
    change(folder, "config.json", tie_word_embeddings=True)
    assert privaudit.open_model(folder).score([TEXT]).losses == pytest.approx(losses)


@pytest.mark.parametrize("kind", [torch.int64, torch.uint8, torch.bool])
def test_a_weight_of_whole_numbers_is_refused(brought, kind):
    tensors = load_file(brought / "model.safetensors")
    name = "transformer.wpe.weight"
    save_file(tensors | {name: tensors[name].to(kind)}, brought / "model.safetensors", {"format": "pt"})
    with pytest.raises(UnsupportedModel, match=r"transformer\.wpe\.weight holds whole numbers"):
        privaudit.open_model(brought)


def test_a_constant_of_whole_numbers_that_older_versions_saved_is_no_reason(brought):
    tensors = load_file(brought / "model.safetensors")
    mask = {"transformer.h.0.attn.bias": torch.ones(1, 1, 96, 96, dtype=torch.uint8)}
    save_file(tensors | mask, brought / "model.safetensors", {"format": "pt"})
    assert privaudit.open_model(brought).score([TEXT]).losses


@pytest.mark.parametrize("place", ["../x.safetensors", "/tmp/x.safetensors", "sub/x.safetensors", "x.bin", 5])
def test_an_index_names_files_of_its_folder_alone(brought, place):
    (brought / "sub").mkdir()
    for outside in (brought.parent, brought / "sub"):
        shutil.copy(brought / "model.safetensors", outside / "x.safetensors")
    sharded(brought, **{"transformer.wte.weight": place})
    with pytest.raises(UnsupportedModel, match=r"index\.json names .*its own folder alone"):
        privaudit.open_model(brought)


def test_shards_are_opened_whole_or_not_at_all(brought, good, tmp_path):
    first, *_ = sharded(brought)
    opened, alone = privaudit.open_model(brought), privaudit.open_model(good)
    assert opened.score([TEXT]).losses == pytest.approx(alone.score([TEXT]).losses)
    assert opened.files["part-1.safetensors"] == sha256_of(brought / "part-1.safetensors")
    other = shutil.copytree(brought, tmp_path / "other")
    sharded_names = json.loads((other / INDEX).read_text())["weight_map"]
    (other / INDEX).write_text(json.dumps({"weight_map": sharded_names | {first: "part-1.safetensors"}}))
    with pytest.raises(
        UnsupportedModel, match=r"part-.\.safetensors and model\.safetensors\.index\.json differ"
    ):
        privaudit.open_model(other)
    (other / "part-1.safetensors").unlink()
    with pytest.raises(UnsupportedModel, match=r"part-1\.safetensors is missing"):
        privaudit.open_model(other)
    shutil.copy(good / "model.safetensors", brought)
    with pytest.raises(UnsupportedModel, match=r"model\.safetensors is no part of the model"):
        privaudit.open_model(brought)


def test_an_index_beside_weights_that_libraries_read_alone_is_refused(brought):
    own = load_file(brought / "model.safetensors")
    whole = dict.fromkeys(own, "model.safetensors")
    (brought / INDEX).write_text(json.dumps({"weight_map": whole}))
    assert privaudit.open_model(brought).score([TEXT]).losses
    save_file({"extra.weight": torch.ones(3)}, brought / "a.safetensors", {"format": "pt"})
    (brought / INDEX).write_text(json.dumps({"weight_map": whole | {"extra.weight": "a.safetensors"}}))
    with pytest.raises(UnsupportedModel, match=r"names model\.safetensors and other files"):
        privaudit.open_model(brought)


def test_a_tensor_under_two_names_is_refused(brought):
    tensors = load_file(brought / "model.safetensors")
    again = {"wte.weight": torch.zeros_like(tensors["transformer.wte.weight"])}
    save_file(tensors | again, brought / "model.safetensors", {"format": "pt"})
    with pytest.raises(UnsupportedModel, match=r"hold transformer\.wte\.weight twice"):
        privaudit.open_model(brought)


def test_weights_beside_the_model_are_refused(brought):
    shutil.copy(brought / "model.safetensors", brought / "better.safetensors")
    with pytest.raises(UnsupportedModel, match=r"better\.safetensors is no part of the model"):
        privaudit.open_model(brought)


def test_an_adapter_that_nobody_named_is_refused(brought):
    (brought / "adapter_config.json").write_text('{"peft_type": "LORA"}')
    with pytest.raises(UnsupportedModel, match=r"adapter_config\.json lies beside a whole model"):
        privaudit.open_model(brought)
    with pytest.raises(UnsupportedModel, match=r"adapter_config\.json lies beside a whole model"):
        models.load(brought)


def test_the_hashes_are_of_the_files_of_the_folder(brought):
    files = privaudit.open_model(brought).files
    assert files == {name: sha256_of(brought / name) for name in files}
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= set(files)


def sparse(folder, name, size):
    with open(folder / name, "wb") as out:
        out.truncate(size)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda at: sparse(at, "model.safetensors", 10**13), "of memory are free"),
        (lambda at: (at / "model.safetensors").write_bytes((10**8).to_bytes(8, "little")), "as safetensors"),
        (lambda at: (at / "config.json").write_text("{"), "config.json is no clean JSON"),
        (lambda at: (at / "config.json").write_text("[]"), "config.json holds no object"),
        (lambda at: (at / "tokenizer.json").unlink(), "the tokenizer cannot be read"),
        (lambda at: (at / "tokenizer.json").write_text("[]"), "the tokenizer cannot be read"),
        (lambda at: change(at, "tokenizer_config.json", tokenizer_class=5), "the tokenizer cannot be read"),
    ],
)
def test_files_that_are_not_what_they_are_called_are_refused(brought, spoil, words):
    spoil(brought)
    with pytest.raises(UnsupportedModel, match=words):
        privaudit.open_model(brought)


def test_tokens_that_the_model_does_not_have_are_refused(brought, tmp_path):
    read = json.loads((brought / "tokenizer.json").read_text())
    read["model"]["vocab"]["a"] = 999_999
    (brought / "tokenizer.json").write_text(json.dumps(read))
    with pytest.raises(UnsupportedModel, match="tokens up to 999999, and the model"):
        privaudit.open_model(brought)


def test_a_template_with_a_token_of_no_vocabulary_is_refused(brought):
    template = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "X", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [],
        "special_tokens": {"X": {"id": "X", "ids": [10**8], "tokens": ["X"]}},
    }
    change(brought, "tokenizer.json", post_processor=template)
    opened = privaudit.open_model(brought)
    opened.score([TEXT])  # a causal model is asked without its template
    with pytest.raises(UnsupportedModel, match="gives token 100000000"):
        opened.tokenizer([TEXT])


@pytest.mark.parametrize("at_once", [2, 500])
def test_the_tokenizer_says_what_transformers_says_of_the_folder(good, tok, monkeypatch, at_once):
    monkeypatch.setattr("privaudit.model._AT_ONCE", at_once)
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
def test_what_is_cut_from_a_text_is_what_no_model_reads(tok, case, texts):
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


def test_notes_that_older_libraries_left_in_a_configuration_are_no_reason(brought):
    change(brought, "config.json", _model_name_or_path="somewhere", _attn_implementation_autoset=True)
    assert privaudit.open_model(brought).kind == "causal"


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
    folder = small(tok, tmp_path / "brought", family, kind, **grouped)
    change(folder, "config.json", **values)
    with pytest.raises(
        UnsupportedModel, match=rf"'brought': opens, and fails.*({words}).*restore the config"
    ):
        privaudit.open_model(folder)


def test_a_model_answers_in_one_form_whatever_its_configuration_says(brought, good):
    change(brought, "config.json", return_dict=False)
    texts = privaudit.open_model(brought).score([TEXT]).losses
    assert texts == pytest.approx(privaudit.open_model(good).score([TEXT]).losses)


def test_what_transformers_itself_writes_is_no_reason(tok, tmp_path):
    deberta = small(tok, tmp_path / "deberta", "deberta-v2", relative_attention=True)
    assert json.loads((deberta / "config.json").read_text())["max_relative_positions"] == -1
    assert privaudit.open_model(deberta).score([TEXT]).losses
    sizes = {"ffn_dim": 16, "word_embed_proj_dim": 16}
    opt = small(tok, tmp_path / "opt", "opt", AutoModelForCausalLM, **sizes)
    assert "_remove_final_layer_norm" in (opt / "config.json").read_text()
    assert privaudit.open_model(opt).score([TEXT]).losses
