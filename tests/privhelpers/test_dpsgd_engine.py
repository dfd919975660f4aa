"""The engine against one backward a unit, against Opacus, and against everything it must refuse."""

import copy
import gc
import weakref

import pytest
import torch
from dpsgd_models import TOLERANCE, WIDTH, agree, distance, ragged, row_of, small
from nights import sampled
from opacus import GradSampleModule
from opacus.grad_sample import register_grad_sampler
from peft import LoraConfig, get_peft_model
from torch import nn
from torch.nn import functional
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    SwitchTransformersConfig,
    SwitchTransformersForConditionalGeneration,
)
from transformers.pytorch_utils import Conv1D

from privhelpers import dpsgd
from privhelpers.dpsgd import _recorder
from privhelpers.dpsgd._contributions import GramCache, LookedUp, Product, Tied, row_squares
from privhelpers.dpsgd._losses import losses_by_row
from privhelpers.dpsgd._units import group_rows
from privhelpers.errors import InvalidParameter, UnsupportedModel
from privhelpers.models.precision import layers_in
from privhelpers.models.scoring import row_losses

UNITS = {"rows": None, "patients": [0, 1, 1, 2, 0, 3, 0]}
SHAPES = [
    ("gpt2", True),
    ("gpt2", False),
    ("bert", True),
    ("bert", False),
    ("distilbert", True),
    ("distilbert", False),
]


@pytest.fixture(params=["fast", "ghost"])
def memory(request, monkeypatch):
    """Norms as they are usually computed, and each by the ghost norm, as where memory is short."""
    if request.param == "ghost":
        monkeypatch.setattr(_recorder, "_MOST_BYTES", 0)
    return request.param


@pytest.mark.parametrize(("family", "tied"), SHAPES)
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("dtype", sampled(TOLERANCE, [torch.float64]), ids=str)
def test_clipped_sum_equals_one_backward_per_unit(family, tied, unit, dtype, memory):
    unit = UNITS[unit] and torch.tensor(UNITS[unit])
    agree(small(family, tied=tied, dtype=dtype), ragged(family), unit)


@pytest.mark.parametrize(("family", "tied"), sampled(SHAPES[1::2], [("gpt2", False)]))
def test_autocast_shortens_the_pass_and_never_a_norm_or_a_sum(family, tied, memory):
    """A norm of bfloat16 products is off by up to a percent, and lets a unit above the bound by as much."""
    model, batch = small(family, tied=tied, dtype=torch.float32), ragged(family)
    _, exact = dpsgd.clipped_gradient_sum(model, batch, max_grad_norm=1e9)
    bound = float(exact.median())
    for row in range(7):
        with torch.autocast("cpu", torch.bfloat16):
            sums, norms = dpsgd.clipped_gradient_sum(model, row_of(batch, row), max_grad_norm=bound)
        assert all(value.dtype == torch.float32 for value in sums.values())
        length = sum(float(value.double().square().sum()) for value in sums.values()) ** 0.5
        assert length == pytest.approx(min(bound, float(norms[0])), rel=1e-5)
        assert float(norms[0]) == pytest.approx(float(exact[row]), rel=0.05)
        assert float(norms[0]) != pytest.approx(float(exact[row]), rel=1e-7)  # the pass was shortened


@pytest.mark.parametrize("family", ["gpt2-classifier", "bert-classifier", "distilbert-classifier"])
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_classifiers(family, dtype):
    agree(small(family, dtype=dtype), ragged(family))


@pytest.mark.parametrize(
    ("family", "layers"), [("gpt2", ["c_attn", "c_proj", "c_fc"]), ("bert", ["query", "value"])]
)
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_adapters(family, layers, dtype):
    lora = LoraConfig(
        r=4, lora_alpha=8, target_modules=layers, lora_dropout=0.0, fan_in_fan_out=family == "gpt2"
    )
    model = get_peft_model(small(family, dtype=dtype), lora).to(dtype)
    with torch.no_grad():  # B starts at zero, where A has no gradient
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(0.0, 0.3)
    sums, _ = dpsgd.clipped_gradient_sum(model, ragged(family), max_grad_norm=1.0)
    assert sums and all("lora_" in name for name in sums)
    agree(model, ragged(family), torch.tensor(UNITS["patients"]))


