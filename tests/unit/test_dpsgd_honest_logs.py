"""A log never says more than was done: at what rate it drew, what a row depends on, whose chance it was."""

import copy
import functools
import math
import random
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from unittest import mock

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from peft import LoraConfig, get_peft_model
from scipy.stats import binomtest, kstest
from test_dpsgd_training import hospital, run, tiny_plan
from tokenizers import pre_tokenizers
from torch import nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertLMHeadModel,
    ConvBertConfig,
    ConvBertForMaskedLM,
    DebertaV2ForMaskedLM,
    DistilBertConfig,
    DistilBertForMaskedLM,
    DogeConfig,
    DogeForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    OPTConfig,
    OPTForCausalLM,
    PreTrainedTokenizer,
    RobertaConfig,
    RobertaForMaskedLM,
    XLMConfig,
    XLMWithLMHeadModel,
)
from transformers.integrations import activate_neftune
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.bert.modeling_bert import BertLayer

from privhelpers import dpsgd, models
from privhelpers.accounting import Claimed, PrivacySpent
from privhelpers.dpsgd import _batches, _known, _loop, _resume
from privhelpers.dpsgd._known import not_known, own_tokenizer
from privhelpers.errors import DamagedArtifact, InvalidParameter, ResumeRefused, UnsupportedModel
from privhelpers.ledger import read_ledger

