"""Canaries of an audit: units of a private run that have no text, along coordinates that no note touches.

Positions beyond the longest note have rows in the position table whose gradient is zero for every patient;
where there are too few, the model gets spare rows. Each canary owns one coordinate of these rows. Fair coins
decide which canaries take part; those that do are drawn by the sampler of the patients, clipped by the code
of the patients, and covered by the same noise. What the released gradients show at a canary's coordinate,
taken part or not, is what an audit bounds epsilon with; the model's use of text stays as it was.

Source: Nasr et al. 2023, "Tight Auditing of Differentially Private Machine Learning", section 4.2
(gradients along one coordinate); Steinke, Nasr and Jagielski 2023, "Privacy Auditing with One (1) Training
Run", section 5 (many at once).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from privhelpers import rng, validate
from privhelpers.dpsgd._engine import GivenGradients, trainable
from privhelpers.dpsgd._plan import PrivacyPlan
from privhelpers.errors import InvalidParameter
from privhelpers.mechanisms import participation_log_ratio

_POSITION_TABLES = ("wpe.weight", "position_embeddings.weight")
_SPARE, _WIDTH = "spare_rows", 64


@dataclass(frozen=True)
class GradientCanaries:
    """Which canaries a run carries.

    Attributes:
        count: canaries, 1 or more; about half of them take part.
        seed: of the coins that decide which, 0 or more.
        raw_norm: norm of a canary's gradient before clipping over the clipping bound; far above 1, so that a
            run which does not clip shows.
    """

    count: int
    seed: int
    raw_norm: float = 100.0

    def __post_init__(self) -> None:
        """Refuse settings out of range."""
        validate.positive_int(count=self.count)
        validate.positive(raw_norm=self.raw_norm)


@dataclass(frozen=True)
class CanaryScores:
    """What a run showed of its canaries.

    Attributes:
        included: by a fair coin each, shape [canaries].
        scores: log-likelihood ratio, in nats, of having taken part, given all noisy gradients and the noise
            that the plan claims; higher is more likely, shape [canaries].
    """

    included: np.ndarray
    scores: np.ndarray


def drop_spare_rows(model: nn.Module) -> None:
    """Take away what `make_room` gave, if it did: the model is as it came, with its training."""
    if hasattr(model, _SPARE):
        delattr(model, _SPARE)


def make_room(model: nn.Module, longest: int, wanted: int) -> int:
    """Return how many coordinates no note of up to `longest` tokens touches.

    A model whose trained table of positions has fewer than `wanted`, or that has none, gets spare rows first.
    Nothing reads them, so no note has a gradient there; a private step clips and adds noise to them as to
    every other weight. `drop_spare_rows` takes them away before the model is saved.

    Args:
        model: whose trained weights carry the canaries; where they have no room, it gets `spare_rows`.
        longest: tokens of the longest note, 1 or more.
        wanted: canaries, 1 or more.

    Raises:
        UnsupportedModel: all weights are frozen.
    """
    validate.positive_int(longest=longest, wanted=wanted)
    drop_spare_rows(model)
    trained = list(trainable(model).items())
    positions = any(name.endswith(_POSITION_TABLES) for name, _ in trained)
    if not positions or free_coordinates(model, longest)[2] < wanted:
        like = trained[0][1]
        rows = nn.Embedding(-(-wanted // _WIDTH), _WIDTH, device=like.device, dtype=like.dtype)
        nn.init.zeros_(rows.weight)
        model.add_module(_SPARE, rows)
    return free_coordinates(model, longest)[2]


def free_coordinates(model: nn.Module, longest: int) -> tuple[str, int, int]:
    """Return where notes of up to `longest` tokens leave room: (table, first free row, coordinates).

    The table is that of the spare rows, if the model has them, or else the one of positions.

    Raises:
        InvalidParameter: the model has neither, or they are not trained.
    """
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if (table := trained.get(f"{_SPARE}.weight")) is not None:
        return f"{_SPARE}.weight", 0, table.numel()
    for name, table in trained.items():
        if name.endswith(_POSITION_TABLES):
            padding = getattr(model.get_submodule(name.rpartition(".")[0]), "padding_idx", None)
            first = longest if padding is None else longest + padding + 1  # RoBERTa counts from there
            return name, first, max(0, table.shape[0] - first) * table.shape[1]
    raise InvalidParameter(
        "canaries: the model has no trained position embedding to put them in; `make_room` adds rows for them"
    )


class Planted:
    """The canaries of one run, at work.

    Args:
        canaries: how many, and their coins.
        model: as it is trained.
        longest: tokens of the longest note.
        plan: sealed settings of the run.

    Raises:
        InvalidParameter: there are more canaries than free coordinates.
    """

    def __init__(self, canaries: GradientCanaries, model: nn.Module, longest: int, plan: PrivacyPlan) -> None:
        """Flip the coins and find a coordinate for each canary."""
        self.name, first, free = free_coordinates(model, longest)
        if canaries.count > free:
            raise InvalidParameter(
                f"canaries: count = {canaries.count}, but {self.name} has {free} coordinates that no note of "
                f"{longest} tokens touches; ask for at most so many"
            )
        table = dict(model.named_parameters())[self.name]
        place = torch.arange(canaries.count)
        self.row, self.column = first + place // table.shape[1], place % table.shape[1]
        self.like, self.plan = table, plan
        self.raw_norm = canaries.raw_norm * plan.max_grad_norm
        coins = rng.make(canaries.seed, "dpsgd/canaries").integers(2, size=canaries.count)
        self.included = coins.astype(bool)
        self._taking_part = np.flatnonzero(self.included)
        self.scores = np.zeros(canaries.count)

    @property
    def units(self) -> int:
        """How many take part."""
        return len(self._taking_part)

    def gradients_of(self, drawn: Sequence[int]) -> GivenGradients:
        """Return the gradients of the canaries that a step drew, by their number among those taking part."""
        chosen = torch.from_numpy(self._taking_part[np.asarray(drawn, dtype=int)])
        gradient = self.like.new_zeros(len(chosen), self.like.shape[1])
        gradient[torch.arange(len(chosen)), self.column[chosen]] = self.raw_norm
        return GivenGradients(self.name, self.row[chosen].to(self.like.device), gradient.detach())

    def watch(self, released: Mapping[str, torch.Tensor]) -> None:
        """Add what one step's noisy mean gradient says of each canary to its score."""
        spent, plan = self.plan.spent, self.plan
        seen = released[self.name][self.row, self.column].double().cpu().numpy()
        # Noise around 1 where the canary entered, around 0 where it did not.
        seen *= plan.expected_batch_size / plan.max_grad_norm
        self.scores += participation_log_ratio(
            seen, noise_multiplier=spent.noise_multiplier, sample_rate=spent.sample_rate
        )

    def shown(self) -> CanaryScores:
        """Return coins and scores."""
        return CanaryScores(self.included, self.scores)
