"""The entry points of the accountant: published figures, calibration, refusals."""

import logging
import math
from functools import partial

import dp_accounting
import pytest
from dp_accounting.rdp import rdp_privacy_accountant
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from nights import sampled
from scipy.special import ndtr, ndtri

from privhelpers import accounting, mechanisms, rng
from privhelpers.accounting import _bounds, _calibration
from privhelpers.dpsgd import plan_privacy
from privhelpers.errors import InvalidParameter, SamplerMismatch

REPORT = {"sample_rate": 4 / 1500, "steps": 1875, "delta": 1e-5}
OPACUS_ORDERS = [1 + x / 10 for x in range(1, 100)] + list(range(12, 64))
GOOGLE_ORDERS = list(rdp_privacy_accountant.DEFAULT_RDP_ORDERS)


def run_of(q, sigma, steps, delta):
    return {"sample_rate": q, "noise_multiplier": sigma, "steps": steps, "delta": delta}


def by_orders(run, orders):
    curve = accounting.rdp(**{k: v for k, v in run.items() if k != "delta"}, orders=orders)
    return accounting.rdp_to_epsilon(orders=orders, rdp=curve, delta=run["delta"])


@pytest.mark.parametrize(
    ("run", "orders", "expected", "order"),
    [
        # Opacus, tests/accountants_test.py
        (run_of(0.04, 1.5, 2250, 1e-5), OPACUS_ORDERS, 7.32911117143, None),
        (run_of(0.01, 4.0, 10000, 1e-5), OPACUS_ORDERS, 1.03549, None),
        # TensorFlow Privacy, compute_dp_sgd_privacy_test.py
        (run_of(150 / 60000, 1.3, 6000, 1e-5), GOOGLE_ORDERS, 0.7242234026109595, 19),
        (run_of(100 / 100000, 1.0, 30000, 1e-7), GOOGLE_ORDERS, 1.4154988495444842, 13),
        (run_of(1024 / 1e8, 0.1, 976563, 1e-7), [1.25], 5907982.3113984, 1.25),
        (run_of(0.01, 0.7, 120, 1e-5), GOOGLE_ORDERS, 3.2392676, None),
        (run_of(1.0, 0.7, 2, 1e-5), GOOGLE_ORDERS, 10.8602036, None),
        (run_of(1.0, 0.35, 2, 1e-5), GOOGLE_ORDERS, 26.2880374, None),
        (run_of(64 / 1e4, 2.0, 782, 1e-6), GOOGLE_ORDERS, 0.433359, None),
        (run_of(64 / 1e4, 1.0, 782, 1e-6), GOOGLE_ORDERS, 1.616394, None),  # microbatches: half the sigma
        (run_of(1.0, 2.0, 5, 1e-6), GOOGLE_ORDERS, 5.926822, None),
        (run_of(1.0, 1.0, 5, 1e-6), GOOGLE_ORDERS, 13.376379, None),
        (run_of(1.0, 2.0 / 3, 5, 1e-6), GOOGLE_ORDERS, 22.151154, None),  # three notes of one user
    ],
)
def test_published_epsilons_by_rdp(run, orders, expected, order):
    bound = by_orders(run, orders)
    assert bound.epsilon == pytest.approx(expected, rel=1e-4)
    assert order is None or bound.order == order


@pytest.mark.parametrize(
    ("run", "accountant", "expected"),
    [
        (run_of(0.04, 1.5, 2249, 1e-5), "prv", 6.777395712150674),
        (run_of(0.04, 1.5, 2249, 1e-5), "pld", 6.767051),
        (run_of(150 / 60000, 1.3, 6000, 1e-5), "pld", 0.640111),
        (run_of(150 / 60000, 1.3, 6000, 1e-5), "prv", 0.650058),
        (run_of(100 / 100000, 1.0, 30000, 1e-7), "pld", 1.098200),
        (run_of(0.01, 0.7, 120, 1e-5), "pld", 2.4612381),
        (run_of(0.01, 0.35, 120, 1e-5), "pld", 18.6977407),
        (run_of(64 / 1e4, 2.0, 782, 1e-6), "pld", 0.393742),
        (run_of(0.01, 4.0, 10000, 1e-5), "pld", 0.946999),
        (run_of(0.01, 4.0, 10000, 1e-5), "prv", 0.956936),
        # q = 1, one step: the exact Gaussian mechanism
        (run_of(1.0, 1.0, 1, 1e-5), "pld", 4.377178),
        (run_of(1.0, 2.0, 1, 1e-5), "pld", 1.993091),
        (run_of(1.0, 0.5, 1, 1e-5), "pld", 9.997256),
    ],
)
def test_published_epsilons(run, accountant, expected):
    assert accounting.epsilon(**run, accountant=accountant) == pytest.approx(expected, rel=1e-3)