BART = {
    **{f"{side}_{part}": 1 for side in ("encoder", "decoder") for part in ("layers", "attention_heads")},
    **{"d_model": 16, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "max_position_embeddings": 64},
    **{"dropout": 0.0, "attention_dropout": 0.0, "init_std": 0.5, "decoder_start_token_id": 0},
    **dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id"), 0),
}
SMALL = {
    **{"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32},
    **{"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "max_position_embeddings": 64},
}


def bart(vocabulary):
    torch.manual_seed(0)
    return BartForConditionalGeneration(BartConfig(vocab_size=vocabulary, **BART)).train()


def bert(vocabulary):
    torch.manual_seed(0)
    return BertLMHeadModel(BertConfig(vocab_size=vocabulary, initializer_range=0.5, **SMALL)).train()


ONE = {name: torch.ones(1, 4, dtype=torch.long) for name in ("input_ids", "labels")}
PUBLIC = [[0, *range(1, 31), 0], [0, *range(1, 9)]]
LORA = LoraConfig(r=2, target_modules=["c_attn"], fan_in_fan_out=True)


# The rate.


@pytest.mark.parametrize("default", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("rate, units", [(1e-9, 20_000_000), (0.001, 50_000), (0.3, 2_000), (1.0, 100)])
def test_units_are_drawn_at_the_rate_that_is_accounted(default, rate, units):
    """Uniform numbers of float32 are below 1e-9 sixty times too often, and those of bfloat16 below .001."""
    generator = torch.Generator().manual_seed(0)
    torch.set_default_dtype(default)
    try:
        draws = list(dpsgd.poisson_draws(generator, units=units, sample_rate=rate, steps=5))
    finally:
        torch.set_default_dtype(torch.float32)
    drawn = sum(map(len, draws))
    assert len(draws) == 5 and binomtest(drawn, 5 * units, rate).pvalue > 1e-4


def test_a_number_whose_24_bits_tell_nothing_gets_53_more(monkeypatch):
    """At a rate of 3/4 of their smallest step, numbers that begin with 24 zeros are decided by the rest."""

    def rand(count, *, dtype, generator):
        return torch.zeros(4) if dtype == torch.float32 else torch.tensor([0.2, 0.8, 0.7, 0.9]).double()

    monkeypatch.setattr(torch, "rand", rand)
    rate = 0.75 * 2.0**-24
    assert list(dpsgd.poisson_draws(torch.Generator(), units=4, sample_rate=rate, steps=1)) == [[0, 2]]


@pytest.mark.parametrize("wrong", [{"units": 0}, {"sample_rate": 2.0}, {"sample_rate": 0.0}])
def test_no_draw_has_another_rate_than_can_be_accounted(wrong):
    given = {"units": 3, "sample_rate": 0.5, "steps": 1} | wrong
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        next(iter(dpsgd.poisson_draws(torch.Generator(), **given)))


# What a row depends on.


@pytest.mark.parametrize("make", [bart, bert])
def test_no_note_depends_on_a_longer_one_beside_it(make):
    """Such a model reads padding, so without a mask the longest note of a batch changes everybody's sum."""
    texts, tokenizer, _ = hospital()
    model = make(len(tokenizer))
    rows = _batches.encode_patients(model, tokenizer, texts[:6])
    rows.append([[0, *range(1, 60), 0]])
    assert _batches.needs_mask(model, rows, 0, public=PUBLIC)

    def clipped_sum(rows, **settings):
        engine = dpsgd.ClippedGradients(model, max_grad_norm=0.5)
        total = engine.room()
        for batch, unit in dpsgd.micro_batches(rows, 48, 0, **settings):
            engine.add(batch, unit, into=total)
        return torch.cat([part.flatten().double() for part in total.values()])

    def moved(**settings):
        return float((clipped_sum(rows, **settings) - clipped_sum(rows[:-1], **settings)).norm())

    assert moved(attention_mask=True) <= 0.5 * (1 + 1e-4) and moved() > 0.51


def no_number(model):
    """Make what the shortest note alone looks up no number."""
    model.model.shared.weight.data[299] = float("nan")


def no_branch(model):
    """Let the branches begin at zero, so that at first no token's loss depends on another token."""
    for name, weight in model.named_parameters():
        if "out_proj" in name:
            nn.init.zeros_(weight)


@pytest.mark.parametrize("change", [no_number, no_branch])
def test_padding_is_masked_whatever_the_first_weights_hide(change):
    model = bart(300)
    change(model)
    kept = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    assert _batches.needs_mask(model, [[[0, 299, 0]], [[0, *range(1, 9), 0]]], 0, public=PUBLIC)
    for name, weight in model.named_parameters():
        torch.testing.assert_close(weight, kept[name], rtol=0, atol=0, equal_nan=True)


def test_a_masked_model_that_reads_padding_in_spite_of_its_mask_is_refused():
    texts, tokenizer, _ = hospital()
    tokenizer = models.with_mask(tokenizer)
    convolving = {"embedding_size": 16, "conv_kernel_size": 5, "head_ratio": 1}
    model = ConvBertForMaskedLM(ConvBertConfig(vocab_size=len(tokenizer), **SMALL, **convolving))
    for module in model.modules():
        if "Conv1" in type(module).__name__:
            module.requires_grad_(False)
    with pytest.raises(UnsupportedModel, match="depends on the padding behind it, with an attention mask"):
        run(model, tokenizer, texts, tiny_plan(), objective=models.Masking.of(tokenizer))


def test_a_model_that_reads_how_much_padding_there_is_is_refused():
    """Queries scaled by the log of how many keys there are, as some long contexts are read."""

    class Scaled(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, value, *args, **more):
            return self.inner(value * math.log(value.shape[1]), *args, **more)

    texts, tokenizer, model = hospital()
    for block in model.transformer.h:
        block.attn = Scaled(block.attn)
    with pytest.raises(UnsupportedModel, match="depends on the padding behind it, with"):
        run(model, tokenizer, [*texts[1:], ["a note of a patient that is much longer"]], tiny_plan())


def test_the_one_longest_note_is_asked_about():
    """Rows of nobody are shorter than what this model does otherwise, and so is every note but one."""

    class MeanOfLong(nn.Module):
        def forward(self, x):
            return x + x.mean(1, keepdim=True) if x.shape[1] > 40 else x

    _, _, model = hospital()
    model.transformer.ln_f = nn.Sequential(model.transformer.ln_f, MeanOfLong())
    rows = [[[0, 5, 6, 0]], [[0, *range(1, 46), 0]]]
    assert not _batches.needs_mask(model, rows[:1], 0, public=PUBLIC)
    with pytest.raises(UnsupportedModel, match="depends on the padding behind it"):
        _batches.needs_mask(model, rows, 0, public=PUBLIC)


def test_a_causal_model_needs_no_mask_and_what_reads_padding_anyway_is_refused():
    texts, tokenizer, model = hospital()
    rows = _batches.encode_patients(model, tokenizer, texts)
    assert not _batches.needs_mask(model, rows, 0, public=PUBLIC)

    class MeanOfAll(nn.Module):
        def forward(self, x):
            return x + x.mean(1, keepdim=True)

    model = copy.deepcopy(model)
    model.transformer.ln_f = nn.Sequential(model.transformer.ln_f, MeanOfAll())
    with pytest.raises(UnsupportedModel, match="depends on the padding behind it"):
        run(model, tokenizer, texts, tiny_plan())


def test_a_model_of_both_directions_ends_with_the_same_weights_whatever_the_micro_batches():
    texts, tokenizer, _ = hospital()
    texts[0] = [" ".join(texts[0] * 8)]
    start, ends = bart(len(tokenizer)), []
    for max_rows in (48, 1):
        model = copy.deepcopy(start)
        log = run(model, tokenizer, texts, tiny_plan(), max_rows=max_rows)
        assert isinstance(log.spent, PrivacySpent)
        ends.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    before = torch.cat([p.detach().flatten() for p in start.parameters()])
    assert (ends[0] - ends[1]).norm() < 1e-3 * (ends[0] - before).norm()


def test_a_note_longer_than_a_roberta_can_read_is_refused_by_name():
    """Its positions begin after the padding token, so it has fewer than its config says."""
    model = RobertaForMaskedLM(RobertaConfig(vocab_size=300, pad_token_id=1, **SMALL))
    with pytest.raises(UnsupportedModel, match="RobertaForMaskedLM: cannot read these rows"):
        _batches.needs_mask(model, [[[2, 3, 4]], [[2] * 64]], 0, public=PUBLIC)


def test_whether_there_is_a_mask_follows_from_no_note():
    """XLM without a mask counts the tokens that are not its padding: one short note gave all others one."""
    tokenizer = models.train_tokenizer(['"I feel unwell" "at night"'] * 9, vocab_size=258)
    sizes = {"emb_dim": 16, "n_layers": 1, "n_heads": 2, "max_position_embeddings": 24, "use_lang_emb": False}
    torch.manual_seed(0)
    model = XLMWithLMHeadModel(XLMConfig(vocab_size=260, dropout=0.0, attention_dropout=0.0, **sizes))
    public = _batches.public_rows(model, tokenizer)
    long, short = '"I feel unwell" "I cough" "at night" ""', "fever"
    masks = []
    for texts in ([[long]] * 4, [[long]] * 4 + [[short]]):
        rows = _batches.encode_patients(model, tokenizer, texts)
        masks.append(_batches.needs_mask(model, rows, 0, public=public))
    assert len(public[0]) == 22 and len(public[1]) == 7 and masks[0] == masks[1]


class Capacity(nn.Module):
    """What experts with a capacity do: tokens beyond it are treated otherwise, whosever they are."""

    def forward(self, x):
        kept = torch.arange(x.shape[0] * x.shape[1], device=x.device).view(x.shape[:2]) < 24
        return torch.where(kept[..., None], x, -2 * x.flip(-1))


def test_rows_that_compete_only_in_a_larger_batch_are_found_there():
    _, tokenizer, model = hospital()
    model = copy.deepcopy(model)
    model.transformer.ln_f = nn.Sequential(model.transformer.ln_f, Capacity())
    ids = torch.randint(1, len(tokenizer), (12, 6), generator=torch.Generator().manual_seed(0))
    engine = dpsgd.ClippedGradients(model, max_grad_norm=0.5)
    few, many = ({"input_ids": part, "labels": part} for part in (ids[:2], ids))
    engine.add(few, into=engine.room())
    with pytest.raises(UnsupportedModel, match="mixes rows"):
        engine.add(many, into=engine.room())


@pytest.mark.parametrize(
    "layer", [nn.GroupNorm(1, 64), nn.utils.weight_norm(nn.Linear(64, 64)), nn.PReLU(64)]
)
def test_a_layer_that_cannot_be_listened_to_is_refused_by_name(layer):
    model = hospital()[2]
    width = model.config.n_embd

    class By(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = layer

        def forward(self, x):
            rows = x.reshape(-1, width)[:, :64].clone()
            return x + self.inner(rows).mean() * 0 + x.new_zeros(()) * 0 + self.inner(rows).sum() * 1e-3

    model.transformer.ln_f = nn.Sequential(model.transformer.ln_f, By())
    ids = torch.ones(3, 6, dtype=torch.long)
    with pytest.raises(UnsupportedModel):
        dpsgd.clipped_gradient_sum(model, {"input_ids": ids, "labels": ids}, max_grad_norm=1.0)


@pytest.mark.parametrize(
    "batch, unit, words",
    [
        ({"input_ids": torch.ones(2, 3).long()}, None, "labels"),
        ({"input_ids": torch.ones(0, 3).long(), "labels": torch.ones(0, 3).long()}, None, "labels"),
        *(
            ({name: torch.ones(2, 3).long() for name in ("input_ids", "labels")}, unit, "unit")
            for unit in ([0, 1], torch.tensor([False, True]), torch.tensor([0, 1], dtype=torch.uint8))
        ),
    ],
)
def test_a_batch_that_is_none_is_refused(batch, unit, words):
    with pytest.raises(InvalidParameter, match=words):
        dpsgd.clipped_gradient_sum(hospital()[2], batch, max_grad_norm=1.0, unit=unit)


def test_norms_and_sums_have_all_digits_whatever_pytorch_was_told():
    """On a GPU, `torch.set_float32_matmul_precision("high")` leaves products ten bits."""
    model, told = hospital()[2], []

    class Asking(dpsgd.ClippedGradients):
        def factors(self, norms):
            told.append(torch.get_float32_matmul_precision())
            return super().factors(norms)

    engine, ids = Asking(model, max_grad_norm=1.0), torch.ones(3, 6, dtype=torch.long)
    torch.set_float32_matmul_precision("medium")
    try:
        engine.add({"input_ids": ids, "labels": ids}, into=engine.room())
        assert told == ["highest"] and torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")


# Whose chance it was.


def disclosed(chance):
    chance.mode = "release"


def replaced(chance):
    chance.sampling = torch.Generator().manual_seed(0)


def seeded(chance):
    chance.sampling.manual_seed(0)


@pytest.mark.parametrize("make", [partial(dpsgd.research, 5), dpsgd.release])
@pytest.mark.parametrize("change", [disclosed, replaced, seeded])
def test_a_mode_or_a_stream_that_somebody_put_there_is_not_ours(make, change):
    texts, tokenizer, model = hospital()
    chance = make()
    change(chance)
    log = run(copy.deepcopy(model), tokenizer, texts, tiny_plan(), chance=chance)
    assert isinstance(log.spent, Claimed)
    assert isinstance(
        run(copy.deepcopy(model), tokenizer, texts, tiny_plan(), chance=make()).spent, PrivacySpent
    )


def test_who_takes_part_in_a_release_follows_from_no_seed():
    """A seed of torch's generator on the processor has 32 bits, which can be tried one by one."""
    chances = [dpsgd.release() for _ in range(2)]
    seeds = [chance.sampling.initial_seed() for chance in chances]
    again = [torch.Generator().manual_seed(seed % 2**32) for seed in seeds]
    drawn = [torch.rand(9, generator=one).tolist() for one in [c.sampling for c in chances] + again]
    assert len({tuple(draw) for draw in drawn}) == 4
    many = torch.rand(100_000, generator=chances[0].sampling)
    assert kstest(many.numpy(), "uniform").pvalue > 1e-6


# The model.


class Passes(nn.Module):
    def forward(self, value):
        return value


def layer_of_ones_own(model):
    model.transformer.ln_f = nn.Sequential(model.transformer.ln_f, Passes())


def method_of_ones_own(model):
    model.transformer.drop.forward = lambda value: value


def hook_of_ones_own(model):
    model.transformer.h[0].register_forward_pre_hook(lambda *_: None)


def attention_of_ones_own(model):
    given = ALL_ATTENTION_FUNCTIONS["sdpa"]
    ALL_ATTENTION_FUNCTIONS.register("ones_own", lambda *args, **more: given(*args, **more))
    model.config._attn_implementation = "ones_own"


def disguised_method(model):
    block = model.transformer.h[0].mlp
    given = block.forward

    @functools.wraps(given)
    def forward(value):
        return given(value)

    block.forward = forward


class Callable:
    def __call__(self, value):
        return value


def object_of_ones_own(model):
    del model.transformer.h[0].mlp.act
    model.transformer.h[0].mlp.act = Callable()


class Watch:
    """As a hook of accelerate: called by a forward that is the library's."""


def hook_of_accelerate(model):
    model.transformer.h[0].mlp._hf_hook = Watch()


def mask_of_ones_own(model):
    given = ALL_MASK_ATTENTION_FUNCTIONS["sdpa"]
    ALL_ATTENTION_FUNCTIONS.register("masked", ALL_ATTENTION_FUNCTIONS["sdpa"])
    ALL_MASK_ATTENTION_FUNCTIONS.register("masked", lambda *args, **more: given(*args, **more))
    model.config._attn_implementation = "masked"


def sixteen_bits(model):
    model.bfloat16()


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (layer_of_ones_own, "model: Passes"),
        (method_of_ones_own, "model: method_of_ones_own.<locals>.<lambda>"),
        (hook_of_ones_own, "model: hook_of_ones_own.<locals>.<lambda>"),
        (attention_of_ones_own, "model: attention_of_ones_own.<locals>.<lambda>"),
        (disguised_method, "model: GPT2MLP.forward"),
        (object_of_ones_own, "model: Callable"),
        (hook_of_accelerate, "model: Watch"),
        (mask_of_ones_own, "model: mask_of_ones_own.<locals>.<lambda>"),
        (sixteen_bits, "precision: torch.bfloat16"),
    ],
)
def test_what_a_model_does_of_its_own_makes_the_budget_a_claim(change, part):
    texts, tokenizer, model = hospital()
    change(model)
    log = run(model, tokenizer, texts, tiny_plan())
    assert log.spent == Claimed(tiny_plan().spent, (part,)) and log.rdp_epsilon is None


def act_of_ones_own(value):
    return functional.gelu(value)


def quantized(model):
    frozen = model.requires_grad_(False).get_submodule("bert.encoder.layer.0.intermediate")
    frozen.dense = nn.quantized.dynamic.Linear.from_float(quantizable(frozen.dense))


def quantizable(linear):
    linear.qconfig = torch.ao.quantization.default_dynamic_qconfig
    return linear


def act_is(make):
    def change(model):
        layer = model.bert.encoder.layer[0].intermediate
        del layer.intermediate_act_fn
        layer.intermediate_act_fn = make()

    return change


def elsewhere(name):
    """Return a layer of one's own that says that it stands in another module."""
    return type("Passes", (Passes,), {"__module__": name})


def eight_bits():
    return torch.quantize_per_tensor(torch.ones(2, 2), 0.1, 0, torch.qint8)


def quantized_buffer(model):
    model.bert.register_buffer("scale", eight_bits())


def packed(model):
    model.bert.packed = torch.ops.quantized.linear_prepack(eight_bits(), None)


def kept_in_a_list(model):
    model.bert.others = [Passes()]


def held_by_itself(model):
    model.config.others = others = [Passes()]
    others.append(others)


def method_of_a_class(model):
    type(model.bert.encoder.layer[0]).ones_own = act_of_ones_own


def by_accelerate(model):
    Accelerator(cpu=True, mixed_precision="bf16").prepare_model(model)


def method_of_a_library(model):
    model.bert.pooler = model.bert.encoder
    model.bert.encoder.forward = partial(type(model.bert.encoder).forward, model.bert.encoder)


@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")
@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (lambda model: None, []),
        (quantized, ["model: Linear", "model: LinearPackedParams"]),
        (act_is(lambda: functional.gelu), []),
        (act_is(lambda: torch.tanh), []),
        (act_is(lambda: partial(functional.gelu, approximate="tanh")), []),
        (
            act_is(lambda: partial(checkpoint, act_of_ones_own, use_reentrant=False)),
            ["model: act_of_ones_own"],
        ),
        (act_is(lambda: functools.lru_cache(act_of_ones_own)), ["model: act_of_ones_own"]),
        (act_is(lambda: torch.vmap(act_of_ones_own)), ["model: act_of_ones_own"]),
        (act_is(lambda: torch.jit.script(act_of_ones_own)), ["model: torch.jit.ScriptFunction"]),
        (act_is(lambda: torch.jit.script(Passes())), ["model: RecursiveScriptModule"]),
        (act_is(lambda: torch.ops.aten.gelu.default), ["model: aten::gelu"]),
        *(
            (act_is(elsewhere(name)), ["model: Passes"])
            for name in ("profile", "builtins", "torch.nn.modules.linear")
        ),
        (by_accelerate, ["precision: torch.bfloat16", "model: convert_outputs_to_fp32.<locals>.forward"]),
        (method_of_a_library, ["model: partial"]),
        *((quantized_buffer, ["model: Tensor"]), (packed, ["model: LinearPackedParamsBase"])),
        *((kept_in_a_list, ["model: Passes"]), (held_by_itself, ["model: Passes"])),
        (method_of_a_class, ["model: act_of_ones_own"]),
        (lambda model: setattr(model, "spare", nn.LSTM(4, 4)), ["model: LSTM"]),  # rows are its time
        (lambda model: setattr(model, "spare", nn.Softmax(0)), ["model: Softmax"]),
        (lambda model: setattr(model, "spare", nn.Softmax(-1)), []),
        (lambda model: setattr(model.config, "scale", Passes()), ["model: Passes"]),
        (lambda model: model.cls.predictions.bias.register_hook(act_of_ones_own), ["model: act_of_ones_own"]),
    ],
)
def test_what_is_no_plain_part_of_a_library_is_not_known(change, parts, monkeypatch):
    monkeypatch.setattr(BertLayer, "ones_own", None, raising=False)
    change(model := bert(300))
    assert not_known(model, ONE) == parts


