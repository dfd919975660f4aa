"""DP-SGD with the patient as the unit of privacy.

plan = plan_privacy(target_epsilon=8, target_delta=1e-5, sample_rate=0.1, steps=150, ...)
settings = Settings(learning_rate=6e-3)
log = train(model, tokenizer, notes_by_patient, plan, settings, chance=research(seed=0))
log.spent            # PrivacySpent, with sampler, unit, adjacency and accountant

From the ground up: `_units` and `_contributions` (what a layer adds to norms and sums), `_recorder` and
`_layers` (how a pass is recorded), `_checks` (one comparison with autograd), `_supported` (the models that
an epsilon is stated for), `_engine` (the clipped sum), `_chance` (noise), `_optimizer` (one step), `_plan`,
`_settings`, `_callbacks` (what is done around a step), `_canaries` (units of an audit), `_checkpoint`,
`_resume` and `_loop` (a run), `processes` (a run on several processes).
"""

from privhelpers.accounting import PrivacyPlan
from privhelpers.dpsgd._batches import micro_batches
from privhelpers.dpsgd._canaries import GradientCanaries
from privhelpers.dpsgd._chance import RandomStreams, release, research
from privhelpers.dpsgd._engine import ClippedGradients, GivenGradients, clipped_gradient_sum
from privhelpers.dpsgd._log import CanaryScores, DPTrainingLog
from privhelpers.dpsgd._loop import Training, train
from privhelpers.dpsgd._losses import Batch
from privhelpers.dpsgd._optimizer import PrivateOptimizer
from privhelpers.dpsgd._plan import epsilon_curve, plan_privacy, plan_with_noise
from privhelpers.dpsgd._resume import Keep
from privhelpers.dpsgd._settings import Settings, poisson_draws

__all__ = [
    "Batch",
    "CanaryScores",
    "ClippedGradients",
    "DPTrainingLog",
    "GivenGradients",
    "GradientCanaries",
    "Keep",
    "PrivacyPlan",
    "PrivateOptimizer",
    "RandomStreams",
    "Settings",
    "Training",
    "clipped_gradient_sum",
    "epsilon_curve",
    "micro_batches",
    "plan_privacy",
    "plan_with_noise",
    "poisson_draws",
    "release",
    "research",
    "train",
]
