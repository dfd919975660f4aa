"""The steps that `dpsgd.py` times: one class for each way to take one optimizer step on one batch.

All private ones clip the gradient of each row to C = 1, add noise of standard deviation sigma C to the sum,
divide by the number of rows and call AdamW. Its learning rate is 0: that costs what any other costs, and as
the weights stay as they are, every step of every variant computes on the same model. There is no dropout.
"""

import torch
from dpsgd_cells import Scene
from torch.nn import functional

from privhelpers import dpsgd
from privhelpers.dpsgd._layers import listening, slow_activations
from privhelpers.dpsgd._losses import losses_by_row

BOUND, SIGMA = 1.0, 1.0


class Step:
    """One way to take a step."""

    private = True  # adds noise
    hooked = False  # leaves hooks in its model, so that it needs one of its own
    tied = True  # takes models that read and score with one matrix
    lora = True  # is timed with adapters too
    package: str | None = None  # that the caller must have a clone of
    sigma = SIGMA

    def __init__(self, scene: Scene) -> None:
        """Make ready whatever a training run makes ready once."""
        self.scene, self.batch, self.rows = scene, scene.batch, scene.cell.rows
        self.model = scene.model(self.tied) if self.hooked else scene.shared
        self.optimizer = scene.optimizer_of(self.model) if self.hooked else scene.shared_optimizer
        self.parameters = {name: p for name, p in self.model.named_parameters() if p.requires_grad}

    def step(self) -> None:
        """Take one step."""
        raise NotImplementedError

    def set_noise(self, sigma: float) -> None:
        """Set the noise multiplier."""
        self.sigma = sigma

    def losses(self) -> torch.Tensor:
        """Return the loss of each row, by the book's function."""
        with self.scene.precision():
            return losses_by_row(self.model, self.batch)

    def library_losses(self) -> torch.Tensor:
        """Return the same by torch's, which allows a second backward pass."""
        inputs = {name: value for name, value in self.batch.items() if name != "labels"}
        with self.scene.precision():
            logits, labels = self.model(**inputs).logits.float(), self.batch["labels"]
        if self.scene.cell.kind != "bert":
            logits, labels = logits[:, :-1], labels[:, 1:]
        each = functional.cross_entropy(logits.transpose(1, 2), labels, reduction="none")
        return each.sum(1) / (labels != -100).sum(1)

    def noisy_mean(self, clipped_sum: torch.Tensor) -> torch.Tensor:
        """Add the noise and divide, in place."""
        return clipped_sum.add_(torch.randn_like(clipped_sum), alpha=self.sigma * BOUND).div_(self.rows)


class Plain(Step):
    """The ordinary step of a Hugging Face model, without privacy."""

    private = False

    def step(self) -> None:
        """Take one step."""
        self.optimizer.zero_grad()
        self.loss().backward()
        self.optimizer.step()

    def loss(self) -> torch.Tensor:
        """Return the loss of the batch."""
        with self.scene.precision():
            return self.model(**self.batch).loss


class PlainSameKernels(Plain):
    """The ordinary step with the book's loss and GPT-2's activation in one kernel, as ours has them."""

    def step(self) -> None:
        """Take one step."""
        with listening(slow_activations(self.model), recorder=None):
            super().step()

    def loss(self) -> torch.Tensor:
        """Return the loss of the batch."""
        return self.losses().mean()


class Loop(Step):
    """The report's: row after row forward and backward, copies of all gradients, clip, stack, noise."""

    def step(self) -> None:
        """Take one step."""
        kept = [self.clipped(row) for row in range(self.rows)]
        for name, parameter in self.parameters.items():
            parameter.grad = self.noisy_mean(torch.stack([gradients[name] for gradients in kept]).sum(0))
        self.optimizer.step()

    def clipped(self, row: int) -> dict[str, torch.Tensor]:
        """Return the clipped gradient of one row."""
        self.model.zero_grad()
        with self.scene.precision():
            loss = self.model(**{name: value[row : row + 1] for name, value in self.batch.items()}).loss
        loss.backward()
        gradients, square = {}, 0.0
        for name, parameter in self.parameters.items():
            square += parameter.grad.norm().item() ** 2
            gradients[name] = parameter.grad.clone()
        for gradient in gradients.values():
            gradient *= min(1.0, BOUND / (square**0.5 + 1e-10))
        return gradients


class Vmap(Step):
    """torch.func: vmap over rows of grad of the loss of one row."""

    lora = False

    def step(self) -> None:
        """Take one step."""
        weights = {name: p.detach() for name, p in self.parameters.items()}
        with self.scene.precision():
            each = torch.func.vmap(torch.func.grad(self.loss), in_dims=(None, 0))(weights, self.batch)
        norms = [torch.linalg.vector_norm(gradient, dim=-1) for gradient in each.values()]
        squares = [norm.square().view(self.rows, -1).sum(1) for norm in norms]
        factors = (BOUND / torch.stack(squares).sum(0).sqrt()).clamp_max(1.0)
        for name, parameter in self.parameters.items():
            parameter.grad = self.noisy_mean(torch.einsum("n,n...->...", factors, each[name]))
        self.optimizer.step()

    def loss(self, weights: dict[str, torch.Tensor], row: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return the loss of one row as a function of the weights."""
        batch = {name: value[None] for name, value in row.items()}
        return torch.func.functional_call(self.model, weights, (), batch).loss


class _Silence:
    """Noise that is zero, to see the clipped sum."""

    def before_sum(self, totals: dict[str, torch.Tensor], deviation: float) -> None:
        """Fill the totals with zeros."""
        for total in totals.values():
            total.zero_()

    def after_sum(self, totals: dict[str, torch.Tensor], deviation: float, sensitivity: float) -> None:
        """Add nothing."""


class Ours(Step):
    """This project's engine."""

    memory = "fast"

    def __init__(self, scene: Scene) -> None:
        """Make the private optimizer."""
        super().__init__(scene)
        self.private_optimizer = dpsgd.PrivateOptimizer(
            self.optimizer,
            self.model,
            noise_multiplier=SIGMA,
            max_grad_norm=BOUND,
            expected_batch_size=self.rows,
            chance=dpsgd.research(0),
            memory=self.memory,
        )

    def step(self) -> None:
        """Take one step."""
        with self.scene.precision():  # the forward pass lies within
            self.private_optimizer.step([(self.batch, None)])

    def set_noise(self, sigma: float) -> None:
        """Set the noise multiplier to zero or back; the optimizer's own is sealed."""
        self.private_optimizer.chance = dpsgd.research(0) if sigma else _Silence()


class OursLow(Ours):
    """The same with little memory."""

    memory = "low"
