"""Streams do not disturb each other; boundaries refuse what they should."""

import decimal
import fractions
import json
import math

import numpy as np
import pandas as pd
import pytest

from privhelpers import rng, validate
from privhelpers.errors import InvalidParameter


def test_streams_are_repeatable_and_independent():
    first = rng.make(7, "a").normal(size=4000)
    assert np.array_equal(first, rng.make(7, "a").normal(size=4000))
    for other in (rng.make(7, "b"), rng.make(8, "a")):
        assert abs(np.corrcoef(first, other.normal(size=4000))[0, 1]) < 0.08


@pytest.mark.parametrize("seed", [-1, 1.0, True, "0", None])
def test_seeds_are_whole_numbers(seed):
    with pytest.raises(InvalidParameter, match="seed"):
        rng.derive(seed, "x")


@pytest.mark.parametrize(
    ("check", "bad"),
    [
        (validate.positive, [0, -1]),
        (validate.non_negative, [-0.1]),
        (validate.positive_int, [0, 1.0, -3, 10**400, 10**5000]),
        (validate.probability, [0, 1.0001]),
        (lambda my_setting: validate.positive_int(1000, my_setting=my_setting), [1001]),
    ],
)
def test_a_value_out_of_range_is_refused_by_name(check, bad):
    for value in bad:
        with pytest.raises(InvalidParameter, match="my_setting"):
            check(my_setting=value)
    check(my_setting=1)


@pytest.mark.parametrize("bad", ["c", "", ["a"], np.array(["a", "b"]), 1, None], ids=str)
def test_a_text_must_be_a_known_one(bad):
    with pytest.raises(InvalidParameter, match="my_setting"):
        validate.one_of(("a", "b"), my_setting=bad)
    validate.one_of(("a", "b"), my_setting="b")


INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.intp]
FLOATS = [np.float16, np.float32, np.float64, np.longdouble]


def whole_numbers():
    import torch

    yield from (kind(7) for kind in INTEGERS)
    yield from (np.array(7), np.array(7, dtype=np.uint8), torch.tensor(7), torch.tensor(7, dtype=torch.int8))
    yield from (pd.array([7], dtype="Int64")[0], pd.Series([3, 4]).sum(), pd.Series([7]).iloc[0], 7)


def real_numbers():
    import torch

    yield from (kind(0.5) for kind in FLOATS)
    yield from (np.array(0.5), torch.tensor(0.5), torch.tensor(0.5, requires_grad=True))
    yield from (pd.array([0.5], dtype="Float64")[0], fractions.Fraction(1, 2), decimal.Decimal("0.5"), 0.5)


def no_numbers():
    import torch

    yield from (True, np.True_, np.array(True), torch.tensor(True), None, "1", "", b"1", pd.NA, pd.NaT)
    yield from (math.nan, math.inf, np.float32("nan"), np.float64("-inf"), decimal.Decimal("NaN"))
    yield from (decimal.Decimal("sNaN"), torch.tensor(math.nan), torch.tensor(1.0, device="meta"))
    yield from (np.array([1]), [1], (1,), {1}, torch.tensor([1]), pd.Series([1]), 1j, np.complex64(1))
    yield from (np.timedelta64(5, "s"), np.datetime64("2020-01-01"), pd.Timedelta(5), np.ma.masked)
    yield from (np.array("1"), np.array(None), np.ma.array(1), object(), 10**400, fractions.Fraction(10**400))


CHECKS = [
    validate.finite,
    validate.positive,
    validate.non_negative,
    validate.probability,
    validate.open_unit,
    lambda x: validate.delta(x),
    lambda x: validate.positive_int(x=x),
    lambda x: validate.non_negative_int(x=x),
]


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("value", list(whole_numbers()), ids=lambda value: f"{type(value).__name__}")
def test_a_whole_number_of_any_library_is_pythons(value):
    for check in (validate.positive_int, validate.non_negative_int, validate.positive, validate.finite):
        checked = check(count=value)
        assert checked == 7 and type(checked) is int and json.dumps(checked) == "7"
    assert rng.derive(value, "x") == rng.derive(7, "x")


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("value", list(real_numbers()), ids=lambda value: f"{type(value).__name__}")
def test_a_real_number_of_any_library_is_pythons(value):
    for check in CHECKS[:5]:
        checked = check(share=value)
        assert checked == 0.5 and type(checked) is float and json.dumps(checked) == "0.5"
    assert type(validate.delta(value)) is float


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("value", list(no_numbers()), ids=lambda value: f"{type(value).__name__}")
def test_what_is_not_one_finite_number_is_refused_everywhere(value):
    for check in CHECKS:
        with pytest.raises(InvalidParameter, match=r"^(x|delta)\b"):
            check(x=value) if check not in CHECKS[5:6] else check(value)


@pytest.mark.wrong_numbers
@pytest.mark.parametrize(
    "value", [300.0, np.float64(300.0), np.float32(300), decimal.Decimal(300), np.array(300.0)]
)
def test_a_float_is_no_count_and_the_message_has_the_count(value):
    with pytest.raises(
        InvalidParameter, match=r"units = .*: must be a whole number of 1 or more; write 300$"
    ):
        validate.positive_int(units=value)


@pytest.mark.wrong_numbers
def test_a_small_type_does_not_overflow_or_round():
    """np.int8(100) * 2 is -56, and float32 times a Python number is a float32."""
    from privhelpers import accounting, dpsgd, mechanisms, stats, training

    run = {"noise_multiplier": 1.5, "sample_rate": 0.125, "steps": 100, "delta": 2.0**-17}
    small = {"noise_multiplier": np.float16(1.5), "sample_rate": np.float32(0.125), "steps": np.int8(100)}
    small["delta"] = np.float32(2.0**-17)
    for accountant in ("rdp", "pld"):
        right = accounting.epsilon(**run, accountant=accountant)
        assert accounting.epsilon(**small, accountant=accountant) == right
    del run["delta"], small["delta"]
    assert accounting.delta_at(epsilon=np.float16(2), **small) == accounting.delta_at(epsilon=2, **run)
    assert mechanisms.advanced_composition(
        epsilon=np.float16(0.5), runs=np.uint8(200), delta_slack=np.float32(0.0625)
    ) == mechanisms.advanced_composition(epsilon=0.5, runs=200, delta_slack=0.0625)
    assert mechanisms.basic_composition(epsilons=np.array([0.5, 1], np.float32)).epsilon == 1.5
    assert stats.wilson(np.int8(100), np.uint8(200), level=np.float16(0.5)) == stats.wilson(
        100, 200, level=0.5
    )
    wide = {
        "target_epsilon": 8,
        "target_delta": 2.0**-17,
        "sample_rate": 0.125,
        "steps": 100,
        "max_grad_norm": 0.5,
    }
    plan = dpsgd.plan_privacy(**wide, units=300)
    typed = {name: np.float32(value) for name, value in wide.items()} | {"steps": np.int8(100)}
    taken = dpsgd.plan_privacy(**typed, units=np.int64(300))
    assert taken == plan and taken.spent == plan.spent
    betas = dpsgd.Settings(learning_rate=np.float32(0.5), betas=(np.float32(0.5), np.float64(0.75))).betas
    assert [type(beta) for beta in betas] == [float, float]
    for record in (taken, taken.spent, training.Settings(epochs=np.int64(3), learning_rate=np.float32(0.5))):
        assert not [value for value in vars(record).values() if isinstance(value, np.generic)]