class OtherSpent(PrivacySpent):
    """May say another epsilon of the same steps."""


class OtherSettings(dpsgd.Settings):
    """May compute a learning rate from notes."""


def test_kinds_of_ones_own_of_what_a_run_is_told_are_not_counted():
    texts, tokenizer, model = hospital()
    plan, settings = tiny_plan(), OtherSettings(learning_rate=1e-3)
    plan = replace(plan, spent=OtherSpent(**vars(plan.spent)))
    chance = dpsgd.research(0)
    log = dpsgd.train(model, tokenizer, texts, plan, settings, chance=chance, progress=False)
    assert log.spent.parts == ("spent: OtherSpent", "settings: OtherSettings")


def test_experts_of_ones_own_are_not_known():
    sizes = {"vocab_size": 50, "num_attention_heads": 2, "num_key_value_heads": 2, "num_local_experts": 2}
    config = MixtralConfig(hidden_size=16, num_hidden_layers=1, intermediate_size=32, **sizes)
    model, given = MixtralForCausalLM(config), ALL_EXPERTS_FUNCTIONS["batched_mm"]
    assert not_known(model, ONE) == []
    ALL_EXPERTS_FUNCTIONS.register("own_experts", lambda *args, **more: given(*args, **more))
    model.config._experts_implementation = "own_experts"
    assert not_known(model, ONE) == ["model: test_experts_of_ones_own_are_not_known.<locals>.<lambda>"]


