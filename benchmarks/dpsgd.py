"""What a private step costs, compared with Opacus, torch.func, and the report's loop.

`python benchmarks/dpsgd.py > benchmarks/dpsgd.md` makes the page; with ATEN_CPU_CAPABILITY=avx2 in the
environment PyTorch does without AVX-512. All variants take turns in one process on one core, or on one GPU
with `--device cuda`, on the same batch and the same weights. A ratio is one of 25th percentiles over rounds,
with the least and the most of one round in parentheses. A figure of another run or machine is never compared.
Before a private variant is timed, its clipped sum is compared with one backward pass for each row, so that
nothing wrong is timed; the last column has the relative error.

A heading names the model, the rows of a batch (b), and the tokens of a row (t). Every private variant clips
each row to C = 1, adds noise of sigma = 1 to the sum, divides by the rows, and calls the same AdamW. There is
no dropout, and the learning rate is 0: that costs what any other costs, and every step computes on the same
weights. "Same kernels" is the plain step with the book's loss function, GPT-2's activation in one kernel, and
the products of linear layers by the library that ours takes: the ratio to it is what privacy costs. (Ours
leaves layers that are frozen under adapters to PyTorch.) Untied: Opacus refuses one matrix that reads and
scores, so its model has two.

The models of 124M and 135M parameters take 12 GB of memory. fastDP, private-transformers, and the peak memory
of each variant on a processor were last measured with older code: `git show 8c9d0c4:benchmarks/dpsgd.md`.
"""

import gc
import time
import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
import transformers
from kept import ROOT, options_of, settle
from opacus.grad_sample import GradSampleModule, GradSampleModuleFastGradientClipping, register_grad_sampler
from opacus.grad_sample.linear import compute_linear_norm_sample
from opacus.grad_sample.utils import register_norm_sampler
from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
from opacus.utils.fast_gradient_clipping_utils import DPTensorFastGradientClipping
from torch import nn
from torch.nn import functional
from tqdm import tqdm
from transformers.pytorch_utils import Conv1D

from bookmaker.runner.fingerprint import commit, machine, versions
from privhelpers import dpsgd
from privhelpers.dpsgd._layers import recording, slow_activations
from privhelpers.dpsgd._losses import losses_by_row
from privhelpers.models.precision import training_in

BOUND, SIGMA = 1.0, 1.0
# What is wrong is wrong by percents; the flat float32 norms of Opacus and of the loop are off by up to 1e-4.
TOLERANCE = 1e-3
TINY_GPT2 = {"vocab_size": 3000, "n_positions": 128, "n_embd": 128, "n_layer": 4, "n_head": 4}
TINY_BERT = {
    **{"vocab_size": 3000, "max_position_embeddings": 128, "hidden_size": 128, "num_hidden_layers": 4},
    **{"num_attention_heads": 4, "intermediate_size": 512},
}
LLAMA = {  # the shape of SmolLM2-135M
    **{"vocab_size": 49152, "max_position_embeddings": 128, "hidden_size": 576, "num_hidden_layers": 30},
    **{"num_attention_heads": 9, "num_key_value_heads": 3, "intermediate_size": 1536},
}
NO_DROPOUT = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
NO_BERT_DROPOUT = dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), 0.0)
MODELS = {
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", TINY_GPT2 | NO_DROPOUT, 3000),
    "bert": ("BertForMaskedLM", "BertConfig", TINY_BERT | NO_BERT_DROPOUT, 3000),
    "124m": ("GPT2LMHeadModel", "GPT2Config", NO_DROPOUT, 50257),
    "llama": ("LlamaForCausalLM", "LlamaConfig", LLAMA, 49152),
}


