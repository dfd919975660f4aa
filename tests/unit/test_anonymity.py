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
from privhelpers.anonymity import tables
from privhelpers.errors import InvalidParameter

QUASI = ["age", "gender", "zip_code", "nationality"]
VISIBLE = ["zip_code", "age"]
SEEN = ["gender", "age", "zip_code"]
BOB = {"gender": "M", "age": 25, "zip_code": "30602"}

# The textbook tables.


def test_twelve_patients_are_only_1_anonymous():
    assert an.k_anonymity(tables.patients(), QUASI) == 1
    assert an.discernibility(tables.patients(), QUASI) == 12


def test_four_anonymous_table():
    table = tables.four_anonymous()
    report = an.class_report(table, QUASI, "condition")
    assert report["size"].tolist() == [4, 4, 4]
    assert report["distinct_l"].tolist() == [2, 3, 1]
    assert report["entropy_l"].tolist() == pytest.approx([2, 2.828427, 1], abs=1e-6)
    assert report["t"].tolist() == pytest.approx([7 / 12, 1 / 3, 7 / 12])
    assert an.k_anonymity(table, QUASI) == 4
    assert an.distinct_l_diversity(table, QUASI, "condition") == 1
    assert an.entropy_l_diversity(table, QUASI, "condition") == pytest.approx(1)
    assert an.t_closeness(table, QUASI, "condition") == pytest.approx(0.5833, abs=5e-5)
    assert an.discernibility(table, QUASI) == 48


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


def test_every_generalization_of_the_textbook_is_true_of_its_patient():
    fits = an.truthful(tables.patients(), tables.four_anonymous(), QUASI, tables.NATIONALITIES)
    assert fits.shape == (12, 4) and fits.all(axis=None)


def test_a_false_generalization_is_found():
    released = tables.four_anonymous()
    released.loc[0, "nationality"] = "Asian"  # Ann is Russian
    released.loc[1, "age"] = "20-28"  # Bruce is 29
    fits = an.truthful(tables.patients(), released, QUASI, tables.NATIONALITIES)
    wrong = [(row, column) for row in fits.index for column in QUASI if not fits.loc[row, column]]
    assert wrong == [(0, "nationality"), (1, "age")]


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
    assert an.covers(general, exact, tables.NATIONALITIES) is expected


def test_a_circular_hierarchy_ends():
    assert not an.covers("c", "a", {"a": "b", "b": "a"})


@given(st.integers(0, 99999), st.integers(0, 5))
def test_suppressed_digits_cover_what_they_came_from(number, digits):
    code = f"{number:05d}"
    assert an.covers(an.keep_digits(digits)(code), code)


@given(st.integers(0, 99), st.integers(1, 20))
def test_ranges_cover_what_they_came_from(age, width):
    rule = an.ranges(*((low, low + width - 1) for low in range(0, 100, width)))
    assert an.covers(rule(age), age)


def test_climbing_a_hierarchy():
    climbed = [an.climb(tables.NATIONALITIES, levels)("Indian") for levels in (0, 1, 2, 9)]
    assert climbed == ["Indian", "Asian", "Any", "Any"]


def test_generalize_leaves_its_input_and_other_columns_alone():
    before = tables.patients()
    after = an.generalize(before, {"age": an.ranges((0, 99))})
    assert before.equals(tables.patients())
    assert after.drop(columns="age").equals(before.drop(columns="age"))
    assert set(after["age"]) == {"0-99"}


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
    found = linprog(cost.ravel(), A_eq=np.vstack([leave, arrive]), b_eq=np.concatenate([first, second]))
    return found.fun


@settings(max_examples=40)
@given(two_distributions())
def test_both_distances_are_earth_movers(pair):
    first, second = pair
    ranks = np.arange(len(first))
    ordered = np.abs(ranks[:, None] - ranks) / (len(first) - 1)
    equal = (ranks[:, None] != ranks).astype(float)
    assert an.total_variation(first, second) == pytest.approx(cheapest(first, second, equal), abs=1e-8)
    assert an.ordered_distance(first, second) == pytest.approx(cheapest(first, second, ordered), abs=1e-8)
    scipy_value = wasserstein_distance(ranks, ranks, first, second) / (len(first) - 1)
    assert an.ordered_distance(first, second) == pytest.approx(scipy_value, abs=1e-9)


