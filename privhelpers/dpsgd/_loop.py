"""The private training loop: draw, clip, sum, add noise, divide by a public number, step.

The draw is Poisson sampling over patients, at the rate that is accounted, to the last digit. An empty draw is
a step like any other: noise alone.
"""

from collections.abc import Collection, Iterable, Sequence
from contextlib import ExitStack
from numbers import Integral
from types import NoneType

import torch
from opacus.accountants import RDPAccountant
from tqdm.auto import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from privhelpers import validate
from privhelpers.accounting import Claimed, PrivacyPlan
from privhelpers.dpsgd._batches import Rows, bounded, encode_patients, micro_batches, public_trial
from privhelpers.dpsgd._callbacks import Callback, Snapshots, Taken, copied, require_finite
from privhelpers.dpsgd._canaries import CanaryTracker
from privhelpers.dpsgd._chance import RandomStreams, is_builtin
from privhelpers.dpsgd._engine import trainable
from privhelpers.dpsgd._layers import owners
from privhelpers.dpsgd._log import DPTrainingLog, Tally, counts_of_notes
from privhelpers.dpsgd._optimizer import Drawn, PrivateOptimizer
from privhelpers.dpsgd._resume import Keep, ResumableRun, fingerprint
from privhelpers.dpsgd._settings import Settings, poisson_draws
from privhelpers.dpsgd._supported import is_supported_tokenizer, reads_backward, unsupported_parts
from privhelpers.dpsgd.processes import SharedOptimizer
from privhelpers.errors import InvalidParameter, TrainingFailed
from privhelpers.ledger import Header
from privhelpers.models.encoding import end_id
from privhelpers.models.precision import layers_in
from privhelpers.models.repeatable import repeatable_on


def train(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    notes_by_patient: Sequence[Sequence[str]],
    plan: PrivacyPlan,
    settings: Settings,
    *,
    chance: RandomStreams,
    keep: Keep | None = None,
    snapshots: Collection[int] = (),
    progress: bool = True,
) -> DPTrainingLog:
    """Fine-tune `model` in place under the plan and return what was spent.

    With `keep`, every step is written to a ledger before it is taken, and a run killed at any moment
    continues when the same call is made again: in research mode to the same weights, bit for bit. Dropout
    reads a stream of the process, so of two trainings in two threads neither repeats.

    Args:
        notes_by_patient: the notes of each patient; a patient is one privacy unit. The same text under two
            of them stays two, and is counted (`DPTrainingLog.shared_texts`).
        plan: as `plan_privacy` returns it; `plan.units` must be the number of patients.
        settings: how to train.
        chance: `research(seed)` or `release()`: of sampling, note choice, dropout and noise; of several
            processes, `processes.agreed(...)` of it.
        keep: folder of the ledger and the checkpoints; None: a kill loses the run.
        snapshots: steps, 1 to the last, after which the log keeps a copy of the weights. The budget is that
            of all steps' weights together, so they spend nothing; those after step k alone spend what the
            first k steps do (`epsilon_curve`).
        progress: show a progress bar.

    Raises:
        InvalidParameter: the plan is for another number of patients, a patient has no list of notes, or
            `snapshots` names a step that the run does not have, or comes with `keep`.
        UnsupportedModel: all weights are frozen, or a part of the model has no known per-unit gradient.
        BudgetExceeded: the plan does not fit its budget; nothing was read or trained.
        ResumeRefused: the folder of `keep` belongs to a run with other data, parameters or code.
        TrainingFailed: weights became non-finite, or never moved.

    Source: Abadi et al. 2016, algorithm 1, with patients as examples.
    """
    training = Training(model, tokenizer, notes_by_patient, plan, settings, chance)
    return training.run(keep=keep, snapshots=snapshots, progress=progress)


