"""DP-SGD with the patient as the unit of privacy.

plan = plan_privacy(target_epsilon=8, target_delta=1e-5, sample_rate=0.1, steps=150, ...)
log = train(model, tokenizer, notes_by_patient, plan, learning_rate=6e-3, seed=0)
log.spent            # PrivacySpent, with sampler, unit, adjacency and accountant
"""

from privhelpers.dpsgd.engine import Batch, clipped_gradient_sum
from privhelpers.dpsgd.loop import DPTrainingLog, noisy_mean, train
from privhelpers.dpsgd.plan import PrivacyPlan, epsilon_curve, plan_privacy

__all__ = [
    "Batch",
    "DPTrainingLog",
    "PrivacyPlan",
    "clipped_gradient_sum",
    "epsilon_curve",
    "noisy_mean",
    "plan_privacy",
    "train",
]