@given(two_distributions())
def test_closeness_bounds_statements_and_mean_ranks(pair):
    first, second = pair
    sets = itertools.product([0, 1], repeat=len(first))
    largest = max(abs(np.dot(first - second, chosen)) for chosen in sets)
    assert an.total_variation(first, second) == pytest.approx(largest, abs=1e-12)
    shift = abs(np.dot(first - second, np.arange(len(first))))
    assert shift <= (len(first) - 1) * an.ordered_distance(first, second) + 1e-12


def random_tables():
    row = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3))
    return st.lists(row, min_size=1, max_size=30).map(
        lambda rows: pd.DataFrame(rows, columns=["a", "b", "s"])
    )


@given(random_tables())
def test_entropy_diversity_lies_between_the_two_counts(table):
    report = an.class_report(table, ["a", "b"], "s")
    for number, group in table.groupby(an.equivalence_classes(table, ["a", "b"])):
        most = group["s"].value_counts(normalize=True).max()
        assert 1 / most - 1e-9 <= report.loc[number, "entropy_l"] <= report.loc[number, "distinct_l"] + 1e-9


@given(random_tables(), st.lists(st.integers(0, 1), min_size=4, max_size=4))
def test_coarsening_never_lowers_k_or_l_nor_raises_t(table, groups):
    """Also when columns are coarsened jointly: the new columns depend on the old pair only."""
    coarse = table.assign(a=[groups[a] + groups[b] for a, b in zip(table["a"], table["b"], strict=True)], b=0)
    quasi = ["a", "b"]
    assert an.k_anonymity(coarse, quasi) >= an.k_anonymity(table, quasi)
    assert an.distinct_l_diversity(coarse, quasi, "s") >= an.distinct_l_diversity(table, quasi, "s")
    assert an.entropy_l_diversity(coarse, quasi, "s") >= an.entropy_l_diversity(table, quasi, "s") - 1e-9
    for order in (None, range(4)):
        new, old = (an.t_closeness(t, quasi, "s", order=order) for t in (coarse, table))
        assert new <= old + 1e-9


def test_dropping_a_row_can_lower_k():
    table = pd.DataFrame({"a": [1, 1, 2, 2]})
    assert an.k_anonymity(table, ["a"]) == 2 and an.k_anonymity(table.iloc[1:], ["a"]) == 1


def test_information_loss_between_nothing_and_all():
    exact = pd.DataFrame({"x": [1, 2, 3, 4], "y": ["a", "a", "a", "a"]})
    half = pd.DataFrame({"x": ["1-2", "1-2", "3-4", "3-4"], "y": ["a"] * 4})
    none = pd.DataFrame({"x": ["*"] * 4, "y": ["*"] * 4})
    assert an.information_loss(exact, exact, ["x", "y"]).tolist() == [0, 0]
    assert an.information_loss(exact, half, ["x"]).tolist() == pytest.approx([0.5])
    assert an.information_loss(exact, none, ["x", "y"]).tolist() == [1, 0]  # y had nothing to lose


# Attacks.


def test_homogeneity():
    found = an.homogeneity(tables.four_anonymous(), "condition", {"age": 31, "zip_code": "13222"})
    assert (found.rows, found.posterior, found.certain) == (4, {"Cancer": 1.0}, True)


def test_background_knowledge():
    known = {"age": 21, "zip_code": "13068"}
    table = tables.four_anonymous()
    plain = an.homogeneity(table, "condition", known)
    assert plain.posterior == {"Heart disease": 0.5, "Viral infection": 0.5}
    rare = an.background(table, "condition", known, likelihood={"HEART  disease": 0.1})
    assert rare.posterior["Viral infection"] == pytest.approx(1 / 1.1)
    excluded = an.background(table, "condition", known, likelihood={"heart disease": 0})
    assert excluded.posterior == {"Viral infection": 1.0} and excluded.certain


def test_similarity():
    known = {"age": 27, "zip_code": "30602"}
    found = an.similarity(tables.three_diverse(), "disease", known, kinds=tables.DISEASE_KINDS)
    assert found.posterior == {"stomach": 1.0} and found.rows == 3
    assert an.candidates(tables.three_diverse(), known)["salary"].tolist() == [20, 30, 40]
    without = an.similarity(tables.three_diverse(), "disease", known, kinds={})
    assert len(without.posterior) == 3