def test_a_row_loss_is_the_library_loss_of_that_row_alone():
    for family in ("gpt2", "bert", "distilbert", "gpt2-classifier", "bert-classifier"):
        model, batch = small(family, dtype=torch.float32), ragged(family)
        ours = losses_by_row(model, batch)
        for row in range(7):
            theirs = model(**row_of(batch, row)).loss
            assert ours[row].item() == pytest.approx(theirs.item(), rel=1e-5)


def test_positions_that_begin_anew_are_read_as_the_library_reads_them():
    """Without its cache the library takes them for texts packed into one row, and hides one from the next."""
    model, ids = small(), torch.randint(1, 97, (3, 9), generator=torch.Generator().manual_seed(0))
    batch = {
        "input_ids": ids,
        "labels": ids.clone(),
        "position_ids": torch.arange(9).remainder(4).repeat(3, 1),
    }
    theirs = [model(**row_of(batch, row)).loss.item() for row in range(3)]
    assert losses_by_row(model, batch).tolist() == pytest.approx(theirs, rel=1e-6)


def test_layers_multiply_in_fewer_digits_and_never_a_norm_or_a_sum(monkeypatch):
    """Whatever the processor: the layers ask for it, and nothing that is measured or summed does."""
    model, asked = small(dtype=torch.float32), []
    for method in ("norms", "add_clipped_sums"):
        inner = getattr(_recorder.Recorder, method)

        def spied(self, *args, inner=inner):
            assert torch.get_float32_matmul_precision() == "highest"
            return inner(self, *args)

        monkeypatch.setattr(_recorder.Recorder, method, spied)
    linear = functional.linear
    monkeypatch.setattr(
        functional, "linear", lambda *a: asked.append(torch.get_float32_matmul_precision()) or linear(*a)
    )
    with layers_in("medium"):
        dpsgd.clipped_gradient_sum(model, ragged(), max_grad_norm=1.0)
    # The self-check of the first pass compares in all digits, and then the pass itself has fewer.
    assert set(asked) == {"highest", "medium"} and asked == sorted(asked)


def test_one_row_does_not_change_what_another_gives():
    """With the batch's own `.loss` it would: rows weigh by their length there."""
    model, batch = small(), ragged(rows=3)
    other = copy.deepcopy(batch)
    other["labels"][2, 4:] = -100  # the last row now has fewer targets
    norms, other_norms = (dpsgd.clipped_gradient_sum(model, b, max_grad_norm=1e9)[1] for b in (batch, other))
    assert norms[:2].tolist() == pytest.approx(other_norms[:2].tolist(), rel=1e-12)
    assert norms[2] != other_norms[2]


DIGITS = {"all_digits": torch.float64, "seven_digits": torch.float32, "three_digits": torch.bfloat16}


@pytest.mark.parametrize("family", sampled(["gpt2", "bert", "gpt2-classifier"], ["gpt2"]))
@pytest.mark.parametrize("digits", DIGITS)
def test_one_unit_never_releases_more_than_the_bound(family, digits, memory):
    """Clipped in bfloat16, one unit in a few is up to 0.4% above it."""
    for bound in (1e-3, 0.3):
        engine = dpsgd.ClippedGradients(small(family, dtype=DIGITS[digits]), max_grad_norm=bound)
        for seed in range(5):
            sums = engine.zero_sums()
            norms = engine.add(ragged(family, rows=1, seed=seed), into=sums)
            released = sum(float(value.double().square().sum()) for value in sums.values()) ** 0.5
            assert torch.bfloat16 not in {value.dtype for value in sums.values()}
            assert released <= bound * (1 + 1e-6)
            assert released == pytest.approx(min(bound, float(norms[0])), rel=1e-5)


