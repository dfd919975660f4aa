"""Known values of the textbook tables, the theorems of the chapter on random tables, and refusals."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import wasserstein_distance

from privhelpers import anonymity as an
from privhelpers.anonymity import _attacks, _measures, tables
from privhelpers.errors import InvalidParameter

QUASI = ["age", "gender", "zip", "nationality"]
VISIBLE = ["zip", "age"]
SEEN = ["gender", "age", "zip"]
BOB = {"gender": "M", "age": 25, "zip": "30602"}

# The textbook tables.


def test_twelve_patients_are_only_1_anonymous():
    assert an.k_anonymity(tables.patients(), QUASI) == 1


def test_four_anonymous_table():
    table = tables.four_anonymous()
    report = an.class_report(table, QUASI, "condition")
    assert report["size"].tolist() == [4, 4, 4]
    assert report["distinct_l"].tolist() == [2, 3, 1]
    assert report["entropy_l"].tolist() == pytest.approx([2, 2.828427, 1], abs=1e-6)
    assert report["t"].tolist() == pytest.approx([7 / 12, 1 / 3, 7 / 12])
    assert an.k_anonymity(table, QUASI) == 4
    assert an.distinct_l_diversity(table, QUASI, "condition") == 1
    assert an.t_closeness(table, QUASI, "condition") == pytest.approx(0.5833, abs=5e-5)


def test_three_diverse_table():
    table = tables.three_diverse()
    order = sorted(table["salary"])
    disease = an.class_report(table, VISIBLE, "disease")
    salary = an.class_report(table, VISIBLE, "salary", order=order)
    assert an.k_anonymity(table, VISIBLE) == 3
    assert disease["distinct_l"].tolist() == salary["distinct_l"].tolist() == [3, 3, 3]
    assert disease["t"].tolist() == pytest.approx([4 / 9] * 3)
    assert salary["t"].tolist() == pytest.approx([0.375, 0.1667, 0.2361], abs=5e-5)
    assert an.t_closeness(table, VISIBLE, "salary", order=order) == pytest.approx(0.375)


def test_the_labels_of_rows_do_not_matter():
    whole, plain = tables.four_anonymous(), an.class_report(tables.four_anonymous(), QUASI, "condition")
    for labels in ([0, 1, 2] * 4, [7] * 12, whole["condition"]):  # as after `concat` or `set_index`
        labeled = whole.set_axis(labels, axis=0)
        pd.testing.assert_frame_equal(an.class_report(labeled, QUASI, "condition"), plain)
        assert an.k_anonymity(labeled, QUASI) == 4
        # Of twelve alike rows in their labels, the attacker still finds only the four that fit.
        assert len(an.candidates(labeled, {"age": 31})) == 4


def test_spelling_is_not_diversity():
    table = tables.four_anonymous()
    assert table["condition"].iloc[:4].nunique() == 3  # as printed
    assert an.class_report(table, QUASI, "condition")["distinct_l"].iloc[0] == 2
    spaced = pd.DataFrame({"g": ["a", "A ", " a"], "s": ["Flu", "  flu", "FLU\t"]})
    assert an.k_anonymity(spaced, ["g"]) == 3 and an.distinct_l_diversity(spaced, ["g"], "s") == 1


# Generalization.


@pytest.mark.parametrize(
    ("general", "exact", "expected"),
    [
        ("Any", "x", True),
        ("20-29", 20, True),
        ("20-29", 29, True),
        ("20-29", 30, False),
        ("20-29", "Asian", False),
        ("40+", 40, True),
        ("40+", 39, False),
        ("130**", "13053", True),
        ("130**", "1305", False),
        ("130**", "14053", False),
        ("*****", "13053", True),
        ("2*", 27, True),
        ("Asian", "Korean", True),
        ("Asian", "American", False),
        ("Korean", "Asian", False),
        ("American", "American", True),
    ],
)
def test_covers(general, exact, expected):
    assert _attacks._covers(general, exact, tables.NATIONALITIES) is expected


def test_a_circular_hierarchy_ends():
    assert not _attacks._covers("c", "a", {"a": "b", "b": "a"})


# Distances and diversity.


def two_distributions():
    weights = st.lists(st.integers(0, 9), min_size=2, max_size=6)
    pair = weights.flatmap(
        lambda first: st.tuples(
            st.just(first), st.lists(st.integers(0, 9), min_size=len(first), max_size=len(first))
        )
    )
    usable = pair.filter(lambda both: sum(both[0]) > 0 and sum(both[1]) > 0)
    return usable.map(lambda both: tuple(np.array(w) / sum(w) for w in both))


def cheapest(first, second, cost):
    """Earth mover's distance as the linear program that defines it."""
    m = len(first)
    leave = np.kron(np.eye(m), np.ones(m))
    arrive = np.kron(np.ones(m), np.eye(m))
    solution = linprog(cost.ravel(), A_eq=np.vstack([leave, arrive]), b_eq=np.concatenate([first, second]))
    return solution.fun