def test_composition_needs_the_sex_and_both_hospitals():
    one, two = tables.hospitals()
    assert an.k_anonymity(one, SEEN) == 4 and an.k_anonymity(two, SEEN) == 6
    assert set(an.homogeneity(one, "condition", BOB).posterior) == {"Cancer", "Flu", "Viral infection"}
    assert set(an.homogeneity(two, "condition", BOB).posterior) == {
        "Cancer", "Heart disease", "Malaria", "Tuberculosis"}  # fmt: skip
    assert an.composition([one], "condition", BOB) == {"Cancer", "Flu", "Viral infection"}
    for size in range(4):
        for facts in itertools.combinations(BOB, size):
            left = an.composition([one, two], "condition", {fact: BOB[fact] for fact in facts})
            assert (left == {"Cancer"}) == ("gender" in facts), facts
            assert len(left) == 1 or len(left) >= 3


@given(st.integers(2, 12))
def test_no_syntactic_notion_composes(k):
    pair = [pd.DataFrame({"q": 1, "s": ["s"] + [f"{x}{i}" for i in range(1, k)]}) for x in "ab"]
    for table in pair:
        assert an.k_anonymity(table, ["q"]) == k
        assert an.entropy_l_diversity(table, ["q"], "s") == pytest.approx(k)
        assert an.t_closeness(table, ["q"], "s") == 0
    assert an.composition(pair, "s", {"q": 1}) == {"s"}


@given(random_tables(), st.data())
def test_whoever_is_in_the_table_hides_among_k(table, data):
    """Truthful coarsening, then the candidates of any person are whole classes, so k or more."""
    row = data.draw(st.integers(0, len(table) - 1))
    coarse = an.generalize(table, {"a": an.ranges((0, 1), (2, 3)), "b": an.ranges((0, 2), (3, 3))})
    found = an.candidates(coarse, table.loc[row, ["a", "b"]].to_dict())
    assert row in found.index and len(found) >= an.k_anonymity(coarse, ["a", "b"])


# People.


@pytest.mark.parametrize("seed", range(5))
def test_the_target_is_found_as_in_the_story(seed):
    people = an.town(inhabitants=9000, listed=6000, areas=3, seed=seed)
    voters = people[people["listed"]]
    left = an.funnel(voters, "P-000000", ["birth_date", "sex", "area"])
    assert left.tolist() == [6000, 6, 3, 1]
    assert people["person_id"].is_unique and len(people) == 9000
    assert set(people["area"]) == {"Z-01", "Z-02", "Z-03"}
    assert people["birth_date"].between("1920-01-01", "1979-12-31").all()
    assert (people["birth_month"] == people["birth_date"].str[:7]).all()


def test_the_smallest_register_still_tells_the_story():
    people = an.town(inhabitants=6, listed=6, areas=2, seed=1)
    assert an.funnel(people, "P-000000", ["birth_date", "sex", "area"]).tolist() == [6, 6, 3, 1]


def test_a_town_repeats_with_its_seed_and_changes_with_another():
    one, two, other = (an.town(inhabitants=99, listed=50, areas=2, seed=s) for s in (0, 0, 1))
    assert one.equals(two) and not one.equals(other)


@pytest.mark.parametrize("below", [2, 3, 4])
def test_expected_share_is_exact_on_a_tiny_town(below):
    """All ways to put 5 people into 3 unequal combinations, weighted by their probability."""
    p, people = np.array([0.5, 0.3, 0.2]), 5
    first = second = 0.0
    for places in itertools.product(range(3), repeat=people):
        sizes = np.bincount(places, minlength=3)
        share = sizes[sizes < below].sum() / people
        weight = p[list(places)].prod()
        first, second = first + weight * share, second + weight * share**2
    found = an.expected_share(people, p, below=below)
    assert found.mean == pytest.approx(first)
    assert found.sd == pytest.approx(np.sqrt(second - first**2))


def test_expected_share_at_its_ends():
    assert an.expected_share(9, [1.0]).mean == 0  # one combination for all
    all_small = an.expected_share(3, [0.5, 0.5], below=9)
    assert all_small.mean == pytest.approx(1) and all_small.sd == pytest.approx(0, abs=1e-6)
    uniform = an.expected_share(96_000, an.cell_probabilities("birth_date", areas=6))
    cells = 2 * 6 * 21_915
    assert uniform.mean == pytest.approx((1 - 1 / cells) ** 95_999)


