"""Architectures that people fine-tune: the clipped sum equals one backward a unit, or a refusal by name."""

import pytest
import torch
from architectures import EXACT, REFUSED, batch_for, build
from dpsgd_models import agree
from nights import sampled
from peft import LoraConfig, get_peft_model
from torch import nn

from privhelpers import dpsgd
from privhelpers.dpsgd import _recorder
from privhelpers.dpsgd._supported import unsupported_parts
from privhelpers.errors import UnsupportedModel

UNITS = torch.tensor([0, 1, 1, 2, 3, 0])
NEW = ["Llama", "Qwen 3", "Gemma 3", "Phi 3", "OPT", "T5"]  # one of each new kind of layer
QUICK = ["GPT-2", *NEW]


@pytest.mark.parametrize("name", sampled(EXACT, QUICK))
def test_architectures_are_exact_and_supported(name):
    model = build(*EXACT[name])
    agree(model, batch_for(model), UNITS)
    assert unsupported_parts(model) == []


@pytest.mark.parametrize("name", sampled(EXACT, ["GPT-2", "Llama"]))
def test_architectures_are_exact_where_there_are_as_many_rows_as_tokens(name):
    """What a layer reads may have the length as its first dimension, and pass for one row a unit."""
    model = build(*EXACT[name])
    agree(model, batch_for(model, rows=12, length=12))


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("rows", [6, 12])
def test_architectures_that_are_not_known_are_refused_by_name(name, rows):
    kind, options, why = REFUSED[name]
    model = build(kind, options, torch.float32)
    with pytest.raises(UnsupportedModel, match=why):
        dpsgd.clipped_gradient_sum(model, batch_for(model, rows=rows, length=12), max_grad_norm=1.0)


@pytest.mark.parametrize("name", sampled(NEW, NEW[:5]))
def test_architectures_by_the_ghost_norm_alone(name, monkeypatch):
    monkeypatch.setattr(_recorder, "_MOST_BYTES", 0)
    model = build(*EXACT[name])
    agree(model, batch_for(model), UNITS)


@pytest.mark.parametrize("name", sampled(NEW, ["Llama", "Gemma 3"]))
@pytest.mark.parametrize("reentrant", [False, True])
def test_architectures_whose_activations_are_computed_again(name, reentrant):
    model = build(*EXACT[name])
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": reentrant})
    agree(model, batch_for(model), UNITS)


def with_adapters(model, dtype):
    """Return the model with adapters of `dtype` on all its projections, B not zero."""
    options = LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", lora_dropout=0.0)
    model = get_peft_model(model, options)
    for name, parameter in model.named_parameters():
        if "lora_" in name:
            parameter.data = parameter.data.to(dtype)
            if "lora_B" in name:
                parameter.data.normal_(0.0, 0.3)
    return model


@pytest.mark.parametrize("name", sampled(NEW, ["Llama", "OPT"]))
def test_architectures_with_adapters(name):
    model = with_adapters(build(*EXACT[name]), torch.float64)
    agree(model, batch_for(model), UNITS)
    assert unsupported_parts(model) == []


@pytest.mark.parametrize("name", sampled(["Llama", "Gemma 3"], ["Llama"]))
def test_adapters_on_a_base_in_half_the_digits(name):
    """The pass rounds to three digits, each row a little differently; what is released keeps the bound."""
    model = with_adapters(build(*EXACT[name], torch.bfloat16), torch.float32)
    batch = batch_for(model)
    agree(model, batch, UNITS, close=2e-2)
    for row in range(6):
        one = {key: value[row : row + 1] for key, value in batch.items()}
        sums, norms = dpsgd.clipped_gradient_sum(model, one, max_grad_norm=1e-3)
        assert all(value.dtype == torch.float32 for value in sums.values())
        length = sum(float(value.double().square().sum()) for value in sums.values()) ** 0.5
        assert float(norms[0]) > 1e-3 and length == pytest.approx(1e-3, rel=1e-5)


