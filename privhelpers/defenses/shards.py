"""Unlearning by design: one model a shard of the patients, so that forgetting retrains few of them.

    whole = train_shards(start, tokenizer, notes_by_patient, shards=4, settings=settings, seed=0)
    less = whole.without({"p00017"})     # retrains the shard of p00017 and no other
    models.score(less.ensemble(), tokenizer, texts)

A patient is in one shard, and the shard of a patient depends on the patient and the seed alone: what is
left after forgetting is, weight for weight, what training without the patient would have given.

>>> round(expected_retrained(shards=4, requests=1), 3), round(expected_retrained(shards=4, requests=10), 3)
(1.0, 3.775)

Source: Bourtoule et al. 2021 (SISA; slices of a shard are left out here).
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.modeling_outputs import CausalLMOutputWithPast

from privhelpers import rng, training, validate
from privhelpers.errors import InvalidParameter
from privhelpers.training import Settings

Start = Callable[[], PreTrainedModel]


def shard_of(patient: str, *, shards: int, seed: int) -> int:
    """Return the shard of a patient, 0 to `shards` - 1, whoever else there is.

    Shuffling the patients and dealing them out would move others when one leaves, and then every shard
    would hold a trace of who was there.
    """
    validate.positive_int(shards=shards)
    return rng.derive(seed, f"shard/{patient}") % shards


def expected_retrained(*, shards: int, requests: int) -> float:
    """Return how many of `shards` equal shards hold at least one of `requests` patients drawn at random.

    Each shard is missed by all requests with probability (1 - 1/S)^k (drawn with replacement).

    Args:
        shards: S, 1 or more.
        requests: k, 0 or more.

    Source: Bourtoule et al. 2021.
    """
    validate.positive_int(shards=shards)
    validate.non_negative(requests=requests)
    return shards * (1 - (1 - 1 / shards) ** requests)


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
        """Where the models are."""
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


@dataclass(frozen=True)
class Sharded:
    """Models of all shards, with what is needed to train one of them again.

    Attributes:
        models: one a shard.
        notes: texts of each patient, by patient.
        seed: of the shards and of training.
        settings: of training.
        start: gives the model that every shard starts from.
        tokenizer: of all models.
        trained: shards that the last call trained.
        rows: passes of a text, forward and back, that the last call took: the cost.
    """

    models: tuple[PreTrainedModel, ...]
    notes: Mapping[str, Sequence[str]]
    seed: int
    settings: Settings
    start: Start
    tokenizer: PreTrainedTokenizerBase
    trained: tuple[int, ...]
    rows: int

    def ensemble(self) -> Ensemble:
        """Return the models as one, in evaluation mode."""
        return Ensemble(self.models).eval()

    def shard(self, patient: str) -> int:
        """Return the shard of a patient."""
        return shard_of(patient, shards=len(self.models), seed=self.seed)

    def without(self, patients: Collection[str]) -> "Sharded":
        """Return what training without these patients gives; only their shards are trained again.

        Raises:
            InvalidParameter: a patient is not there, or a shard would be left empty.
        """
        unknown = sorted(set(patients) - set(self.notes))
        if unknown:
            raise InvalidParameter(f"patient {unknown[0]!r}: is not in any shard")
        left = {patient: own for patient, own in self.notes.items() if patient not in set(patients)}
        return _train(replace(self, notes=left), sorted({self.shard(patient) for patient in patients}))


def _train(sharded: Sharded, shards: Sequence[int]) -> Sharded:
    models, rows = list(sharded.models), 0
    for number in shards:
        texts = [
            text for patient, own in sharded.notes.items() if sharded.shard(patient) == number for text in own
        ]
        if not texts:
            raise InvalidParameter(f"shard {number}: has no patient; use fewer shards")
        model = sharded.start()
        seed = sharded.seed
        training.train(model, sharded.tokenizer, texts, sharded.settings, seed=seed, progress=False)
        models[number] = model.eval()
        rows += len(texts) * sharded.settings.epochs
    return replace(sharded, models=tuple(models), trained=tuple(shards), rows=rows)


def train_shards(
    start: Start,
    tokenizer: PreTrainedTokenizerBase,
    notes_by_patient: Mapping[str, Sequence[str]],
    *,
    shards: int,
    settings: Settings,
    seed: int,
) -> Sharded:
    """Train one model a shard of the patients.

    Args:
        start: returns a fresh copy of the model that training starts from, such as the public checkpoint.
        tokenizer: of that model.
        notes_by_patient: texts of each patient; a patient's notes stay together.
        shards: how many models, 1 or more.
        settings: of `privhelpers.training`, the same for each.
        seed: of the assignment of patients and of training.

    Raises:
        InvalidParameter: a shard has no patient.

    Source: Bourtoule et al. 2021.
    """
    validate.positive_int(shards=shards)
    empty = Sharded((None,) * shards, dict(notes_by_patient), seed, settings, start, tokenizer, (), 0)
    return _train(empty, range(shards))
