"""The private training loop: draw, clip, sum, add noise, divide by a public number, step.

The draw is Poisson sampling over patients, at the rate that is accounted, to the last digit. An empty draw is
a step like any other: noise alone.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from numbers import Integral
from types import NoneType

import torch
from opacus.accountants import RDPAccountant
from tqdm.auto import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from privhelpers import validate
from privhelpers.accounting import Claimed
from privhelpers.dpsgd._batches import Rows, bounded, encode_patients, micro_batches, public_trial
from privhelpers.dpsgd._callbacks import Callback, Counting, Snapshots, Taken, copied, require_finite
from privhelpers.dpsgd._canaries import Planted
from privhelpers.dpsgd._chance import Chance, is_builtin
from privhelpers.dpsgd._engine import trainable
from privhelpers.dpsgd._layers import owners
from privhelpers.dpsgd._log import DPTrainingLog, Tally, counts_of_notes
from privhelpers.dpsgd._optimizer import Drawn, PrivateOptimizer
from privhelpers.dpsgd._plan import PrivacyPlan
from privhelpers.dpsgd._resume import Keep, KeptRun, fingerprint, terms_of
from privhelpers.dpsgd._settings import Settings, poisson_draws
from privhelpers.dpsgd._supported import is_supported_tokenizer, reads_backward, unsupported_parts
from privhelpers.dpsgd.processes import SharedOptimizer
from privhelpers.errors import InvalidParameter, TrainingFailed
from privhelpers.models.encoding import end_id
from privhelpers.models.masking import Masking, Pair
from privhelpers.models.precision import layers_in
from privhelpers.models.repeatable import repeatable_on

_COUNTED = (PrivateOptimizer, SharedOptimizer)


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
    own, pad_id = trainable(model), end_id(tokenizer)
    rows = _read(model, tokenizer, notes_by_patient, plan, settings)
    counts = counts_of_notes(notes_by_patient, settings.notes_per_step)
    masked = settings.objective is not None or reads_backward(model)
    model.train()
    not_counted = _not_counted(tokenizer, settings, chance) + unsupported_parts(model)
    before = copied(own)
    with ExitStack() as run:
        planted = run.enter_context(Planted(settings.canaries, model, plan)) if settings.canaries else None
        parameters = trainable(model)  # the rows of the canaries are among them
        adam, optimizer = _optimizer(model, parameters, plan, settings, chance)
        optimizer.engine.check(*public_trial(model, tokenizer, pad_id, attention_mask=masked))
        accountant = RDPAccountant()  # beside the accountant of the plan, stepped as the run goes
        optimizer.attach_step_hook(accountant.get_optimizer_hook_fn(spent.sample_rate))
        kept = None
        if keep:
            given = settings.public() | chance.public() | {"not_counted": not_counted}
            key = keep.key() if chance.mode == "release" else b""
            marks = fingerprint(model, rows, given, (*settings.parts(), type(tokenizer)), key=key)
            terms = terms_of(plan, chance.mode, marks, keep.run, not_counted)
            kept = run.enter_context(KeptRun(keep, terms, model, adam, chance))
        run.enter_context(chance.dropout())
        run.enter_context(layers_in(settings.matmul_precision))
        run.enter_context(repeatable_on(model.device))
        # 0. Go on from the last checkpoint; the canaries' numbers follow on those of the patients.
        start, tally = kept.restore() if kept else (0, Tally())
        accountant.history = [(spent.noise_multiplier, spent.sample_rate, start)] if start else []
        if planted:
            planted.go_on(tally)
        taken_snapshots = Snapshots(own, snapshots)
        # The checkpoint comes last: it holds what the others count.
        concerns = (Counting(tally, plan.max_grad_norm), taken_snapshots, planted, kept)
        callbacks: list[Callback] = [one for one in concerns if one is not None]
        everybody = plan.units + (planted.units if planted else 0)
        draws = _draws(settings, chance, everybody, spent.sample_rate, spent.steps - start)
        bar = tqdm(draws, total=spent.steps, initial=start, desc="DP-SGD", unit="step", disable=not progress)
        for step, drawn in enumerate(bar, start):
            # 1. Count the step as spent, on the disk, before it is taken.
            for callback in callbacks:
                callback.before(step)
            # 2. Each unit was drawn independently; of a patient's notes take a few.
            patients = _asked([rows[i] for i in drawn if i < plan.units], settings, chance)
            batches: list[Drawn] = list(
                micro_batches(patients, settings.max_rows, pad_id, attention_mask=masked)
            )
            if canaries := [i - plan.units for i in drawn if i >= plan.units]:
                batches.append((planted.gradients_of(canaries), None))
            # 3. Clip each unit's gradient, sum, add noise, divide by the expected batch size, step.
            adam.param_groups[0]["lr"] = settings.learning_rate_at(step, spent.steps)
            norms = optimizer.step(batches)
            # 4. Note what happened, and keep it.
            taken = Taken(step + 1, norms[: len(patients)], optimizer.gradients)
            for callback in callbacks:
                callback.after(taken)
        require_finite(parameters)
        model.eval()
    return DPTrainingLog(
        spent=Claimed(spent, tuple(not_counted)) if not_counted else spent,
        mode=chance.mode,
        rdp_epsilon=None if not_counted else max(0.0, accountant.get_epsilon(spent.delta)),
        weight_change=_distance(before, own),
        canaries=planted.shown() if planted else None,
        weights=taken_snapshots.weights,
        **counts,
        **tally.summary(),
    )


def _read(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    notes_by_patient: Sequence[Sequence[str]],
    plan: PrivacyPlan,
    settings: Settings,
) -> list[Rows]:
    """Return the token ids of every note of every patient; refuse what cannot be trained on."""
    owners(model)  # refuses what has no gradient per unit by its name, before a pass is made
    rows = encode_patients(model, tokenizer, notes_by_patient)
    if len(rows) != plan.units:
        raise InvalidParameter(
            f"notes_by_patient: says that it has {plan.units} patients, and gives {len(rows)}"
        )
    if isinstance(settings.objective, Masking):
        settings.objective.check(rows)
    return rows


def _optimizer(
    model: PreTrainedModel,
    parameters: dict[str, torch.nn.Parameter],
    plan: PrivacyPlan,
    settings: Settings,
    chance: Chance,
) -> tuple[torch.optim.Optimizer, PrivateOptimizer]:
    """Return Adam, and the private optimizer around it."""
    adam = torch.optim.Adam(parameters.values(), lr=settings.learning_rate, betas=settings.betas, fused=True)
    optimizer = settings.make_optimizer(
        adam,
        model,
        noise_multiplier=plan.spent.noise_multiplier,
        max_grad_norm=plan.max_grad_norm,
        expected_batch_size=plan.expected_batch_size,
        chance=chance,
    )
    _require("make_optimizer", optimizer, isinstance(optimizer, PrivateOptimizer), "PrivateOptimizer")
    return adam, optimizer


def _draws(
    settings: Settings, chance: Chance, units: int, sample_rate: float, steps: int
) -> Iterator[Collection[int]]:
    """Yield the units of each step; refuse what draws under study give instead."""
    draws = settings.make_draws(chance.sampling, units=units, sample_rate=sample_rate, steps=steps)
    _require("make_draws", draws, isinstance(draws, Iterable), "draws")
    for drawn in draws:
        _require("make_draws", drawn, _are_units(drawn, units), f"list of units below {units}")
        yield drawn


def _asked(drawn: list[Rows], settings: Settings, chance: Chance) -> list[Rows]:
    """Return a few rows of each drawn patient, with what the model is asked of each.

    This comes before micro-batches are made, so that their size changes no mask.
    """
    few = [bounded(rows, settings.notes_per_step, chance.choices) for rows in drawn]
    if settings.objective is None:
        return few
    return [[_pair(settings.objective(row, chance.choices)) for row in rows] for rows in few]


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


def _distance(before: dict[str, torch.Tensor], parameters: dict[str, torch.nn.Parameter]) -> float:
    """Return how far the weights have moved; refuses weights that did not."""
    change = sum(float((p.detach() - before[name]).double().square().sum()) for name, p in parameters.items())
    if change == 0:
        raise TrainingFailed(
            "DP-SGD: no weight moved, so nothing was trained; check which parameters are frozen"
        )
    return change**0.5
