"""The door of accounting: arguments that are none, and arguments at the edge of what is one."""

import math

from faults.harness import values
from faults.harness.registry import Case, Trial, fault

from privhelpers import accounting, mechanisms
from privhelpers.accounting import PrivacySpent

RUN = {"noise_multiplier": 1.5, "sample_rate": 0.04, "steps": 100, "delta": 1e-5}
SPENT = {"epsilon": 1.0, **RUN}
NUMBERS = tuple(v for v in values.NO_NUMBERS if type(v) is not bool)
OUT = {
    "noise_multiplier": (*values.NO_NUMBERS, *values.NEGATIVE, *values.ZERO, 1e-300, 1e300),
    "sample_rate": (*values.NO_NUMBERS, *values.NEGATIVE, *values.ZERO, 1.0000000001, 2, 1e300),
    "steps": values.NO_COUNTS,
    "delta": (*values.NO_NUMBERS, *values.NEGATIVE, *values.ZERO, 1, 1.0, 1.5, 2),
}
CALLS = {
    "epsilon": lambda given: accounting.epsilon(**given),
    "epsilon by rdp": lambda given: accounting.epsilon(**given, accountant="rdp"),
    "epsilon by prv": lambda given: accounting.epsilon(**given, accountant="prv"),
    "bracket": lambda given: accounting.pld_bracket(**given, interval=1e-2),
    "patient": lambda given: accounting.patient_epsilon(**given, notes_per_patient=2),
    "composed": lambda given: accounting.compose_runs(
        [PrivacySpent(**SPENT), PrivacySpent(**{**SPENT, **given})], delta=1e-5
    ),
}


def _register() -> None:
    for name, call in CALLS.items():

        def made(t: Trial, call=call) -> Case:
            which = t.choose(OUT)
            value = t.choose(OUT[which])
            return Case(lambda: call({**RUN, which: value}))

        made.__module__ = __name__
        fault(f"{name}: a value out of its range or of another type")(made)


_register()


@fault("calibration: a value out of its range or of another type")
def _(t: Trial) -> Case:
    run = {"target_epsilon": 2.0, "sample_rate": 0.04, "steps": 100, "delta": 1e-5}
    pools = {name: OUT[name] for name in ("sample_rate", "steps", "delta")}
    pools["target_epsilon"] = (*values.NO_NUMBERS, *values.NEGATIVE, *values.ZERO)
    pools["tolerance"] = OUT["sample_rate"]
    which = t.choose(pools)
    value = t.choose(pools[which])
    by = t.choose(accounting.ACCOUNTANTS)
    return Case(lambda: accounting.calibrate_noise_multiplier(**{**run, which: value}, accountant=by))


@fault("a word that names no accountant, sampler or conversion")
def _(t: Trial) -> Case:
    word = t.choose((*values.NO_TEXTS, *values.HOSTILE_NAMES, "PLD", "poisson", "shuffled epochs"))
    call = t.choose(
        (
            lambda: accounting.epsilon(**RUN, accountant=word),
            lambda: accounting.epsilon(**RUN, sampler=word),
            lambda: accounting.rdp_to_epsilon(orders=[2], rdp=[1.0], delta=1e-5, conversion=word),
            lambda: accounting.compose_runs([PrivacySpent(**SPENT)], delta=1e-5, accountant=word),
            lambda: accounting.calibrate_noise_multiplier(
                target_epsilon=1.0, sample_rate=0.1, steps=9, delta=1e-5, accountant=word
            ),
            lambda: accounting.epsilon_without_amplification(
                noise_multiplier=1.0, participations=2, delta=1e-5, adjacency=word
            ),
        )
    )
    return Case(call)


