"""Mechanisms of differential privacy, what they compose to, and what they allow an attacker.

Every function takes its privacy parameters by name, and every sensitivity names its neighbouring relation.
"""

from privhelpers.mechanisms.adversary import posterior, posterior_range
from privhelpers.mechanisms.checks import RELATIONS
from privhelpers.mechanisms.composition import (
    Guarantee,
    advanced_composition,
    basic_composition,
    group_privacy,
    optimal_composition,
)
from privhelpers.mechanisms.floating import impossible_share, is_possible, naive_laplace
from privhelpers.mechanisms.grid import (
    discrete_gaussian_delta,
    discrete_gaussian_pmf,
    discrete_gaussian_sigma,
    discrete_laplace_pmf,
    gaussian_on_grid,
    laplace_on_grid,
    sample_discrete_gaussian,
    sample_discrete_laplace,
)
from privhelpers.mechanisms.neyman_pearson import (
    GaussianTest,
    RandomizedTest,
    gaussian_test,
    randomized_test,
)
from privhelpers.mechanisms.noise import (
    classic_gaussian_sigma,
    gaussian_mechanism,
    gaussian_sigma,
    laplace_mechanism,
    laplace_scale,
)
from privhelpers.mechanisms.response import (
    ShareEstimate,
    estimate_share,
    randomized_response,
    truth_probability,
)
from privhelpers.mechanisms.sensitivity import (
    QUERIES,
    Sensitivity,
    global_sensitivity,
    sensitivity_table,
)
from privhelpers.mechanisms.tradeoff import (
    WhatEpsilonBuys,
    dp_tradeoff,
    gdp_delta,
    gdp_epsilon,
    gdp_tradeoff,
    largest_advantage,
    largest_auc,
    largest_tpr,
    positive_predictive_value,
    smallest_fpr,
    what_epsilon_buys,
)

__all__ = [
    "QUERIES",
    "RELATIONS",
    "GaussianTest",
    "Guarantee",
    "RandomizedTest",
    "Sensitivity",
    "ShareEstimate",
    "WhatEpsilonBuys",
    "advanced_composition",
    "basic_composition",
    "classic_gaussian_sigma",
    "discrete_gaussian_delta",
    "discrete_gaussian_pmf",
    "discrete_gaussian_sigma",
    "discrete_laplace_pmf",
    "dp_tradeoff",
    "estimate_share",
    "gaussian_mechanism",
    "gaussian_on_grid",
    "gaussian_sigma",
    "gaussian_test",
    "gdp_delta",
    "gdp_epsilon",
    "gdp_tradeoff",
    "global_sensitivity",
    "group_privacy",
    "impossible_share",
    "is_possible",
    "laplace_mechanism",
    "laplace_on_grid",
    "laplace_scale",
    "largest_advantage",
    "largest_auc",
    "largest_tpr",
    "naive_laplace",
    "optimal_composition",
    "positive_predictive_value",
    "posterior",
    "posterior_range",
    "randomized_response",
    "randomized_test",
    "sample_discrete_gaussian",
    "sample_discrete_laplace",
    "sensitivity_table",
    "smallest_fpr",
    "truth_probability",
    "what_epsilon_buys",
]
