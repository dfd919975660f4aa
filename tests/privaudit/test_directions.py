"""Which way a model reads, and whether a text's score depends on the texts in its batch."""

import itertools
import re

import architectures
import numpy as np
import pytest
import torch
import toy_audit as toy
from nights import sampled
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM, PreTrainedTokenizerFast

import privaudit
from privaudit.loading import _kind, context_of
from privhelpers import models
from privhelpers.errors import UnsupportedModel

pytestmark = pytest.mark.wrong_numbers

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
SIZES |= {"max_position_embeddings": 66, "vocab_size": 40, "pad_token_id": 1, "initializer_range": 0.2}
READERS = {"causal": AutoModelForCausalLM, "masked": AutoModelForMaskedLM}
SHORT, LONG, OTHER = "7 9 11 13 15 17 19", " ".join(str(5 + n % 30) for n in range(41)), "8 6 30 12 9"


class Numbers:
    """A tokenizer of numbers, with the special tokens that an audit asks for."""

    def __init__(self, size, *, masked):
        self.size, self.masked = size, masked
        self.bos_token_id = self.eos_token_id = 2
        self.pad_token_id, self.mask_token_id = 1, 3 if masked else None

    def __len__(self):
        return self.size

    def __call__(self, texts, *, add_special_tokens=True):
        words = [list(re.finditer(r"\d+", text)) for text in texts]
        return {
            "input_ids": [[int(word[0]) for word in row] for row in words],
            "ends": [[word.end() for word in row] for row in words],
            "special_tokens_mask": [[0] * len(row) for row in words],
            "any_special": False,
        }


def target_of(net, kind):
    """Return an audit's target, not yet checked, whose texts are numbers."""
    numbers = Numbers(net.get_output_embeddings().weight.shape[0], masked=kind == "masked")
    return privaudit.Target("it", kind, net.float().eval(), numbers, context_of(net, 64), {})


def family(name, kind, **options):
    """Return a small model of a family, with weights that are large enough to matter."""
    known = AutoConfig.for_model(name)
    sizes = {key: value for key, value in (SIZES | OWN.get(name, {})).items() if hasattr(known, key)}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = READERS[kind].from_config(AutoConfig.for_model(name, **sizes | options))
        with torch.no_grad():
            for weight in net.parameters():
                weight.add_(0.05 * torch.randn_like(weight))
    return net


OWN = {
    "bert-generation": {"bos_token_id": 2, "eos_token_id": 4},
    "cpmant": {"dim_head": 8, "dim_ff": 16, "prompt_length": 4, "segment_types": 4, "prompt_types": 4},
    "electra": {"embedding_size": 16},
    "fnet": {"tpu_short_seq_length": 64},
    "mobilebert": {"embedding_size": 16, "intra_bottleneck_size": 16, "true_hidden_size": 16},
    "mpnet": {"relative_attention_num_buckets": 8},
    "rembert": {"input_embedding_size": 16, "output_embedding_size": 16},
    "xlm": {"emb_dim": 16, "n_layers": 2, "n_heads": 2},
    "flaubert": {"emb_dim": 16, "n_layers": 2, "n_heads": 2},
    "yoso": {"num_hash": 4, "hash_code_len": 4},
}
# Causal classes that read both ways unless their configuration says that they are decoders.
DECODERS_ON_REQUEST = (
    *("bert", "bert-generation", "big_bird", "camembert", "data2vec-text", "electra", "ernie"),
    *("megatron-bert", "rembert", "roberta", "roberta-prelayernorm", "roformer"),
    *("xlm-roberta", "xlm-roberta-xl"),
)


def same(target, texts=(SHORT, LONG, OTHER)):
    """Check that each text's score alone is the score among others."""
    together = target.score(list(texts))
    for number, text in enumerate(texts):
        alone = target.score([text])
        assert together.log_p[number] == pytest.approx(alone.log_p[0], abs=1e-3), text


@pytest.mark.parametrize("name", sampled(DECODERS_ON_REQUEST, ["bert", "bert-generation"]))
def test_a_model_that_reads_both_ways_is_not_taken_as_causal(name):
    with pytest.raises(UnsupportedModel, match=r"'it': is not causal.*is_decoder = false"):
        target_of(family(name, "causal"), "causal").checked()
    net = family(name, "causal", is_decoder=True)
    target = target_of(net, "causal").checked()
    same(target)
    pairs = [f"{a} {b}" for a, b in itertools.product(range(40), repeat=2)]
    total = np.exp([log_p.sum() for log_p in target.score(pairs).log_p]).sum()
    assert total == pytest.approx(1, abs=1e-4)
    if name != "bert-generation":
        with pytest.raises(UnsupportedModel, match=r"'it': .*reads forward only.*is_decoder = true"):
            target_of(family(name, "masked", is_decoder=True), "masked").checked()
        same(target_of(family(name, "masked"), "masked").checked())


@pytest.mark.parametrize("name", sampled(["cpmant", "xlnet", "xlm"], ["xlm"]))
def test_a_causal_class_without_such_a_switch_is_refused(name):
    options = {"d_model": 16, "n_layer": 1, "n_head": 2, "d_inner": 16, "vocab_size": 40}
    if name == "xlnet":
        net = READERS["causal"].from_config(AutoConfig.for_model(name, **options))
    else:
        net = family(name, "causal")
    with pytest.raises(UnsupportedModel, match="is not causal"):
        target_of(net, "causal").checked()


