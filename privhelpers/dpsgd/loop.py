"""The private training loop: draw, clip, add noise, divide by a public number, step.

The draw is Opacus' Poisson sampler over patients, so the sampler that runs is the one that is accounted.
An empty draw is a step like any other: noise alone. The noise is added once to the clipped sum, with
standard deviation sigma C, and the result is divided by the expected batch size, never by the size drawn.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from opacus.accountants import RDPAccountant
from opacus.utils.uniform_sampler import UniformWithReplacementSampler
from tqdm.auto import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from privhelpers import rng, validate
from privhelpers.accounting import PrivacySpent
from privhelpers.dpsgd.engine import Batch, clipped_gradient_sum
from privhelpers.dpsgd.plan import PrivacyPlan
from privhelpers.errors import InvalidParameter, TrainingFailed
from privhelpers.models.encoding import encode, end_id, to_batch

ClippedSum = Callable[..., tuple[dict[str, torch.Tensor], torch.Tensor]]
WARM_UP_STEPS = 5
# Less momentum than Adam's default: with few, large and noisy steps an old gradient is worth less.
BETAS = (0.6, 0.999)


@dataclass(frozen=True)
class DPTrainingLog:
    """What a private run did. Norms and batch sizes are not private outputs: publish none for real data.

    Attributes:
        spent: the budget by the accountant of the plan.
        rdp_epsilon: the same run by Opacus' RDP accountant, stepped beside the training (a looser bound).
        batch_sizes: patients in each step, shape [steps].
        median_norms: median gradient norm before clipping in each step (NaN for an empty one), shape [steps].
        clipped_share: share of drawn patients whose gradient was clipped.
        empty_steps: steps that were noise alone.
        refused_gradients: gradients that were not finite and counted as zero.
        weight_change: Euclidean distance between the weights before and after.
    """

    spent: PrivacySpent
    rdp_epsilon: float
    batch_sizes: np.ndarray
    median_norms: np.ndarray
    clipped_share: float
    empty_steps: int
    refused_gradients: int
    weight_change: float


class _Tally:
    """Counts what the steps did."""

    def __init__(self, max_grad_norm: float) -> None:
        self.bound = max_grad_norm
        self.sizes: list[int] = []
        self.medians: list[float] = []
        self.clipped = self.refused = 0

    def add(self, norms: torch.Tensor) -> None:
        self.sizes.append(len(norms))
        self.medians.append(float(norms.median()) if len(norms) else float("nan"))
        self.clipped += int((norms > self.bound).sum())
        self.refused += int((~torch.isfinite(norms)).sum())

    def log(self, spent: PrivacySpent, rdp_epsilon: float, weight_change: float) -> DPTrainingLog:
        return DPTrainingLog(
            spent=spent,
            rdp_epsilon=rdp_epsilon,
            batch_sizes=np.array(self.sizes),
            median_norms=np.array(self.medians),
            clipped_share=self.clipped / max(1, sum(self.sizes)),
            empty_steps=self.sizes.count(0),
            refused_gradients=self.refused,
            weight_change=weight_change,
        )


def _encode_patients(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, notes_by_patient: Sequence[Sequence[str]]
) -> list[list[list[int]]]:
    length = model.config.max_position_embeddings
    rows = [encode(tokenizer, notes, max_length=length).ids for notes in notes_by_patient]
    if any(not own for own in rows):
        raise InvalidParameter("notes_by_patient: a patient without notes is no privacy unit; leave it out")
    return rows


def _schedule(step: int, steps: int) -> float:
    """Linear warm-up, then linear decay to zero: the factor on the learning rate of step 0, 1, ..."""
    return min((step + 1) / WARM_UP_STEPS, (steps - step) / steps)


def _bounded(rows: Sequence[list[int]], limit: int, generator: np.random.Generator) -> list[list[int]]:
    """Return at most `limit` of a patient's rows, chosen anew at every step."""
    if len(rows) <= limit:
        return list(rows)
    return [rows[i] for i in generator.choice(len(rows), limit, replace=False)]


def _micro_batches(
    drawn: Sequence[list[list[int]]], max_rows: int, pad_id: int
) -> Iterable[tuple[Batch, torch.Tensor]]:
    """Yield batches of whole patients, similar lengths together so that little padding is computed."""
    waiting = sorted(drawn, key=lambda rows: max(len(row) for row in rows))
    while waiting:
        taken, rows = 0, 0
        while taken < len(waiting) and (rows == 0 or rows + len(waiting[taken]) <= max_rows):
            rows, taken = rows + len(waiting[taken]), taken + 1
        chosen, waiting = waiting[:taken], waiting[taken:]
        unit = torch.tensor([u for u, own in enumerate(chosen) for _ in own])
        yield Batch(*to_batch([row for own in chosen for row in own], pad_id)), unit