class Watching(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


class Dispatching(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("around", "parts"),
    [
        (partial(torch.device, "cpu"), []),
        (Watching, ["torch: Watching"]),
        (Dispatching, ["torch: Dispatching"]),
        (torch.autograd.graph.save_on_cpu, ["torch: saved_tensors_hooks"]),
    ],
)
def test_what_stands_around_a_run_and_changes_what_it_computes_is_not_known(around, parts):
    model = bert(300)
    with around():
        assert not_known(model, ONE) == parts


def test_a_hook_on_all_modules_makes_the_budget_a_claim():
    hook = nn.modules.module.register_module_forward_hook(lambda *_: None)
    try:
        assert not_known(hospital()[2], ONE)
    finally:
        hook.remove()


class Words(PreTrainedTokenizer):
    """Numbers words as it meets them, so that one patient renumbers those of all others."""

    vocab_size = 300

    def __init__(self):
        self.ids = {"<end>": 0}
        super().__init__(eos_token="<end>", pad_token="<end>")

    def get_vocab(self):
        return dict(self.ids)

    def _tokenize(self, text):
        return text.split()

    def _convert_token_to_id(self, token):
        return self.ids.setdefault(token, len(self.ids))


class Splits:
    def pre_tokenize(self, text):
        pass


def in_python(tokenizer):
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.PreTokenizer.custom(Splits())
    return tokenizer


def shadowed(tokenizer):
    tokenizer._encode_plus = lambda *args, **more: None
    return tokenizer


def test_a_tokenizer_of_ones_own_makes_the_budget_a_claim_and_its_code_belongs_to_the_run(tmp_path):
    texts, tokenizer, model = hospital()
    log = run(model, Words(), texts, tiny_plan(), keep=tmp_path)
    assert log.spent.parts == ("tokenizer: Words",) and not own_tokenizer(tokenizer)
    ours, other = (_resume.fingerprint(model, [], {}, [kind]) for kind in (Words, type(tokenizer)))
    assert ours["code"] != other["code"]
    stopped = mock.patch.object(_loop, "fingerprint", side_effect=KeyboardInterrupt)
    with stopped as asked, pytest.raises(KeyboardInterrupt):
        run(model, Words(), texts, tiny_plan(), keep=tmp_path)
    assert Words in asked.call_args.args[3]


@pytest.mark.parametrize("change", [in_python, shadowed])
def test_a_tokenizer_that_runs_code_of_ones_own_is_not_counted(change):
    assert own_tokenizer(change(hospital()[1]))


class Adds(nn.Module):
    """Keeps the sum of what it read where no table of a module has it."""

    total = 0.0

    def forward(self, value):
        self.total = self.total + float(value.detach().sum())
        return value


class Shortens(nn.Module):
    """As models that choose an attention by the length of what they read, for good."""

    def __init__(self, config):
        super().__init__()
        self.config, config.attention_type = config, "sparse"

    def forward(self, value):
        if value.shape[1] < 99:
            self.config.attention_type = "full"
        return value


@pytest.mark.parametrize(
    ("make", "name"), [(lambda _: Adds(), "drop.total"), (Shortens, "config.attention_type")]
)
def test_what_a_pass_changes_for_good_is_refused_by_name(make, name):
    texts, tokenizer, model = hospital()
    model.transformer.drop = make(model.config)
    with pytest.raises(UnsupportedModel, match=f"{name}: is written while the model reads"):
        run(model, tokenizer, texts, tiny_plan())
    engine = dpsgd.ClippedGradients(model, max_grad_norm=1.0)
    model.config.attention_type = "sparse"
    with pytest.raises(UnsupportedModel, match=f"{name}: is written while the model reads"):
        engine.add({part: value.repeat(1, 3) for part, value in ONE.items()}, into=engine.room())


def test_a_rotation_that_follows_the_longest_row_is_refused_by_its_reason():
    rope = {"rope_type": "longrope", "short_factor": [1.0] * 4, "long_factor": [2.0] * 4, "rope_theta": 1e4}
    rope |= {"original_max_position_embeddings": 64, "factor": 2.0}
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=50, rope_parameters=rope, **sizes))
    with pytest.raises(UnsupportedModel, match=r"rotary.*or choose a rope_type that no row changes"):
        dpsgd.clipped_gradient_sum(model, ONE, max_grad_norm=1.0)


