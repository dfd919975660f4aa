"""Known values of the textbook tables, the theorems of the chapter on random tables, and refusals."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import wasserstein_distance

from privhelpers import anonymity as an
from privhelpers.anonymity import _measures, tables
from privhelpers.errors import InvalidParameter

QUASI = ["age", "gender", "zip", "nationality"]
VISIBLE = ["zip", "age"]

# The textbook tables.


def test_four_anonymous_table():
    table = tables.four_anonymous()
    report = an.class_report(table, QUASI, "condition")
    assert report["size"].tolist() == [4, 4, 4]
    assert report["distinct_l"].tolist() == [2, 3, 1]
    assert report["t"].tolist() == pytest.approx([7 / 12, 1 / 3, 7 / 12])
    assert an.k_anonymity(table, QUASI) == 4 and an.k_anonymity(tables.patients(), QUASI) == 1
    assert an.distinct_l_diversity(table, QUASI, "condition") == 1
    assert an.t_closeness(table, QUASI, "condition") == pytest.approx(0.5833, abs=5e-5)


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


# Label, value, whether they fit.
READ = {
    "pandas": [("(20, 30]", 20, 0), ("(20, 30]", 30, 1), ("[20, 30)", 20, 1), ("[20, 30)", 30, 0)],
    "pandas, floats": [("(19.9, 30.0]", 19.9, 0), ("(19.9, 30.0]", 30, 1), ("(-inf, 20.0]", -5, 1)],
    "pandas, open end": [("(90.0, inf]", 90, 0), ("(90.0, inf]", 120, 1), ("[-10, 0)", -10, 1)],
    "pandas interval": [(pd.Interval(20, 30), 20, 0), (pd.Interval(20, 30), 30, 1)],
    "pandas, other end": [(pd.Interval(20, 30, "left"), 20, 1), (pd.Interval(20, 30, "neither"), 30, 0)],
    "R": [("[20,30)", 20, 1), ("[20,30)", 30, 0), ("(20,30]", 20, 0), ("(20,30]", 29.5, 1)],
    "ARX": [("[20, 30[", 20, 1), ("[20, 30[", 30, 0), ("]20, 30]", 20, 0), ("] 20 ; 30 [", 30, 0)],
    "ARX, suppressed": [("*", 25, 1), ("*", "Asian", 1), ("**", 5, 1), ("*****", "13053", 1)],
    "ARX, masked": [("2*", 29, 1), ("2*", 30, 0), ("2*", 2, 0), ("*3053", "13053", 1), ("1*053", "14153", 0)],
    "ARX, set": [("{20, 30}", 25, 0), ("{20, 30}", 30, 1), ("{M, F}", "f", 1), ("{M, F}", "X", 0)],
    "dashes": [("20-29", 29, 1), (" 20 - 29 ", "20", 1), ("20–29", 30, 0), ("20 − 29", 19, 0)],
    "words between": [("20 to 29", 29, 1), ("20 to 29", 30, 0), ("20-29", 30.2, 0)],
    "below": [("<30", 29, 1), ("< 30", 30, 0), ("≤ 30", 30, 1), ("<=30", 31, 0), (">30", 30, 0)],
    "at least": [("≥90", 90, 1), (">= 90", 89, 0), ("90+", 90, 1), ("90 +", 89, 0)],
    "days of pandas": [(pd.Interval(*map(pd.Timestamp, ("1980", "1990"))), pd.Timestamp("1980-01-01"), 0)],
    "numbers": [(25, "25", 1), ("25", 25.0, 1), (25.0, 25, 1), ("25.5", Decimal("25.5"), 1), (-30, 25, 0)],
    "ZIP codes": [("130**", "13053", 1), ("021**", 2139, 1), ("02139", 2139, 1), ("021**", "03139", 0)],
    "missing": [(None, 25, 1), (float("nan"), 25, 1), ("", 25, 1), (pd.NA, "Asian", 1), ("unknown", 25, 1)],
    "words": [("Married", " married ", 1), ("Married", "Single", 0), ("ANY", 25, 1), ("20-29", "Asian", 0)],
    "lists": [("M/F", "F", 1), ("M|F", "X", 0), ("M or F", "m", 1), ("{130,131,132}", "131", 1)],
    "known as a range": [("20-29", "25-34", 1), ("20-29", "30-39", 0), ("(20, 30]", "30-39", 1)],
    "texts with digits": [("Z-01", "Z-02", 0), ("1985-**", "1985-03", 1), ("05/01/1980", "05/02/1980", 0)],
    "masked": [("XXXXX", "Asian", 1), ("#####", "13053", 1), ("[redacted]", "F", 1), ("Not known", "F", 1)],
    "signs that say something": [("+", "++", 0), ("♀", "♂", 0), ("X", "F", 0), ("XX", "XY", 0)],
}  # fmt: skip
REFUSED = {  # by a value that each label of a list may be true of
    25: ["020-29x", "20/29", "20, 30", "30-20", "2*-3*", "adult", "not 20", "late 20s", "~20", "[20, 30",
         "18-", "≈30", "-30", "–30", "20..29", "under 30", "up to 30", "30 and over", ">20, <30",
         "20 <= age < 30", "20 to <30", "<20 or >60", "age 20-29", "20-29 years", "20/21/22", "20,5-29,5",
         ("20-29", "40-49")],
    60_000: ["$50,000-$74,999", "50,000+", "[1,000, 2,000)", "<$20,000", "50k", "130,131,132"],
    1980: ["1980s", "1980/81", "05/01/1980", "80s", pd.Period("1980-05")],
    ("20-29",): ["20-29"],
    "1980-05-31": ["1980", "1980-1989", "1980-05", "05/1980", "05/31/1980", "[1980-01-01, 1990-01-01)"],
    datetime.date(1985, 1, 1): ["20-29", "1985", "1980-1989", 1985],
    "05/01/1980": ["05/01/80", "5/1/1980"],
    "13053": ["130", "130*", "130XX"],
    29.5: ["20-29", "20 to 29"],
    "25 years": ["20-29"],
}  # fmt: skip


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("form", READ)
def test_a_label_is_read_with_both_its_ends(form):
    for label, value, fits in READ[form]:
        release = pd.DataFrame({"q": [label, "*"], "s": ["Flu", "Cancer"]})
        found = an.candidates(release, {"q": value})
        assert found.index.tolist() == ([0, 1] if fits else [1]), (label, value)
        known = an.composition([release, release[release["s"] == "Flu"].assign(q="*")], "s", {"q": value})
        assert known == ({"Flu"} if fits else set())


@pytest.mark.wrong_numbers
@pytest.mark.parametrize(("value", "label"), [(v, label) for v in REFUSED for label in REFUSED[v]])
def test_a_label_with_another_reading_is_refused(value, label):
    release = pd.DataFrame({"q": [label, "*"]})
    with pytest.raises(InvalidParameter, match="column 'q', label"):
        an.candidates(release, {"q": value})


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("right", [True, False])
def test_labels_of_pandas_are_read_as_intervals_categories_and_text(right):
    """A person is among the rows of the own class exactly, whatever holds the labels."""
    ages = pd.Series([20, 25, 30, 35, 40, 99])
    cut = pd.cut(ages, [19, 20, 30, 40, np.inf], right=right)
    for column in (cut, cut.astype(object), cut.astype(str), cut.astype(str).astype("category")):
        table = pd.DataFrame({"age": column, "s": range(6)})
        for age, label in zip(ages, cut, strict=True):
            assert table.loc[an.candidates(table, {"age": age}).index, "s"].tolist() == [
                number for number, other in enumerate(cut) if other == label
            ]


@pytest.mark.wrong_numbers
def test_a_word_next_to_a_number_is_read_by_the_hierarchy():
    table = pd.DataFrame({"age": ["minor", "adult", "*"]})
    parents = {15: "minor", "30": "adult", "40-49": "adult"}
    assert an.candidates(table, {"age": 15}, parents).index.tolist() == [0, 2]
    assert an.candidates(table, {"age": 30.0}, parents).index.tolist() == [1, 2]
    upper = pd.DataFrame({"origin": ["ASIAN", "American"]})
    assert an.candidates(upper, {"origin": "korean"}, tables.NATIONALITIES).index.tolist() == [0]


@pytest.mark.wrong_numbers
def test_overlapping_groups_of_two_releases_meet_where_both_hold():
    """By hand: 30 is in the first group of one release and in the second of the other."""
    first = pd.DataFrame({"age": ["[20, 30]", "]30, 40]"], "s": ["Flu", "Cancer"]})
    second = pd.DataFrame({"age": ["20–29", "30–49"], "s": ["Cancer", "Flu"]})
    for age, left in ((20, set()), (29, set()), (30, {"Flu"}), (31, set()), (40, set())):
        assert an.composition([first, second], "s", {"age": age}) == left, age
    second.loc[0, "age"] = "*"
    assert an.composition([first, second], "s", {"age": 31}) == {"Cancer"}
    assert an.composition([first, second], "s", {"age": 20}) == set()


@pytest.mark.wrong_numbers
def test_sensitive_ranges_that_meet_are_both_possible():
    first = pd.DataFrame({"q": ["1"] * 3, "salary": ["[20, 30[", "30-39", ">60"]})
    second = pd.DataFrame({"q": ["1"] * 2, "salary": [pd.Interval(25, 30), "65"]})
    assert an.composition([first, second], "salary", {"q": 1}) == {"[20, 30[", "30-39", ">60"}
    second["salary"] = ["30", "50-60"]
    assert an.composition([first, second], "salary", {"q": 1}) == {"30-39"}


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("missing", [None, float("nan"), "", "*", "unknown"])
def test_a_missing_sensitive_value_rules_nothing_out(missing):
    first = pd.DataFrame({"q": ["20-29", "20-29", "30-39"], "s": ["Flu", missing, "Cancer"]})
    second = pd.DataFrame({"q": ["20-29"] * 2, "s": ["Flu", "Cancer"]})
    with pytest.raises(InvalidParameter, match="'s' is missing"):
        an.composition([first, second], "s", {"q": 25})
    assert an.composition([first, second.assign(q="*")], "s", {"q": 35}) == {"Cancer"}


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("known", [None, float("nan"), "", "*", "Any", pd.NaT])
def test_a_known_value_that_says_nothing_is_refused(known):
    with pytest.raises(InvalidParameter, match="known\\['age'\\]"):
        an.candidates(tables.four_anonymous(), {"age": known})


def test_a_hierarchy_is_followed_upwards_and_a_circle_ends():
    release = pd.DataFrame({"q": ["Asian", "American", "Korean", "c", "Any"]})
    assert an.candidates(release, {"q": "Korean"}, tables.NATIONALITIES).index.tolist() == [0, 2, 4]
    assert an.candidates(release, {"q": "a"}, {"a": "b", "b": "a"}).index.tolist() == [4]


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


def random_tables():
    row = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3))
    return st.lists(row, min_size=1, max_size=30).map(
        lambda rows: pd.DataFrame(rows, columns=["a", "b", "s"])
    )


@settings(max_examples=8)
@given(random_tables(), st.lists(st.integers(0, 1), min_size=4, max_size=4))
def test_coarsening_never_lowers_k_or_l_nor_raises_t(table, groups):
    """Also when columns are coarsened jointly: the new columns depend on the old pair only."""
    coarse = table.assign(a=[groups[a] + groups[b] for a, b in zip(table["a"], table["b"], strict=True)], b=0)
    quasi = ["a", "b"]
    assert an.k_anonymity(coarse, quasi) >= an.k_anonymity(table, quasi)
    assert an.distinct_l_diversity(coarse, quasi, "s") >= an.distinct_l_diversity(table, quasi, "s")
    finer, coarser = (an.distinct_l_diversity(t, quasi, "s") for t in (table, coarse))
    assert coarser >= finer
    for order in (None, range(4)):
        new, old = (an.t_closeness(t, quasi, "s", order=order) for t in (coarse, table))
        assert new <= old + 1e-9


# People.


def funnel(people, target, steps):
    """How many people are left after each known value of the target, all of them first."""
    person, left = people[people["person_id"] == target].iloc[0], [len(people)]
    for step in steps:
        people = people[people[step] == person[step]]
        left.append(len(people))
    return left


@pytest.mark.parametrize(("inhabitants", "listed", "areas"), [(9000, 6000, 3), (6, 6, 2)])
def test_the_target_is_found_as_in_the_story(inhabitants, listed, areas):
    people = an.town(inhabitants=inhabitants, listed=listed, areas=areas, seed=1)
    left = funnel(people[people["listed"]], "P-000000", ["birth_date", "sex", "area"])
    assert left == [listed, 6, 3, 1]
    assert people["person_id"].is_unique and len(people) == inhabitants
    assert set(people["area"]) == {f"Z-{number:02d}" for number in range(1, areas + 1)}
    assert people["birth_date"].between("1920-01-01", "1979-12-31").all()
    assert (people["birth_month"] == people["birth_date"].str[:7]).all()


# Refusals.


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: an.k_anonymity(tables.patients(), "age"), "quasi"),
        (lambda: an.k_anonymity(tables.patients(), ["salary"]), "salary"),
        (lambda: an.k_anonymity(tables.patients().iloc[:0], ["age"]), "no rows"),
        (lambda: an.k_anonymity(pd.DataFrame({"a": [1, None]}), ["a"]), "missing"),
        (lambda: an.t_closeness(pd.DataFrame({"size": [1], "s": [2]}), ["size"], "s"), "size"),
        (lambda: an.t_closeness(tables.three_diverse(), VISIBLE, "salary", order=[20, 30]), "order"),
        (lambda: an.candidates(tables.four_anonymous(), {"age": 99}), "no row fits"),
        (lambda: an.candidates(tables.four_anonymous(), {"salary": 1}), "salary"),
        (lambda: an.composition(tables.hospitals(), "disease", {}), "sensitive"),
        (lambda: an.composition([], "condition", {}), "releases"),
        (lambda: an.town(inhabitants=9, listed=10, areas=2, seed=0), "listed"),
        (lambda: an.town(inhabitants=9, listed=9, areas=1, seed=0), "areas"),
    ],
)
def test_refusals_name_the_argument(call, words):
    with pytest.raises(InvalidParameter, match=words):
        call()