@pytest.mark.parametrize("left", [1e-1, 1e-3, 1e-5, 0.0])
def test_a_norm_of_terms_that_cancel_does_not_read_low(left):
    """Two tokens pull one weight in opposite ways; the rounding of large terms must not hide what is left."""
    generator = torch.Generator().manual_seed(0)
    scored, inputs = (torch.randn(3, 1, width, generator=generator) for width in (40, 30))
    scored = torch.cat([scored, scored], 1)
    inputs = torch.cat([inputs, -(1 - left) * inputs], 1)
    product = Product(scored, inputs, group_rows(None, 3))
    total, norms = torch.zeros(40, 30), product.squared_norms().double().sqrt()
    truth = torch.bmm(scored.double().transpose(1, 2), inputs.double()).flatten(1).norm(dim=1)
    assert (norms > truth * (1 - 1e-4)).all()
    assert (
        norms <= truth + 1e-6 * 2 * scored[:, 0].norm(dim=1) * inputs[:, 0].norm(dim=1) + 1e-4 * truth
    ).all()
    bound = 1e-3
    factors = torch.tensor([1.0, 0.0, 0.0]) * (bound / norms.clamp_min(1e-12)).clamp_max(1.0)
    product.add_to(total, factors.float(), product.units)
    assert float(total.double().norm()) <= bound * (1 + 1e-4)


@pytest.mark.parametrize("left", [1e-2, 1e-4, 0.0])
def test_a_tied_matrix_whose_uses_cancel_does_not_read_low(left):
    """The reading end takes back, row by row, what the scoring end gives."""
    index, units = torch.tensor([[1, 4, 6]]), group_rows(None, 1)
    inputs = torch.randn(1, 3, 20, generator=torch.Generator().manual_seed(0))
    scored = torch.zeros(1, 3, 9).scatter_(2, index[..., None], 1.0)
    tied = Tied(Product(scored, inputs, units), LookedUp(index, -(1 - left) * inputs, units))
    truth = float((inputs.double() - (1 - left) * inputs.double()).norm())
    found = float(tied.squared_norms().double().sqrt())
    assert truth * (1 - 1e-3) <= found <= truth * (1 + 1e-3) + 1e-5 and found > 0


def test_a_norm_of_millions_of_float32_values_does_not_read_low():
    """A flat float32 norm does, and a norm that reads low lets a unit through above the bound."""
    values = torch.randn(1, 3000, 4096, generator=torch.Generator().manual_seed(0))
    truth = float(values.double().square().sum())
    assert float(row_squares(values)[0]) == pytest.approx(truth, rel=2e-7)


@pytest.mark.parametrize("unit", UNITS)
def test_inner_products_are_kept_for_the_layer_that_reads_the_same(unit):
    units, inner = group_rows(UNITS[unit] and torch.tensor(UNITS[unit]), 7), GramCache()
    values = torch.randn(7, 3, 8, generator=torch.Generator().manual_seed(0))
    first = inner.of(values, units)
    assert inner.of(values.detach(), units) is first  # as two passes through autograd hand it over
    for other in (values.clone(), values[:, :, :4], values[:, :, :8:2], values[:, :2]):
        for (product,), (_, block) in zip(inner.of(other, units), units.blocks(other), strict=True):
            torch.testing.assert_close(product, block @ block.transpose(1, 2))


@pytest.mark.parametrize("length", [1, 32, 33, 64, 65, 96, 131])
def test_a_ghost_norm_in_pieces_is_the_norm_of_the_gradient(length):
    generator = torch.Generator().manual_seed(0)
    sides = [torch.randn(3, length, width, generator=generator, dtype=torch.float64) for width in (5, 7)]
    found = Product(*sides, group_rows(None, 3)).squared_norms()
    torch.testing.assert_close(found, (sides[0].transpose(1, 2) @ sides[1]).square().sum((1, 2)))


