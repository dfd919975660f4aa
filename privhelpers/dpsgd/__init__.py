"""DP-SGD with the patient as the unit of privacy.

plan = plan_privacy(target_epsilon=8, target_delta=1e-5, sample_rate=0.1, steps=150, ...)
settings = Settings(learning_rate=6e-3)
log = train(model, tokenizer, notes_by_patient, plan, settings, chance=research(seed=0))
log.spent            # PrivacySpent, with sampler, unit, adjacency and accountant

From the ground up: `units` and `contributions` (what a layer adds to norms and sums), `recorder` and `layers`
(how a pass is listened to), `engine` (the clipped sum), `chance` (noise), `optimizer` (one step), `plan`,
`canaries` (units of an audit), `checkpoint`, `resume` and `loop` (a run), `processes` (a run on several).
"""

from privhelpers.dpsgd.batches import micro_batches
from privhelpers.dpsgd.canaries import CanaryScores, GradientCanaries, free_coordinates
from privhelpers.dpsgd.chance import Chance, release, research
from privhelpers.dpsgd.engine import Batch, ClippedGradients, GivenGradients, clipped_gradient_sum
from privhelpers.dpsgd.log import DPTrainingLog
from privhelpers.dpsgd.loop import Settings, poisson_draws, train
from privhelpers.dpsgd.optimizer import PrivateOptimizer
from privhelpers.dpsgd.plan import PrivacyPlan, epsilon_curve, plan_privacy, plan_with_noise
from privhelpers.dpsgd.resume import Keep

__all__ = [
    "Batch",
    "CanaryScores",
    "Chance",
    "ClippedGradients",
    "DPTrainingLog",
    "GivenGradients",
    "GradientCanaries",
    "Keep",
    "PrivacyPlan",
    "PrivateOptimizer",
    "Settings",
    "clipped_gradient_sum",
    "epsilon_curve",
    "free_coordinates",
    "micro_batches",
    "plan_privacy",
    "plan_with_noise",
    "poisson_draws",
    "release",
    "research",
    "train",
]