@settings(max_examples=40)
@given(two_distributions())
def test_both_distances_are_earth_movers(pair):
    first, second = pair
    ranks = np.arange(len(first))
    ordered = np.abs(ranks[:, None] - ranks) / (len(first) - 1)
    equal = (ranks[:, None] != ranks).astype(float)
    assert _measures._distance(first, second, ordered=False) == pytest.approx(
        cheapest(first, second, equal), abs=1e-8
    )
    assert _measures._distance(first, second, ordered=True) == pytest.approx(
        cheapest(first, second, ordered), abs=1e-8
    )
    scipy_value = wasserstein_distance(ranks, ranks, first, second) / (len(first) - 1)
    assert _measures._distance(first, second, ordered=True) == pytest.approx(scipy_value, abs=1e-9)


@given(two_distributions())
def test_closeness_bounds_statements_and_mean_ranks(pair):
    first, second = pair
    sets = itertools.product([0, 1], repeat=len(first))
    largest = max(abs(np.dot(first - second, chosen)) for chosen in sets)
    assert _measures._distance(first, second, ordered=False) == pytest.approx(largest, abs=1e-12)
    shift = abs(np.dot(first - second, np.arange(len(first))))
    assert shift <= (len(first) - 1) * _measures._distance(first, second, ordered=True) + 1e-12


def random_tables():
    row = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3))
    return st.lists(row, min_size=1, max_size=30).map(
        lambda rows: pd.DataFrame(rows, columns=["a", "b", "s"])
    )


@given(random_tables())
def test_entropy_diversity_lies_between_the_two_counts(table):
    report = an.class_report(table, ["a", "b"], "s")
    for number, group in table.groupby(_measures._classes(table, ["a", "b"])):
        most = group["s"].value_counts(normalize=True).max()
        assert 1 / most - 1e-9 <= report.loc[number, "entropy_l"] <= report.loc[number, "distinct_l"] + 1e-9


@given(random_tables(), st.lists(st.integers(0, 1), min_size=4, max_size=4))
def test_coarsening_never_lowers_k_or_l_nor_raises_t(table, groups):
    """Also when columns are coarsened jointly: the new columns depend on the old pair only."""
    coarse = table.assign(a=[groups[a] + groups[b] for a, b in zip(table["a"], table["b"], strict=True)], b=0)
    quasi = ["a", "b"]
    assert an.k_anonymity(coarse, quasi) >= an.k_anonymity(table, quasi)
    assert an.distinct_l_diversity(coarse, quasi, "s") >= an.distinct_l_diversity(table, quasi, "s")
    finer, coarser = (an.class_report(t, quasi, "s")["entropy_l"].min() for t in (table, coarse))
    assert coarser >= finer - 1e-9
    for order in (None, range(4)):
        new, old = (an.t_closeness(t, quasi, "s", order=order) for t in (coarse, table))
        assert new <= old + 1e-9


def test_dropping_a_row_can_lower_k():
    table = pd.DataFrame({"a": [1, 1, 2, 2]})
    assert an.k_anonymity(table, ["a"]) == 2 and an.k_anonymity(table.iloc[1:], ["a"]) == 1


# Attacks.


def test_composition_needs_the_sex_and_both_hospitals():
    first, second = tables.hospitals()
    assert an.k_anonymity(first, SEEN) == 4 and an.k_anonymity(second, SEEN) == 6
    assert an.composition([first], "condition", BOB) == {"Cancer", "Flu", "Viral infection"}
    for size in range(4):
        for facts in itertools.combinations(BOB, size):
            left = an.composition([first, second], "condition", {fact: BOB[fact] for fact in facts})
            assert (left == {"Cancer"}) == ("gender" in facts), facts
            assert len(left) == 1 or len(left) >= 3


@given(st.integers(2, 12))
def test_no_syntactic_notion_composes(k):
    pair = [pd.DataFrame({"q": 1, "s": ["s"] + [f"{x}{i}" for i in range(1, k)]}) for x in "ab"]
    for table in pair:
        assert an.k_anonymity(table, ["q"]) == k
        assert an.class_report(table, ["q"], "s")["entropy_l"].min() == pytest.approx(k)
        assert an.t_closeness(table, ["q"], "s") == 0
    assert an.composition(pair, "s", {"q": 1}) == {"s"}


