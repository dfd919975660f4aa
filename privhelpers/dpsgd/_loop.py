"""The private training loop: draw, clip, sum, add noise, divide by a public number, step.

The draw is Poisson sampling over patients, at the rate that is accounted, to the last digit. An empty draw is
a step like any other: noise alone.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from numbers import Integral, Real
from types import NoneType

import numpy as np
import torch
from opacus.accountants import RDPAccountant
from tqdm.auto import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from privhelpers import validate
from privhelpers.accounting import Claimed
from privhelpers.dpsgd._batches import bounded, encode_patients, micro_batches, public_trial
from privhelpers.dpsgd._canaries import GradientCanaries, Planted
from privhelpers.dpsgd._chance import Chance, is_builtin
from privhelpers.dpsgd._engine import trainable
from privhelpers.dpsgd._layers import owners
from privhelpers.dpsgd._log import DPTrainingLog, Tally, counts_of_notes
from privhelpers.dpsgd._optimizer import Drawn, PrivateOptimizer
from privhelpers.dpsgd._plan import PrivacyPlan
from privhelpers.dpsgd._resume import Keep, KeptRun, fingerprint, terms_of
from privhelpers.dpsgd._supported import is_supported_tokenizer, reads_backward, unsupported_parts
from privhelpers.dpsgd.processes import SharedOptimizer
from privhelpers.errors import InvalidParameter, TrainingFailed
from privhelpers.models.encoding import end_id
from privhelpers.models.masking import Masking, Pair
from privhelpers.models.precision import check_precision, layers_in
from privhelpers.models.repeatable import repeatable_on

_COUNTED = (PrivateOptimizer, SharedOptimizer)
_BITS = 2.0**-24  # between two neighbors among torch's uniform numbers of float32
Objective = Callable[[list[int], np.random.Generator], Pair]


def poisson_draws(
    generator: torch.Generator, *, units: int, sample_rate: float, steps: int
) -> Iterator[list[int]]:
    """Yield `steps` draws in which every unit takes part independently with probability `sample_rate`.

    A uniform number of torch has as many bits as its type, 24 in float32, so one is below a rate more often
    than the rate says, and far more often below a small rate or in bfloat16. Here a number whose 24 bits do
    not tell whether it is below the rate gets 53 more.

    Args:
        generator: of the draws, on the processor.
        units: patients, 1 or more.
        sample_rate: in (0, 1].
        steps: draws, 0 or more.

    Raises:
        InvalidParameter: a value is out of its range.
    """
    units = validate.positive_int(units=units)
    sample_rate = validate.probability(sample_rate=sample_rate)
    for _ in range(steps):
        uniform = torch.rand(units, generator=generator, dtype=torch.float32).double()
        undecided = torch.nonzero((uniform <= sample_rate) & (sample_rate < uniform + _BITS)).flatten()
        more = torch.rand(len(undecided), generator=generator, dtype=torch.float64)
        uniform[undecided] += _BITS * more
        yield torch.nonzero(uniform < sample_rate).flatten().tolist()


def _named(part: object) -> str:
    """Return the name of a function or class; of a `partial`, of what it calls, and with what."""
    if isinstance(part, partial):
        return f"{_named(part.func)}, {part.args}, {part.keywords}"
    return getattr(part, "__qualname__", type(part).__qualname__)


@dataclass(frozen=True)
class Settings:
    """How a private run trains; what it may spend is in its plan.

    Attributes:
        learning_rate: peak of the schedule of Adam, greater than 0.
        warm_up_steps: steps with a rising learning rate, 1 or more; it also falls linearly to zero.
        betas: of Adam. Less momentum than its default: with few, large and noisy steps an old gradient is
            worth less.
        notes_per_step: at most so many notes of a patient enter one step, 1 or more; those beyond are counted
            (`DPTrainingLog.notes_beyond_bound`).
        max_rows: rows of a physical micro-batch, 1 or more; changes speed and memory, and which numbers of
            the dropout a row meets; in a model without dropout, never more than rounding.
        objective: turns a row of ids into what the model reads and what it is asked, anew at every step,
            such as `models.Masking`; None: each token is predicted from those before it.
        matmul_precision: "highest", or "medium": linear layers multiply in bfloat16 where that is faster;
            norms, clipped sums and noise keep all digits, so that the bound on a unit holds as before.
        canaries: units without a text, for an audit; `canaries` of the log has what the run showed of them.
        make_optimizer: `PrivateOptimizer`, or a variant of it under study.
        make_draws: `poisson_draws`, or a variant under study: called with the generator of the sampling,
            units, sample_rate and steps.

    A run with an optimizer, draws or an objective that are not this package's own, or with a tokenizer, model
    or layer that `_supported` does not list, has no `PrivacySpent` in its log, but what it `Claimed`, and its
    ledger counts steps and no epsilon.

    Raises:
        InvalidParameter: a value is out of its range.
    """

    learning_rate: float
    warm_up_steps: int = 5
    betas: tuple[float, float] = (0.6, 0.999)
    notes_per_step: int = 4
    max_rows: int = 48
    matmul_precision: str = "highest"
    objective: Objective | None = None
    canaries: GradientCanaries | None = None
    make_optimizer: Callable[..., PrivateOptimizer] = PrivateOptimizer
    make_draws: Callable[..., Iterable[Sequence[int]]] = poisson_draws

    def __post_init__(self) -> None:
        """Refuse settings out of range."""
        validate.fields(self, validate.positive, "learning_rate")
        validate.fields(self, validate.positive_int, "warm_up_steps", "notes_per_step", "max_rows")
        check_precision(self.matmul_precision)
        numbers = isinstance(self.betas, Sequence) and all(isinstance(beta, Real) for beta in self.betas)
        if not numbers or len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise InvalidParameter(f"betas = {validate.shown(self.betas)}: must be two numbers in [0, 1)")
        object.__setattr__(self, "betas", tuple(validate.finite(beta=beta) for beta in self.betas))
        if not (self.objective is None or callable(self.objective)):
            raise InvalidParameter(f"objective = {validate.shown(self.objective)}: must be a function")
        if not isinstance(self.canaries, GradientCanaries | NoneType):
            raise InvalidParameter(f"canaries = {validate.shown(self.canaries)}: must be GradientCanaries")

    def learning_rate_at(self, step: int, steps: int) -> float:
        """Return the learning rate of step 0, 1, ... of `steps`: linear warm-up, then decay to zero."""
        return self.learning_rate * min((step + 1) / self.warm_up_steps, (steps - step) / steps)

    def parts(self) -> tuple[object, ...]:
        """Return what may be code of another's: the source of each belongs to a run's fingerprint."""
        return self.make_optimizer, self.make_draws, type(self.objective)

    def public(self) -> dict[str, object]:
        """Return what a fingerprint may hold, as plain values."""
        named = {name: _named(getattr(self, name)) for name in ("make_optimizer", "make_draws")}
        named |= {"objective": repr(self.objective)}
        return {**vars(self), **named, "canaries": asdict(self.canaries) if self.canaries else None}


def train(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    notes_by_patient: Sequence[Sequence[str]],
    plan: PrivacyPlan,
    settings: Settings,
    *,
    chance: Chance,
    keep: Keep | None = None,
    snapshots: Collection[int] = (),
    progress: bool = True,
) -> DPTrainingLog:
    """Fine-tune `model` in place under the plan and return what was spent.

    With `keep`, every step is written to a ledger before it is taken, and a run killed at any moment goes on
    when the same call is made again: in research mode to the same weights, bit for bit. Dropout reads a
    stream of the process, so of two trainings in two threads neither repeats.

    Args:
        notes_by_patient: the notes of each patient; a patient is one privacy unit. The same text under two
            of them stays two, and is counted (`DPTrainingLog.shared_texts`).
        plan: sealed by `plan_privacy`; `plan.units` must be the number of patients.
        settings: how to train.
        chance: `research(seed)` or `release()`: of sampling, note choice, dropout and noise.
        keep: where the ledger and the checkpoints lie; None: a kill loses the run.
        snapshots: steps, 1 to the last, after which the log keeps a copy of the weights. The budget is that
            of all steps' weights together, so they spend nothing; those after step k alone spend what the
            first k steps do (`epsilon_curve`).
        progress: show a progress bar.

    Raises:
        InvalidParameter: the plan is for another number of patients, a patient has no list of notes,
            `snapshots` names a step that the run does not have, or stands beside `keep`, or an optimizer,
            draws or an objective under study give something else.
        UnsupportedModel: all weights are frozen, or a part of the model has no known per-unit gradient.
        BudgetExceeded: the plan does not fit its budget; nothing was read or trained.
        ResumeRefused: the folder of `keep` belongs to a run with other data, parameters or code.
        TrainingFailed: weights became non-finite, or never moved.

    Source: Abadi et al. 2016, algorithm 1, with patients as examples.
    """
    _check_parts(model, tokenizer, plan, settings, chance, keep)
    spent = plan.require_budget()  # before a note is read
    snapshots = _check_run(notes_by_patient, plan, snapshots, keep)
    units, own, pad_id = plan.units, trainable(model), end_id(tokenizer)
    owners(model)  # refuses what has no gradient per unit by its name, before a pass is made
    rows = encode_patients(model, tokenizer, notes_by_patient)
    if len(rows) != units:
        raise InvalidParameter(f"notes_by_patient: says that it has {units} patients, and gives {len(rows)}")
    counts = counts_of_notes(notes_by_patient, settings.notes_per_step)
    if isinstance(settings.objective, Masking):
        settings.objective.check(rows)
    masked = settings.objective is not None or reads_backward(model)
    model.train()
    not_counted = _not_counted(tokenizer, settings, chance) + unsupported_parts(model)
    before = {name: p.detach().clone() for name, p in own.items()}
    weights: dict[int, dict[str, torch.Tensor]] = {}
    with Planted(settings.canaries, model, plan) if settings.canaries else nullcontext() as planted:
        parameters = trainable(model)  # the rows of the canaries are among them
        adam = torch.optim.Adam(
            parameters.values(), lr=settings.learning_rate, betas=settings.betas, fused=True
        )
        optimizer = settings.make_optimizer(
            adam,
            model,
            noise_multiplier=spent.noise_multiplier,
            max_grad_norm=plan.max_grad_norm,
            expected_batch_size=plan.expected_batch_size,
            chance=chance,
        )
        _require("make_optimizer", optimizer, isinstance(optimizer, PrivateOptimizer), "PrivateOptimizer")
        optimizer.engine.check(*public_trial(model, tokenizer, pad_id, attention_mask=masked))
        accountant = RDPAccountant()  # beside the accountant of the plan, stepped as the run goes
        optimizer.attach_step_hook(accountant.get_optimizer_hook_fn(spent.sample_rate))
        kept = None
        if keep:
            given = settings.public() | chance.public() | {"not_counted": not_counted}
            key = keep.key() if chance.mode == "release" else b""
            marks = fingerprint(model, rows, given, (*settings.parts(), type(tokenizer)), key=key)
            terms = terms_of(plan, chance.mode, marks, keep.run, not_counted)
            kept = KeptRun(keep, terms, model, adam, chance)
        with (
            chance.dropout(),
            kept or nullcontext(),
            layers_in(settings.matmul_precision),
            repeatable_on(model.device),
        ):
            # 0. Go on from the last checkpoint; the canaries' numbers follow on those of the patients.
            start, tally = kept.restore() if kept else (0, Tally())
            accountant.history = [(spent.noise_multiplier, spent.sample_rate, start)] if start else []
            if planted and tally.canary_scores:
                planted.scores[:] = tally.canary_scores
            everybody = units + (planted.units if planted else 0)
            draws = settings.make_draws(
                chance.sampling,
                units=everybody,
                sample_rate=spent.sample_rate,
                steps=spent.steps - start,
            )
            _require("make_draws", draws, isinstance(draws, Iterable), "draws")
            bar = tqdm(
                draws, total=spent.steps, initial=start, desc="DP-SGD", unit="step", disable=not progress
            )
            for step, drawn in enumerate(bar, start):
                _require(
                    "make_draws", drawn, _are_units(drawn, everybody), f"list of units below {everybody}"
                )
                # 1. Count the step as spent, on the disk, before it is taken.
                if kept:
                    kept.before(step)
                # 2. Each unit was drawn independently; of a patient's notes take a few.
                patients = [
                    bounded(rows[i], settings.notes_per_step, chance.choices) for i in drawn if i < units
                ]
                if settings.objective:  # before micro-batches are made, so that their size changes no mask
                    patients = [
                        [_pair(settings.objective(row, chance.choices)) for row in patient_rows]
                        for patient_rows in patients
                    ]
                batches: list[Drawn] = list(
                    micro_batches(patients, settings.max_rows, pad_id, attention_mask=masked)
                )
                if canaries := [i - units for i in drawn if i >= units]:
                    batches.append((planted.gradients_of(canaries), None))
                # 3. Clip each unit's gradient, sum, add noise, divide by the expected batch size, step.
                adam.param_groups[0]["lr"] = settings.learning_rate_at(step, spent.steps)
                norms = optimizer.step(batches)
                # 4. Note what happened, and keep it.
                tally.add(norms[: len(patients)], plan.max_grad_norm)
                if planted:
                    planted.watch(optimizer.gradients)
                    tally.canary_scores = planted.scores.tolist()
                if step + 1 in snapshots:
                    weights[step + 1] = {name: p.detach().clone() for name, p in own.items()}
                if kept and kept.is_due(step + 1):
                    _check_finite(parameters)
                    kept.after(step + 1, tally)
        _check_finite(parameters)
        model.eval()
    return DPTrainingLog(
        spent=Claimed(spent, tuple(not_counted)) if not_counted else spent,
        mode=chance.mode,
        rdp_epsilon=None if not_counted else max(0.0, accountant.get_epsilon(spent.delta)),
        weight_change=_distance(before, own),
        canaries=planted.shown() if planted else None,
        weights=weights,
        **counts,
        **tally.summary(),
    )


def _check_parts(
    model: object, tokenizer: object, plan: object, settings: object, chance: object, keep: object
) -> None:
    """Refuse a part of a run that is of another kind than it must be."""
    kinds = {
        "model": (model, torch.nn.Module, "a Hugging Face model"),
        "tokenizer": (tokenizer, PreTrainedTokenizerBase, "a Hugging Face tokenizer"),
        "plan": (plan, PrivacyPlan, "what plan_privacy gives"),
        "settings": (settings, Settings, "dpsgd.Settings(...)"),
        "chance": (chance, Chance, "research(seed) or release()"),
        "keep": (keep, Keep | NoneType, "dpsgd.Keep(folder)"),
    }
    for name, (part, kind, must_be) in kinds.items():
        if not isinstance(part, kind):
            raise InvalidParameter(f"{name} = {validate.shown(part)}: must be {must_be}")


def _check_run(notes_by_patient: object, plan: PrivacyPlan, snapshots: object, keep: Keep | None) -> set[int]:
    """Refuse notes for another plan and snapshots that the run does not have; return the snapshots."""
    if not isinstance(notes_by_patient, Sequence):
        raise InvalidParameter("notes_by_patient: must be a list, with a list of texts for each patient")
    if plan.units != len(notes_by_patient):
        raise InvalidParameter(f"plan: is for {plan.units} patients, got {len(notes_by_patient)}")
    if not isinstance(snapshots, Collection) or not all(map(_is_number, snapshots)):
        raise InvalidParameter(f"snapshots = {validate.shown(snapshots)}: must be a list of steps")
    steps = {int(step) for step in snapshots}
    if wrong := steps - set(range(1, plan.spent.steps + 1)):
        raise InvalidParameter(
            f"snapshots: {validate.shown(wrong.pop())} is no step from 1 to {plan.spent.steps}"
        )
    if steps and keep:
        raise InvalidParameter("snapshots: a kept run has checkpoints (`keep`), and a kill would lose these")
    return steps


def _is_number(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _are_units(drawn: object, units: int) -> bool:
    return isinstance(drawn, Collection) and all(_is_number(unit) and 0 <= unit < units for unit in drawn)


def _pair(asked: object) -> Pair:
    lengths = isinstance(asked, tuple) and [len(row) for row in asked if isinstance(row, Collection)]
    right = lengths and len(asked) == 2 and lengths == [lengths[0]] * 2
    _require("objective", asked, right, "pair of lists of one length")
    return asked


def _require(part: str, gives: object, right: bool, what: str) -> None:
    if not right:
        raise InvalidParameter(f"{part}: gave {type(gives).__name__}, and no {what}")


def _not_counted(tokenizer: PreTrainedTokenizerBase, settings: Settings, chance: Chance) -> list[str]:
    """Return the parts that stand in for those that the accountant's proof is about, in words."""
    ours = {
        "tokenizer": (type(tokenizer), is_supported_tokenizer(tokenizer)),
        "make_optimizer": (settings.make_optimizer, settings.make_optimizer in _COUNTED),
        "make_draws": (settings.make_draws, settings.make_draws is poisson_draws),
        "objective": (type(settings.objective), type(settings.objective) in (Masking, NoneType)),
        "chance": (type(chance), is_builtin(chance)),
    }
    return [
        f"{name}: {getattr(part, '__name__', part)}" for name, (part, counted) in ours.items() if not counted
    ]


def _check_finite(parameters: dict[str, torch.nn.Parameter]) -> None:
    if not all(bool(torch.isfinite(p).all()) for p in parameters.values()):
        raise TrainingFailed("DP-SGD: the weights are no longer finite; lower the learning rate")


def _distance(before: dict[str, torch.Tensor], parameters: dict[str, torch.nn.Parameter]) -> float:
    """Return how far the weights have moved; refuses weights that did not."""
    change = sum(float((p.detach() - before[name]).double().square().sum()) for name, p in parameters.items())
    if change == 0:
        raise TrainingFailed(
            "DP-SGD: no weight moved, so nothing was trained; check which parameters are frozen"
        )
    return change**0.5
