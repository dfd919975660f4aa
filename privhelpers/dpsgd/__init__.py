"""DP-SGD with the patient as the unit of privacy.

plan = plan_privacy(target_epsilon=8, target_delta=1e-5, sample_rate=0.1, steps=150, ...)
log = train(model, tokenizer, notes_by_patient, plan, learning_rate=6e-3, chance=research(seed=0))
log.spent            # PrivacySpent, with sampler, unit, adjacency and accountant

From the ground up: `units` and `contributions` (what a layer adds to norms and sums), `recorder` and `layers`
(how a pass is listened to), `engine` (the clipped sum), `chance` (noise), `optimizer` (one step), `plan`,
`checkpoint`, `keeping` and `loop` (a run).
"""

from privhelpers.dpsgd.chance import Chance, release, research
from privhelpers.dpsgd.engine import Batch, ClippedGradients, clipped_gradient_sum
from privhelpers.dpsgd.log import DPTrainingLog
from privhelpers.dpsgd.loop import train
from privhelpers.dpsgd.optimizer import PrivateOptimizer
from privhelpers.dpsgd.plan import PrivacyPlan, epsilon_curve, plan_privacy

__all__ = [
    "Batch",
    "Chance",
    "ClippedGradients",
    "DPTrainingLog",
    "PrivacyPlan",
    "PrivateOptimizer",
    "clipped_gradient_sum",
    "epsilon_curve",
    "plan_privacy",
    "release",
    "research",
    "train",
]
