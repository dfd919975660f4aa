"""The engine against one backward a unit, against Opacus, and against everything it must refuse."""

import copy
import gc
import weakref

import pytest
import torch
from dpsgd_models import WIDTH, distance, ragged, row_of, slow_clipped_sum, small
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
from privhelpers.dpsgd import _checks, _recorder
from privhelpers.dpsgd._contributions import GramCache, LookedUp, Product, Tied, row_squares
from privhelpers.dpsgd._layers import recording, slow_activations
from privhelpers.dpsgd._losses import losses_by_row
from privhelpers.dpsgd._units import group_rows
from privhelpers.errors import InvalidParameter, UnsupportedModel
from privhelpers.models.precision import layers_in
from privhelpers.models.scoring import row_losses

# (norms, sums) relative
TOLERANCE = {torch.float64: (1e-12, 1e-12), torch.float32: (1e-6, 1e-6)}
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


def agree(model, batch, unit=None):
    """Compare with the slow way at a bound that clips half of the units."""
    _, plain = slow_clipped_sum(model, batch, max_grad_norm=1e9, unit=unit)
    bound = float(plain.median()) * 1.0001
    expected, norms = slow_clipped_sum(model, batch, max_grad_norm=bound, unit=unit)
    sums, fast_norms = dpsgd.clipped_gradient_sum(model, batch, max_grad_norm=bound, unit=unit)
    of_norms, of_sums = TOLERANCE[next(model.parameters()).dtype]
    torch.testing.assert_close(fast_norms, norms, rtol=of_norms, atol=0)
    assert distance(sums, expected) < of_sums
    assert (norms < bound).any() and (norms > bound).any()


@pytest.mark.parametrize(("family", "tied"), SHAPES)
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_clipped_sum_equals_one_backward_per_unit(family, tied, unit, dtype, memory):
    unit = UNITS[unit] and torch.tensor(UNITS[unit])
    agree(small(family, tied=tied, dtype=dtype), ragged(family), unit)


@pytest.mark.parametrize(("family", "tied"), SHAPES)
@pytest.mark.parametrize("unit", UNITS)
def test_both_kinds_of_norm_are_taken_and_agree(family, tied, unit, monkeypatch):
    """The rule chooses by shape; here each choice is forced on every layer, with tied weights among them."""
    unit = UNITS[unit] and torch.tensor(UNITS[unit])
    model, batch = small(family, tied=tied), ragged(family)
    for ghost in (True, False):
        monkeypatch.setattr(_recorder, "prefers_ghost", lambda *shape, ghost=ghost: ghost)
        agree(model, batch, unit)


@pytest.mark.parametrize(("family", "tied"), SHAPES)
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


@pytest.mark.parametrize(("family", "tied"), SHAPES)
def test_layers_multiply_in_fewer_digits_and_never_a_norm_or_a_sum(family, tied, memory, monkeypatch):
    """Whatever the processor: the layers ask for it, and nothing that is measured or summed does."""
    model, batch = small(family, tied=tied, dtype=torch.float32), ragged(family)
    _, exact = dpsgd.clipped_gradient_sum(model, batch, max_grad_norm=1e9)
    bound, asked = float(exact.median()), []
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
    for row in range(7):
        engine = dpsgd.ClippedGradients(model, max_grad_norm=bound)
        one, sums = row_of(batch, row), engine.zero_sums()
        asked.clear()
        with layers_in("medium"):
            norms = engine.add(one, into=sums)
        # The self-check of the first pass compares in all digits, and then the pass itself has fewer.
        assert set(asked) == {"highest", "medium"} and asked == sorted(asked)
        assert torch.get_float32_matmul_precision() == "highest"
        length = sum(float(value.double().square().sum()) for value in sums.values()) ** 0.5
        assert length == pytest.approx(min(bound, float(norms[0])), rel=1e-5)
        assert float(norms[0]) == pytest.approx(float(exact[row]), rel=0.05)


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


def test_one_row_does_not_change_what_another_gives():
    """With the batch's own `.loss` it would: rows weigh by their length there."""
    model, batch = small(), ragged(rows=3)
    other = copy.deepcopy(batch)
    other["labels"][2, 4:] = -100  # the last row now has fewer targets
    norms, other_norms = (dpsgd.clipped_gradient_sum(model, b, max_grad_norm=1e9)[1] for b in (batch, other))
    assert norms[:2].tolist() == pytest.approx(other_norms[:2].tolist(), rel=1e-12)
    assert norms[2] != other_norms[2]

    def pull(b):  # of the first row on the word embedding through the batch's loss
        model.zero_grad()
        model(**b).loss.backward()
        return model.transformer.wpe.weight.grad.norm().item()

    assert pull(batch) != pytest.approx(pull(other), rel=1e-3)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_the_released_norm_of_one_unit_never_exceeds_the_bound(dtype, memory):
    for bound in (1e-3, 0.25, 2.0):
        engine = dpsgd.ClippedGradients(small(dtype=dtype), max_grad_norm=bound)
        for seed in range(8):
            sums = engine.zero_sums()
            norms = engine.add(ragged(rows=1, seed=seed), into=sums)
            released = sum(float(value.double().square().sum()) for value in sums.values()) ** 0.5
            assert released <= bound * (1 + 1e-6)
            assert norms[0] <= bound or released == pytest.approx(bound, rel=1e-5)


