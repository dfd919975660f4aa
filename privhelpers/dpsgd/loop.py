"""The private training loop: draw, clip, add noise, divide by a public number, step.

The draw is Opacus' Poisson sampler over patients, so the sampler that runs is the one that is accounted.
An empty draw is a step like any other: noise alone.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from opacus.accountants import RDPAccountant
from opacus.utils.uniform_sampler import UniformWithReplacementSampler
from tqdm.auto import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from privhelpers import validate
from privhelpers.dpsgd.batches import Rows, bounded, encode_patients, micro_batches
from privhelpers.dpsgd.canaries import GradientCanaries, Planted
from privhelpers.dpsgd.chance import Chance
from privhelpers.dpsgd.keeping import Kept, fingerprint, terms_of
from privhelpers.dpsgd.log import DPTrainingLog, Tally
from privhelpers.dpsgd.optimizer import PrivateOptimizer
from privhelpers.dpsgd.plan import PrivacyPlan
from privhelpers.errors import InvalidParameter, TrainingFailed
from privhelpers.models.encoding import end_id
from privhelpers.models.masking import Pair

Objective = Callable[[list[int], np.random.Generator], Pair]

WARM_UP_STEPS = 5
# Less momentum than Adam's default: with few, large and noisy steps an old gradient is worth less.
BETAS = (0.6, 0.999)


def _schedule(step: int, steps: int) -> float:
    """Linear warm-up, then linear decay to zero: the factor on the learning rate of step 0, 1, ..."""
    return min((step + 1) / WARM_UP_STEPS, (steps - step) / steps)


def _check_finite(parameters: dict[str, torch.nn.Parameter]) -> None:
    if not all(bool(torch.isfinite(p).all()) for p in parameters.values()):
        raise TrainingFailed("DP-SGD: the weights are no longer finite; lower the learning rate")


def poisson_draws(
    generator: torch.Generator, *, units: int, sample_rate: float, steps: int
) -> Iterable[Sequence[int]]:
    """Return `steps` draws in which every unit takes part independently with probability `sample_rate`."""
    return UniformWithReplacementSampler(
        num_samples=units, sample_rate=sample_rate, steps=steps, generator=generator
    )


class _Run:
    """One run between its first and its last step."""

    def __init__(
        self, model: PreTrainedModel, rows: list[Rows], pad_id: int, plan: PrivacyPlan, chance: Chance,
        make_optimizer: Callable[..., PrivateOptimizer], make_draws: Callable[..., Iterable[Sequence[int]]],
        canaries: GradientCanaries | None, objective: Objective | None, learning_rate: float,
        notes_per_step: int, max_rows: int,
    ) -> None:  # fmt: skip
        self.objective = objective
        self.model, self.rows, self.pad_id, self.plan, self.chance = model, rows, pad_id, plan, chance
        self.learning_rate, self.notes_per_step, self.max_rows = learning_rate, notes_per_step, max_rows
        self.parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self.adam = torch.optim.Adam(self.parameters.values(), lr=learning_rate, betas=BETAS)
        self.optimizer = make_optimizer(
            self.adam,
            model,
            noise_multiplier=plan.spent.noise_multiplier,
            max_grad_norm=plan.max_grad_norm,
            expected_batch_size=plan.expected_batch_size,
            chance=chance,
        )
        self.accountant = RDPAccountant()
        self.optimizer.attach_step_hook(self.accountant.get_optimizer_hook_fn(plan.spent.sample_rate))
        self.make_draws, self.tally, self.planted = make_draws, Tally(), None
        if canaries is not None:
            longest = max(len(row) for own in rows for row in own)
            self.planted = Planted(canaries, model, longest, plan)

    def steps(self, kept: Kept | None, progress: bool) -> None:
        """Take all steps that are left."""
        spent, total = self.plan.spent, self.plan.spent.steps
        start, self.tally = kept.restore(self.model, self.adam, self.chance) if kept else (0, self.tally)
        if start:
            self.accountant.history = [(spent.noise_multiplier, spent.sample_rate, start)]
            if self.planted:
                self.planted.scores[:] = self.tally.canary_scores
        elif kept:
            kept.after(0, self.model, self.adam, self.chance, self.tally)
        draws = self.make_draws(
            self.chance.sampling,
            units=self.plan.units + (self.planted.units if self.planted else 0),
            sample_rate=spent.sample_rate,
            steps=total - start,
        )
        bar = tqdm(draws, total=total, initial=start, desc="DP-SGD", unit="step", disable=not progress)
        for step, drawn in enumerate(bar, start):
            if kept:
                kept.before(step, total)
            self._step(step, drawn)
            if kept and ((step + 1) % kept.every == 0 or step + 1 == total):
                _check_finite(self.parameters)
                kept.after(step + 1, self.model, self.adam, self.chance, self.tally)

    def _step(self, step: int, drawn: Sequence[int]) -> None:
        units = self.plan.units  # the canaries' numbers follow on those of the patients
        patients = [
            bounded(self.rows[i], self.notes_per_step, self.chance.choices) for i in drawn if i < units
        ]
        if self.objective:  # before micro-batches are made, so that their size changes no mask
            patients = [[self.objective(row, self.chance.choices) for row in own] for own in patients]
        draw = list(micro_batches(patients, self.max_rows, self.pad_id))
        if canaries := [i - units for i in drawn if i >= units]:
            draw.append((self.planted.gradients_of(canaries), None))
        self.adam.param_groups[0]["lr"] = self.learning_rate * _schedule(step, self.plan.spent.steps)
        norms = self.optimizer.step(draw)
        self.tally.add(norms[: len(patients)], self.plan.max_grad_norm)
        if self.planted:
            self.planted.watch(self.optimizer.gradients)
            self.tally.canary_scores = self.planted.scores.tolist()

    def change_since(self, before: dict[str, torch.Tensor]) -> float:
        """Return how far the weights have moved; refuses weights that did not."""
        moved = [(p.detach() - before[name]).double().square().sum() for name, p in self.parameters.items()]
        change = float(sum(moved)) ** 0.5
        if change == 0:
            raise TrainingFailed(
                "DP-SGD: no weight moved, so nothing was trained; check which parameters are frozen"
            )
        return change


def train(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    notes_by_patient: Sequence[Sequence[str]],
    plan: PrivacyPlan,
    *,
    learning_rate: float,
    chance: Chance,
    notes_per_step: int = 4,
    max_rows: int = 48,
    make_optimizer: Callable[..., PrivateOptimizer] = PrivateOptimizer,
    make_draws: Callable[..., Iterable[Sequence[int]]] = poisson_draws,
    canaries: GradientCanaries | None = None,
    objective: Objective | None = None,
    keep: Path | str | None = None,
    checkpoint_every: int = 10,
    on_change: str = "refuse",
    run: str = "run",
    progress: bool = True,
) -> DPTrainingLog:
    """Fine-tune `model` in place under the plan and return what was spent.

    With `keep`, every step is written to a ledger before it is taken, and a run killed at any moment goes on
    when the same call is made again: in research mode to the same weights, bit for bit on a CPU.

    Args:
        notes_by_patient: the notes of each patient; a patient is one privacy unit.
        plan: sealed settings from `plan_privacy`; `plan.units` must be the number of patients.
        learning_rate: peak of the schedule of Adam, greater than 0.
        chance: `research(seed)` or `release()`: of sampling, note choice, dropout and noise.
        notes_per_step: at most so many notes of a patient enter one step, 1 or more.
        max_rows: rows of a physical micro-batch; changes speed and memory, never more than rounding.
        make_optimizer: `PrivateOptimizer`, or a variant of it under study.
        make_draws: `poisson_draws`, or a variant under study: called with the generator of the sampling,
            units, sample_rate and steps. Only the first is what the accountant counts.
        canaries: units without a text, for an audit; `canaries` of the log has what the run showed of them.
        objective: turns a row of ids into what the model reads and what it is asked, anew at every step,
            such as `models.Masking`; None: each token is predicted from those before it.
        keep: folder for the ledger and the checkpoints; None: a kill loses the run.
        checkpoint_every: steps between checkpoints, 1 or more.
        on_change: what to do with a folder of another run: "refuse", or "restart" beside its old ledger.
        run: name in the ledger.
        progress: show a progress bar.

    Raises:
        InvalidParameter: the plan is for another number of patients, or a setting is out of range.
        BudgetExceeded: the plan does not fit its budget; nothing was read or trained.
        ResumeRefused: `keep` belongs to a run with other data, parameters or code.
        TrainingFailed: weights became non-finite, or never moved.

    Source: Abadi et al. 2016, algorithm 1, with patients as examples.
    """
    validate.positive(learning_rate=learning_rate)
    validate.positive_int(notes_per_step=notes_per_step, max_rows=max_rows, checkpoint_every=checkpoint_every)
    plan.require_budget()  # before a note is read
    if plan.units != len(notes_by_patient):
        raise InvalidParameter(f"plan: is for {plan.units} patients, got {len(notes_by_patient)}")
    rows = encode_patients(model, tokenizer, notes_by_patient)
    settings = {"learning_rate": learning_rate, "notes_per_step": notes_per_step, "max_rows": max_rows}
    work = _Run(
        model,
        rows,
        end_id(tokenizer),
        plan,
        chance,
        make_optimizer,
        make_draws,
        canaries,
        objective,
        **settings,
    )
    before = {name: p.detach().clone() for name, p in work.parameters.items()}
    kept = None
    if keep is not None:
        changeable = {**settings, "optimizer": make_optimizer.__qualname__, **chance.public()}
        changeable |= {"draws": make_draws.__qualname__, "canaries": asdict(canaries) if canaries else None}
        changeable |= {"objective": repr(objective)}
        terms = terms_of(plan, chance.mode, fingerprint(model, rows, changeable), run)
        kept = Kept(Path(keep), terms, every=checkpoint_every, on_change=on_change)
    model.train()
    with torch.random.fork_rng(devices=[]), kept or nullcontext():
        torch.manual_seed(chance.dropout_seed())
        work.steps(kept, progress)
    _check_finite(work.parameters)
    model.eval()
    rdp_epsilon = work.accountant.get_epsilon(plan.spent.delta)
    found = work.planted.found() if work.planted else None
    return work.tally.log(plan.spent, chance.mode, rdp_epsilon, work.change_since(before), found)