class Mixes(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, value, *args, **more):
        return self.inner(value + value.mean(0, keepdim=True), *args, **more)


def test_layers_that_are_dropped_by_chance_are_compared_all_the_same():
    """One coin for a batch mixes no rows; a layer that does is found, however seldom it runs."""
    ids = torch.randint(1, 50, (3, 6), generator=torch.Generator().manual_seed(0))
    model = BartForConditionalGeneration(
        BartConfig(vocab_size=50, encoder_layerdrop=0.9, **BART | {"encoder_layers": 2})
    )
    model.train()
    for _ in range(3):
        dpsgd.clipped_gradient_sum(model, {"input_ids": ids, "labels": ids}, max_grad_norm=1.0)
    layers = model.model.encoder.layers
    layers[0] = Mixes(layers[0])
    for _ in range(3):
        with pytest.raises(UnsupportedModel, match="mixes rows"):
            dpsgd.clipped_gradient_sum(model, {"input_ids": ids, "labels": ids}, max_grad_norm=1.0)


def with_chance(kind, **more):
    """Return a small model in training, with chance of its own."""
    torch.manual_seed(0)
    sizes = {
        "vocab_size": 50,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "max_position_embeddings": 64,
    }
    if kind is OPTForCausalLM:
        return kind(OPTConfig(hidden_size=16, ffn_dim=32, word_embed_proj_dim=16, **sizes, **more)).train()
    config = kind.config_class(hidden_size=16, intermediate_size=32, **sizes, **more)
    return kind(config).train()


