"""Low-rank adapters on a frozen model, with starting weights that follow from our seed."""

from collections.abc import Sequence

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
    chance = rng.torch_generator(seed, "lora")
    for name, weight in adapted.named_parameters():
        if "lora_A" in name:  # as the library does, from our seed
            fresh = torch.empty(weight.shape)
            torch.nn.init.kaiming_uniform_(fresh, 5**0.5, generator=chance)
            weight.data.copy_(fresh)
    return adapted
