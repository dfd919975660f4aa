"""Lower bounds on epsilon from guesses at canaries; no torch anywhere but in `lower_bounds.broken`.

result = audit_in_one_run(included, scores, delta=1e-5)     # AuditResult
require_below(result, spent.epsilon, what="dp-eps-4")       # or errors.AuditContradiction

Scores are HIGHER for canaries that look included. The coin of each canary must be fair and its own; who has a
fixed half of planted notes makes coins of it with `swap_pairs`.
"""

from privhelpers.lower_bounds._chance import claim_p_value, simulate_scores
from privhelpers.lower_bounds._one_run import (
    fdp_epsilon_lower,
    fdp_mass,
    fdp_mu_lower,
    one_run_epsilon_lower,
    one_run_p_value,
)
from privhelpers.lower_bounds._own_curve import OWN_CURVE, own_curve_audit, own_curve_epsilon_lower
from privhelpers.lower_bounds._result import ADD_REMOVE, REPLACEMENT, AuditResult, require_below
from privhelpers.lower_bounds._scores import (
    BINOMIAL,
    BY_RANK,
    BY_SIGN,
    FDP,
    SHARES,
    audit_in_one_run,
    count_correct,
    most_certifiable,
    searched_guesses,
    swap_pairs,
)
