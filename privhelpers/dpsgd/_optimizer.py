"""One private step: clip, sum, add noise once, divide by a public number, hand to an ordinary optimizer.

Readers of Opacus will recognize the names and conventions of its `DPOptimizer`, and its accountants
attach to `attach_step_hook`. Instead of `zero_grad`, `backward` and `step`, which must follow each other in
the right order, there is one call that takes the whole draw, so that no step can be left out or made twice.
"""

from collections.abc import Callable, Iterable

import torch
from transformers import PreTrainedModel

from privhelpers import validate
from privhelpers.dpsgd._chance import RandomStreams
from privhelpers.dpsgd._engine import ClippedGradients, GivenGradients
from privhelpers.dpsgd._losses import Batch

Drawn = tuple[Batch | GivenGradients, torch.Tensor | None]


class PrivateOptimizer:
    """An optimizer whose gradient is the noisy mean of clipped per-unit gradients.

    Args:
        optimizer: any torch optimizer over the trainable parameters of `model`.
        model: as in `ClippedGradients`.
        noise_multiplier: noise standard deviation over the clipping norm, greater than 0.
        max_grad_norm: clipping bound C, greater than 0.
        expected_batch_size: units expected in a draw, sample rate times units; public, greater than 0, and
            not rounded. The size drawn is private.
        chance: of the noise.

    Raises:
        InvalidParameter: a value is out of its range.
        UnsupportedModel: a trainable module whose per-unit gradient is not known.

    Source: Abadi et al. 2016, algorithm 1.
    """

    clipping = ClippedGradients  # what clips and sums; a variant under study may have another
    accumulated_iterations = 1  # of one sampled batch in a step: what Opacus' accountants ask for

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        model: PreTrainedModel,
        *,
        noise_multiplier: float,
        max_grad_norm: float,
        expected_batch_size: float,
        chance: RandomStreams,
    ) -> None:
        """Check the model and make room for the gradients."""
        noise_multiplier, max_grad_norm, expected_batch_size = validate.positive(
            noise_multiplier=noise_multiplier,
            max_grad_norm=max_grad_norm,
            expected_batch_size=expected_batch_size,
        )
        self.engine = self.clipping(model, max_grad_norm=max_grad_norm)
        self.optimizer, self.chance = optimizer, chance
        self._sealed = (noise_multiplier, max_grad_norm, expected_batch_size)
        self.parameters = self.engine.parameters
        self.gradients = self.engine.zero_sums()
        self._hooks: list[Callable[[PrivateOptimizer], None]] = []

    def noise_deviation(self) -> float:
        """Return the standard deviation of the noise on every coordinate of the mean."""
        return self.noise_multiplier * self.max_grad_norm / self.expected_batch_size

    @property
    def noise_multiplier(self) -> float:
        """As calibrated: it cannot be changed."""
        return self._sealed[0]

    @property
    def max_grad_norm(self) -> float:
        """The clipping bound."""
        return self._sealed[1]

    @property
    def expected_batch_size(self) -> float:
        """The public divisor."""
        return self._sealed[2]

    def attach_step_hook(self, hook: Callable[["PrivateOptimizer"], None]) -> None:
        """Call `hook` after every step, such as `RDPAccountant().get_optimizer_hook_fn(sample_rate)`."""
        self._hooks.append(hook)

    def noisy_mean(self, draw: Iterable[Drawn]) -> torch.Tensor:
        """Fill `gradients` with (clipped sum + N(0, sigma^2 C^2)) / expected batch size; return the norms.

        Args:
            draw: (batch, unit of each row) of every physical micro-batch of one Poisson draw; a unit is in
                one micro-batch. Empty: the draw was empty, and the step is noise alone. (given gradients,
                None): units without a text.

        Returns:
            Norms before clipping, shape [units of the draw]; not a private output.
        """
        scale, deviation = 1 / self.expected_batch_size, self.noise_deviation()
        self.gradients = self.engine.totals(lambda total: self.chance.before_sum(total, deviation))
        norms = [self.engine.add(batch, unit, into=self.gradients, scale=scale).cpu() for batch, unit in draw]
        self.gradients.complete()
        self.chance.after_sum(self.gradients, deviation, scale * self.max_grad_norm)
        return torch.cat([torch.empty(0, dtype=torch.float64), *norms])

    def step(self, draw: Iterable[Drawn]) -> torch.Tensor:
        """Take one step with a whole Poisson draw, an empty one included; return the norms."""
        norms = self.noisy_mean(draw)
        for parameter in (p for group in self.optimizer.param_groups for p in group["params"]):
            parameter.grad = None  # of a weight that is frozen, or was when this optimizer was made
        for name, parameter in self.parameters.items():
            parameter.grad = self.gradients[name].to(parameter.dtype)
        self.optimizer.step()
        torch.clear_autocast_cache()  # of weights in fewer digits, as they were before the step
        for parameter in self.parameters.values():
            parameter.grad = None
        for hook in self._hooks:
            hook(self)
        return norms
