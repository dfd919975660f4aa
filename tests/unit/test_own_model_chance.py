"""Shuffles, blind baselines and stated power: right where nothing leaks, and where something does."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import fisher_exact, mannwhitneyu, norm

from privhelpers import rng
from privhelpers.errors import BadRecords, InvalidParameter
from privhelpers.own_model import _canaries, _chance, _verdict
from privhelpers.own_model._blind import BlindBaseline, blind_baselines
from privhelpers.own_model._records import Canary
from privhelpers.stats import Interval


def test_the_shuffle_agrees_with_every_dealing_of_the_labels():
    scores = np.array([5.0, 3.0, 4.0, 1.0, 2.0, 0.5, 2.5])
    member = np.array([True, True, True, False, False, False, False])
    own = scores[member].sum()
    dealt = [scores[list(c)].sum() for c in itertools.combinations(range(7), 3)]
    exact = np.mean([mannwhitneyu(scores[list(c)], np.delete(scores, c)).statistic >= 12 for c in
                     itertools.combinations(range(7), 3)])  # fmt: skip
    found = _chance.shuffled(scores[:, None], member, times=20_000, seed=0)
    assert own == max(dealt) and exact == pytest.approx(1 / 35)
    assert found.ranking[0] == pytest.approx(exact, abs=0.004)


def test_p_values_are_uniform_where_nothing_leaks_and_small_where_something_does():
    generator, p = rng.make(0, "test"), []
    for seed in range(200):
        scores = generator.normal(size=(60, 1))
        p.append(_chance.shuffled(scores, np.arange(60) < 30, times=199, seed=seed).ranking[0])
    assert np.mean(np.array(p) <= 0.05) == pytest.approx(0.05, abs=0.05) and 0.4 < np.mean(p) < 0.6
    loud = generator.normal(size=(400, 2)) + np.where(np.arange(400) < 200, 1.0, 0.0)[:, None] * [1, 0]
    found = _chance.shuffled(loud, np.arange(400) < 200, times=999, seed=0)
    assert found.ranking[0] == 0.001 and found.ranking[1] > 0.01


def test_a_few_members_far_out_are_seen_by_the_second_test_only():
    scores = rng.make(1, "test").normal(size=(2000, 1))
    member = np.arange(2000) < 1000
    scores[:40] = 9.0
    found = _chance.shuffled(scores, member, times=1999, seed=0)
    assert found.few[0] == 0.0005 < found.ranking[0]


def test_equal_scores_are_no_evidence():
    found = _chance.shuffled(np.zeros((100, 1)), np.arange(100) < 50, times=499, seed=0)
    assert found.ranking[0] == 1.0 and found.few[0] > 0.01


@settings(deadline=None)
@given(st.integers(0, 30), st.integers(0, 30))
def test_the_exact_test_is_fishers(hits, other):
    p = _chance.exact_p(hits=hits, other_hits=other, members=30, others=40)
    assert p == pytest.approx(fisher_exact([[hits, 30 - hits], [other, 40 - other]], "greater")[1], abs=1e-9)


def test_the_stated_power_is_the_power():
    found = _chance.sensitivity(members=300, others=300, tests=10, alarm=0.01)
    shift = np.sqrt(2) * norm.ppf(found.auc)
    generator = rng.make(0, "power")
    a, b = generator.normal(shift, size=(400, 300)), generator.normal(size=(400, 300))
    wins = mannwhitneyu(a, b, axis=1, alternative="greater", method="asymptotic").pvalue <= 0.001
    assert wins.mean() == pytest.approx(0.9, abs=0.06)
    more = _chance.sensitivity(members=3000, others=3000, tests=10, alarm=0.01)
    assert 0.5 < more.auc < found.auc < 1 and 0.01 < more.few < found.few


WORDS = ("alder", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine", "rowan", "willow")


def people(count: int, seed: int, extra: tuple[str, ...] = ()) -> list[list[str]]:
    generator = rng.plain(seed, "people")
    return [[" ".join(generator.choices([*WORDS, *extra], k=12)) for _ in range(2)] for _ in range(count)]


def test_baselines_see_files_that_differ_and_only_those():
    same = blind_baselines(people(150, 1), people(150, 2), times=499, draws=50)
    assert all(one.p > 0.01 for one in same)
    words, _ = blind_baselines(people(150, 1), people(150, 2, ("yew",)), times=499, draws=50)
    assert words.name == "words" and words.p <= 0.01 and words.auc.estimate > 0.6
    longer = [[" ".join([*text.split(), *text.split()[:3]]) for text in one] for one in people(150, 2)]
    assert blind_baselines(people(150, 1), longer, times=499, draws=50)[1].p <= 0.01


def half(auc: float = 0.5) -> Interval:
    return Interval(auc, auc - 0.02, auc + 0.02, 0.95, "made up")


def test_three_verdicts_and_no_fourth():
    decide = _verdict.decide
    quiet = {"loss": 0.3, "zlib": 0.02, "canaries": 0.5}
    assert decide(quiet, (), alarm=0.01).outcome == _verdict.NOTHING_FOUND
    loud = quiet | {"loss": 0.0001}
    assert decide(loud, (), alarm=0.01).outcome == _verdict.FLAGGED
    assert decide(loud, ("the files differ",), alarm=0.01).outcome == _verdict.UNDECIDED
    assert decide(quiet, ("the files differ",), alarm=0.01).outcome == _verdict.UNDECIDED
    coin = decide(quiet | {"canaries": 0.0001}, ("the files differ",), alarm=0.01)
    assert coin.outcome == _verdict.FLAGGED and "canaries" in coin.reasons[0]


def test_many_tests_are_paid_for():
    found = _verdict.decide({f"t{n}": 0.004 for n in range(10)}, (), alarm=0.01)
    assert found.outcome == _verdict.NOTHING_FOUND and found.tests[0].adjusted == pytest.approx(0.04)


def test_what_explains_a_difference():
    explain = _verdict.alternative_explanations
    assert explain([BlindBaseline("words", half(), 0.2)], [], None, alarm=0.01) == ()
    found = explain([BlindBaseline("shape", half(0.56), 0.004)], [], 0.001, alarm=0.01)
    assert len(found) == 2 and "56 of 100" in found[0] and "reference" in found[1]


def rows(count: int, seed: int) -> tuple[list[Canary], np.ndarray]:
    coins = rng.make(seed, "coins").random(count) < 0.5
    return [Canary(n, f"c{n}", bool(coin)) for n, coin in enumerate(coins, 1)], coins


def test_canaries_refute_a_claim_that_is_false_and_no_other():
    canaries, coins = rows(200, 0)
    noise = rng.make(0, "noise").normal(size=200)
    claim = {"epsilon": 1.0, "delta": 1e-5, "times": 999, "draws": 50}
    open_book = _canaries.audit_canaries(canaries, noise + 100 * coins, **claim)
    assert open_book.claim.refuted and open_book.p == 0.001 and open_book.auc.estimate == 1
    assert open_book.claim.lower.epsilon_lower <= open_book.claim.most
    closed = _canaries.audit_canaries(canaries, noise, **claim)
    assert not closed.claim.refuted and closed.p > 0.01
    told = _verdict.decide({"canaries": closed.p}, (), open_book, alarm=0.01)
    assert told.outcome == _verdict.FLAGGED and "refuted" in told.reasons[0]


def test_half_a_claim_and_an_unfair_coin_are_refused():
    with pytest.raises(InvalidParameter, match="one means nothing without the other"):
        _canaries.check_claim(1.0, None)
    for epsilon, delta in ((-1.0, 1e-5), (float("nan"), 1e-5), (1.0, 1.0), (1.0, 0.0)):
        with pytest.raises(InvalidParameter):
            _canaries.check_claim(epsilon, delta)
    with pytest.raises(BadRecords, match="no fair coin"):
        _canaries.check_coin([Canary(n, str(n), n > 5) for n in range(100)])


def test_a_half_chosen_by_lot_is_audited_in_pairs():
    canaries = [Canary(n, f"c{n}", n % 2 == 0) for n in range(200)]
    coins, claim = np.arange(200) % 2 == 0, {"epsilon": 0.5, "delta": 1e-5, "times": 199, "draws": 50}
    noise = rng.make(0, "noise").normal(size=200)
    loud = _canaries.audit_canaries(canaries, noise + 100 * coins, **claim).claim
    assert loud.lower.canaries == 100 and loud.refuted
    assert loud.lower.epsilon_lower == pytest.approx(loud.most, rel=0.25)
    assert not _canaries.audit_canaries(canaries, noise, **claim).claim.refuted