RELATIVE = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]}
SHARED, LONGER = "chance of all rows at once: ", "draws that follow the rows or their length"


@pytest.mark.parametrize(
    ("make", "parts"),
    [
        (partial(with_chance, OPTForCausalLM), []),
        (partial(with_chance, OPTForCausalLM, layerdrop=1e-4), [f"{SHARED}whether a layer is dropped"]),
        (partial(with_chance, LlamaForCausalLM, attention_dropout=0.1), []),
        (partial(with_chance, DebertaV2ForMaskedLM), []),
        (partial(with_chance, DebertaV2ForMaskedLM, **RELATIVE), [f"{SHARED}bernoulli_ 0.9"]),
        (partial(with_chance, DebertaV2ForMaskedLM, **RELATIVE, hidden_dropout_prob=0.0), []),
    ],
)
def test_chance_that_rows_share_makes_the_budget_a_claim(make, parts):
    """Who shares a pass follows from who was drawn: of OPT, a sum moved by 12 bounds for one patient."""
    model, state = make(), torch.get_rng_state()
    assert not_known(model, ONE) == parts
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize(
    ("draw", "part"),
    [
        (lambda value: value * random.random(), "Python or NumPy"),
        (lambda value: value * np.random.random(), "Python or NumPy"),
        (lambda value: value[torch.randperm(len(value))], "randperm"),
        (lambda value: value * torch.rand(1), "rand"),
        (lambda value: value + torch.empty_like(value).uniform_(0, 1 / value.shape[1]), LONGER),
        (lambda value: value + torch.empty_like(value).uniform_(0, 1), None),
        (lambda value: value + torch.randn(value.shape[1:]), "randn"),
        (lambda value: value + torch.randn_like(value), None),
    ],
)
def test_each_kind_of_shared_chance_is_found(draw, part):
    model = bert(300)
    model.bert.embeddings.register_forward_hook(lambda module, given, value: draw(value))
    state = random.getstate()
    found = [one for one in not_known(model, ONE) if one.startswith(SHARED)]
    assert found == [f"{SHARED}{part}"] * bool(part)
    assert random.getstate() == state


def test_noise_as_wide_as_a_row_is_short_makes_the_budget_a_claim():
    """NEFTune: a longer note in a micro-batch gives all others less noise; a sum moved by 20 bounds."""
    _, _, model = hospital()
    assert not not_known(model.train(), ONE)
    activate_neftune(model, 5.0)
    assert not_known(model, ONE) == [f"{SHARED}{LONGER}"]


def test_attention_to_the_tokens_of_the_largest_scores_is_not_known():
    """Which of equal ones are read follows from the padding, however exact the numbers are."""
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    model = DogeForCausalLM(DogeConfig(vocab_size=50, num_key_value_heads=2, **sizes)).train()
    assert "model: DogeAttention" in not_known(model, ONE)


def test_each_module_whose_rows_meet_is_one_of_the_libraries():
    assert not [name for name in _known._TOGETHER if find_spec(name.rstrip(".")) is None]