@pytest.mark.parametrize("family", ["gpt2", "bert", "gpt2-classifier"])
def test_a_model_of_three_digits_releases_no_more_than_the_bound(family, memory):
    """Clipped in bfloat16, one unit in a few is up to 0.4% above it."""
    model = small(family, dtype=torch.bfloat16)
    for bound in (1e-3, 0.3):
        engine = dpsgd.ClippedGradients(model, max_grad_norm=bound)
        for seed in range(5):
            sums = engine.zero_sums()
            norms = engine.add(ragged(family, rows=1, seed=seed), into=sums)
            released = sum(float(value.double().square().sum()) for value in sums.values()) ** 0.5
            assert {value.dtype for value in sums.values()} == {torch.float32}
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


@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (30, 128), (31, 128), (4, 2047), (3, 5000)])
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_squares_are_those_of_each_unit_whatever_the_shape(shape, dtype):
    """Short rows are read several at once; what a unit has stays with it."""
    values = torch.randn(5, *shape, dtype=dtype, generator=torch.Generator().manual_seed(0))
    truth = values.double().square().sum((1, 2))
    rounding = 1e-14 if dtype == torch.float64 else 4e-7
    torch.testing.assert_close(row_squares(values).double(), truth, rtol=rounding, atol=0)
    turned = values.transpose(1, 2)  # not in one piece
    torch.testing.assert_close(row_squares(turned).double(), truth, rtol=rounding, atol=0)
    vectors, truth = values[:, 0], values[:, 0].double().square().sum(1)
    torch.testing.assert_close(row_squares(vectors).double(), truth, rtol=rounding, atol=0)


@pytest.mark.parametrize("unit", UNITS)
def test_inner_products_are_kept_for_the_layer_that_reads_the_same(unit):
    units, inner = group_rows(UNITS[unit] and torch.tensor(UNITS[unit]), 7), GramCache()
    values = torch.randn(7, 3, 8, generator=torch.Generator().manual_seed(0))
    first = inner.of(values, units)
    assert inner.of(values.detach(), units) is first  # as two passes through autograd hand it over
    for other in (values.clone(), values[:, :, :4], values[:, :, :8:2], values[:, :2]):
        for product, (_, block) in zip(inner.of(other, units), units.blocks(other), strict=True):
            torch.testing.assert_close(product, block @ block.transpose(1, 2))


def test_micro_batches_change_nothing():
    model, batch = small(), ragged()
    whole, norms = dpsgd.clipped_gradient_sum(model, batch, max_grad_norm=2.0)
    engine = dpsgd.ClippedGradients(model, max_grad_norm=2.0)
    parts = {name: torch.zeros_like(p) for name, p in engine.parameters.items()}
    cuts = [slice(0, 1), slice(1, 5), slice(5, 7)]
    pieces = [engine.add({n: v[cut] for n, v in batch.items()}, into=parts) for cut in cuts]
    torch.testing.assert_close(torch.cat(pieces), norms, rtol=1e-12, atol=0)
    assert distance(parts, whole) < 1e-12


def test_a_scale_multiplies_the_sum_and_not_the_norms():
    model, batch = small(), ragged()
    engine = dpsgd.ClippedGradients(model, max_grad_norm=2.0)
    once, scaled = ({n: torch.zeros_like(p) for n, p in engine.parameters.items()} for _ in range(2))
    norms = engine.add(batch, into=once)
    assert engine.add(batch, into=scaled, scale=0.125).tolist() == norms.tolist()
    assert distance(scaled, {n: 0.125 * v for n, v in once.items()}) < 1e-14


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


def test_positions_without_a_batch_dimension_break_opacus_and_not_us():
    model, batch = small(), ragged()
    wrapped = GradSampleModule(copy.deepcopy(model))
    logits = wrapped(input_ids=batch["input_ids"]).logits
    logits.mean().backward()
    shapes = {len(p.grad_sample) for p in wrapped.parameters()}
    assert shapes == {1, 7}  # the position table has one "sample" for seven rows
    agree(model, batch)