@dataclass(frozen=True)
class Cell:
    """A model with random weights, and a batch of random tokens: nothing to download."""

    kind: str  # a key of MODELS
    rows: int
    length: int
    lora: bool = False

    def model(self, tied: bool) -> nn.Module:
        """Return the model, always with the same weights."""
        torch.manual_seed(0)
        name, config, settings, _ = MODELS[self.kind]
        config = getattr(transformers, config)(tie_word_embeddings=tied, **settings)
        model = getattr(transformers, name)(config)
        if self.kind == "bert":
            # A second name for decoder.bias: Opacus hands its parent to functorch, which then fails.
            del model.cls.predictions.bias
        if self.lora:
            from peft import LoraConfig, get_peft_model

            # Random adapters: the usual zeros would leave half of their gradients zero.
            gpt2 = self.kind != "llama"
            where = {"target_modules": ["c_attn", "c_proj", "c_fc"] if gpt2 else "all-linear"}
            settings = {"r": 8, "lora_dropout": 0.0, "init_lora_weights": False, "fan_in_fan_out": gpt2}
            model = get_peft_model(model, LoraConfig(**settings, **where))
        return model.train()

    def batch(self) -> dict[str, torch.Tensor]:
        """Return ids and labels; positions and types are given for each row, for Opacus needs them so."""
        generator = torch.Generator().manual_seed(1)
        shape = (self.rows, self.length)
        ids = torch.randint(MODELS[self.kind][-1], shape, generator=generator)
        positions = torch.arange(self.length).repeat(self.rows, 1)
        batch = {"input_ids": ids, "labels": ids.clone(), "position_ids": positions}
        if self.kind == "bert":
            hidden = torch.rand(shape, generator=generator) < 0.15
            hidden[:, 0] = True  # no row without a label
            batch |= {"labels": ids.masked_fill(~hidden, -100), "token_type_ids": torch.zeros_like(ids)}
        return batch


CELLS = {
    "gpt2-b8-t64": Cell("gpt2", 8, 64),
    "gpt2-b32-t64": Cell("gpt2", 32, 64),
    "bert-b8-t64": Cell("bert", 8, 64),
    "lora-b8-t64": Cell("gpt2", 8, 64, lora=True),
    "124m-b4-t128": Cell("124m", 4, 128),
    "lora-124m-b4-t128": Cell("124m", 4, 128, lora=True),
    "llama-b4-t128": Cell("llama", 4, 128),
    "lora-llama-b4-t128": Cell("llama", 4, 128, lora=True),
}


class Scene:
    """One cell on one device: the batch, and one model that all steps without hooks of their own share."""

    def __init__(self, cell: Cell, device: str) -> None:
        """Build batch and model."""
        self.cell, self.device = cell, torch.device(device)
        self.batch = {name: value.to(self.device) for name, value in cell.batch().items()}
        with self.device:  # a processor takes seconds to draw 100 million weights
            self.shared = cell.model(tied=True).to(self.device)
        self.shared_optimizer = self.optimizer_of(self.shared)

    def model(self, tied: bool) -> nn.Module:
        """Return a model of its own whose weights are the memory of the shared one's."""
        with self.device:
            model = self.cell.model(tied).to(self.device)
        weights = dict(self.shared.named_parameters(remove_duplicate=False))
        for name, parameter in model.named_parameters():
            parameter.data = weights[name].data
        return model

    def optimizer_of(self, model: nn.Module) -> torch.optim.Optimizer:
        """Return AdamW over what is trained."""
        return torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.0, fused=True)


class Step:
    """One way to take a step: the plain one of a Hugging Face model, which the others change."""

    private = False  # adds noise
    hooked = False  # leaves hooks in its model, so that it needs one of its own
    tied = True  # takes models that read and score with one matrix
    lora = True  # is timed with adapters too
    sigma = SIGMA

    def __init__(self, scene: Scene) -> None:
        """Make ready whatever a training run makes ready once."""
        self.scene, self.batch, self.rows = scene, scene.batch, scene.cell.rows
        self.model = scene.model(self.tied) if self.hooked else scene.shared
        self.optimizer = scene.optimizer_of(self.model) if self.hooked else scene.shared_optimizer
        self.parameters = {name: p for name, p in self.model.named_parameters() if p.requires_grad}

    def step(self) -> None:
        """Take one step."""
        self.optimizer.zero_grad()
        self.model(**self.batch).loss.backward()
        self.optimizer.step()

    def set_noise(self, sigma: float) -> None:
        """Set the noise multiplier."""
        self.sigma = sigma

    def losses(self) -> torch.Tensor:
        """Return the loss of each row, by the book's function."""
        return losses_by_row(self.model, self.batch)

    def noisy_mean(self, clipped_sum: torch.Tensor) -> torch.Tensor:
        """Add the noise and divide, in place."""
        return clipped_sum.add_(torch.randn_like(clipped_sum), alpha=self.sigma * BOUND).div_(self.rows)


class SameKernels(Step):
    """The plain step with the book's loss, GPT-2's activation in one kernel and its products, as ours."""

    def step(self) -> None:
        """Take one step."""
        self.optimizer.zero_grad()
        with recording(slow_activations(self.model), recorder=None), training_in(self.model, "highest"):
            self.losses().mean().backward()
        self.optimizer.step()


