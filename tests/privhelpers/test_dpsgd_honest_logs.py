"""A log never says more than was done: at what rate it drew, what a row depends on, whose chance it was."""

import copy
import math
from functools import partial
from unittest import mock

import pytest
import torch
from architectures import EXACT
from dpsgd_models import FAMILIES
from nights import sampled
from peft import LoraConfig, get_peft_model
from scipy.stats import binomtest, kstest
from test_dpsgd_training import hospital, run, tiny_plan
from torch import nn
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertLMHeadModel,
    ConvBertConfig,
    ConvBertForMaskedLM,
    DebertaV2ForMaskedLM,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    OPTConfig,
    OPTForCausalLM,
    PreTrainedTokenizer,
    RobertaConfig,
    RobertaForMaskedLM,
)
from transformers.integrations import activate_neftune
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from privhelpers import dpsgd, models
from privhelpers.accounting import Claimed, PrivacySpent
from privhelpers.dpsgd import _batches, _loop, _resume
from privhelpers.dpsgd._supported import (
    ARCHITECTURES,
    is_supported_tokenizer,
    reads_backward,
    unsupported_parts,
)
from privhelpers.errors import InvalidParameter, ResumeRefused, UnsupportedModel
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


# The rate.

RATES = [(1e-9, 20_000_000), (0.001, 50_000), (0.3, 2_000), (1.0, 100)]  # and how many units


@pytest.mark.parametrize("default", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rate, units", sampled(RATES, RATES[1:]))
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
    """Such a model reads padding, so without a mask the longest note of a batch changes everyone's sum."""
    texts, tokenizer, _ = hospital()
    model = make(len(tokenizer))
    rows = _batches.encode_patients(model, tokenizer, texts[:6])
    rows.append([[0, *range(1, 60), 0]])
    assert reads_backward(model)

    def clipped_sum(rows, **settings):
        engine = dpsgd.ClippedGradients(model, max_grad_norm=0.5)
        total = engine.zero_sums()
        for batch, unit in dpsgd.micro_batches(rows, 48, 0, **settings):
            engine.add(batch, unit, into=total)
        return torch.cat([part.flatten().double() for part in total.values()])

    def moved(**settings):
        return float((clipped_sum(rows, **settings) - clipped_sum(rows[:-1], **settings)).norm())

    assert moved(attention_mask=True) <= 0.5 * (1 + 1e-4) and moved() > 0.51


def test_a_masked_model_that_reads_padding_in_spite_of_its_mask_is_refused():
    texts, tokenizer, _ = hospital()
    tokenizer = models.with_mask(tokenizer)
    convolving = {"embedding_size": 16, "conv_kernel_size": 5, "head_ratio": 1, "initializer_range": 0.5}
    torch.manual_seed(0)
    model = ConvBertForMaskedLM(ConvBertConfig(vocab_size=len(tokenizer), **SMALL, **convolving))
    for module in model.modules():
        if "Conv1" in type(module).__name__:
            module.requires_grad_(False)
    with pytest.raises(UnsupportedModel, match="reads padding"):
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
    with pytest.raises(UnsupportedModel, match="reads padding"):
        run(model, tokenizer, [*texts[1:], ["a note of a patient that is much longer"]], tiny_plan())


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


def test_a_note_is_cut_to_what_a_roberta_can_read():
    """Its positions begin after that of its padding token, so it has fewer than its config says."""
    texts, tokenizer, _ = hospital()
    sizes = SMALL | {"max_position_embeddings": 24}
    model = RobertaForMaskedLM(RobertaConfig(vocab_size=len(tokenizer), pad_token_id=1, **sizes))
    ((long,),) = _batches.encode_patients(model, tokenizer, [[texts[0][0] * 9]])
    assert len(long) == 22
    ids = torch.tensor([long])
    assert torch.isfinite(model(input_ids=ids, labels=ids).loss)


def test_rows_that_nobody_wrote_decide_whether_a_model_is_refused():
    texts, tokenizer, model = hospital()
    trials = []
    for notes in (texts, [["a"]] * 40):
        stopped = mock.patch.object(dpsgd.ClippedGradients, "check", side_effect=KeyboardInterrupt)
        with stopped as asked, pytest.raises(KeyboardInterrupt):
            run(copy.deepcopy(model), tokenizer, notes, tiny_plan())
        batch, alone = asked.call_args.args
        trials.append([value.tolist() for one in (batch, *alone) for value in one.values()])
    assert trials[0] == trials[1]


# Whose chance it was.


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


class OwnModel(GPT2LMHeadModel):
    pass


def own_model(model):
    model.__class__ = OwnModel


def own_layer(model):
    model.transformer.ln_f = nn.Sequential(model.transformer.ln_f, Passes())


def own_forward(model):
    model.transformer.drop.forward = lambda value: value


def own_hook(model):
    model.transformer.h[0].register_forward_pre_hook(lambda *_: None)


def backward_hook(model):
    model.transformer.h[0].register_full_backward_hook(lambda *_: None)


def own_attention(model):
    given = ALL_ATTENTION_FUNCTIONS["sdpa"]
    ALL_ATTENTION_FUNCTIONS.register("own", lambda *args, **more: given(*args, **more))
    model.config._attn_implementation = "own"


def in_16_bits(model):
    model.bfloat16()


def with_noisy_embeddings(model):
    """NEFTune: a longer note in a micro-batch gives all others less noise; a sum moved by 20 bounds."""
    activate_neftune(model, 5.0)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (own_model, "architecture: OwnModel"),
        (own_layer, "layer: Passes"),
        (own_forward, "hook: Dropout.forward"),
        (own_hook, "hook: own_hook.<locals>.<lambda>"),
        (backward_hook, "hook: backward_hook.<locals>.<lambda>"),
        (own_attention, "option: attention = own"),
        (in_16_bits, "precision: torch.bfloat16"),
        (with_noisy_embeddings, "hook: neftune_post_forward_hook"),
    ],
)
def test_what_is_not_on_the_lists_makes_the_budget_a_claim(change, part):
    texts, tokenizer, model = hospital()
    change(model)
    log = run(model, tokenizer, texts, tiny_plan())
    assert isinstance(log.spent, Claimed) and log.spent.claim == tiny_plan().spent
    assert part in log.spent.parts and log.rdp_epsilon is None