def test_the_reports_table():
    """q = 4/1500, T = 1875, delta = 1e-5: the columns of the audit's accounting table and its grids."""
    sigmas = (38.34, 19.22, 4.21, 2.2829, 5.0, 3.0, 2.0, 1.0, 0.5)
    pld = (0.0071, 0.0154, 0.0851, 0.1743, 0.0702, 0.1258, 0.2055, 0.5900, 6.2670)
    prv = (0.0174, 0.0256, 0.0951, 0.1843, 0.0800, 0.1358, 0.2155, 0.6001, 6.2776)
    grids = [1e-5] * 4 + [1e-4] * 5
    for sigma, expected, grid in zip(sigmas, pld, grids, strict=True):
        spent = accounting.epsilon(noise_multiplier=sigma, interval=grid, **REPORT)
        assert spent == pytest.approx(expected, rel=1e-3, abs=6e-5)
    spent = [accounting.epsilon(noise_multiplier=s, accountant="prv", **REPORT) for s in sigmas]
    assert spent == pytest.approx(prv, abs=1e-4)
    opacus = [accounting.opacus_epsilon("rdp", noise_multiplier=s, **REPORT) for s in sigmas]
    assert opacus == pytest.approx(
        [0.1032, 0.1040, 0.1275, 0.1967, 0.1201, 0.1532, 0.2393, 0.9654, 7.6329], abs=1e-4
    )


def test_the_printed_accountant_and_its_search():
    spent = [
        accounting.printed_epsilon(noise_multiplier=s, **REPORT) for s in (38.34, 19.22, 4.21, 2.2829, 1, 0.5)
    ]
    assert spent == pytest.approx([0.183035, 0.183899, 0.206817, 0.264613, 0.560781, 1.134901], abs=2e-5)
    assert len(accounting.PRINTED_ORDERS) == 152 and sorted(accounting.PRINTED_ORDERS)[98] == 10.9
    sigmas = [accounting.printed_calibration(target_epsilon=t, **REPORT) for t in (0.5, 1.0, 5.0, 10.0)]
    assert sigmas == pytest.approx([1.1721, 0.5386, 0.1228, 0.1000], abs=5e-5)
    kept = [accounting.clamped(s, target_epsilon=t) for s, t in zip(sigmas, (0.5, 1, 5, 10), strict=True)]
    assert kept == pytest.approx([1.1721, 0.5386, 0.5, 0.5], abs=5e-5)


def test_readings_of_one_run_without_sampling():
    five_epochs = {"noise_multiplier": 2.0, "participations": 5, "delta": 1e-6}
    assert accounting.epsilon_without_amplification(**five_epochs) == pytest.approx(5.550860, rel=1e-5)
    shuffled_user = accounting.epsilon_without_amplification(
        noise_multiplier=2.0, participations=5, delta=1e-6, notes_per_patient=3
    )
    assert shuffled_user == pytest.approx(20.948, abs=1e-3)
    halved = {"participations": 5, "delta": 1e-6, "noise_multiplier": 1.0, "notes_per_patient": 3}
    assert accounting.epsilon_without_amplification(**halved) == pytest.approx(53.632666, rel=1e-6)