def test_the_dropout_of_a_release_follows_from_no_seed():
    """A seed fills 32 bits of the generator, and whoever tries all knows every mask."""
    before, states = torch.get_rng_state(), []
    for _ in range(2):
        with dpsgd.release().dropout():
            states.append(torch.get_rng_state())
    seeded = torch.Generator().manual_seed(int.from_bytes(states[0][:8].numpy().tobytes(), "little"))
    assert not torch.equal(*states) and not torch.equal(seeded.get_state(), states[0])
    assert torch.equal(torch.get_rng_state(), before)


def test_a_run_with_layers_that_are_dropped_claims_its_budget():
    texts, tokenizer, _ = hospital()
    model = with_chance(OPTForCausalLM, layerdrop=0.1)
    model.resize_token_embeddings(300)
    assert type(run(model.eval(), tokenizer, texts, tiny_plan()).spent) is Claimed  # trained in training


def test_a_loss_that_is_held_and_not_called_is_known():
    config = DistilBertConfig(vocab_size=50, dim=16, n_layers=1, n_heads=2, hidden_dim=32)
    assert not_known(DistilBertForMaskedLM(config).train(), ONE) == []


def test_a_router_that_jitters_is_counted():
    sizes = {"vocab_size": 300, "hidden_size": 16, "num_hidden_layers": 1, "intermediate_size": 32}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "num_local_experts": 2}
    config = MixtralConfig(router_jitter_noise=0.3, max_position_embeddings=64, **sizes, **heads)
    model = get_peft_model(MixtralForCausalLM(config), LoraConfig(r=2, target_modules=["q_proj"]))
    texts, tokenizer, _ = hospital()
    assert type(run(model, tokenizer, texts, tiny_plan()).spent) is PrivacySpent


def test_passes_under_autocast_make_the_budget_a_claim():
    texts, tokenizer, model = hospital()
    with torch.autocast(model.device.type, torch.bfloat16):
        log = run(model, tokenizer, texts, tiny_plan())
    assert log.spent.parts == ("precision: torch.bfloat16",)


@pytest.mark.parametrize("make", [lambda model: model, lambda model: get_peft_model(model, LORA)])
def test_the_models_of_the_libraries_are_counted(make):
    texts, tokenizer, model = hospital()
    model = make(model)
    model.gradient_checkpointing_enable()
    model.enable_input_require_grads()
    assert type(run(model, tokenizer, texts, tiny_plan()).spent) is PrivacySpent


# What is kept.


def test_a_ledger_is_put_aside_beside_all_that_were(tmp_path):
    texts, tokenizer, model = hospital()

    def begin(rate):
        given = {"keep": tmp_path, "on_change": "restart", "learning_rate": rate}
        run(copy.deepcopy(model), tokenizer, texts, tiny_plan(), **given)
        return (tmp_path / "ledger.jsonl").read_bytes()

    ledgers = [begin(rate) for rate in (1e-3, 2e-3, 3e-3)]
    (tmp_path / "ledger-1.jsonl").rename(tmp_path / "archived")
    begin(4e-3)
    kept = {path.read_bytes() for path in tmp_path.iterdir() if "seal" not in path.name and path.is_file()}
    assert set(ledgers) <= kept


def test_a_release_with_canaries_goes_on_before_its_first_scores_are_kept(tmp_path):
    texts, tokenizer, model = hospital()
    given = {"keep": tmp_path, "checkpoint_every": 3, "canaries": dpsgd.GradientCanaries(count=4, seed=0)}
    stopped = mock.patch.object(_loop, "micro_batches", side_effect=KeyboardInterrupt)
    with stopped, pytest.raises(KeyboardInterrupt):
        run(copy.deepcopy(model), tokenizer, texts, tiny_plan(), chance=dpsgd.release(), **given)
    counted = read_ledger(tmp_path / "ledger.jsonl").steps
    log = run(copy.deepcopy(model), tokenizer, texts, tiny_plan(), chance=dpsgd.release(), **given)
    assert counted == 3 and log.canaries.scores.shape == (4,)


def test_other_settings_of_the_model_are_another_run(tmp_path):
    texts, tokenizer, _ = hospital()
    for dropout, attribute in ((0.1, True), (0.2, True), (0.1, False)):
        model = models.build("micro-gpt2", tokenizer, seed=0, dropout=dropout)
        model.config.scale_attn_weights = attribute
        if (dropout, attribute) == (0.1, True):
            run(model, tokenizer, texts, tiny_plan(), keep=tmp_path)
            continue
        with pytest.raises(ResumeRefused, match="parameters"):
            run(model, tokenizer, texts, tiny_plan(), keep=tmp_path)


def test_other_settings_of_adapters_are_another_run():
    """A rank, a scale or a dropout stands in no weight; targets are a set, in whatever order."""
    targets = [f"{one}_proj" for one in "qkvo"]
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    marks = []
    for given in ({}, {"target_modules": targets[::-1]}, {"lora_alpha": 64}, {"lora_dropout": 0.1}):
        torch.manual_seed(0)
        model = LlamaForCausalLM(LlamaConfig(vocab_size=50, **sizes))
        model = get_peft_model(model, LoraConfig(**{"r": 2, "target_modules": targets} | given))
        marks.append(_resume.fingerprint(model, [], {})["parameters"])
    assert marks[0] == marks[1] and len(set(marks)) == 3