# What is refused.


def test_unknown_modules_are_refused_by_name():
    model = small()
    model.transformer.h[0].odd = nn.Conv2d(1, 1, 1)
    with pytest.raises(UnsupportedModel, match=r"transformer.h.0.odd \(Conv2d\)"):
        dpsgd.clipped_gradient_sum(model, ragged(), max_grad_norm=1.0)
    model.transformer.h[0].odd.requires_grad_(False)
    agree(model, ragged())


def test_a_parameter_that_is_used_outside_of_its_layer_is_refused():
    model = small()
    add = model.transformer.wpe.weight

    def forward(ids, old=model.transformer.drop.forward):
        return old(ids + add[0])

    model.transformer.drop.forward = forward
    with pytest.raises(UnsupportedModel, match=r"transformer.wpe.weight: is used outside"):
        dpsgd.clipped_gradient_sum(model, ragged(), max_grad_norm=1.0)
    assert all(p.grad is None for p in model.parameters())


def test_a_layer_that_runs_twice_is_refused():
    model = small()
    model.transformer.h[1] = model.transformer.h[0]
    with pytest.raises(UnsupportedModel, match="twice"):
        dpsgd.clipped_gradient_sum(model, ragged(), max_grad_norm=1.0)


def test_a_matrix_shared_by_two_multiplying_layers_is_exact_or_refused():
    model = small()
    mlps = [block.mlp for block in model.transformer.h]
    mlps[1].c_fc.weight = mlps[0].c_fc.weight
    with pytest.raises(UnsupportedModel, match=r"c_fc.weight: is shared by layers other than"):
        dpsgd.clipped_gradient_sum(model, ragged(), max_grad_norm=1.0)
    mlps[1].c_fc.bias = mlps[0].c_fc.bias
    with pytest.raises(UnsupportedModel, match="is shared"):
        dpsgd.clipped_gradient_sum(model, ragged(), max_grad_norm=1.0)


class Mixer(nn.Module):
    """A layer without a weight that mixes rows, somewhere in the model."""

    def __init__(self, mix):
        super().__init__()
        self.mix = mix
        self.register_buffer("seen", torch.zeros(WIDTH, dtype=torch.float64))

    def forward(self, value):
        return self.mix(self, value)


def remembered(self, value):
    self.seen += value.detach().mean((0, 1))
    return value


def replaced(self, value):
    self.seen = value.detach().mean((0, 1))
    return value


def normalized(self, value):
    return functional.batch_norm(value.transpose(1, 2), None, None, training=True).transpose(1, 2)


MIXES = {
    "centered": lambda self, value: value - value.mean(0),
    "centered in training alone": lambda self, value: value - self.training * value.mean(0),
    "batch norm as a function": normalized,
    "rolled": lambda self, value: value + value.roll(1, 0),
    "turned around": lambda self, value: value.flip(0) + value,
}


@pytest.mark.parametrize("rows", [1, 7, 12])
@pytest.mark.parametrize("mix", MIXES)
def test_a_layer_without_weights_that_mixes_rows_is_refused(mix, rows):
    model = small()
    model.transformer.drop = Mixer(MIXES[mix])
    with pytest.raises(UnsupportedModel, match=r"first dimension|rows"):
        dpsgd.clipped_gradient_sum(model, ragged(rows=rows), max_grad_norm=1.0)


@pytest.mark.parametrize("write", [remembered, replaced])
def test_a_buffer_that_is_written_while_the_model_reads_is_refused(write):
    model = small()
    model.transformer.drop = Mixer(write)
    with pytest.raises(UnsupportedModel, match=r"transformer.drop.seen: is written"):
        dpsgd.clipped_gradient_sum(model, ragged(), max_grad_norm=1.0)


def test_rows_that_share_the_scale_of_their_numbers_are_refused():
    """Eight bits for the largest number of a batch: no norm is off by more than rounding could be."""

    class Fewer(nn.Module):
        def forward(self, value):
            step = value.detach().abs().amax() / 2**7
            return value + (torch.round(value.detach() / step) * step - value.detach())

    model, batch = small().float(), ragged()
    model.transformer.drop = Fewer()
    with pytest.raises(UnsupportedModel, match="among copies of itself; a layer mixes rows"):
        dpsgd.clipped_gradient_sum(model, batch, max_grad_norm=1.0)


def test_experts_that_take_so_many_tokens_of_a_batch_are_refused():
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2, "vocab_size": 50}
    model = SwitchTransformersForConditionalGeneration(SwitchTransformersConfig(**sizes, num_experts=2))
    with pytest.raises(UnsupportedModel, match="an expert takes so many tokens of a batch and no more"):
        dpsgd.ClippedGradients(model, max_grad_norm=1.0)