EPOCHS, COURSE = run_of(64 / 1e4, 2.0, 782, 1e-6), run_of(0.02, 1.0, 1000, 1e-5)
MIXTURES = [(EPOCHS, 1, 0.393742), (EPOCHS, 2, 0.828823), (EPOCHS, 3, 1.284526), (EPOCHS, 5, 2.243413)]
MIXTURES += [(EPOCHS, 10, 4.866613), (COURSE, 1, 3.8991), (COURSE, 2, 8.7453), (COURSE, 5, 27.5236)]
MIXTURES += [(COURSE, 10, 71.5157)]


@pytest.mark.parametrize(("run", "notes", "expected"), sampled(MIXTURES, [MIXTURES[1], MIXTURES[7]]))
def test_patient_level_mixtures(run, notes, expected):
    assert accounting.patient_epsilon(**run, notes_per_patient=notes) == pytest.approx(expected, rel=1e-3)


def test_draws_that_never_happen_take_no_part_in_a_mixture():
    """Of so many notes at so small a rate only about a hundred are ever drawn together."""
    run = {"noise_multiplier": 1000.0, "sample_rate": 1e-5, "steps": 3, "delta": 1e-5}
    assert 0 <= accounting.patient_epsilon(notes_per_patient=5000, **run) < 1
    with pytest.raises(InvalidParameter):
        accounting.patient_epsilon(notes_per_patient=5000, **run | {"sample_rate": 0.5})


def test_bisection_ends_at_the_least_epsilon_from_above():
    class Losses:
        asked = 0

        def get_delta_for_epsilon(self, epsilon):
            self.asked += 1
            assert self.asked < 200, "the search does not end"
            return math.exp(-epsilon)

    for delta in (1.0, 0.9, 1e-5, 1e-300):
        found = _bounds._bisected(Losses(), delta)
        assert math.exp(-found) <= delta and found == pytest.approx(-math.log(delta), rel=1e-6)


def test_opacus_prv_calibrations():
    """accountants_test.py: epsilon 8 at q = .04; epochs 90 are 2,250 steps."""
    for steps, rdp_sigma, prv_sigma in ((2250, 1.416015625, 1.34765625), (2000, 1.356201, 1.291504)):
        run = {"sample_rate": 0.04, "steps": steps, "delta": 1e-5}
        by_rdp = accounting.calibrate_noise_multiplier(target_epsilon=8.0, accountant="rdp", **run)
        assert by_rdp == pytest.approx(rdp_sigma, rel=5e-3)
        by_prv = accounting.calibrate_noise_multiplier(
            target_epsilon=8.0, accountant="prv", tolerance=5e-3, **run
        )
        assert by_prv == pytest.approx(prv_sigma, rel=5e-3)


@pytest.mark.parametrize("accountant", accounting.ACCOUNTANTS)
def test_a_budget_below_delta_is_refused_before_any_search(accountant, monkeypatch):
    run = {"sample_rate": 0.04, "steps": 2000, "accountant": accountant}
    if accountant != "prv":  # which counts no run of so little
        assert accounting.calibrate_noise_multiplier(target_epsilon=1e-5, delta=1e-5, **run) > 0
    monkeypatch.setattr(_calibration, "_enough", lambda *_: pytest.fail("a search"))
    for target in (9.9e-6, 1e-9, 5e-324):
        with pytest.raises(InvalidParameter, match="target_epsilon"):
            accounting.calibrate_noise_multiplier(target_epsilon=target, delta=1e-5, **run)


def test_calibrated_sigmas_of_the_reports_settings():
    pld = {0.5: 1.0889, 5.0: 0.5325, 10.0: 0.4391}
    rdp = {0.5: 1.3461, 1.0: 0.9824, 5.0: 0.5664, 8.0: 0.4933, 10.0: 0.4627}
    for accountant, expected in (("pld", pld), ("rdp", rdp)):
        for target, sigma in expected.items():
            calibrated = accounting.calibrate_noise_multiplier(
                target_epsilon=target, accountant=accountant, **REPORT
            )
            assert calibrated == pytest.approx(sigma, rel=1e-3)


