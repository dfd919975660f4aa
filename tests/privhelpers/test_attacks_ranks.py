"""Ranks and thresholds where scores are equal, against definitions by brute force."""

import itertools
import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from privhelpers import models, stats
from privhelpers.attacks import attributes, canaries, lira, memorization, ranking
from privhelpers.attacks.ranking import expected_rank
from privhelpers.attacks.scores import leakage_at, measure, split
from privhelpers.errors import InvalidParameter
from privhelpers.models.scoring import token_answers

pytestmark = pytest.mark.wrong_numbers
NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


def over_all_orders(scores, right):
    """Return the mean place of the best right answer over every order of the answers, best first."""
    places = []
    for order in itertools.permutations(range(len(scores))):
        ranked = sorted(order, key=lambda n: -scores[n])  # stable: equal scores stay in this order
        places.append(1 + min(ranked.index(n) for n in right))
    return np.mean(places)


@pytest.mark.parametrize(
    ("scores", "right"),
    [
        ([0, 0, 0, 0, 0], [2]),
        ([0, 0, 0, 0, 0], [0, 4]),
        ([1, 1, 0, 0, 2], [0]),
        ([1, 1, 0, 0, 2], [1, 2]),
        ([1, 1, 0, 0, 2], [2, 3]),
        ([1, 1, 1, 0], [0, 1, 2]),
        ([-math.inf, -math.inf, 0], [0]),
        ([3, 2, 1], [2]),
    ],
)
def test_a_rank_is_the_mean_over_all_orders_of_equal_scores(scores, right):
    mask = np.isin(np.arange(len(scores)), right)
    assert expected_rank(scores, mask) == pytest.approx(over_all_orders(scores, right))
    names = [f"n{n}" for n in range(len(scores))]
    found = attributes.ranks([scores], names, [[names[n] for n in right]])
    assert found == pytest.approx([over_all_orders(scores, right)])


def test_no_model_names_conditions_in_one_order_on_the_page():
    """The cells of the page on a town of seven patients: equal frequencies give no two first places."""
    [page] = NOTEBOOKS.glob("*_memorization.ipynb")
    cells = [cell["source"] for cell in json.loads(page.read_text(encoding="utf-8"))["cells"]]
    [source] = ["".join(cell) for cell in cells if any("patients_with = Counter" in line for line in cell)]
    conditions = ["b", "c", "a", "d"]
    patients = ["a", "b", "b", "c", "d", "d", "a"]
    notes = [{"patient_id": n, "condition": name, "kind": "report"} for n, name in enumerate(patients)]
    page = {
        "ALL_CONDITIONS": conditions,
        "Counter": Counter,
        "attributes": attributes,
        "np": np,
        "ranks": {},
        "notes": {"train": notes},
        "members": patients,
        "truths": {"member": [(name,) for name in patients]},
    }
    exec(source, page)
    assert page["ranks"]["prior", "member"].tolist() == [1, 2, 2, 4, 3, 3, 1]


# Canaries among references.


def test_no_reference_is_a_secret_that_is_left_out():
    usual = canaries.draw_references(7, 50, seed=0)
    without = canaries.draw_references(7, 50, seed=0, without=[usual[3], usual[20], "12", "x" * 7])
    assert len(set(without)) == 50 and {usual[3], usual[20]}.isdisjoint(without)
    assert set(usual) - {usual[3], usual[20]} < set(without), "the others are drawn as they were"
    assert canaries.draw_references(7, 50, seed=0, without=["0000000"]) == usual


@pytest.fixture(scope="module")
def net():
    texts = [f"Seen by Dr Vale in room {n:03d}" for n in range(60)]
    tokenizer = models.train_tokenizer(texts, vocab_size=300)
    return models.build("micro-gpt2", tokenizer, seed=0), tokenizer


def planted(name, secret, *, planted=True, prefix="Patient ("):
    return {
        "canary_id": name,
        "prefix": prefix,
        "secret": secret,
        "planted": planted,
        "copies": int(planted),
    }