def test_micro_batches_change_nothing():
    model, batch = small(), ragged()
    whole, norms = dpsgd.clipped_gradient_sum(model, batch, max_grad_norm=2.0)
    engine = dpsgd.ClippedGradients(model, max_grad_norm=2.0)
    parts = {name: torch.zeros_like(p) for name, p in engine.parameters.items()}
    cuts = [slice(0, 1), slice(1, 5), slice(5, 7)]
    pieces = [engine.add({n: v[cut] for n, v in batch.items()}, into=parts) for cut in cuts]
    torch.testing.assert_close(torch.cat(pieces), norms, rtol=1e-12, atol=0)
    assert distance(parts, whole) < 1e-12


def test_a_unit_that_is_not_finite_contributes_nothing(memory):
    model, batch = small(tied=False), ragged(rows=4)
    with torch.no_grad():
        model.transformer.wte.weight[96] = float("nan")
    batch["input_ids"][batch["input_ids"] == 96] = 1
    good = dpsgd.clipped_gradient_sum(model, {n: v[[0, 2, 3]] for n, v in batch.items()}, max_grad_norm=1.0)
    batch["input_ids"][1, 3] = 96
    sums, norms = dpsgd.clipped_gradient_sum(model, batch, max_grad_norm=1.0)
    assert torch.isfinite(norms).tolist() == [True, False, True, True]
    assert norms[[0, 2, 3]].tolist() == pytest.approx(good[1].tolist(), rel=1e-12)
    assert distance(sums, good[0]) < 1e-12


# Opacus as an independent oracle.


@register_grad_sampler(Conv1D)
def _conv1d_grads(layer, activations, backprops):
    gradients = {layer.weight: torch.einsum("btd,btp->bdp", activations[0], backprops)}
    return gradients | {layer.bias: backprops.sum(1)}


def opacus_norms(model, batch):
    wrapped = GradSampleModule(copy.deepcopy(model))
    rows, length = batch["input_ids"].shape
    positions = torch.arange(length).expand(rows, length)
    logits = wrapped(input_ids=batch["input_ids"], position_ids=positions).logits
    row_losses(logits, batch["labels"]).mean().backward()
    samples = [p.grad_sample for p in wrapped.parameters()]
    return sum(g.reshape(rows, -1).double().square().sum(1) for g in samples).sqrt()


@pytest.mark.parametrize("tied", [True, False])
def test_norms_equal_those_of_opacus_hooks(tied):
    model, batch = small(tied=tied), ragged()
    _, norms = dpsgd.clipped_gradient_sum(model, batch, max_grad_norm=1.0)
    torch.testing.assert_close(norms, opacus_norms(model, batch), rtol=1e-9, atol=0)


# What is refused.


class Mixer(nn.Module):
    """A layer without a weight, somewhere in the model."""

    def __init__(self, mix):
        super().__init__()
        self.mix = mix
        self.register_buffer("seen", torch.zeros(WIDTH, dtype=torch.float64))

    def forward(self, value):
        return self.mix(self, value)


def written_while_reading(self, value):
    self.seen += value.detach().mean((0, 1))
    return value


def replaced(self, value):
    self.seen = value.detach().mean((0, 1))
    return value


def in_eight_bits(self, value):
    """Eight bits for the largest number of a batch: no norm is off by more than rounding could be."""
    step = value.detach().abs().amax() / 2**7
    return value + (torch.round(value.detach() / step) * step - value.detach())


MIXES = {
    "centered": lambda self, value: value - value.mean(0),
    "centered in training alone": lambda self, value: value - self.training * value.mean(0),
    "batch norm as a function": lambda self, value: functional.batch_norm(
        value.transpose(1, 2), None, None, training=True
    ).transpose(1, 2),
    "rolled": lambda self, value: value + value.roll(1, 0),
}


@pytest.mark.parametrize("rows", [1, 7, 12])
@pytest.mark.parametrize("mix", MIXES)
def test_a_layer_without_weights_that_mixes_rows_is_refused(mix, rows):
    model = small()
    model.transformer.drop = Mixer(MIXES[mix])
    with pytest.raises(UnsupportedModel, match=r"first dimension|rows"):
        dpsgd.clipped_gradient_sum(model, ragged(rows=rows), max_grad_norm=1.0)


def unknown_module(model):
    model.transformer.h[0].odd = nn.Conv2d(1, 1, 1)