@settings(max_examples=10, deadline=None)
@given(
    target=st.floats(0.05, 30), q=st.floats(1e-4, 1), steps=st.integers(1, 10**6), delta=st.floats(1e-9, 1e-3)
)
@example(target=0.01, q=0.04, steps=1, delta=1e-5)
@example(target=math.log(2), q=0.04, steps=1, delta=1e-5)  # a difference of two roots in the first guess
@example(target=math.log(1e5), q=0.04, steps=1, delta=1e-5)
def test_rdp_calibration_keeps_every_budget(target, q, steps, delta):
    run = {"sample_rate": q, "steps": steps, "delta": delta, "accountant": "rdp"}
    assume(1 - (1 - q) ** steps > 1.001 * delta)
    sigma = accounting.calibrate_noise_multiplier(target_epsilon=target, **run)
    spent = accounting.epsilon(noise_multiplier=sigma, **run)
    # Where q comes near delta, the bound jumps from 0 past the target: then no smaller sigma is safe.
    assert spent <= target
    assert spent >= 0.99 * target or accounting.epsilon(noise_multiplier=0.999 * sigma, **run) > target


def test_a_delta_that_covers_every_run_with_the_unit_is_refused():
    run = {"target_epsilon": 1, "sample_rate": 1e-3, "steps": 2}
    for accountant in ("pld", "rdp"):
        run["accountant"] = accountant
        with pytest.raises(InvalidParameter, match="delta"):
            accounting.calibrate_noise_multiplier(delta=2e-3, **run)
    # A little less, and the search must not run to noise so small that no grid holds the loss.
    assert 0.05 < accounting.calibrate_noise_multiplier(delta=1.95e-3, **run) < 0.6


# Properties over random runs.


@pytest.mark.parametrize("sigma", [1e-3, 1e-4, 1e-20, 1e-100])
def test_hardly_any_noise_never_costs_more_than_taking_every_step(sigma):
    """No grid holds these, and RDP overstates them, by the least of its orders; one run or two halves."""
    run = run_of(0.1, sigma, 46, 1e-5)
    told = accounting.epsilon(**run)
    every_step = accounting.epsilon(**{**run, "sample_rate": 1.0})
    assert told <= every_step
    assert told < accounting.epsilon(**run, accountant="rdp")
    mu = math.sqrt(46) / sigma
    if sigma >= 1e-4:  # where the exact curve can be solved for epsilon
        exact = dp_accounting.get_epsilon_gaussian(1 / mu, 1e-5)
        assert exact * (1 - 1e-9) <= told <= exact * 1.001
    half = accounting.PrivacySpent(epsilon=1.0, **{**run, "steps": 23})
    assert accounting.compose_runs([half, half], delta=1e-5) == pytest.approx(told, rel=1e-9)


def test_never_below_the_optimistic_bound_and_never_above_rdp():
    """Random runs: what dp-accounting says with every loss rounded down is a floor."""
    draw = rng.make(0, "tests/accounting")
    logging.getLogger("absl").setLevel(logging.ERROR)
    for _ in range(8):
        run = run_of(
            float(10 ** draw.uniform(-4, -0.05)),
            float(10 ** draw.uniform(-0.3, 1.3)),
            int(10 ** draw.uniform(0, 3.5)),
            float(10 ** draw.uniform(-9, -3)),
        )
        upper = accounting.epsilon(**run)
        by_rdp = accounting.epsilon(**run, accountant="rdp")
        floor, _ = accounting.pld_bracket(**run, interval=max(1e-3, upper / 500))
        assert floor <= upper * (1 + 1e-9) and upper <= by_rdp, run
        exact = dp_accounting.get_epsilon_gaussian(
            run["noise_multiplier"] / math.sqrt(run["steps"]), run["delta"]
        )
        assert upper <= exact * (1 + 1e-3) + 1e-6, "sampling never costs more than taking every step"


def test_the_low_end_of_a_bracket_counts_rounding_for_delta():
    """At a delta of little more than float64 rounds, taking rounding off puts it above the truth."""
    sigma, steps, delta = 30.0, 1000, 5e-13
    low, high = accounting.pld_bracket(**run_of(1.0, sigma, steps, delta), interval=1e-4)
    assert low <= mechanisms.gdp_epsilon(mu=math.sqrt(steps) / sigma, delta=delta) <= high