@given(random_tables(), st.data())
def test_whoever_is_in_the_table_hides_among_k(table, data):
    """Truthful coarsening, then the candidates of any person are whole classes, so k or more."""
    row = data.draw(st.integers(0, len(table) - 1))
    coarse = table.assign(
        a=["0-1" if a <= 1 else "2-3" for a in table["a"]], b=["0-2" if b <= 2 else "3-3" for b in table["b"]]
    )
    candidates = an.candidates(coarse, table.loc[row, ["a", "b"]].to_dict())
    assert row in candidates.index and len(candidates) >= an.k_anonymity(coarse, ["a", "b"])


# People.


def funnel(people, target, steps):
    """How many people are left after each known value of the target, all of them first."""
    person, left = people[people["person_id"] == target].iloc[0], [len(people)]
    for step in steps:
        people = people[people[step] == person[step]]
        left.append(len(people))
    return left


@pytest.mark.parametrize("seed", range(5))
def test_the_target_is_found_as_in_the_story(seed):
    people = an.town(inhabitants=9000, listed=6000, areas=3, seed=seed)
    voters = people[people["listed"]]
    left = funnel(voters, "P-000000", ["birth_date", "sex", "area"])
    assert left == [6000, 6, 3, 1]
    assert people["person_id"].is_unique and len(people) == 9000
    assert set(people["area"]) == {"Z-01", "Z-02", "Z-03"}
    assert people["birth_date"].between("1920-01-01", "1979-12-31").all()
    assert (people["birth_month"] == people["birth_date"].str[:7]).all()


def test_the_smallest_register_still_tells_the_story():
    people = an.town(inhabitants=6, listed=6, areas=2, seed=1)
    assert funnel(people, "P-000000", ["birth_date", "sex", "area"]) == [6, 6, 3, 1]


def test_a_town_repeats_with_its_seed_and_changes_with_another():
    first, again, other = (an.town(inhabitants=99, listed=50, areas=2, seed=s) for s in (0, 0, 1))
    assert first.equals(again) and not first.equals(other)


# Refusals.


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: an.k_anonymity(tables.patients(), []), "quasi"),
        (lambda: an.k_anonymity(tables.patients(), "age"), "quasi"),
        (lambda: an.k_anonymity(tables.patients(), 1), "quasi"),
        (lambda: an.k_anonymity([{"age": 1}], ["age"]), "DataFrame"),
        (lambda: an.class_report(tables.patients(), ["age"], ["condition"]), "no column"),
        (lambda: an.candidates(tables.patients(), 0), "known"),
        (lambda: an.candidates(tables.patients(), {"age": 28}, "Asian"), "hierarchy"),
        (lambda: an.composition(tables.hospitals(), "disease", {}), "sensitive"),
        (lambda: an.composition([3], "disease", {}), "DataFrame"),
        (lambda: an.town(inhabitants=10**18, listed=9, areas=2, seed=0), "inhabitants"),
        (lambda: an.k_anonymity(tables.patients(), ["salary"]), "salary"),
        (lambda: an.k_anonymity(pd.DataFrame({"a": [[1], [2]]}), ["a"]), "words or numbers"),
        (lambda: an.class_report(tables.patients(), ["age"], "condition", order=[[1], [2]]), "order"),
        (lambda: an.class_report(tables.patients(), ["age"], "condition", order={"Flu"}), "order"),
        *(
            (lambda named=name: an.t_closeness(pd.DataFrame({named: [1], "s": [2]}), [named], "s"), "rename")
            for name in ("size", "distinct_l", "entropy_l", "t")
        ),
        (lambda: an.k_anonymity(tables.patients().set_axis([*"aabcde"], axis=1), ["a"]), "of its own"),
        (lambda: an.k_anonymity(tables.patients().iloc[:0], ["age"]), "no rows"),
        (lambda: an.k_anonymity(pd.DataFrame({"a": [1, None]}), ["a"]), "missing"),
        (lambda: an.t_closeness(tables.three_diverse(), VISIBLE, "salary", order=[20, 30]), "order"),
        (lambda: an.candidates(tables.four_anonymous(), {"age": 99}), "no row fits"),
        (lambda: an.candidates(tables.four_anonymous(), {"salary": 1}), "salary"),
        (lambda: an.composition([], "condition", {}), "releases"),
        (lambda: an.town(inhabitants=9, listed=10, areas=2, seed=0), "listed"),
        (lambda: an.town(inhabitants=9, listed=5, areas=2, seed=0), "listed"),
        (lambda: an.town(inhabitants=9, listed=9, areas=1, seed=0), "areas"),
    ],
)
def test_refusals_name_what_is_wrong(call, words):
    with pytest.raises(InvalidParameter, match=words):
        call()