def test_each_architecture_of_the_list_is_compared_with_autograd_by_a_test():
    compared = {kind for kind, _ in EXACT.values()} | {kind.__name__ for kind, _ in FAMILIES.values()}
    assert {name for names in ARCHITECTURES.values() for name in names} == compared


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


def test_a_tokenizer_of_ones_own_makes_the_budget_a_claim_and_its_code_belongs_to_the_run(tmp_path):
    texts, tokenizer, model = hospital()
    log = run(model, Words(), texts, tiny_plan(), keep=tmp_path)
    assert log.spent.parts == ("tokenizer: Words",) and is_supported_tokenizer(tokenizer)
    ours, other = (_resume.fingerprint(model, [], {}, [kind]) for kind in (Words, type(tokenizer)))
    assert ours["code"] != other["code"]
    stopped = mock.patch.object(_loop, "fingerprint", side_effect=KeyboardInterrupt)
    with stopped as asked, pytest.raises(KeyboardInterrupt):
        run(model, Words(), texts, tiny_plan(), keep=tmp_path)
    assert Words in asked.call_args.args[3]


class Mixes(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, value, *args, **more):
        return self.inner(value + value.mean(0, keepdim=True), *args, **more)


def test_a_model_whose_rows_mix_is_refused_before_a_step_is_spent(tmp_path):
    texts, tokenizer, model = hospital()
    model.transformer.h[0] = Mixes(model.transformer.h[0])
    with pytest.raises(UnsupportedModel, match="mixes rows"):
        run(model, tokenizer, texts, tiny_plan(), keep=tmp_path)
    assert not (tmp_path / "ledger.jsonl").exists()


