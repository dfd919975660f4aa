"""What is done before and after each step of a private run."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import torch

from privhelpers.errors import TrainingFailed


@dataclass(frozen=True)
class Taken:
    """A step that was taken.

    Attributes:
        done: steps of the run up to here, this one included.
        gradients: noisy mean by name of the parameter, which is what the step released.
    """

    done: int
    gradients: Mapping[str, torch.Tensor]


class Callback:
    """One concern of a run; each method does nothing unless a subclass has it."""

    def before(self, step: int) -> None:
        """Do what comes before `step`, counted from 0, is taken."""

    def after(self, taken: Taken) -> None:
        """Do what follows on a step."""


class Snapshots(Callback):
    """Copies the weights after some steps.

    Args:
        parameters: trained ones, by name.
        steps: after which a copy is made, 1 to the last.

    Attributes:
        weights: copies by step.
    """

    def __init__(self, parameters: Mapping[str, torch.Tensor], steps: Collection[int]) -> None:
        """Begin with none."""
        self._parameters, self._steps = parameters, steps
        self.weights: dict[int, dict[str, torch.Tensor]] = {}

    def after(self, taken: Taken) -> None:
        """Copy the weights if they are asked for."""
        if taken.done in self._steps:
            self.weights[taken.done] = copied(self._parameters)


def copied(parameters: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return parameters as they are now."""
    return {name: p.detach().clone() for name, p in parameters.items()}


def require_finite(parameters: Mapping[str, torch.Tensor]) -> None:
    """Raise TrainingFailed if a weight is not a finite number."""
    if not all(bool(torch.isfinite(p).all()) for p in parameters.values()):
        raise TrainingFailed("DP-SGD: the weights are no longer finite; lower the learning rate")
