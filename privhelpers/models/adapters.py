"""Low-rank adapters on a frozen model, with starting weights that follow from our seed."""

from collections.abc import Mapping, Sequence

import peft
import torch
from transformers import PreTrainedModel

from privhelpers import rng, validate
from privhelpers.errors import InvalidParameter


def with_adapters(
    model: PreTrainedModel, *, rank: int, targets: Sequence[str], seed: int, fan_in_fan_out: bool = False
) -> peft.PeftModel:
    """Freeze a model and give some of its layers adapters, all that is trained from then on.

    Args:
        model: changed in place.
        rank: of the adapters, 1 or more; their scale is 2, so that a rank can change without the rate.
        targets: ends of the names of the layers, such as `q_proj`.
        seed: of the adapters' starting weights.
        fan_in_fan_out: the layers store their weights as GPT-2 does, inputs first.

    Raises:
        InvalidParameter: no layer has such a name.

    Source: Hu et al. 2022, section 4.1.
    """
    rank = validate.positive_int(rank=rank)
    config = peft.LoraConfig(
        r=rank, lora_alpha=2 * rank, target_modules=list(targets), fan_in_fan_out=fan_in_fan_out
    )
    try:
        adapted = peft.get_peft_model(model, config)
    except ValueError as error:
        raise InvalidParameter(
            f"targets = {validate.shown(list(targets))}: no layer has such a name"
        ) from error
    generator = rng.torch_generator(seed, "lora")
    for name, weight in adapted.named_parameters():
        if "lora_A" in name:  # as the library does, from our seed
            fresh = torch.empty(weight.shape)
            torch.nn.init.kaiming_uniform_(fresh, 5**0.5, generator=generator)
            weight.data.copy_(fresh)
    return adapted


def with_cores(
    model: PreTrainedModel, changes: Mapping[str, torch.Tensor], *, rank: int, seed: int
) -> peft.PeftModel:
    """Freeze a model and give some of its layers adapters of which only a small square is trained.

    The columns and rows of each adapter span those of a known change of the layer and stay as they are.
    Between them is the core, of `rank` rows and columns, which starts at zero.

    Args:
        model: changed in place.
        changes: a matrix for each layer, by the layer's full name, in the layout of its weights.
        rank: of the adapters, 1 or more; their scale is 2.
        seed: of the random directions that are drawn from each change.

    Raises:
        InvalidParameter: no layer has such a name.

    Source: Balazy et al. 2024, with the directions of the changes in place of those of the weights.
    """
    net = with_adapters(model, rank=rank, targets=list(changes), seed=seed)
    generator = rng.torch_generator(seed, "cores")

    def basis(change: torch.Tensor) -> torch.Tensor:  # of random draws from its columns
        drawn = torch.randn(change.shape[1], rank, generator=generator).to(change)
        return torch.linalg.qr(change @ drawn)[0]

    layers = dict(net.base_model.model.named_modules())
    for name, change in changes.items():
        columns, rows = basis(change), basis(change.T)
        core = torch.nn.Linear(rank, rank, bias=False)
        outward = torch.nn.Linear(rank, len(columns), bias=False)
        core.weight.data.zero_()
        outward.weight.data = columns.contiguous()
        layers[name].lora_A.default.weight.data = rows.T.contiguous()
        layers[name].lora_B.default = torch.nn.Sequential(core, outward).to(change.device)
    for name, weight in net.named_parameters():
        weight.requires_grad_(name.endswith("lora_B.default.0.weight"))
    return net