DYNAMIC = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}


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


@pytest.mark.parametrize(
    ("make", "parts"),
    [
        (partial(with_chance, OPTForCausalLM), []),
        (partial(with_chance, OPTForCausalLM, layerdrop=0.1), ["option: layerdrop = 0.1"]),
        (partial(with_chance, LlamaForCausalLM, attention_dropout=0.1), []),
        (partial(with_chance, LlamaForCausalLM, rope_parameters=DYNAMIC), ["option: rope_type = dynamic"]),
        (partial(with_chance, DebertaV2ForMaskedLM), []),
        (
            partial(with_chance, DebertaV2ForMaskedLM, relative_attention=True),
            ["option: relative_attention = True"],
        ),
    ],
)
def test_options_by_which_rows_depend_on_each_other_make_the_budget_a_claim(make, parts):
    """Who shares a pass follows from who was drawn: of OPT, a sum moved by 12 bounds for one patient."""
    assert unsupported_parts(make()) == parts


def test_the_dropout_of_a_release_follows_from_no_seed():
    """A seed fills 32 bits of the generator, and whoever tries all knows every mask."""
    before, states = torch.get_rng_state(), []
    for _ in range(2):
        with dpsgd.release().dropout():
            states.append(torch.get_rng_state())
    seeded = torch.Generator().manual_seed(int.from_bytes(states[0][:8].numpy().tobytes(), "little"))
    assert not torch.equal(*states) and not torch.equal(seeded.get_state(), states[0])
    assert torch.equal(torch.get_rng_state(), before)


# What is kept.


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


def test_the_ledger_of_a_release_does_not_tell_who_was_in_it(tmp_path):
    """Whoever knows all patients but one could compute the hash of the data with that one and without."""
    texts, tokenizer, model = hospital()
    rows = _batches.encode_patients(model, tokenizer, texts)
    plain = _resume.fingerprint(model, rows, {})["data"]
    marks = {}
    for name, chance in (("a", dpsgd.release), ("b", dpsgd.release), ("c", partial(dpsgd.research, 0))):
        run(copy.deepcopy(model), tokenizer, texts, tiny_plan(), keep=tmp_path / name, chance=chance())
        marks[name] = read_ledger(tmp_path / name / "ledger.jsonl").header.fingerprint["data"]
    assert marks["c"] == plain and len({plain, marks["a"], marks["b"]}) == 3
    key = tmp_path / "a" / "secret.key"
    known = _resume.fingerprint(model, rows, {}, key=key.read_bytes())["data"]
    assert marks["a"] == known and len(key.read_bytes()) == 32
    key.unlink()  # then no one can say whether the data are those
    with pytest.raises(ResumeRefused, match=r"fingerprint.data"):
        run(model, tokenizer, texts, tiny_plan(), keep=tmp_path / "a", chance=dpsgd.release())


def test_a_note_that_cannot_be_masked_is_refused_before_a_step_is_spent(tmp_path):
    texts, tokenizer, _ = hospital()
    tokenizer = models.with_mask(tokenizer)
    model = models.build_masked("micro-bert", tokenizer, seed=0)
    given = {"objective": models.Masking.of(tokenizer), "keep": tmp_path}
    with pytest.raises(InvalidParameter, match=r"notes_by_patient\[1\]: a note has no token"):
        run(model, tokenizer, [texts[0], [tokenizer.eos_token], *texts[2:]], tiny_plan(), **given)
    assert not (tmp_path / "ledger.jsonl").exists()


def test_digits_that_a_backend_was_told_are_refused_by_what_to_take_back():
    matmul = torch.backends.mkldnn.matmul
    told, matmul.fp32_precision = matmul.fp32_precision, "bf16"
    try:
        with pytest.raises(InvalidParameter, match='set fp32_precision = "none" again'):
            dpsgd.clipped_gradient_sum(hospital()[2], ONE, max_grad_norm=1.0)
    finally:
        matmul.fp32_precision = told


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