def test_a_weight_that_no_layer_is_heard_to_use_is_refused_by_name():
    model = small()
    size = model.config.n_embd
    linear = nn.utils.parametrizations.weight_norm(nn.Linear(size, size, dtype=model.dtype))
    model.transformer.ln_f = nn.Sequential(model.transformer.ln_f, linear)
    with pytest.raises(UnsupportedModel, match=r"original[01]: its gradient's norm for one row is"):
        dpsgd.clipped_gradient_sum(model, ragged(), max_grad_norm=1.0)


def test_a_backward_hook_that_mixes_rows_is_refused():
    model = small()
    model.transformer.h[1].register_full_backward_hook(
        lambda module, into, out: tuple(g if g is None else g.roll(1, 0) for g in into)
    )
    with pytest.raises(UnsupportedModel, match="a layer mixes rows"):
        dpsgd.clipped_gradient_sum(model, ragged(), max_grad_norm=1.0)


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


def test_batch_norm_is_refused_even_frozen():
    model = small()
    model.transformer.odd = nn.BatchNorm1d(4, affine=False)
    with pytest.raises(UnsupportedModel, match=r"transformer.odd \(BatchNorm1d\): mixes the rows"):
        dpsgd.clipped_gradient_sum(model, ragged(), max_grad_norm=1.0)


@pytest.mark.parametrize("option", [{"max_norm": 1.0}, {"scale_grad_by_freq": True}])
def test_embeddings_that_mix_rows_are_refused(option):
    model = small(tied=False)
    model.transformer.wte = nn.Embedding(97, 16, dtype=torch.float64, **option)
    with pytest.raises(UnsupportedModel, match="mixes rows"):
        dpsgd.clipped_gradient_sum(model, ragged(), max_grad_norm=1.0)


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


def test_rows_of_a_check_differ_and_are_not_as_many_as_their_tokens():
    one = {"input_ids": torch.arange(3)[None], "attention_mask": torch.tensor([[1, 1, 0]])}
    made = _checks.few_rows(one | {"labels": one["input_ids"]})
    assert made["input_ids"].tolist() == made["labels"].tolist() == [[0, 1, 2], [2, 0, 1]]
    assert made["attention_mask"].tolist() == [[1, 1, 0]] * 2
    many = {name: torch.arange(20).view(4, 5) for name in ("input_ids", "labels")}
    assert _checks.few_rows(many)["labels"].tolist() == many["labels"][:3].tolist()


@pytest.mark.parametrize("unit", [[0, 2], [1, 2], [0], [0.0, 1.0]])
def test_units_must_be_numbered_without_gaps(unit):
    with pytest.raises(InvalidParameter, match="unit"):
        dpsgd.clipped_gradient_sum(small(), ragged(rows=2), max_grad_norm=1.0, unit=torch.tensor(unit))


@pytest.mark.parametrize("bound", [0, -1.0, float("inf"), float("nan"), 10**400])
def test_bad_bounds_are_refused(bound):
    with pytest.raises(InvalidParameter, match="max_grad_norm"):
        dpsgd.clipped_gradient_sum(small(), ragged(), max_grad_norm=bound)


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


def test_ghost_norms_form_no_gradient_of_a_row(monkeypatch):
    monkeypatch.setattr(_recorder, "_MOST_BYTES", 0)

    def take(*_):
        raise AssertionError("a gradient of every row was formed")

    monkeypatch.setattr(_recorder.Workspace, "take", take)
    dpsgd.clipped_gradient_sum(small(), ragged(), max_grad_norm=1.0)


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


@pytest.mark.parametrize(("dtype", "close"), [(torch.float64, 1e-12), (torch.float32, 2e-6)])
def test_the_activation_of_gpt2_is_the_same_function_in_one_kernel(dtype, close):
    model = small(dtype=dtype)
    activations = slow_activations(model)
    assert len(activations) == 2 and not slow_activations(small("bert"))
    value = torch.linspace(-8, 8, 1001, dtype=dtype, requires_grad=True)
    (slope,) = torch.autograd.grad(activations[0](value).sum(), value)
    before, usual = activations[0](value).detach(), activations[0].forward
    with recording(activations, recorder=None):
        assert activations[0].forward != usual
        torch.testing.assert_close(activations[0](value).detach(), before, rtol=0, atol=close)
        (again,) = torch.autograd.grad(activations[0](value).sum(), value)
        torch.testing.assert_close(again, slope, rtol=0, atol=close)
    assert activations[0].forward == usual