LIBRARY = architectures.EXACT | {name: values[:2] for name, values in architectures.REFUSED.items()}
LIBRARY = {name: (kind, options) for name, (kind, options) in LIBRARY.items() if "LM" in kind}
QUICK = ["GPT-2", "Llama", "BERT", "ModernBERT", "Mamba"]


@pytest.mark.parametrize("name", sampled(LIBRARY, QUICK))
def test_models_of_the_library_are_taken_as_what_they_are(name):
    kind, options = LIBRARY[name]
    masked = kind.endswith("MaskedLM")
    net = architectures.build(kind, options, torch.float32)
    same(target_of(net, "masked" if masked else "causal").checked())


PADDED = ["convbert", "fnet", "mobilebert", "nystromformer", "yoso"]


@pytest.mark.parametrize("name", sampled(PADDED, ["convbert"]))
def test_a_masked_model_that_would_read_padding_gets_none(name):
    same(target_of(family(name, "masked"), "masked").checked())


SCALED = {"short_factor": [1.0] * 4, "long_factor": [9.0] * 4, "rope_type": "longrope"}
SCALED |= {"rope_theta": 10000.0}
LIMITS = {"original_max_position_embeddings": 16, "max_position_embeddings": 64}


def test_a_model_that_reads_long_texts_by_other_positions_reads_short_ones_among_themselves():
    net = family("phi3", "causal", num_key_value_heads=2, rope_parameters=SCALED, **LIMITS)
    same(target_of(net, "causal").checked())


def small():
    """Return a small GPT-2 and its forward pass."""
    net = architectures.build("GPT2LMHeadModel", architectures.GPT, torch.float32).eval()
    return net, net.forward


def changed(monkeypatch, change):
    """Return a small GPT-2 whose logits a function changes, given the ids."""
    net, forward = small()

    def other(input_ids=None, **options):
        out = forward(input_ids=input_ids, **options)
        out.logits = change(out.logits, input_ids)
        return out

    monkeypatch.setattr(net, "forward", other)
    return target_of(net, "causal")


def ahead(reach, beyond):
    def change(logits, ids):
        if ids.shape[1] <= beyond:
            return logits
        moved = logits.clone()
        moved[:, :-reach] += 0.01 * ids[:, reach:, None] / 97 * torch.linspace(-1, 1, logits.shape[2])
        return moved

    return change


@pytest.mark.parametrize(("reach", "beyond"), [(1, 0), (3, 0), (30, 0), (60, 0), (1, 32), (1, 63), (20, 63)])
def test_a_model_that_looks_ahead_far_or_in_long_texts_only_is_not_causal(monkeypatch, reach, beyond):
    with pytest.raises(UnsupportedModel, match="is not causal"):
        changed(monkeypatch, ahead(reach, beyond)).checked()


def test_a_model_that_says_something_else_each_time_is_refused(monkeypatch):
    draw = torch.Generator().manual_seed(0)
    target = changed(
        monkeypatch, lambda logits, _: logits + torch.randn(logits.shape[-1:], generator=draw) / 9
    )
    with pytest.raises(UnsupportedModel, match="when the same text is read again"):
        target.checked()


def test_rounding_that_differs_between_texts_is_accepted(monkeypatch):
    """A token between two experts goes to the other one in a text of many."""
    calls = itertools.count()

    def change(logits, _):
        return logits + (next(calls) % 8 == 1) * 0.01 * logits.roll(1, -1)

    models.require_causal(changed(monkeypatch, change).model, "it", [*range(4, 90)], 64)


@pytest.mark.parametrize(("causal", "kind"), [(False, "masked"), (True, "causal")])
def test_one_class_for_both_kinds_is_what_its_configuration_says(causal, kind, tmp_path):
    config = {"model_type": "xlm", "architectures": ["XLMWithLMHeadModel"], "causal": causal}
    assert _kind(tmp_path, config) == kind
    same(target_of(family("xlm", kind, causal=causal), kind).checked())


@pytest.fixture(scope="module")
def both_ways(tmp_path_factory):
    tok = toy.tokenizer([row["text"] for row in toy.notes("x", 60, seed=9)])
    hiding = {"bos_token": tok.bos_token, "eos_token": tok.eos_token, "mask_token": '"', "pad_token": "!"}
    tok = PreTrainedTokenizerFast(tokenizer_object=tok.backend_tokenizer, **hiding)
    return toy.save(family("bert", "causal", vocab_size=330), tok, tmp_path_factory.mktemp("both") / "both")


def test_a_folder_of_a_causal_class_that_reads_both_ways_is_refused_at_every_door(both_ways, monkeypatch):
    def read(*_, **__):  # in this process, which has loaded the libraries
        numbers = Numbers(330, masked=True)
        numbers.context = 64
        return numbers

    monkeypatch.setattr("privaudit.loading.TextTokenizer", read)
    for door in (privaudit.open_model, models.load):
        with pytest.raises(UnsupportedModel, match=r"'both': is not causal.*save it as BertForMaskedLM"):
            door(both_ways)