def noisy_mean(
    parameters: dict[str, torch.Tensor],
    sums: dict[str, torch.Tensor],
    plan: PrivacyPlan,
    generator: torch.Generator,
) -> dict[str, torch.Tensor]:
    """Return (clipped sum + N(0, sigma^2 C^2)) / expected batch size for every parameter.

    Args:
        parameters: the trainable parameters by name; each gets noise, whether or not it has a sum.
        sums: clipped sums by name; a missing one counts as zero (an empty draw has none).
        plan: gives sigma, C and the divisor.
        generator: of the noise, on the CPU.

    Source: Abadi et al. 2016, algorithm 1.
    """
    deviation = plan.spent.noise_multiplier * plan.max_grad_norm
    result = {}
    for name, parameter in parameters.items():
        noise = torch.normal(0.0, 1.0, parameter.shape, generator=generator).to(parameter) * deviation
        result[name] = (sums[name] + noise if name in sums else noise) / plan.expected_batch_size
    return result


def train(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    notes_by_patient: Sequence[Sequence[str]],
    plan: PrivacyPlan,
    *,
    learning_rate: float,
    notes_per_step: int = 4,
    seed: int,
    max_rows: int = 48,
    clipped_sum: ClippedSum = clipped_gradient_sum,
    progress: bool = True,
) -> DPTrainingLog:
    """Fine-tune `model` in place under the plan and return what was spent.

    Args:
        notes_by_patient: the notes of each patient; a patient is one privacy unit.
        plan: sealed settings from `plan_privacy`; `plan.units` must be the number of patients.
        learning_rate: peak of the schedule of Adam, greater than 0.
        notes_per_step: at most so many notes of a patient enter one step, 1 or more.
        seed: of sampling, note choice and noise. A known noise seed voids the guarantee: this is the
            research mode of the book, in which runs can be repeated.
        max_rows: rows of a physical micro-batch; changes speed and memory, never the result.
        clipped_sum: the engine; any function with the signature of `clipped_gradient_sum`.
        progress: show a progress bar.

    Raises:
        InvalidParameter: the plan is for another number of patients, or a setting is out of range.
        TrainingFailed: weights became non-finite, or never moved.

    Source: Abadi et al. 2016, algorithm 1, with patients as examples.
    Taught in: 08_dpsgd_training.
    """
    validate.positive(learning_rate=learning_rate)
    validate.positive_int(notes_per_step=notes_per_step, max_rows=max_rows)
    if plan.units != len(notes_by_patient):
        raise InvalidParameter(f"plan: is for {plan.units} patients, got {len(notes_by_patient)}")
    rows = _encode_patients(model, tokenizer, notes_by_patient)
    steps = plan.spent.steps
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    before = {name: p.detach().clone() for name, p in parameters.items()}
    optimizer = torch.optim.Adam(parameters.values(), lr=learning_rate, betas=BETAS)
    sampler = UniformWithReplacementSampler(
        num_samples=plan.units,
        sample_rate=plan.spent.sample_rate,
        steps=steps,
        generator=rng.torch_generator(seed, "dpsgd/sampling"),
    )
    accountant, tally = RDPAccountant(), _Tally(plan.max_grad_norm)
    chooser = rng.make(seed, "dpsgd/notes")
    noise = rng.torch_generator(seed, "dpsgd/noise")
    model.train()
    for step, drawn in enumerate(
        tqdm(sampler, total=steps, desc="DP-SGD", unit="step", disable=not progress)
    ):
        patients = [_bounded(rows[i], notes_per_step, chooser) for i in drawn]
        sums: dict[str, torch.Tensor] = {}
        norms = [torch.empty(0)]
        for batch, unit in _micro_batches(patients, max_rows, end_id(tokenizer)):
            part, part_norms = clipped_sum(model, batch, max_grad_norm=plan.max_grad_norm, unit=unit)
            sums = {name: sums[name] + part[name] for name in part} if sums else part
            norms.append(part_norms.cpu())
        for name, gradient in noisy_mean(parameters, sums, plan, noise).items():
            parameters[name].grad = gradient
        optimizer.param_groups[0]["lr"] = learning_rate * _schedule(step, steps)
        optimizer.step()
        accountant.step(noise_multiplier=plan.spent.noise_multiplier, sample_rate=plan.spent.sample_rate)
        tally.add(torch.cat(norms))
    model.zero_grad(set_to_none=True)
    change = float(sum((p.detach() - before[n]).square().sum() for n, p in parameters.items())) ** 0.5
    _check_weights(change)
    return tally.log(plan.spent, accountant.get_epsilon(plan.spent.delta), change)


def _check_weights(change: float) -> None:
    if not np.isfinite(change):
        raise TrainingFailed("DP-SGD: the weights are no longer finite; lower the learning rate")
    if change == 0:
        raise TrainingFailed(
            "DP-SGD: no weight moved, so nothing was trained; check which parameters are frozen"
        )
