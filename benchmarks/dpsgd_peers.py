"""The steps of other libraries: Opacus, and two that are run from a clone if the caller has one."""

import contextlib
import sys
import types

import torch
from dpsgd_cells import Scene
from dpsgd_variants import BOUND, SIGMA, Step
from opacus.grad_sample import GradSampleModule, GradSampleModuleFastGradientClipping, register_grad_sampler
from opacus.grad_sample.linear import compute_linear_norm_sample
from opacus.grad_sample.utils import register_norm_sampler
from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
from opacus.utils.fast_gradient_clipping_utils import DPTensorFastGradientClipping
from transformers.pytorch_utils import Conv1D

FOLDERS: dict[str, str] = {}  # clones, by the name of their package

# The norm of x^T g is that of its transpose g^T x, so what Opacus has for Linear serves here too.
register_norm_sampler(Conv1D)(compute_linear_norm_sample)


@register_grad_sampler(Conv1D)
def conv1d_grad_sample(layer: Conv1D, activations: list, back: torch.Tensor) -> dict:
    """Return the gradients of each row for Opacus, which knows Linear and not its transposed twin."""
    return {
        layer.weight: torch.einsum("nti,ntj->nij", activations[0].to(back), back),
        layer.bias: back.sum(1),
    }


class OpacusHooks(Step):
    """Opacus as it is most used: per-row gradients of every layer from hooks."""

    hooked = True

    def __init__(self, scene: Scene) -> None:
        """Wrap model and optimizer."""
        super().__init__(scene)
        self.module = GradSampleModule(self.model, loss_reduction="mean")
        self.optimizer = DPOptimizer(
            self.optimizer, noise_multiplier=SIGMA, max_grad_norm=BOUND, expected_batch_size=self.rows
        )

    def step(self) -> None:
        """Take one step."""
        self.optimizer.zero_grad()
        self.losses().mean().backward()
        self.optimizer.step()

    def set_noise(self, sigma: float) -> None:
        """Set the noise multiplier."""
        self.optimizer.noise_multiplier = sigma


class OpacusGhost(OpacusHooks):
    """Opacus' ghost clipping: two backward passes, no per-row gradients; refuses tied weights."""

    tied, lora = False, False

    def __init__(self, scene: Scene) -> None:
        """Wrap model and optimizer."""
        Step.__init__(self, scene)
        self.module = GradSampleModuleFastGradientClipping(
            self.model, loss_reduction="mean", max_grad_norm=BOUND, use_ghost_clipping=True
        )
        self.optimizer = DPOptimizerFastGradientClipping(
            self.optimizer, noise_multiplier=SIGMA, max_grad_norm=BOUND, expected_batch_size=self.rows
        )

    def step(self) -> None:
        """Take one step."""
        self.optimizer.zero_grad()
        DPTensorFastGradientClipping(self.module, self.optimizer, self.library_losses(), "mean").backward()
        self.optimizer.step()


class FastDP(Step):
    """fastDP's book-keeping (MixOpt), from a clone; untied, for with tied weights its norms are wrong."""

    hooked, tied, lora = True, False, False
    package = "fastDP"

    def __init__(self, scene: Scene) -> None:
        """Import the clone and attach its engine."""
        super().__init__(scene)
        sys.path.insert(0, FOLDERS[self.package])
        import fastDP

        # Its own forward passes were written for transformers 4.
        fastDP.privacy_engine.transformers_support.forward_swapper = lambda module: None
        # Autograd needs the gradient of these alone to reach every hook: no other is formed in vain.
        first = ["wte", "wpe"] if scene.cell.kind == "gpt2" else ["_embeddings"]
        settings = {"noise_multiplier": SIGMA, "clipping_fn": "Abadi", "num_steps": 1, "origin_params": first}
        with contextlib.redirect_stdout(None):
            self.engine = fastDP.PrivacyEngine(
                self.model, batch_size=self.rows, sample_size=1000, max_grad_norm=BOUND, **settings
            )
        self.engine.attach(self.optimizer)

    def step(self) -> None:
        """Take one step."""
        self.losses().mean().backward()
        self.optimizer.step()

    def set_noise(self, sigma: float) -> None:
        """Set the noise multiplier."""
        for parameter in self.model.parameters():
            parameter.noise = sigma * BOUND


class _Container(type):
    """What private-transformers asks of the package ml_swissknife: a class that lists its values."""

    def all(cls) -> tuple:
        """Return the values."""
        return tuple(value for name, value in vars(cls).items() if not name.startswith("_"))


class PrivateTransformers(Step):
    """private-transformers' ghost clipping, from a clone; two backward passes, refuses tied weights."""

    hooked, tied, lora = True, False, False
    package = "private_transformers"

    def __init__(self, scene: Scene) -> None:
        """Import the clone and attach its engine."""
        super().__init__(scene)
        sys.path.insert(0, FOLDERS[self.package])
        utils = types.SimpleNamespace(ContainerMeta=_Container, handle_unused_kwargs=lambda unused: None)
        sys.modules.setdefault("ml_swissknife", types.SimpleNamespace(utils=utils))
        import private_transformers as peer

        peer.privacy_engine.transformers_support.forward_swapper = lambda module: None
        settings = {"max_grad_norm": BOUND, "noise_multiplier": SIGMA, "epochs": 1, "clipping_mode": "ghost"}
        self.engine = peer.PrivacyEngine(
            self.model, batch_size=self.rows, sample_size=1000, record_snr=False, skip_checks=True, **settings
        )
        self.engine.attach(self.optimizer)

    def step(self) -> None:
        """Take one step."""
        self.optimizer.zero_grad()
        self.optimizer.step(loss=self.library_losses())

    def set_noise(self, sigma: float) -> None:
        """Set the noise multiplier."""
        self.engine.noise_multiplier = sigma