class Loop(Step):
    """The report's: row after row forward and backward, copies of all gradients, clip, stack, noise."""

    private = True

    def step(self) -> None:
        """Take one step."""
        kept = [self.clipped(row) for row in range(self.rows)]
        for name, parameter in self.parameters.items():
            parameter.grad = self.noisy_mean(torch.stack([gradients[name] for gradients in kept]).sum(0))
        self.optimizer.step()

    def clipped(self, row: int) -> dict[str, torch.Tensor]:
        """Return the clipped gradient of one row."""
        self.model.zero_grad()
        self.model(**{name: value[row : row + 1] for name, value in self.batch.items()}).loss.backward()
        gradients, square = {}, 0.0
        for name, parameter in self.parameters.items():
            square += parameter.grad.norm().item() ** 2
            gradients[name] = parameter.grad.clone()
        for gradient in gradients.values():
            gradient *= min(1.0, BOUND / (square**0.5 + 1e-10))
        return gradients


class Vmap(Step):
    """torch.func: vmap over rows of grad of the loss of one row."""

    private, lora = True, False

    def step(self) -> None:
        """Take one step."""
        weights = {name: p.detach() for name, p in self.parameters.items()}
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

    private, hooked = True, True
    wrapped, wrapped_optimizer = GradSampleModule, DPOptimizer

    def __init__(self, scene: Scene, **options: object) -> None:
        """Wrap model and optimizer."""
        super().__init__(scene)
        self.module = self.wrapped(self.model, loss_reduction="mean", **options)
        self.optimizer = self.wrapped_optimizer(
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
    wrapped, wrapped_optimizer = GradSampleModuleFastGradientClipping, DPOptimizerFastGradientClipping

    def __init__(self, scene: Scene) -> None:
        """Wrap model and optimizer."""
        super().__init__(scene, max_grad_norm=BOUND, use_ghost_clipping=True)

    def step(self) -> None:
        """Take one step."""
        self.optimizer.zero_grad()
        DPTensorFastGradientClipping(self.module, self.optimizer, self.losses(), "mean").backward()
        self.optimizer.step()

    def losses(self) -> torch.Tensor:
        """Return the loss of each row by torch's function, which allows a second backward pass."""
        inputs = {name: value for name, value in self.batch.items() if name != "labels"}
        logits, labels = self.model(**inputs).logits, self.batch["labels"]
        if self.scene.cell.kind != "bert":
            logits, labels = logits[:, :-1], labels[:, 1:]
        each = functional.cross_entropy(logits.transpose(1, 2), labels, reduction="none")
        return each.sum(1) / (labels != -100).sum(1)


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

    private = True

    def __init__(self, scene: Scene) -> None:
        """Make the private optimizer."""
        super().__init__(scene)
        settings = {"noise_multiplier": SIGMA, "max_grad_norm": BOUND, "expected_batch_size": self.rows}
        self.private_optimizer = dpsgd.PrivateOptimizer(
            self.optimizer, self.model, **settings, chance=dpsgd.research(0)
        )

    def step(self) -> None:
        """Take one step."""
        self.private_optimizer.step([(self.batch, None)])

    def set_noise(self, sigma: float) -> None:
        """Set the noise multiplier to zero or back; the optimizer's own is sealed."""
        self.private_optimizer.chance = dpsgd.research(0) if sigma else _Silence()


VARIANTS: dict[str, type[Step]] = {
    "plain": Step,
    "plain, same kernels": SameKernels,
    "report's loop": Loop,
    "Opacus hooks": OpacusHooks,
    "Opacus ghost, untied": OpacusGhost,
    "torch.func vmap": Vmap,
    "ours": Ours,
}


def one_by_one(scene: Scene, tied: bool) -> dict[str, torch.Tensor]:
    """Return the clipped sum from one backward pass for each row; norms in float64."""
    model = scene.shared if tied else scene.model(tied=False)
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    sums = {name: torch.zeros_like(p) for name, p in parameters.items()}
    for row in range(scene.cell.rows):
        loss = model(**{name: value[row : row + 1] for name, value in scene.batch.items()}).loss
        gradients = torch.autograd.grad(loss, list(parameters.values()))
        norm = sum(float(g.double().square().sum()) for g in gradients) ** 0.5
        for total, gradient in zip(sums.values(), gradients, strict=True):
            total.add_(gradient, alpha=min(1.0, BOUND / norm))
    return sums


def error_of(variant: Step) -> float:
    """Return the relative error of what a variant hands to AdamW when its noise is nothing.

    Raises:
        ValueError: the error is above the tolerance, or not a number.
    """
    expected, squares = one_by_one(variant.scene, variant.tied), []

    def compare(*_: object) -> None:
        for name, parameter in variant.parameters.items():
            off = variant.rows * parameter.grad.double() - expected[name]
            squares.append(float(off.square().sum()))

    # Opacus wraps AdamW, the others call it.
    adam = getattr(variant.optimizer, "original_optimizer", variant.optimizer)
    handle = adam.register_step_pre_hook(compare)
    variant.set_noise(0.0)
    try:
        variant.step()
    finally:
        handle.remove()  # others share this optimizer
    variant.set_noise(SIGMA)
    error = (sum(squares) / sum(float(e.double().square().sum()) for e in expected.values())) ** 0.5
    if not error < TOLERANCE:
        raise ValueError(f"its clipped sum is off by {error:.1e}")
    return error


def take(variant: Step) -> tuple[float, float]:
    """Take one step; return its seconds, and on a GPU the peak of megabytes above what was there before."""
    on_gpu, before = variant.scene.device.type == "cuda", 0
    if on_gpu:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    clock = time.perf_counter if on_gpu else time.process_time
    start = clock()
    variant.step()
    if on_gpu:
        torch.cuda.synchronize()
    seconds = clock() - start
    peak = (torch.cuda.max_memory_allocated() - before) / 2**20 if on_gpu else float("nan")
    variant.optimizer.zero_grad()  # or all gradients of all variants would lie in memory at once
    return seconds, peak


def measure(name: str, cell: Cell, rounds: int, device: str) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return one row for each variant of a cell, and why the others have none."""
    gc.collect()  # hooks and models of the last cell refer to each other
    scene, ready, errors, failures = Scene(cell, device), {}, {}, {}
    for variant, kind in VARIANTS.items():
        if cell.lora and not kind.lora:
            continue
        try:
            ready[variant] = kind(scene)
            if kind.private:
                errors[variant] = error_of(ready[variant])
            take(ready[variant])
        except Exception as error:  # a peer that does not work must not hide the others
            failures[variant] = f"{type(error).__name__}: {error}".partition("\n")[0]
            ready.pop(variant, None)
    turns = {variant: [] for variant in ready}
    for _ in tqdm(range(rounds), desc=name, unit="round", leave=False):
        for variant, step in ready.items():
            turns[variant].append(take(step))
    times = {variant: np.array([seconds for seconds, _ in taken]) for variant, taken in turns.items()}
    table = pd.DataFrame({"ms": {variant: f"{1000 * _typical(one):.1f}" for variant, one in times.items()}})
    for base in ("plain", "plain, same kernels"):
        table["/ " + base] = {variant: _ratio(one, times[base]) for variant, one in times.items()}
    if scene.device.type == "cuda":
        table["MB"] = {variant: f"{max(peak for _, peak in taken):.0f}" for variant, taken in turns.items()}
    table["error of the sum"] = {variant: f"{error:.0e}" for variant, error in errors.items()}
    return table, failures


def _typical(seconds: np.ndarray) -> float:
    """Return the 25th percentile: a neighbor on the machine only ever makes a step longer."""
    return float(np.percentile(seconds, 25))


def _ratio(seconds: np.ndarray, base: np.ndarray) -> str:
    each = seconds / base
    return f"{_typical(seconds) / _typical(base):.2f} ({each.min():.2f} to {each.max():.2f})"


def page_of(device: str) -> str:
    """Return the head of the page: what is measured, and on what."""
    where = torch.cuda.get_device_name() if device == "cuda" else "one core, one thread, CPU time"
    used = f"{machine()}, PyTorch with {torch.backends.cpu.get_cpu_capability()}; {where}."
    made = ", ".join(f"{name} {version}" for name, version in versions().items())
    what, _, how = __doc__.partition("\n\n")
    return f"# {what.removesuffix('.')}\n\n{how.strip()}\n\n{used}\n{made}; commit {commit(ROOT)}."


def main() -> None:
    """Measure, and print each table as it is done."""
    parser = options_of(__doc__)
    parser.add_argument("--cells", nargs="+", choices=CELLS, default=list(CELLS))
    parser.add_argument("--rounds", type=int, default=6, help="turns of each variant")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    asked = parser.parse_args()
    settle()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # Opacus' remarks on hooks and on its random numbers
    transformers.logging.set_verbosity_error()
    print(page_of(asked.device), flush=True)
    for name in asked.cells:
        table, failures = measure(name, CELLS[name], asked.rounds, asked.device)
        print(f"\n## {name}\n\n{table.fillna('').to_markdown(disable_numparse=True)}", flush=True)
        for variant, why in failures.items():
            print(f"\n{variant}: {why}", flush=True)


if __name__ == "__main__":
    main()
