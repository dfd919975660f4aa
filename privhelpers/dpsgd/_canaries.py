"""Canaries of an audit: units of a private run that have no text, along coordinates that no note touches.

The model gets spare rows for the time of the run: weights that nothing reads, so that their gradient is zero
for every patient. Each canary owns one coordinate there, by its number alone: were they put where the notes
leave room, one longer note would move them all, and no clipping bounds that. Fair coins decide which canaries
take part; those that do are drawn by the sampler of the patients, clipped by the code of the patients, and
covered by the same noise. What the released gradients show at a canary's coordinate, taken part or not, is
what an audit bounds epsilon with; the model's use of text stays as it was.

Source: Nasr et al. 2023, "Tight Auditing of Differentially Private Machine Learning", section 4.2
(gradients along one coordinate); Steinke, Nasr and Jagielski 2023, "Privacy Auditing with One (1) Training
Run", section 5 (many at once).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from privhelpers import rng, validate
from privhelpers.accounting import PrivacyPlan
from privhelpers.dpsgd._callbacks import Callback, Taken
from privhelpers.dpsgd._engine import GivenGradients, trainable
from privhelpers.dpsgd._log import CanaryScores, Tally
from privhelpers.mechanisms import participation_log_ratio

_SPARE, _WIDTH = "spare_rows", 64  # a canary is a number of one of these rows


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
        validate.fields(self, validate.positive_int, "count")
        validate.fields(self, validate.non_negative_int, "seed")
        validate.fields(self, validate.positive, "raw_norm")


class CanaryTracker(Callback):
    """The canaries of one run, at work; a context manager, in which the model has spare rows.

    Args:
        canaries: how many, and their coins.
        model: as it is trained.
        plan: sealed settings of the run.
    """

    def __init__(self, canaries: GradientCanaries, model: nn.Module, plan: PrivacyPlan) -> None:
        """Flip the coins and find a coordinate for each canary."""
        self.name, self.plan, self._model = f"{_SPARE}.weight", plan, model
        place = torch.arange(canaries.count)
        self.row, self.column = place // _WIDTH, place % _WIDTH
        self.raw_norm = canaries.raw_norm * plan.max_grad_norm
        coins = rng.make(canaries.seed, "dpsgd/canaries").integers(2, size=canaries.count)
        self.included = coins.astype(bool)
        self._taking_part = np.flatnonzero(self.included)
        self.scores, self._tally = np.zeros(canaries.count), None

    def __enter__(self) -> "CanaryTracker":
        """Add the spare embedding rows, with dtype and device of the first trainable weight."""
        self.like = next(iter(trainable(self._model).values()))
        rows = nn.Embedding(int(self.row[-1]) + 1, _WIDTH, device=self.like.device, dtype=self.like.dtype)
        nn.init.zeros_(rows.weight)
        self._model.add_module(_SPARE, rows)
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the spare rows; the trained weights stay."""
        delattr(self._model, _SPARE)

    @property
    def units(self) -> int:
        """How many take part."""
        return len(self._taking_part)

    def gradients_of(self, drawn: Sequence[int]) -> GivenGradients:
        """Return the gradients of the canaries that a step drew, by their number among those taking part."""
        chosen = torch.from_numpy(self._taking_part[np.asarray(drawn, dtype=int)])
        gradient = self.like.new_zeros(len(chosen), _WIDTH)
        gradient[torch.arange(len(chosen)), self.column[chosen]] = self.raw_norm
        return GivenGradients(self.name, self.row[chosen].to(self.like.device), gradient.detach())

    def resume(self, tally: Tally) -> None:
        """Continue from the scores of a tally, and write them there after each step."""
        self._tally = tally
        if tally.canary_scores:
            self.scores[:] = tally.canary_scores

    def after(self, taken: Taken) -> None:
        """Add the evidence of one step's noisy mean gradient to each canary's score."""
        plan = self.plan
        seen = taken.gradients[self.name][self.row, self.column].double().cpu().numpy()
        # Noise around 1 if the canary entered, around 0 if it did not.
        seen *= plan.expected_batch_size / plan.max_grad_norm
        self.scores += participation_log_ratio(
            seen, noise_multiplier=plan.noise_multiplier, sample_rate=plan.sample_rate
        )
        self._tally.canary_scores = self.scores.tolist()

    def shown(self) -> CanaryScores:
        """Return coins and scores."""
        return CanaryScores(self.included, self.scores)
