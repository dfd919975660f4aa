"""The budget of a run of DP-SGD, and how much noise a budget needs.

One step of DP-SGD is a Poisson-subsampled Gaussian mechanism; a run composes many of them. The default
accountant is the privacy loss distribution (PLD) of Google's dp-accounting, rounded so that the epsilon it
returns is an upper bound. The relation is add/remove of one privacy unit unless a name says otherwise.

>>> run = {"sample_rate": 0.04, "steps": 2249, "delta": 1e-5}
>>> [round(epsilon(noise_multiplier=1.5, accountant=name, **run), 2) for name in ("pld", "prv", "rdp")]
[6.77, 6.78, 7.33]
>>> epsilon(noise_multiplier=1.5, sampler="shuffled epochs", **run)  # doctest: +ELLIPSIS
Traceback (most recent call last):
...
privhelpers.errors.SamplerMismatch: sampler = 'shuffled epochs': the pld accountant assumes Poisson ...
"""

from privhelpers.accounting._bounds import (
    ACCOUNTANTS,
    check_accountant,
    check_run,
    delta_at,
    epsilon,
    epsilon_lower,
    pld_bracket,
)
from privhelpers.accounting._calibration import calibrate_noise_multiplier
from privhelpers.accounting._participation import (
    epsilon_without_amplification,
    patient_epsilon,
)
from privhelpers.accounting._peers import opacus_epsilon
from privhelpers.accounting._plan import PrivacyPlan
from privhelpers.accounting._printed import (
    PRINTED_ORDERS,
    clamped,
    curve_epsilon,
    printed_calibration,
    printed_epsilon,
)
from privhelpers.accounting._renyi import RDP_ORDERS, rdp, rdp_to_epsilon
from privhelpers.accounting._runs import compose_runs
from privhelpers.accounting._search import (
    SearchSpent,
    search_epsilon,
    search_rdp,
    stop_probability,
)
from privhelpers.accounting._spent import ADJACENCY, POISSON, SAMPLERS, Claimed, PrivacySpent, require_poisson