def exposures(net, rows, references=4, digits=1, **options):
    options = {"digits": digits, "references": references, "seed": 0, "progress": False} | options
    return canaries.measure(*net, rows, **options)


def test_a_canary_is_ranked_without_itself_and_without_other_secrets(net):
    model, tokenizer = net
    rows = [planted("a", "1"), planted("b", "2"), planted("c", "3", planted=False), planted("d", "1")]
    found = exposures(net, rows, references=5, texts=["room 45"])
    scores = canaries.secret_log_probabilities(model, tokenizer, "Patient (", list("0123456789"))
    for row, result in zip(rows, found, strict=True):
        others = [scores[n] for n in (0, 6, 7, 8, 9)]  # five of five: not 1 to 3, and not 4 and 5 of the text
        rank = 1 + sum(one > scores[int(row["secret"])] for one in others)
        assert result.rank == rank
        assert result.exposure_bits == pytest.approx(math.log2(6) - math.log2(rank))
    assert found[0].rank == found[3].rank, "canaries with one secret do not push each other down"


def test_the_most_probable_secret_reaches_the_ceiling_whatever_was_drawn(net):
    scores = canaries.secret_log_probabilities(*net, "Patient (", list("0123456789"))
    [found] = exposures(net, [planted("a", str(int(scores.argmax())))], references=5)
    assert found.exposure_bits == pytest.approx(math.log2(6))


def test_a_model_without_numbers_gets_no_exposure(net):
    broken = models.build("micro-gpt2", net[1], seed=0)
    with torch.no_grad():
        next(broken.parameters()).fill_(math.nan)
    with pytest.raises(InvalidParameter, match="not numbers"):
        exposures((broken, net[1]), [planted("a", "1")])


def test_a_model_that_says_nothing_gives_every_canary_the_middle_place(net):
    flat = models.build("micro-gpt2", net[1], seed=0)
    with torch.no_grad():
        for weight in flat.parameters():
            weight.zero_()
    assert {one.rank for one in exposures((flat, net[1]), [planted("a", "1"), planted("b", "7")])} == {3.0}


# Greedy decoding.


def test_of_equally_probable_tokens_greedy_decoding_writes_the_first():
    logits = torch.tensor([[0.0, 0, 0], [1, 1, 0], [0, 2, 2], [3, 0, 0], [0, 0, 1]])
    for target in range(3):
        greedy = token_answers(logits, torch.full((5,), target))[:, 3].bool()
        assert greedy.tolist() == (logits.argmax(-1) == target).tolist()


def test_a_model_that_says_nothing_recalls_nothing(net):
    flat = models.build("micro-gpt2", net[1], seed=0)
    with torch.no_grad():
        for weight in flat.parameters():
            weight.zero_()
    notes = [{"text": f"Seen by Dr Vale in room {n:03d}", "note_id": n, "patient_id": n} for n in range(5)]
    halves = memorization.halve(net[1], notes, longest=64)
    assert not memorization.recall(flat, halves).recalled.any()
    assert not memorization.guess(flat, net[1], halves).correct.any()


# Two arms with ties.

LEVELS = np.random.default_rng(3).integers(0, 4, size=(2, 60)).astype(float)


def test_areas_and_rates_with_ties_are_those_of_their_definitions():
    member, other = LEVELS
    patients = np.array([f"p{n}" for n in range(120)])
    arms = split(LEVELS.ravel(), patients, np.arange(120) < 60)
    found = measure(arms, draws=5)
    pairs = [(a > b) + (a == b) / 2 for a in member for b in other]
    assert found.auc.estimate == pytest.approx(np.mean(pairs)) == pytest.approx(stats.auc(member, other))
    thresholds = np.unique(LEVELS)
    rates = [((member >= t).mean(), (other >= t).mean()) for t in thresholds]
    assert found.advantage == pytest.approx(max(0, *(tpr - fpr for tpr, fpr in rates)))
    # One point in a hundred of the others: of those who tie at the highest score, as many members.
    top = max(thresholds)
    share = 0.01 / (other == top).mean()
    assert found.tpr_at_1pct_fpr.estimate == pytest.approx(share * (member == top).mean())
    assert leakage_at(arms, 2.0).estimate == pytest.approx((member >= 2).mean() - (other >= 2).mean())