@fault("orders that are none")
def _(t: Trial) -> Case:
    orders = t.choose(
        (
            [],
            [1],
            [1.0],
            [0.5, 2],
            [math.nan],
            [math.inf, 2],
            [2, "3"],
            None,
            2,
            "23",
            [[2, 3]],
            [2, [3]],
            [True],
            [2, None],
            [10**400],
            [2, 10**400],
            [1j],
            {},
            b"23",
            [-3],
            [object()],
        )
    )
    call = t.choose(
        (
            lambda: accounting.rdp(noise_multiplier=1.0, sample_rate=0.1, steps=1, orders=orders),
            lambda: accounting.rdp_to_epsilon(orders=orders, rdp=[1.0], delta=1e-5),
        )
    )
    return Case(call)


@fault("orders too large for a sum")
def _(t: Trial) -> Case:
    order = t.choose((10**9, 2**63, 2**64, 10**19, 1e300, 10**30, 1e7))
    return Case(lambda: accounting.rdp(noise_multiplier=1.0, sample_rate=0.1, steps=1, orders=[2, order]))


@fault("divergences that are none")
def _(t: Trial) -> Case:
    curve = t.choose(([], [1.0], [1.0, -1e-300], [1.0, math.nan], [1, "2"], None, [[1, 2]], 1.0, [None, 1]))
    return Case(lambda: accounting.rdp_to_epsilon(orders=[2, 3], rdp=curve, delta=1e-5))


@fault("more noise, fewer steps or a smaller rate never spends more")
def _(t: Trial) -> Case:
    """A wrong epsilon is a third outcome: the order of two runs is known without computing either."""
    sigma, rate = 0.5 + 4 * float(t.rng.random()), 10 ** (-3 * float(t.rng.random()))
    steps, delta = 1 + t.below(500), 10 ** (-2 - 6 * float(t.rng.random()))
    by = t.choose(("pld", "rdp"))
    worse = {"noise_multiplier": sigma, "sample_rate": rate, "steps": steps + 1, "delta": delta}
    change = t.choose(("noise_multiplier", "sample_rate", "steps", "delta"))
    factor = {"noise_multiplier": 1.3, "sample_rate": 0.7, "delta": 1.4}
    better = {**worse, change: worse[change] * factor[change] if change != "steps" else max(1, steps // 2)}

    def call():
        one, other = (accounting.epsilon(**run, accountant=by) for run in (better, worse))
        return math.isfinite(one) and 0 <= one <= other * (1 + 1e-3) + 1e-9

    return Case(call, right=True, refusal=False)


@fault("composition of what cannot be composed")
def _(t: Trial) -> Case:
    one = PrivacySpent(**SPENT)
    runs = t.choose(
        (
            [],
            [one, None],
            [one, {"epsilon": 1}],
            [accounting.Claimed(one, ("x",))],
            [one, PrivacySpent(**SPENT, unit="note")],
            [one, PrivacySpent(**SPENT, sampler="all units")],
            [one, PrivacySpent(**SPENT, adjacency="replace")],
            [PrivacySpent(**{**SPENT, "noise_multiplier": 0.0})],
            [PrivacySpent(**{**SPENT, "steps": -1})],
        )
    )
    by = t.choose(("pld", "rdp"))
    return Case(lambda: accounting.compose_runs(runs, delta=1e-5, accountant=by))


@fault("mechanisms: a value out of its range or of another type")
def _(t: Trial) -> Case:
    bad = t.choose((*values.NO_NUMBERS, *values.NEGATIVE))
    call = t.choose(
        (
            lambda: mechanisms.gaussian_sigma(epsilon=bad, delta=1e-5, sensitivity=1.0),
            lambda: mechanisms.gaussian_sigma(epsilon=1.0, delta=bad, sensitivity=1.0),
            lambda: mechanisms.gaussian_sigma(epsilon=1.0, delta=1e-5, sensitivity=bad),
            lambda: mechanisms.gdp_delta(mu=bad, epsilon=1.0),
            lambda: mechanisms.gdp_epsilon(mu=bad, delta=1e-5),
            lambda: mechanisms.largest_advantage(epsilon=bad, delta=1e-5),
        )
    )
    return Case(call)