class Training:
    """One private run; `train` makes it and has it run.

    A variant under study replaces `optimizer` or `draws` in a subclass. Its log has no `PrivacySpent`, but
    what it `Claimed`, and its ledger counts steps and states no epsilon.
    """

    optimizer: type[PrivateOptimizer] = PrivateOptimizer
    draws = staticmethod(poisson_draws)

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        notes_by_patient: Sequence[Sequence[str]],
        plan: PrivacyPlan,
        settings: Settings,
        chance: RandomStreams,
    ) -> None:
        """Check all parts, and encode the notes; the arguments are as in `train`."""
        _check_parts(model, tokenizer, plan, settings, chance)
        plan.require_budget()  # before a note is read
        if not isinstance(notes_by_patient, Sequence) or isinstance(notes_by_patient, str):
            raise InvalidParameter("notes_by_patient: must be a list, with a list of texts for each patient")
        if plan.units != len(notes_by_patient):
            raise InvalidParameter(f"plan: is for {plan.units} patients, got {len(notes_by_patient)}")
        self.model, self.tokenizer, self.plan = model, tokenizer, plan
        self.settings, self.chance, self.pad_id = settings, chance, end_id(tokenizer)
        trainable(model), owners(model)  # refuse by name what has no gradient per unit, before a pass is made
        self.rows = encode_patients(model, tokenizer, notes_by_patient)
        if settings.objective:
            settings.objective.check(self.rows)
        self.counts = counts_of_notes(notes_by_patient, settings.notes_per_step)
        self.masked = settings.objective is not None or reads_backward(model)
        model.train()
        self.not_counted = self._not_counted()

    def run(
        self, *, keep: Keep | None = None, snapshots: Collection[int] = (), progress: bool = True
    ) -> DPTrainingLog:
        """Train, and return what was done; the arguments, and the errors raised, are as in `train`."""
        plan, settings, own = self.plan, self.settings, trainable(self.model)
        copies = Snapshots(own, _check_snapshots(snapshots, plan.steps, keep))
        before = copied(own)
        with ExitStack() as run:
            # 0. Set up: rows of the canaries, optimizer, ledger, streams. Continue from the last checkpoint.
            canaries = settings.canaries and run.enter_context(
                CanaryTracker(settings.canaries, self.model, plan)
            )
            optimizer, accountant = self._optimizer()
            kept = keep and self._resumable(keep, optimizer)
            if kept:
                run.callback(kept.ledger.close)
            for streams in (
                self.chance.dropout(),
                layers_in(settings.matmul_precision),
                repeatable_on(self.model.device),
            ):
                run.enter_context(streams)
            start, tally = kept.restore() if kept else (0, Tally())
            accountant.history = [(plan.noise_multiplier, plan.sample_rate, start)] if start else []
            if canaries:
                canaries.resume(tally)
            # The checkpoint comes last: it contains what the others count.
            concerns = (copies, canaries, kept)
            callbacks: list[Callback] = [one for one in concerns if one]
            units = plan.units + (canaries.units if canaries else 0)
            drawn_units = self.draws(
                self.chance.sampling, units=units, sample_rate=plan.sample_rate, steps=plan.steps - start
            )
            bar = tqdm(drawn_units, "DP-SGD", plan.steps, initial=start, unit="step", disable=not progress)
            for step, drawn in enumerate(bar, start):
                # 1. Count the step as spent, on the disk, before it is taken.
                for callback in callbacks:
                    callback.before(step)
                # 2. Each unit was drawn independently; take a few notes of each patient.
                patients = self._asked([self.rows[i] for i in drawn if i < plan.units])
                batches: list[Drawn] = list(
                    micro_batches(patients, settings.max_rows, self.pad_id, attention_mask=self.masked)
                )
                if chosen := [i - plan.units for i in drawn if i >= plan.units]:
                    batches.append((canaries.gradients_of(chosen), None))
                # 3. Clip each unit's gradient, sum, add noise, divide by the expected batch size, step.
                optimizer.optimizer.param_groups[0]["lr"] = settings.learning_rate_at(step, plan.steps)
                norms = optimizer.step(batches)
                # 4. Note what happened, and keep it.
                tally.add(norms[: len(patients)], plan.max_grad_norm)
                taken = Taken(step + 1, optimizer.gradients)
                for callback in callbacks:
                    callback.after(taken)
            require_finite(trainable(self.model))
            self.model.eval()
        counted = not self.not_counted
        return DPTrainingLog(
            spent=plan.spent if counted else Claimed(plan.spent, tuple(self.not_counted)),
            mode=self.chance.mode,
            rdp_epsilon=max(0.0, accountant.get_epsilon(plan.delta)) if counted else None,
            weight_change=_distance(before, own),
            canaries=canaries.shown() if canaries else None,
            weights=copies.weights,
            **self.counts,
            **tally.summary(),
        )

    def _not_counted(self) -> list[str]:
        """Return the parts of the run that the accountant's proof does not cover, in words."""
        variant, tokenizer = type(self), self.tokenizer
        parts = [] if variant is Training else [f"training: {variant.__name__}"]
        if not is_supported_tokenizer(tokenizer):
            parts.append(f"tokenizer: {type(tokenizer).__name__}")
        return parts + unsupported_parts(self.model)

    def _optimizer(self) -> tuple[PrivateOptimizer, RDPAccountant]:
        """Return the private optimizer around Adam, with its model checked, and an accountant of its steps.

        That accountant counts next to the one of the plan.
        """
        plan, settings = self.plan, self.settings
        weights = trainable(self.model).values()  # the rows of the canaries are among them
        kind = (
            SharedOptimizer if self.chance.shared and self.optimizer is PrivateOptimizer else self.optimizer
        )
        optimizer = kind(
            torch.optim.Adam(weights, lr=settings.learning_rate, betas=settings.betas, fused=True),
            self.model,
            noise_multiplier=plan.noise_multiplier,
            max_grad_norm=plan.max_grad_norm,
            expected_batch_size=plan.expected_batch_size,
            chance=self.chance,
        )
        trial = public_trial(self.model, self.tokenizer, self.pad_id, attention_mask=self.masked)
        optimizer.engine.check(*trial)
        accountant = RDPAccountant()
        optimizer.attach_step_hook(accountant.get_optimizer_hook_fn(plan.sample_rate))
        return optimizer, accountant

    def _resumable(self, keep: Keep, optimizer: PrivateOptimizer) -> ResumableRun:
        """Open the ledger of the run, and refuse one of another run."""
        chance = self.chance
        given = self.settings.public() | chance.public() | {"not_counted": self.not_counted}
        parts = (type(self), type(self.tokenizer), type(optimizer))
        key = keep.key() if chance.mode == "release" else b""
        header = Header(
            run=keep.run,
            plan=self.plan,
            mode=chance.mode,
            fingerprint=fingerprint(self.model, self.rows, given, parts, key=key),
            not_counted=self.not_counted,
        )
        return ResumableRun(keep, header, self.model, optimizer.optimizer, chance)

    def _asked(self, drawn: list[Rows]) -> list[Rows]:
        """Return a few rows of each drawn patient, with what the model is asked of each.

        This comes before micro-batches are made, so that their size changes no mask.
        """
        choices, objective = self.chance.choices, self.settings.objective
        few = [bounded(rows, self.settings.notes_per_step, choices) for rows in drawn]
        if objective is None:
            return few
        return [[objective(row, choices) for row in rows] for rows in few]