def test_the_lower_bound_is_below_the_exact_curve_and_near_it():
    for sigma, steps, delta in ((5.0, 100, 1e-13), (1.0, 1, 1e-5), (8e5, 10_000, 8e-6), (0.2, 100, 1e-9)):
        lower = accounting.epsilon_lower(**run_of(1.0, sigma, steps, delta))
        exact = mechanisms.gdp_epsilon(mu=math.sqrt(steps) / sigma, delta=delta)
        assert 0.5 * exact < lower <= exact, (sigma, steps, delta)
    for run in (run_of(0.1, 1.0, 150, 1e-5), run_of(0.05, 1.0, 40, 1e-5)):
        upper = accounting.epsilon(**run)
        assert upper * (1 - 1e-3) < accounting.epsilon_lower(**run) <= upper
    assert accounting.epsilon_lower(**run_of(0.01, 1e9, 1, 1e-5)) == 0


@pytest.mark.parametrize(
    ("steps", "mu", "delta"),
    [(10**5, 1.0, 1e-14), (679_919, 6.29, 1.42e-10), (10**3, 0.1, 1e-14), (10, 4.0, 1e-9)],
)
def test_rounding_never_takes_an_epsilon_below_the_exact_one(steps, mu, delta):
    """Raised to the number of steps, what a Fourier transform rounds outweighs a small delta."""
    run = run_of(1.0, math.sqrt(steps) / mu, steps, delta)
    exact = mechanisms.gdp_epsilon(mu=mu, delta=delta)
    assert exact <= accounting.epsilon(**run) <= accounting.epsilon(**run, accountant="rdp")
    if steps * 2e-16 > delta:
        with pytest.raises(InvalidParameter, match="prv"):
            accounting.epsilon(**run, accountant="prv")


@pytest.mark.parametrize(
    "run",
    [
        (0.1, 1e3, 10**12, 0.1),
        (0.1, 1e3, 10**9, 1e-300),
        (1.0, 93.0, 212_066_880, 0.5),
        (1.0, 1.0, 10**100, 0.1),
    ],
)
def test_runs_that_no_grid_holds_are_counted_without_one(run):
    run = run_of(*run)
    mu = math.sqrt(run["steps"]) / run["noise_multiplier"]
    every_step = mu * (mu / 2 - float(ndtri(run["delta"])))
    least = min(accounting.epsilon(**run, accountant="rdp"), every_step)
    assert accounting.epsilon(**run) == pytest.approx(least, rel=1e-12)


@pytest.mark.parametrize(
    "change",
    [
        {"steps": _bounds.MOST_STEPS + 1},
        {"steps": 1, "interval": 1e-9, "spread": 1e-6},  # the list of one step is too long
        {"interval": 1e-6},  # that of all steps is
        {"delta": 1e-15},  # drowned in rounding
    ],
)
def test_what_takes_too_long_or_drowns_in_rounding_is_not_composed(change):
    run = {"interval": 1e-3, "spread": 0.1, "largest": 1.0, "steps": 10_000, "delta": 1e-5}
    assert _bounds.composable(**run) and not _bounds.composable(**run | change)


def test_the_distance_of_a_run_that_no_grid_holds_is_that_of_its_steps_added_up():
    """By definition the outputs of one step with its unit are 2 Phi(1 / (2 sigma)) - 1 apart."""
    run = {"noise_multiplier": 1e6, "sample_rate": 1e-3, "steps": 10**8}
    most = 10**5 * (2 * ndtr(0.5e-6) - 1)
    assert accounting.delta_at(epsilon=0.0, **run) == pytest.approx(most, rel=1e-6)


def test_an_epsilon_that_was_kept_is_told_of_its_own_run_alone():
    run = run_of(0.1, 1.0, 10, 1e-5)
    changes = {"noise_multiplier": 1.1, "sample_rate": 0.11, "steps": 11, "delta": 2e-5, "interval": 0.01}
    runs = [run, *(run | {name: value} for name, value in changes.items())]
    first, again = ([accounting.epsilon(**one) for one in runs] for _ in range(2))
    assert first == again and len(set(first)) == len(runs)