@pytest.mark.parametrize(
    ("grain", "cells"),
    [("birth_date", 21_915), ("birth_month", 720), ("birth_year", 60), ("birth_decade", 6)],
)
def test_cell_probabilities_count_the_calendar(grain, cells):
    found = an.cell_probabilities(grain, areas=4)
    assert found.size == cells * 8 and found.sum() == pytest.approx(1)
    assert an.cell_probabilities(grain, areas=1, by_sex=False).size == cells


def test_measured_shares_agree_with_theory():
    people = an.town(inhabitants=40_000, listed=20_000, areas=4, seed=3)
    releases = {"fine": ["birth_date", "sex", "area"], "coarse": ["birth_month", "area"]}
    found = an.release_shares(people, releases, below=5, level=0.999999)
    assert list(found.index) == ["fine", "coarse"]
    assert found.loc["fine", "people_per_class"] == pytest.approx(40_000 / (8 * 21_915))
    for kind in ("unique", "small"):
        assert (found[kind] >= found[f"{kind}_low"] - 1e-3).all()
        assert (found[kind] <= found[f"{kind}_high"] + 1e-3).all()


def test_linkage_counts_unique_and_right_matches():
    register = pd.DataFrame({"person_id": list("abcd"), "q": [1, 1, 2, 3]})
    patients = pd.DataFrame({"person_id": list("acxy"), "q": [1, 2, 3, 9]})
    found = an.link(patients, register, ["q"])
    # a: two voters fit; c: found; x: not on the list, but d looks like x; y: nobody fits.
    assert (found.patients, found.once, found.correct) == (4, 2, 1)


def test_share_of_right_matches_agrees_with_theory():
    people = an.town(inhabitants=60_000, listed=20_000, areas=2, seed=0)
    found = an.link(people, people[people["listed"]], ["birth_date", "sex", "area"])
    c, cells = 1 / 3, 4 * 21_915
    assert found.correct / found.once == pytest.approx(c / (c + (1 - c) * 20_000 / cells), abs=0.012)


# Refusals.


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: an.k_anonymity(tables.patients(), []), "quasi"),
        (lambda: an.k_anonymity(tables.patients(), "age"), "quasi"),
        (lambda: an.k_anonymity(tables.patients(), ["salary"]), "salary"),
        (lambda: an.k_anonymity(tables.patients().iloc[:0], ["age"]), "no rows"),
        (lambda: an.k_anonymity(pd.DataFrame({"a": [1, None]}), ["a"]), "missing"),
        (lambda: an.t_closeness(tables.three_diverse(), VISIBLE, "salary", order=[20, 30]), "order"),
        (lambda: an.generalize(tables.patients(), {"salary": str}), "salary"),
        (lambda: an.ranges((0, 9))(10), "10"),
        (lambda: an.ranges(), "bounds"),
        (lambda: an.ranges((9, 0)), "bounds"),
        (lambda: an.keep_digits(-1), "digits"),
        (lambda: an.truthful(tables.patients(), tables.three_diverse(), ["age"], {}), "9 rows"),
        (lambda: an.information_loss(tables.patients(), tables.three_diverse(), ["age"]), "9 rows"),
        (lambda: an.candidates(tables.four_anonymous(), {"age": 99}), "no row fits"),
        (lambda: an.candidates(tables.four_anonymous(), {"salary": 1}), "salary"),
        (lambda: an.composition([], "condition", {}), "tables"),
        (
            lambda: an.background(
                tables.four_anonymous(), "condition", {"age": 31}, likelihood={"cancer": 0}
            ),
            "likelihood",
        ),
        (
            lambda: an.background(
                tables.four_anonymous(), "condition", {"age": 31}, likelihood={"cancer": -1}
            ),
            "cancer",
        ),
        (lambda: an.town(inhabitants=9, listed=10, areas=2, seed=0), "listed"),
        (lambda: an.town(inhabitants=9, listed=5, areas=2, seed=0), "listed"),
        (lambda: an.town(inhabitants=9, listed=9, areas=1, seed=0), "areas"),
        (lambda: an.funnel(pd.DataFrame({"person_id": ["a"]}), "b", []), "target"),
        (lambda: an.cell_probabilities("birth_hour", areas=1), "grain"),
        (lambda: an.expected_share(1, [1.0]), "people"),
        (lambda: an.expected_share(5, [0.5, 0.4]), "probabilities"),
    ],
)
def test_refusals_name_what_is_wrong(call, words):
    with pytest.raises(InvalidParameter, match=words):
        call()