def _check_parts(model: object, tokenizer: object, plan: object, settings: object, chance: object) -> None:
    """Refuse a part of a run that is of another kind than it must be."""
    kinds = {
        "model": (model, torch.nn.Module, "a Hugging Face model"),
        "tokenizer": (tokenizer, PreTrainedTokenizerBase, "a Hugging Face tokenizer"),
        "plan": (plan, PrivacyPlan, "what plan_privacy returns"),
        "settings": (settings, Settings, "dpsgd.Settings(...)"),
    }
    for name, (part, kind, must_be) in kinds.items():
        if not isinstance(part, kind):
            raise InvalidParameter(f"{name} = {validate.shown(part)}: must be {must_be}")
    if not is_builtin(chance):  # the accountant's proof does not cover another class's randomness
        raise InvalidParameter(f"chance = {validate.shown(chance)}: must be research(seed) or release()")


def _check_snapshots(snapshots: Iterable[int], steps: int, keep: Keep | None) -> set[int]:
    """Refuse snapshots that the run does not have; return their steps."""
    if not isinstance(keep, Keep | NoneType):
        raise InvalidParameter(f"keep = {validate.shown(keep)}: must be dpsgd.Keep(folder)")
    asked = validate.row("snapshots", snapshots)
    for step in asked:
        whole = isinstance(step, Integral) and not isinstance(step, bool)
        if not whole or not 1 <= step <= steps:
            raise InvalidParameter(f"snapshots: {validate.shown(step)} is not a step from 1 to {steps}")
    if asked and keep:
        raise InvalidParameter("snapshots: a kept run has checkpoints (`keep`), and a kill would lose these")
    return set(map(int, asked))


def _distance(before: dict[str, torch.Tensor], parameters: dict[str, torch.nn.Parameter]) -> float:
    """Return how far the weights have moved; refuse weights that did not."""
    change = sum(float((p.detach() - before[name]).double().square().sum()) for name, p in parameters.items())
    if change == 0:
        raise TrainingFailed(
            "DP-SGD: no weight moved, so nothing was trained; check which parameters are frozen"
        )
    return change**0.5