# Refusals: what is called with one wrong value, and the field that the error names.

GOOD = {"noise_multiplier": 1.0, "sample_rate": 0.1, "steps": 10, "delta": 1e-5}
TARGET = {"target_epsilon": 1.0, "sample_rate": 0.1, "steps": 10}
NO_GRID = "privacy loss distribution"  # in float64, for these values together
EPSILON = partial(accounting.epsilon, **GOOD)
RDP = partial(accounting.rdp, noise_multiplier=1.0, sample_rate=0.1, steps=1, orders=[2])
CONVERTED = partial(accounting.rdp_to_epsilon, orders=[2.0], rdp=[1.0], delta=1e-5)
WHOLE = partial(accounting.epsilon_without_amplification, noise_multiplier=1.0, participations=1, delta=1e-5)
PATIENT = partial(accounting.patient_epsilon, **GOOD, notes_per_patient=2)
CALIBRATED = partial(accounting.calibrate_noise_multiplier, **TARGET, delta=1e-5)
OPACUS = partial(accounting.opacus_epsilon, "rdp", **GOOD)
CURVE = partial(accounting.curve_epsilon, delta=1e-5)
PLAN = partial(plan_privacy, **TARGET, target_delta=1e-5, units=9)


@pytest.mark.parametrize(
    ("field", "calls", "values"),
    [
        ("noise_multiplier", (EPSILON, RDP, OPACUS), [0.0, -1.0, math.nan]),
        ("noise_multiplier", (EPSILON,), [1e-101, 1.7e308]),
        ("noise_multiplier", (CURVE,), [1e200, 1e-200, "1"]),
        ("noise_multiplier", (partial(EPSILON, accountant="rdp"),), [5e-324, 1e101]),
        ("noise_multiplier", (partial(EPSILON, accountant="prv"),), [math.inf, 1e300]),
        ("sample_rate", (EPSILON, RDP, CALIBRATED), [0.0, 1.1, math.nan]),
        ("steps", (EPSILON, RDP, CALIBRATED), [0, -5, 2.5, True]),
        ("delta", (EPSILON, CALIBRATED), [1.0, 0.0, math.nan]),
        ("target_epsilon", (CALIBRATED,), [0.0, -1.0, math.nan, math.inf, 1e308]),
        ("target_epsilon", (partial(CALIBRATED, delta=1e-300, accountant="rdp"),), [1e-13]),
        ("accountant", (EPSILON,), ["gdp"]),
        ("sampler", (EPSILON,), ["random"]),
        ("interval", (EPSILON, PATIENT), [0.0, -1.0, math.inf]),
        ("notes_per_patient", (PATIENT,), [0, 10**9]),
        ("adjacency", (WHOLE,), ["add/remove", [], None]),
        ("max_grad_norm", (PLAN,), [math.inf, 0.0, math.nan]),
        ("orders", (RDP,), [[], [1.0], [[2.0]], [[2], [2, 3]], ["2"], None, "2", [2, 2**70]]),
        ("orders", (CONVERTED,), [[10**400], [True], [10**5000]]),
        ("rdp", (CONVERTED,), [[1.0, 2.0], [math.nan], ["1"]]),
        ("conversion", (CONVERTED,), ["best"]),
    ],
)
def test_invalid_values_are_refused_by_name(field, calls, values):
    for call in calls:
        for value in values:
            with pytest.raises(InvalidParameter, match=field) as refusal:
                call(**{field: value})
            assert len(str(refusal.value)) < 300


