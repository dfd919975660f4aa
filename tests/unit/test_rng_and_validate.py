"""Streams do not disturb each other; boundaries refuse what they should."""

import math

import numpy as np
import pytest

from privhelpers import rng, validate
from privhelpers.errors import InvalidParameter, PrivHelpersError


def test_streams_are_repeatable_and_independent():
    first = rng.make(7, "a").normal(size=4000)
    assert np.array_equal(first, rng.make(7, "a").normal(size=4000))
    for other in (rng.make(7, "b"), rng.make(8, "a")):
        assert abs(np.corrcoef(first, other.normal(size=4000))[0, 1]) < 0.08


def test_the_three_kinds_of_generator_repeat():
    import torch

    assert rng.plain(1, "x").random() == rng.plain(1, "x").random()
    first, again = (torch.rand(3, generator=rng.torch_generator(1, "x")) for _ in range(2))
    assert torch.equal(first, again)


def test_global_generators_are_left_alone():
    np.random.seed(3)
    expected = np.random.random()
    np.random.seed(3)
    rng.make(0, "x").random()
    assert np.random.random() == expected


@pytest.mark.parametrize("seed", [-1, 1.0, True, "0", None])
def test_seeds_are_whole_numbers(seed):
    with pytest.raises(InvalidParameter, match="seed"):
        rng.derive(seed, "x")


@pytest.mark.parametrize(
    ("check", "bad"),
    [
        (validate.positive, [0, -1, math.nan, math.inf, True, "1", None]),
        (validate.non_negative, [-0.1, math.nan, math.inf, True]),
        (validate.positive_int, [0, 1.0, True, -3, 10**400]),
        (validate.probability, [0, 1.0001, math.nan]),
    ],
)
def test_every_check_refuses_and_names_the_value(check, bad):
    for value in bad:
        with pytest.raises(InvalidParameter, match="my_setting"):
            check(my_setting=value)
    check(my_setting=1)


@pytest.mark.parametrize("bad", ["c", "", ["a"], np.array(["a", "b"]), 1, None], ids=str)
def test_a_text_must_be_a_known_one(bad):
    with pytest.raises(InvalidParameter, match=r"my_setting = .*: must be one of a, b"):
        validate.one_of(("a", "b"), my_setting=bad)
    validate.one_of(("a", "b"), my_setting="b")


@pytest.mark.parametrize("name", ["array", "deque", "dict", "list", "set", "str", "tuple", "int"])
def test_a_value_is_shown_by_its_type_and_not_by_the_name_of_its_class(name):
    bad = type(name, (), {})()
    with pytest.raises(InvalidParameter, match=rf"my_setting = <.*\.{name} object.*>: must be"):
        validate.positive(my_setting=bad)
    assert validate.shown([bad, [1, {"a": 2}]]).endswith("[1, {'a': 2}]]")


def test_a_number_above_the_most_is_refused():
    with pytest.raises(InvalidParameter, match="my_setting = 1001: must be at most 1,000"):
        validate.positive_int(1000, my_setting=1001)
    validate.positive_int(1000, my_setting=1000)


def test_one_base_catches_every_refusal():
    with pytest.raises(PrivHelpersError):
        validate.delta(1.0)
    validate.delta(1e-5)