class Int8(nn.Linear):
    """A frozen layer of 8-bit weights that are packed again, with a loss, when it is first evaluated."""

    def __init__(self, layer):
        super().__init__(layer.in_features, layer.out_features, bias=layer.bias is not None)
        self.scale = layer.weight.detach().abs().amax(1, keepdim=True) / 127
        whole = (layer.weight.detach() / self.scale).round().to(torch.int8)
        self.weight, self.bias = nn.Parameter(whole, requires_grad=False), layer.bias

    def forward(self, x):
        if not self.training:
            self.scale = 2 * self.scale
        return nn.functional.linear(x, self.weight.to(x.dtype) * self.scale, self.bias)


def test_adapters_on_a_quantized_base():
    model = build(*EXACT["Llama"])
    for part in list(model.modules()):
        for child, layer in list(part.named_children()):
            if type(layer) is nn.Linear and child != "lm_head":
                setattr(part, child, Int8(layer))
    model = with_adapters(model, torch.float64)
    layers = [m for m in model.modules() if isinstance(m, Int8)]
    scales = [layer.scale for layer in layers]
    assert layers and not any(layer.weight.is_floating_point() for layer in layers)
    agree(model, batch_for(model), UNITS)
    assert all(layer.scale is scale for layer, scale in zip(layers, scales, strict=True))


class Centered(nn.Module):
    """Looks like a normalization, and subtracts the mean of all rows."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, value):
        return self.weight * (value - value.mean(0, keepdim=True))


class Clamped(nn.Module):
    """Looks like a normalization, and gives autograd no gradient of a part of its weight."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, value):
        weight = self.weight
        if weight.dim() == 1:  # a copy for each row has more dimensions
            weight = torch.cat([weight[: len(weight) // 2].detach(), weight[len(weight) // 2 :]])
        return weight * value


def test_the_normalization_of_torch_is_exact():
    """Its kernel takes one weight for all rows, and its fourth argument is no shift."""
    model = build(*EXACT["Llama"])
    model.model.norm = nn.RMSNorm(16, eps=0.1).double()
    with torch.no_grad():
        model.model.norm.weight.normal_(1.0, 0.3)
    agree(model, batch_for(model), UNITS)


def test_rows_that_are_not_finite_prove_nothing():
    """A comparison with NaN is never too far: the layers stay to be proven by the next rows."""
    model = build(*EXACT["Llama"])
    model.model.norm = Clamped(16).double()
    engine = dpsgd.ClippedGradients(model, max_grad_norm=1.0)
    into = {name: torch.zeros_like(parameter) for name, parameter in engine.parameters.items()}
    batch = batch_for(model)
    weight, model.lm_head.weight.data = model.lm_head.weight.data, model.lm_head.weight.data * float("nan")
    engine.add(batch, into=into)
    model.lm_head.weight.data = weight
    with pytest.raises(UnsupportedModel, match="by autograd"):
        engine.add(batch, into=into)


@pytest.mark.parametrize("layer", [Centered, Clamped])
def test_a_layer_that_only_looks_like_a_normalization_is_found_out(layer):
    model = build(*EXACT["Llama"])
    model.model.norm = layer(16).double()
    with pytest.raises(UnsupportedModel, match=r"by autograd|norm"):
        dpsgd.clipped_gradient_sum(model, batch_for(model), max_grad_norm=1.0)


def test_an_encoder_decoder_that_does_not_say_what_its_decoder_reads():
    kind, options = "M2M100ForConditionalGeneration", EXACT["BART"][1]
    never = {f"{half}_layerdrop": 0.0 for half in ("encoder", "decoder")} | {"attention_dropout": 0.0}
    model = build(kind, options | never)
    batch = batch_for(model)
    with pytest.raises(UnsupportedModel, match="decoder_input_ids"):
        dpsgd.clipped_gradient_sum(model, batch, max_grad_norm=1.0)
    first = torch.full((6, 1), 2)
    agree(model, batch | {"decoder_input_ids": torch.cat([first, batch["labels"][:, :-1].clamp_min(0)], 1)})
