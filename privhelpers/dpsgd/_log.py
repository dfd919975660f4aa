"""The counts of a private run, kept as it runs and carried over a kill."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from privhelpers.accounting import Claimed, PrivacySpent
from privhelpers.text import owners_of_texts


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


@dataclass(frozen=True)
class DPTrainingLog:
    """What a private run did.

    Norms, batch sizes and counts are of the private notes, without noise, and as private as these: publish
    none for real data.

    Epsilon protects each unit by itself. A person with notes under two ids is two units, protected by
    twice the epsilon at (1 + e^epsilon) delta (group privacy). `shared_texts` counts what may be such notes.

    Attributes:
        spent: the budget by the accountant of the plan; or, if a part under study stood in for one that is
            counted, the claim alone.
        mode: "research": the seed of the noise is known, so the guarantee is void; or "release".
        rdp_epsilon: the same run by Opacus' RDP accountant, stepped along with the training (a looser bound);
            None if nothing was counted.
        batch_sizes: units in each step whose work is in the weights, in order, shape [steps - lost_steps].
        median_norms: median norm before clipping of the gradients that were finite in each of these steps
            (NaN if there were none), shape [steps - lost_steps].
        clipped_share: share of the units in these steps whose gradient was finite and was clipped; 0 if no
            unit was drawn.
        empty_steps: how many of these steps drew no unit and were noise alone.
        lost_steps: steps that were spent and then lost by a kill, in release mode. Nothing is known of them,
            so no other count contains them.
        refused_gradients: gradients that were not finite and counted as zero.
        weight_change: Euclidean distance between the weights before and after.
        shared_texts: texts that more than one patient has, by `text.normalize`.
        notes_beyond_bound: notes that patients have beyond `notes_per_step`, summed over patients; a step
            that draws such a patient leaves so many out, others each time.
        canaries: what the run showed of an audit's canaries, if it carried any.
        weights: by step, a copy of the trainable parameters by name after each of the `snapshots`.
    """

    spent: PrivacySpent | Claimed
    mode: str
    rdp_epsilon: float | None
    batch_sizes: np.ndarray
    median_norms: np.ndarray
    clipped_share: float
    empty_steps: int
    lost_steps: int
    refused_gradients: int
    weight_change: float
    shared_texts: int
    notes_beyond_bound: int
    canaries: CanaryScores | None = None
    weights: Mapping[int, Mapping[str, torch.Tensor]] = field(default_factory=dict)


def counts_of_notes(notes_by_patient: Iterable[Sequence[str]], notes_per_step: int) -> dict[str, int]:
    """Return the part of a `DPTrainingLog` that depends on the notes alone."""
    notes = list(notes_by_patient)
    owners = owners_of_texts((unit, text) for unit, texts in enumerate(notes) for text in texts)
    return {
        "shared_texts": sum(count > 1 for count in owners.values()),
        "notes_beyond_bound": sum(max(0, len(texts) - notes_per_step) for texts in notes),
    }


@dataclass
class Tally:
    """Counts what the steps did; plain values, so that a checkpoint can keep them."""

    sizes: list[int] = field(default_factory=list)
    medians: list[float | None] = field(default_factory=list)
    clipped: int = 0
    refused: int = 0
    lost: int = 0
    canary_scores: list[float] = field(default_factory=list)

    def add(self, norms: torch.Tensor, max_grad_norm: float) -> None:
        """Count one step by its norms before clipping."""
        finite = norms[torch.isfinite(norms)]
        self.sizes.append(len(norms))
        self.medians.append(float(np.median(finite.numpy())) if len(finite) else None)
        self.clipped += int((finite > max_grad_norm).sum())
        self.refused += len(norms) - len(finite)

    def summary(self) -> dict[str, object]:
        """Return the counts as fields of `DPTrainingLog`."""
        return {
            "batch_sizes": np.array(self.sizes, dtype=int),
            "median_norms": np.array([np.nan if m is None else m for m in self.medians]),
            "clipped_share": self.clipped / max(1, sum(self.sizes)),
            "empty_steps": self.sizes.count(0),
            "lost_steps": self.lost,
            "refused_gradients": self.refused,
        }
