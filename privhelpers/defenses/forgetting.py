"""What attacks say of patients who were to be forgotten, always against people who were never there.

    judge = Judge(patients, gone, never, public=public_losses)
    judge.area(losses)                  # 0.5 is "as if never trained on"; above and below it are not
    judge.change(before, after)         # for an attacker who kept the old model

Source: Chen et al. 2021, for the attacker who holds both versions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike

from privhelpers import stats
from privhelpers.attacks import controls, memorization
from privhelpers.attacks.canaries import CanaryResult
from privhelpers.attacks.membership import Arms
from privhelpers.defenses.unlearning import reversed_exposure, verdict
from privhelpers.stats import Interval

ATTACKS = ("loss", "reference")


@dataclass(frozen=True)
class Judge:
    """The scores of patients who were to be forgotten, against those of never-trained patients.

    Attributes:
        patients: patient of each scored note, shape [notes].
        gone: which notes are of patients to be forgotten, canaries left out.
        never: which notes are of patients whom no model was trained on.
        public: loss of each note under the public checkpoint.
        draws, seed: of the bootstrap over patients.
    """

    patients: np.ndarray
    gone: np.ndarray
    never: np.ndarray
    public: np.ndarray
    draws: int = 300
    seed: int = 0

    def _of_patients(self, scores: np.ndarray) -> Arms:
        notes = [(scores[own], self.patients[own]) for own in (self.gone, self.never)]
        return Arms(*notes[0], *notes[1]).by_patient()

    def arms(self, losses: ArrayLike, attack: str = "loss") -> Arms:
        """Return a score a patient: the mean of minus the loss, or of its difference from the reference."""
        losses = np.asarray(losses, dtype=float)
        return self._of_patients(self.public - losses if attack == "reference" else -losses)

    def area(self, losses: ArrayLike, attack: str = "loss") -> Interval:
        """Return the AUC of forgotten against never-trained patients."""
        return stats.auc_interval(*self.arms(losses, attack).values, draws=self.draws, seed=self.seed)

    def areas(self, losses: Mapping[str, ArrayLike], attack: str = "loss") -> dict[str, Interval]:
        """Return the AUC under each model."""
        return {name: self.area(values, attack) for name, values in losses.items()}

    def along(self, looks: Sequence[ArrayLike]) -> np.ndarray:
        """Return AUC, low and high of the loss at each look of a path, shape [3, looks]."""
        found = [self.area(losses) for losses in looks]
        return np.array([[i.estimate, i.low, i.high] for i in found]).T

    def null(self, losses: ArrayLike, attack: str, what: str) -> Interval:
        """Return the AUC of one half of the never-trained patients against the other; it must be chance.

        Raises:
            ControlFailed: it is not.
        """
        own = self.arms(losses, attack)
        found = controls.split_auc(own.other_scores, own.other_patients, draws=self.draws, seed=self.seed)
        controls.require_null(f"{what}, {attack}: never trained against never trained", found)
        return found

    def change(self, before: ArrayLike, after: ArrayLike) -> Interval:
        """Return the AUC of the rise of the loss, for an attacker who holds the model of before too."""
        rise = np.asarray(after, dtype=float) - np.asarray(before, dtype=float)
        values = self._of_patients(rise).values
        return stats.auc_interval(*values, draws=self.draws, seed=self.seed)

    def perplexity(self, losses: ArrayLike, tokens: ArrayLike, notes: ArrayLike) -> float:
        """Return the perplexity over some notes, cut off at e to the 20 for a model that is destroyed."""
        losses, tokens = np.asarray(losses, dtype=float)[notes], np.asarray(tokens)[notes]
        return float(np.exp(min(20.0, np.average(losses, weights=tokens))))


def table(areas: Mapping[str, Mapping[str, Interval]]) -> pd.DataFrame:
    """Return AUC and interval of each attack on each model, and the verdict by the first attack.

    Args:
        areas: by attack, then by model.
    """
    words = {
        attack: {model: f"{i.estimate:.2f} [{i.low:.2f}, {i.high:.2f}]" for model, i in found.items()}
        for attack, found in areas.items()
    }
    first = next(iter(areas.values()))
    return pd.DataFrame({**words, "verdict": {model: verdict(i) for model, i in first.items()}})


def secret_gaps(results: Sequence[CanaryResult], *, forgotten: int, references: int) -> dict[str, float]:
    """Return how far forgotten secrets stand from never-inserted ones, from above and from below.

    Args:
        results: the forgotten canaries first, then those that were never inserted.
        forgotten: how many of them are forgotten.
        references: other secrets that each was ranked among.

    Returns:
        `extracted`, the forgotten that greedy decoding completes; and the difference in mean bits `above`
        (exposure) and `below` (exposure counted from the other end), each with Welch's 95 % interval.
    """
    row: dict[str, float] = {"extracted": sum(result.extracted for result in results[:forgotten])}
    bits = {
        "above": [result.exposure_bits for result in results],
        "below": [reversed_exposure(result.rank, references=references) for result in results],
    }
    for word, values in bits.items():
        gap = stats.mean_difference(values[:forgotten], values[forgotten:])
        row |= {word: gap.estimate, f"{word} low": gap.low, f"{word} high": gap.high}
    return row


def recall_rates(model: torch.nn.Module, halves: Mapping[str, memorization.Halves]) -> dict[str, float]:
    """Return how many second halves of each group a model completes, of how many, and the rate's upper end.

    Args:
        model: a causal model, or an ensemble of them.
        halves: notes cut in two, by group.
    """
    row = {}
    for group, own in halves.items():
        hits = memorization.recall(model, own, batch_size=64).recalled
        high = stats.clustered_proportion(hits, own.patients).high
        row |= {group: int(hits.sum()), f"{group} n": int(hits.size), f"{group} high": high}
    return row