@pytest.mark.parametrize(
    ("function", "run", "more"),
    [
        (accounting.epsilon_lower, (0.5, 5.0, 10**7, 1e-5), {}),
        (accounting.epsilon_lower, (0.5, 0.05, 10_000, 1e-5), {}),
        (accounting.pld_bracket, (1e-232, 3e5, 2 * 10**6, 0.007), {"interval": 1e-2}),  # no deviation
        (accounting.pld_bracket, (0.5, 1.0, 1000, 1e-5), {"interval": 1e-9}),  # too fine
        (accounting.patient_epsilon, (1.0, 3e69, 2, 0.9), {"notes_per_patient": 5}),  # too deep
        (accounting.patient_epsilon, (1e-48, 1e15, 120, 2e-7), {"notes_per_patient": 3}),  # no loss
        (accounting.patient_epsilon, (1e-78, 5e42, 4, 4e-12), {"notes_per_patient": 2}),  # no draws
        (accounting.patient_epsilon, (1.0, 1e-66, 1, 0.9), {"notes_per_patient": 2}),  # no grid
    ],
)
def test_what_no_grid_holds_and_rdp_does_not_count_is_refused(function, run, more):
    with pytest.raises(InvalidParameter, match=NO_GRID):
        function(**run_of(*run), **more)


@pytest.mark.parametrize(
    "run", [(0.01, 1.0, 10**6, 1e-5), (0.5, 1e-100, 10, 1e-5), (0.01, 0.02, 1, 1e-5), (0.5, 0.026, 1, 1e-5)]
)
def test_a_run_that_prv_cannot_compose_or_says_too_little_of_is_refused(run):
    with pytest.raises(InvalidParameter, match="accountant = 'prv'"):
        accounting.epsilon(**run_of(*run), accountant="prv")


@pytest.mark.parametrize("sampler", sorted(set(accounting.SAMPLERS) - {accounting.POISSON}))
def test_a_sampler_that_is_not_accounted_for_is_refused(sampler):
    with pytest.raises(SamplerMismatch, match="epsilon_without_amplification"):
        EPSILON(sampler=sampler)


def test_calibration_is_tight_wherever_its_first_guess_is():
    """Targets near 0, and those at which a difference of two roots in the guess would be none."""
    run = {"sample_rate": 0.04, "steps": 1, "delta": 1e-5, "accountant": "rdp"}
    for target in (0.01, 0.1, math.log(2), math.log(1e5)):
        sigma = accounting.calibrate_noise_multiplier(target_epsilon=target, **run)
        assert 0.998 * target <= accounting.epsilon(noise_multiplier=sigma, **run) <= target


def test_extreme_runs_give_numbers():
    """Losses beyond what a float64 exponential holds, no noise to speak of, no budget to speak of."""
    tiny = accounting.epsilon(**run_of(1e-4, 0.03, 1, 0.5))
    assert tiny == 0.0
    huge = accounting.epsilon(**run_of(0.5, 0.02, 100, 1e-5))
    assert 1e4 < huge <= accounting.epsilon(**run_of(0.5, 0.02, 100, 1e-5), accountant="rdp")
    low, high = accounting.pld_bracket(**run_of(1e-3, 0.03, 1, 1e-4), interval=1.0)
    assert low <= high


@pytest.mark.parametrize(("q", "sigma"), [(1e-300, 1.0), (1e-200, 1.0), (1e-300, 0.001), (0.01, 1e100)])
def test_runs_at_the_ends_of_float64_have_an_epsilon(q, sigma):
    run = run_of(q, sigma, 1000, 1e-300)
    assert 0 <= accounting.epsilon(**run) <= accounting.epsilon(**run, accountant="rdp") < math.inf


@pytest.mark.parametrize("run", [(7e-7, 669.0, 16_023, 1e-8), (1.4e-6, 31.0, 78_367, 2e-8)])
def test_losses_that_a_float64_blurs_are_not_composed(run):
    """Which would take gigabytes: what rounding adds to the probability of a step compounds."""
    run = run_of(*run)
    by_formula = _bounds.unsampled_epsilon(math.sqrt(run["steps"]) / run["noise_multiplier"], run["delta"])
    assert accounting.epsilon(**run) == min(by_formula, accounting.epsilon(**run, accountant="rdp"))


def test_a_rate_whose_square_is_no_float64_is_calibrated_or_refused():
    run = {"target_epsilon": 1.0, "sample_rate": 1e-215, "steps": 10**6, "delta": 1e-267}
    assert accounting.calibrate_noise_multiplier(**run, accountant="rdp") > 0
