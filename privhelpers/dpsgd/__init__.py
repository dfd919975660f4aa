"""DP-SGD with the patient as the unit of privacy.

plan = plan_privacy(target_epsilon=8, target_delta=1e-5, sample_rate=0.1, steps=150, ...)
settings = Settings(learning_rate=6e-3)
log = train(model, tokenizer, notes_by_patient, plan, settings, chance=research(seed=0))
log.spent            # PrivacySpent, with sampler, unit, adjacency and accountant

To read it from the top: `_loop` (a run), `_plan` and `_settings` (what it is given), `_callbacks`,
`_canaries`, `_log`, and `_resume` (what is done around a step), `_optimizer` (one step), `_chance` (its
noise), `_engine` (the clipped sum), `_layers`, `_recorder`, `_units`, and `_contributions` (how a pass is
recorded, and what a layer adds to norms and sums), `_checks` (one comparison with autograd), `_supported`
(the models that an epsilon is stated for), `processes` (a run on several processes).

A variant under study is a subclass of `Training`: see `privhelpers.lower_bounds.broken`.
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
