"""Several models that answer as one, for a training that was split into shards.

Source: Bourtoule et al. 2021 (SISA; slices of a shard are left out here).
"""

from collections.abc import Iterable, Sequence

import torch
from transformers import PreTrainedModel
from transformers.modeling_outputs import CausalLMOutputWithPast

from privhelpers.errors import InvalidParameter


class _Caches:
    """Keys and values of several models, handled as one."""

    def __init__(self, each: Sequence) -> None:
        self.each = list(each)

    def batch_repeat_interleave(self, repeats: int) -> None:
        for one in self.each:
            one.batch_repeat_interleave(repeats)

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        for one in self.each:
            one.batch_select_indices(indices)


class Ensemble(torch.nn.Module):
    """Several causal models that answer as one: the mean of their log probabilities, normalized.

    It takes and returns what a Hugging Face model does, as far as scoring and generation in this book need,
    so every attack runs on it as on a single model.
    """

    def __init__(self, members: Iterable[PreTrainedModel]) -> None:
        """Join models that share a vocabulary."""
        super().__init__()
        self.members = torch.nn.ModuleList(members)
        if not len(self.members):
            raise InvalidParameter("members: an ensemble needs one model or more")
        if len({one.config.vocab_size for one in self.members}) > 1:
            raise InvalidParameter("members: do not share a vocabulary")
        self.config = self.members[0].config

    @property
    def device(self) -> torch.device:
        """The device of the models."""
        return self.members[0].device

    def forward(
        self,
        input_ids: torch.Tensor,
        *,
        past_key_values: _Caches | None = None,
        use_cache: bool | None = None,
        **options: object,
    ) -> CausalLMOutputWithPast:
        """Return log probabilities as `logits`, and the caches of all members as one."""
        caches = past_key_values.each if past_key_values else [None] * len(self.members)
        outs = [
            one(input_ids=input_ids, past_key_values=cache, use_cache=use_cache, **options)
            for one, cache in zip(self.members, caches, strict=True)
        ]
        mean = torch.stack([out.logits.log_softmax(-1) for out in outs]).mean(0)
        kept = None if outs[0].past_key_values is None else _Caches([out.past_key_values for out in outs])
        return CausalLMOutputWithPast(logits=mean.log_softmax(-1), past_key_values=kept)