def test_equal_scores_have_the_rates_of_guessing():
    patients = np.array([f"p{n}" for n in range(400)])
    found = measure(split(np.zeros(400), patients, np.arange(400) < 200), draws=5)
    assert found.auc.estimate == 0.5 and found.advantage == 0
    assert found.tpr_at_1pct_fpr.estimate == pytest.approx(0.01)
    assert found.tpr_at_01pct_fpr.estimate == pytest.approx(0.001)


@pytest.mark.parametrize(("fpr", "others", "allowed"), [(0.29, 100, 29), (0.01, 300, 3), (0.57, 100, 57)])
def test_as_many_are_accused_as_the_rate_allows(fpr, others, allowed):
    """All members lie above all but `allowed` of the others: the strongest result that there is."""
    scores = np.concatenate([np.full(allowed, 3.0), np.full(20, 2.0), np.zeros(others - allowed)])
    member = scores == 2
    strict = stats.permutation_scores(scores[:, None], member, fpr=fpr, draws=199, seed=0)[1]
    assert strict.tolist() == [1 / 200]


def hits_over_all_orders(scores, member, allowed):
    """Return the mean count of members before the first of the others that is too many."""
    counts = []
    for order in itertools.permutations(range(len(scores))):
        ranked = sorted(order, key=lambda n: -scores[n])
        others = [place for place, n in enumerate(ranked) if not member[n]]
        counts.append(others[allowed] - allowed)
    return np.mean(counts)


@pytest.mark.parametrize("allowed", [0, 1, 2])
def test_members_among_equal_scores_are_counted_over_all_orders(allowed):
    scores = np.array([2.0, 2, 1, 1, 1, 0, 0])
    member = np.array([True, False, True, False, True, False, True])
    labelings = [np.isin(np.arange(7), chosen) for chosen in itertools.combinations(range(7), 4)]
    counts = np.array([hits_over_all_orders(scores, labels, allowed) for labels in labelings])
    exact = np.mean(counts >= hits_over_all_orders(scores, member, allowed) - 1e-9)
    p = stats.permutation_scores(scores[:, None], member, fpr=(allowed + 0.1) / 3, draws=4000, seed=0)[1]
    assert p[0] == pytest.approx(exact, abs=0.03)


@pytest.mark.parametrize("scale", [1.0, 1e9])
def test_a_permutation_that_repeats_the_real_one_counts_at_every_scale(scale):
    """The p-value is the share of all permutations that are as extreme; rounding makes none less so."""
    values = scale * (0.1 + np.repeat([0.1, 0.2, 0.3], 4))
    member = np.arange(12) % 2 == 0
    order = np.random.default_rng(0)

    def total(labels):
        sums = [values[np.flatnonzero(row)][order.permutation(int(row.sum()))].sum() for row in labels]
        return np.array(sums)[:, None]

    exact = np.mean(
        [
            values[[*chosen]].sum() >= values[member].sum() * (1 - 1e-9)
            for chosen in itertools.combinations(range(12), 6)
        ]
    )
    p = stats.permutation_test(total, member, draws=3000, seed=0)[0]
    assert p == pytest.approx(exact, abs=0.03)


def test_equal_scores_find_nothing_and_are_accused_in_random_order():
    scores, member = np.zeros((200, 1)), np.arange(200) < 100
    for side in (member, ~member):
        assert np.concatenate(stats.permutation_scores(scores, side, draws=199, seed=0)).tolist() == [1, 1]
    first = np.concatenate([ranking.first(np.zeros(100), 10, seed=seed) for seed in range(60)])
    assert (first < 50).mean() == pytest.approx(0.5, abs=0.1)


def test_shadow_models_that_tell_nothing_give_equal_ratios():
    values, inside = np.zeros((6, 4)), np.arange(24).reshape(6, 4) % 2 == 0
    for scores in lira.all_forms(np.zeros(4), values, inside).values():
        assert np.ptp(scores) == 0