def test_the_ledger_of_a_release_does_not_tell_who_was_in_it(tmp_path):
    """Whoever knows all patients but one could compute the hash of the data with that one and without."""
    texts, tokenizer, model = hospital()
    rows = _batches.encode_patients(model, tokenizer, texts)
    plain = _resume.fingerprint(model, rows, {})["data"]
    marks = {}
    for name, chance in (("a", dpsgd.release), ("b", dpsgd.release), ("c", partial(dpsgd.research, 0))):
        run(copy.deepcopy(model), tokenizer, texts, tiny_plan(), keep=tmp_path / name, chance=chance())
        marks[name] = read_ledger(tmp_path / name / "ledger.jsonl").terms.fingerprint["data"]
    assert marks["c"] == plain and len({plain, marks["a"], marks["b"]}) == 3
    key = tmp_path / "a" / "secret.key"
    known = _resume.fingerprint(model, rows, {}, key=key.read_bytes())["data"]
    assert marks["a"] == known and len(key.read_bytes()) == 32
    key.unlink()  # then nobody can say whether the data are those
    with pytest.raises(ResumeRefused, match=r"fingerprint.data"):
        run(model, tokenizer, texts, tiny_plan(), keep=tmp_path / "a", chance=dpsgd.release())
    key.write_bytes(b"short")
    with pytest.raises(DamagedArtifact, match=r"secret\.key: has 5 bytes"):
        run(model, tokenizer, texts, tiny_plan(), keep=tmp_path / "a", chance=dpsgd.release())


def test_a_note_that_cannot_be_masked_is_refused_before_a_step_is_spent(tmp_path):
    texts, tokenizer, _ = hospital()
    tokenizer = models.with_mask(tokenizer)
    model = models.build_masked("micro-bert", tokenizer, seed=0)
    given = {"objective": models.Masking.of(tokenizer), "keep": tmp_path}
    with pytest.raises(InvalidParameter, match=r"notes_by_patient\[1\]: a note has no token"):
        run(model, tokenizer, [texts[0], [tokenizer.eos_token], *texts[2:]], tiny_plan(), **given)
    assert not (tmp_path / "ledger.jsonl").exists()


@pytest.mark.parametrize(
    "given",
    [
        *({"betas": (1.5, 0.9)}, {"betas": (0.9,)}, {"betas": None}, {"betas": ("a", "b")}),
        *({"canaries": 4}, {"objective": 5}),
    ],
)
def test_settings_that_are_none_are_refused(given):
    with pytest.raises(InvalidParameter, match=next(iter(given))):
        dpsgd.Settings(learning_rate=1e-3, **given)


class Fewer(list):
    def __iter__(self):
        return iter([["a"]])


@pytest.mark.parametrize(
    "given",
    [
        *({"snapshots": 3}, {"snapshots": iter([1])}, {"snapshots": ["a"]}, {"snapshots": [1.5]}),
        *({"keep": "a folder"}, {"notes_by_patient": iter([["a"]])}, {"snapshots": [True]}),
        *({"plan": None}, {"settings": None}, {"chance": None}),
        {"notes_by_patient": Fewer([["a"]] * 40)},
    ],
)
def test_a_call_with_what_is_none_is_refused_by_name(given):
    texts, tokenizer, model = hospital()
    usual = {"notes_by_patient": texts, "plan": tiny_plan(), "settings": dpsgd.Settings(learning_rate=1e-3)}
    with pytest.raises(InvalidParameter, match=next(iter(given))):
        dpsgd.train(model, tokenizer, **{"chance": dpsgd.research(0)} | usual | given)


@pytest.mark.parametrize(
    ("part", "gives"),
    [
        *(("objective", gives) for gives in (3, ([1], [1, 2]), ([1],), (1, 2))),
        ("make_optimizer", None),
        *(("make_draws", gives) for gives in ([[40]], [[-1]], [["a"]], [3], 3)),
    ],
)
def test_a_part_under_study_that_gives_what_is_none_is_refused_by_name(part, gives):
    texts, tokenizer, model = hospital()
    with pytest.raises(InvalidParameter, match=part):
        run(model, tokenizer, texts, tiny_plan(), **{part: lambda *_, **__: gives})


def test_what_is_no_model_of_hugging_face_is_refused_by_name():
    texts, tokenizer, _ = hospital()
    for call in (
        lambda model: run(model, tokenizer, texts, tiny_plan()),
        lambda model: dpsgd.ClippedGradients(model, max_grad_norm=1.0),
    ):
        with pytest.raises(UnsupportedModel, match="Linear: is no Hugging Face model"):
            call(nn.Linear(3, 3))


def test_tokens_that_have_weights_of_their_own_are_refused_by_their_reason():
    texts, tokenizer, model = hospital()
    model = get_peft_model(model, LoraConfig(r=2, target_modules=["c_attn"], trainable_token_indices=[1, 2]))
    with pytest.raises(UnsupportedModel, match="trainable_tokens_delta"):
        run(model, tokenizer, texts, tiny_plan())


def test_digits_that_a_backend_was_told_are_refused_by_what_to_take_back():
    matmul = torch.backends.mkldnn.matmul
    told, matmul.fp32_precision = matmul.fp32_precision, "bf16"
    try:
        with pytest.raises(InvalidParameter, match='set fp32_precision = "none" again'):
            dpsgd.clipped_gradient_sum(hospital()[2], ONE, max_grad_norm=1.0)
    finally:
        matmul.fp32_precision = told


def test_a_variant_of_the_optimizer_may_be_a_partial_of_ours(tmp_path):
    texts, tokenizer, model = hospital()
    low = partial(dpsgd.PrivateOptimizer, memory="low")
    log = run(copy.deepcopy(model), tokenizer, texts, tiny_plan(), make_optimizer=low, keep=tmp_path)
    assert isinstance(log.spent, Claimed)