def frozen_batch_norm(model):
    model.transformer.odd = nn.BatchNorm1d(4, affine=False)


def used_outside_of_its_layer(model):
    add, inner = model.transformer.wpe.weight, model.transformer.drop.forward
    model.transformer.drop.forward = lambda ids: inner(ids + add[0])


def layer_that_runs_twice(model):
    model.transformer.h[1] = model.transformer.h[0]


def matrix_of_two_layers(model):
    mlps = [block.mlp for block in model.transformer.h]
    mlps[1].c_fc.weight = mlps[0].c_fc.weight


def matrix_and_bias_of_two_layers(model):
    mlps = [block.mlp for block in model.transformer.h]
    mlps[1].c_fc.weight, mlps[1].c_fc.bias = mlps[0].c_fc.weight, mlps[0].c_fc.bias


def weight_that_no_layer_is_heard_to_use(model):
    size = model.config.n_embd
    linear = nn.utils.parametrizations.weight_norm(nn.Linear(size, size, dtype=model.dtype))
    model.transformer.ln_f = nn.Sequential(model.transformer.ln_f, linear)


def backward_hook(model):
    model.transformer.h[1].register_full_backward_hook(
        lambda module, into, out: tuple(g if g is None else g.roll(1, 0) for g in into)
    )


def scaled_embeddings(model):
    model.transformer.wte = nn.Embedding(97, 16, dtype=torch.float64, max_norm=1.0)


def buffer_written_while(model):
    model.transformer.drop = Mixer(written_while_reading)


def buffer_replaced(model):
    model.transformer.drop = Mixer(replaced)


def rows_that_share_the_scale(model):
    model.float().transformer.drop = Mixer(in_eight_bits)


CHANGES = {  # a part of the message
    unknown_module: r"transformer.h.0.odd \(Conv2d\)",
    frozen_batch_norm: r"transformer.odd \(BatchNorm1d\)",
    used_outside_of_its_layer: "transformer.wpe.weight: is used outside",
    layer_that_runs_twice: "twice",
    matrix_of_two_layers: "c_fc.weight",
    matrix_and_bias_of_two_layers: "is shared",
    weight_that_no_layer_is_heard_to_use: r"original[01]",
    backward_hook: "mixes rows",
    scaled_embeddings: "mixes rows",
    buffer_written_while: "transformer.drop.seen: is written",
    buffer_replaced: "transformer.drop.seen: is written",
    rows_that_share_the_scale: "mixes rows",
}


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_model_whose_clipped_sum_is_not_known_is_refused_by_the_part(change):
    model = small(tied=change is not scaled_embeddings)
    change(model)
    with pytest.raises(UnsupportedModel, match=CHANGES[change]):
        dpsgd.clipped_gradient_sum(model, ragged(), max_grad_norm=1.0)
    assert all(p.grad is None for p in model.parameters())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("unit", torch.tensor(unit)) for unit in ([0, 2], [1, 2], [0], [0.0, 1.0])),
        *(("max_grad_norm", bound) for bound in (0, -1.0, float("inf"), float("nan"), 10**400)),
    ],
)
def test_units_and_bounds_out_of_range_are_refused(field, value):
    with pytest.raises(InvalidParameter, match=field):
        dpsgd.clipped_gradient_sum(small(), ragged(rows=2), **{"max_grad_norm": 1.0, field: value})
    with pytest.raises(InvalidParameter, match="labels"):
        dpsgd.clipped_gradient_sum(small(), {"input_ids": torch.ones(2, 3).long()}, max_grad_norm=1.0)


def test_experts_that_take_so_many_tokens_of_a_batch_are_refused():
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2, "vocab_size": 50}
    model = SwitchTransformersForConditionalGeneration(SwitchTransformersConfig(**sizes, num_experts=2))
    with pytest.raises(UnsupportedModel, match="an expert takes so many tokens of a batch and no more"):
        dpsgd.ClippedGradients(model, max_grad_norm=1.0)


