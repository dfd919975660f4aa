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


@fault("search: a law or a budget that is none")
def _(t: Trial) -> Case:
    usual = {"expected_runs": 3, "shape": 1.0, "delta": 1e-5}
    shapes = tuple(v for v in NUMBERS if v is not None and not (type(v) is float and v == math.inf))
    pools = {
        "expected_runs": (*NUMBERS, *values.NEGATIVE, *values.ZERO, 0.5, 1e10, 10**18),
        "shape": (*shapes, True, -5e-324, -0.5, -1, -2, -1e300),
        "delta": OUT["delta"],
    }
    which = t.choose(pools)
    changed = usual | {which: t.choose(pools[which])}
    if which == "expected_runs" and t.below(2):
        changed["shape"] = None  # a fixed number, which is always refused
    return Case(lambda: accounting.search_epsilon(PrivacySpent(**SPENT), **changed))


@fault("search: a law at its edge")
def _(t: Trial) -> Case:
    shape = t.choose((5e-324, 1e-300, 1e-12, 1e-9, 0.999999, 1e6, 1e9, 1e300, math.inf, 0))
    mean = t.choose((1, 1.0, 1 + 1e-15, 2, 1e3, 1e9))
    spent = PrivacySpent(**SPENT)

    def call():
        found = accounting.search_epsilon(spent, expected_runs=mean, shape=shape, delta=1e-5)
        # The best of one run and more is no safer than one run.
        return found.epsilon >= accounting.epsilon(**RUN, accountant="pld")

    return Case(call, right=True)


@fault("delta at an epsilon: a value out of its range or of another type")
def _(t: Trial) -> Case:
    pools = {name: OUT[name] for name in ("noise_multiplier", "sample_rate", "steps")}
    pools["epsilon"] = (*values.NO_NUMBERS, *values.NEGATIVE)
    which = t.choose(pools)
    run = {name: RUN[name] for name in ("noise_multiplier", "sample_rate", "steps")} | {"epsilon": 1.0}
    value = t.choose(pools[which])
    return Case(lambda: accounting.delta_at(**{**run, which: value}))


def _extreme(t: Trial) -> dict:
    """Return a run that is valid and that nobody makes."""

    def power(low: float, high: float) -> float:
        value = 10 ** (low + (high - low) * float(t.rng.random()))
        t.note(value)
        return value

    delta = t.choose(("tiny", "small", "half", "near one"))
    return {
        "noise_multiplier": power(*t.choose(((-2, 1), (-1, 6), (-100, 100)))),
        "sample_rate": min(1.0, power(*t.choose(((0, 0), (-4, 0), (-300, 0))))),
        "steps": t.choose((1, 2, int(power(0, 4)), int(power(0, 9)), int(power(0, 18)), 10**100)),
        "delta": {"half": 0.5, "near one": 1 - power(-15, -1)}.get(delta)
        or power(-15 if delta == "small" else -300, -1),
    }


@fault("extreme but valid runs", seconds=10)
def _(t: Trial) -> Case:
    """An epsilon below the exact one, which is known where every unit takes part, is a third outcome."""
    run, other = _extreme(t), _extreme(t)
    by = t.choose((*accounting.ACCOUNTANTS, "bracket", "composed", "patient", "calibrated", "delta"))
    if by == "bracket":
        interval = 10 ** (-6 + 6 * float(t.rng.random()))
        return Case(lambda: accounting.pld_bracket(**run, interval=interval)[1] >= 0, right=True)
    if by == "delta":
        del run["delta"]
        nats = t.choose((0.0, 0, 1e-300, 1.0, 700.0, 1e4, 1e300))
        return Case(lambda: 0 <= accounting.delta_at(epsilon=nats, **run) <= 1, right=True)
    if by == "composed":
        spent = [PrivacySpent(epsilon=1.0, **{**one, "delta": run["delta"]}) for one in (run, other)]
        return Case(lambda: accounting.compose_runs(spent, delta=run["delta"]) >= 0, right=True)
    if by == "patient":
        return Case(lambda: accounting.patient_epsilon(**run, notes_per_patient=3) >= 0, right=True)
    if by == "calibrated":
        del run["noise_multiplier"]
        target = 10 ** (-3 + 5 * float(t.rng.random()))
        return Case(
            lambda: accounting.calibrate_noise_multiplier(
                target_epsilon=target, **run, accountant="rdp", tolerance=0.01
            ) > 0,
            right=True,
        )  # fmt: skip
    exact = 0.0
    if run["sample_rate"] == 1 and run["delta"] < 0.9:
        mu = run["steps"] ** 0.5 / run["noise_multiplier"]
        exact = mechanisms.gdp_epsilon(mu=mu, delta=run["delta"])
    least = exact * (1 - 1e-6) - 1e-9
    return Case(lambda: accounting.epsilon(**run, accountant=by) >= max(0, least), right=True)


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
