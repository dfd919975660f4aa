"""Mechanisms of differential privacy, what they compose to, and what they allow an attacker.

Every function takes its privacy parameters by name. The page of a mechanism has its code; this room contains
what several pages need, and the exact samplers for a release.
"""

from privhelpers.mechanisms._adversary import participation_log_ratio, posterior, posterior_range
from privhelpers.mechanisms._composition import (
    advanced_composition,
    basic_composition,
    group_privacy,
    optimal_composition,
)
from privhelpers.mechanisms._grid import laplace_on_grid
from privhelpers.mechanisms._tradeoff import (
    dp_tradeoff,
    gaussian_sigma,
    gdp_delta,
    gdp_epsilon,
    gdp_tradeoff,
    largest_advantage,
    largest_auc,
    largest_tpr,
    smallest_fpr,
)