def test_dropout_is_no_reason_to_refuse_and_goes_on_in_the_pass():
    model = small()
    model.transformer.drop.p = model.transformer.h[0].attn.attn_dropout.p = 0.5
    torch.manual_seed(3)
    norms = dpsgd.clipped_gradient_sum(model, ragged(), max_grad_norm=1.0)[1]
    torch.manual_seed(3)
    engine = dpsgd.ClippedGradients(model, max_grad_norm=1.0)
    engine._checked = True  # the check takes nothing from the stream of dropout
    assert torch.equal(engine.add(ragged(), into=engine.zero_sums()), norms)
    assert not torch.equal(engine.add(ragged(), into=engine.zero_sums()), norms)


def test_an_unknown_loss_is_refused():
    model = small("bert-classifier")
    batch = ragged("bert-classifier")
    batch["labels"] = batch["labels"].double()
    with pytest.raises(UnsupportedModel, match="has no known value for one row"):
        dpsgd.clipped_gradient_sum(model, batch, max_grad_norm=1.0)


def test_rows_without_numbers_are_grouped_as_units_of_one_row():
    alone, numbered = group_rows(None, 5), group_rows(torch.arange(5), 5)
    assert alone.runs == numbered.runs == ((5, 1),)
    assert alone.sizes().tolist() == numbered.sizes().tolist() == [1] * 5


# What it leaves behind.


def test_the_engine_leaves_the_model_as_it_was():
    model = small()
    marker = torch.ones_like(model.transformer.wpe.weight)
    model.transformer.wpe.weight.grad = marker
    before = copy.deepcopy(model.state_dict())
    dpsgd.clipped_gradient_sum(model, ragged(), max_grad_norm=1.0)
    assert model.transformer.wpe.weight.grad is marker
    assert all(p.requires_grad for p in model.parameters())
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert not any("forward" in m.__dict__ for m in model.modules())


def test_a_pass_keeps_no_memory(memory, monkeypatch):
    """A recorded activation that hangs on the graph would keep the whole pass alive, unseen by Python."""
    born = []
    first = _recorder.Recorder.__init__

    def init(self, *rest, **options):
        first(self, *rest, **options)
        born.append(weakref.ref(self))

    monkeypatch.setattr(_recorder.Recorder, "__init__", init)
    gc.collect()
    gc.disable()
    try:
        dpsgd.clipped_gradient_sum(small(), ragged(), max_grad_norm=1.0)
        assert len(born) == 5 and not any(one() for one in born)  # four of the check, and the pass
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("tied", "expected"),
    [(True, [3.79334, 3.70356, 3.85505, 3.45714]), (False, [3.89300, 3.81484, 3.67359, 3.73366])],
)
def test_the_published_norms_of_a_tiny_gpt2(tied, expected):
    """Measured once with Opacus hooks and with batches of one row."""
    quiet = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    size = {"vocab_size": 97, "n_positions": 32, "n_embd": 32, "n_layer": 2, "n_head": 2}
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(**size, **quiet, tie_word_embeddings=tied)).train()
    ids = torch.randint(0, 97, (4, 12), generator=torch.Generator().manual_seed(0))
    _, norms = dpsgd.clipped_gradient_sum(model, {"input_ids": ids, "labels": ids}, max_grad_norm=1.0)
    assert norms.tolist() == pytest.approx(expected, abs=1e-5)


def test_a_layer_that_reads_the_length_first_is_refused_where_there_are_as_many_rows():
    class LengthFirst(nn.Linear):
        def forward(self, value):
            return super().forward(value)

    class Around(nn.Module):
        def __init__(self, kind):
            super().__init__()
            self.inner = kind(WIDTH, WIDTH, dtype=torch.float64)

        def forward(self, value):
            return self.inner(value.transpose(0, 1)).transpose(0, 1)

    for kind in (nn.Linear, LengthFirst):
        model = small()
        model.transformer.drop = Around(kind)
        with pytest.raises(UnsupportedModel, match="rows"):
            dpsgd.clipped_gradient_sum(model, ragged(rows=12, length=12), max_grad_norm=1.0)
