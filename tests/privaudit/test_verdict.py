"""Blind baselines, verdicts and canaries: right where nothing leaks, and where something does."""

from dataclasses import replace
from string import ascii_lowercase

import numpy as np
import pytest
import toy_audit as toy
from scipy import sparse

from privaudit import Settings
from privaudit.probes.blind import NAMES, BlindBaseline, _products, blind_baselines
from privaudit.probes.canaries import audit_canaries
from privaudit.probes.counts import Check
from privaudit.probes.membership import AttackName, AttackTest, Part
from privaudit.records import Canary
from privaudit.verdict import (
    FLAGGED,
    NOTHING_FOUND,
    UNDECIDED,
    Cause,
    Reason,
    Statement,
    alternative_explanations,
    decide,
)
from privaudit.words import WORDING, Recipient, sentence
from privhelpers import rng
from privhelpers.errors import InvalidParameter
from privhelpers.records import make_hospital_records
from privhelpers.stats import Interval

WORDS = ("alder", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine", "rowan", "willow")


def people(count: int, seed: int, extra: tuple[str, ...] = ()) -> list[list[str]]:
    generator = rng.plain(seed, "people")
    return [[" ".join(generator.choices([*WORDS, *extra], k=12)) for _ in range(2)] for _ in range(count)]


def test_baselines_see_files_that_differ_and_only_those():
    same = blind_baselines(people(150, 1), people(150, 2), permutations=499, draws=50)
    assert all(baseline.p > 0.01 for baseline in same)
    words, *_ = blind_baselines(people(150, 1), people(150, 2, ("yew",)), permutations=499, draws=50)
    assert words.name == "words" and words.p <= 0.01 and words.auc.estimate > 0.6
    longer = [[" ".join([*text.split(), *text.split()[:3]]) for text in texts] for texts in people(150, 2)]
    assert blind_baselines(people(150, 1), longer, permutations=499, draws=50)[1].p <= 0.01


def short_notes(seed):
    return [[[row["text"]] for row in toy.notes(letter, 70, seed=seed)] for letter in "mh"]


def hospital_notes(seed):
    made = make_hospital_records(
        seed=seed, patients=100, validation_patients=1, heldout_patients=100, canaries_per_level=1
    )
    sides = []
    for notes in (made.train, made.heldout):
        by_patient = {}
        for note in notes:
            if note["kind"] != "canary":
                by_patient.setdefault(note["patient_id"], []).append(note["text"])
        sides.append(list(by_patient.values()))
    return sides


@pytest.mark.parametrize("stray", [str.lower, str.upper], ids=["letter", "capital"])
@pytest.mark.parametrize("sides", [short_notes, hospital_notes])
def test_slips_of_the_pen_are_seen_though_no_two_patients_share_one(sides, stray):
    """One in each note of the second file: a letter for another one, or a capital within a word."""
    chance = rng.plain(0, "slips")

    def slip(text):
        words = text.split(" ")
        at = chance.choice([n for n, word in enumerate(words) if len(word) > 2 and word.isalpha()])
        cut = chance.randrange(1, len(words[at]))
        instead = words[at][cut] if stray is str.upper else chance.choice(ascii_lowercase)
        words[at] = words[at][:cut] + stray(instead) + words[at][cut + 1 :]
        return " ".join(words)

    members, slips = sides(1)
    slips = [list(map(slip, texts)) for texts in slips]
    by_name = {one.name: one for one in blind_baselines(members, slips, permutations=499, draws=50)}
    assert tuple(by_name) == NAMES
    assert by_name["words"].p > 0.01, "no slip teaches anything about another one"
    assert by_name["rarity"].p <= 0.01 and by_name["rarity"].auc.estimate > 0.6
    told = alternative_explanations(list(by_name.values()), [], None, alpha=0.01)
    assert [one.key for one in told].count(Cause.RARITY) == 1


def test_what_differs_late_is_seen_where_not_all_is_read(monkeypatch):
    monkeypatch.setattr("privaudit.probes.blind._LONGEST", 240)
    monkeypatch.setattr("privaudit.probes.blind._STRETCH", 40)
    early = [people(60, n) + people(60, n + 7) for n in (1, 2)]
    late = [people(60, n, extra) + people(60, n + 7, extra) for n, extra in ((3, ()), (4, ("yew",) * 9))]
    members, heldout = (
        [[*begin, *begin, *end] for begin, end in zip(begins, ends, strict=True)]
        for begins, ends in zip(early, late, strict=True)
    )
    assert min(len("".join(texts[:4])) for texts in (*members, *heldout)) > 200
    words, *_ = blind_baselines(members, heldout, permutations=99, draws=20)
    assert words.p == 0.01, "an explanation, as an attack that reads all of it finds what differs"


def test_two_files_are_compared_in_the_memory_of_few_tables_of_all_patients():
    rows = sparse.csr_matrix(rng.make(0, "rows").random((1000, 40)) < 0.4, dtype=float)
    assert np.array_equal(_products(rows), (rows @ rows.T).toarray())
    assert toy.peak_of(lambda: _products(rows)) < 2 * 8 * 1000**2  # bytes of a table
    sides = people(400, 1), people(400, 2)
    assert toy.peak_of(lambda: blind_baselines(*sides, permutations=19, draws=20)) < 4 * 8 * 800**2


def half(auc: float = 0.5) -> Interval:
    return Interval(auc, auc - 0.02, auc + 0.02, 0.95, "made up")


QUIET = {"loss": 0.999, "zlib": 0.9, Check.CANARIES: 0.5}
DIFFER = (Statement(Cause.WORDS, (88,)),)
COIN, EXCHANGED, INVERTED = (Statement(key) for key in (Reason.CANARIES, Cause.EXCHANGED, Cause.INVERTED))


def conclude(found=None, why=(), swapped=None, invertible=(), canaries=None):
    """Return the verdict on quiet tests, some of which found something, either way round."""
    return decide(
        QUIET | (found or {}),
        why,
        canaries,
        swapped=QUIET | (swapped or {}),
        invertible=invertible,
        alpha=0.01,
    )


def test_three_verdicts_and_no_fourth():
    loud = {"loss": 1e-4}
    assert conclude().outcome == NOTHING_FOUND
    assert conclude(loud).outcome == FLAGGED
    assert conclude(loud, DIFFER).outcome == UNDECIDED
    assert conclude(why=DIFFER).reasons == DIFFER and conclude(why=DIFFER).outcome == UNDECIDED
    coin = conclude({Check.CANARIES: 1e-4}, DIFFER)
    assert coin.outcome == FLAGGED and coin.reasons == (COIN,)
    many = decide({f"t{n}": 0.004 for n in range(10)}, (), alpha=0.01)
    assert many.outcome == NOTHING_FOUND and many.tests[0].adjusted == pytest.approx(0.04), "Holm's rule"


@pytest.mark.parametrize(("zlib", "tied"), [(2e-4, False), (1e-4, True)])
def test_the_reason_names_the_clearest_test_of_the_files_and_counts_no_canaries(zlib, tied):
    told = conclude({"loss": 1e-4, "zlib": zlib, Check.CANARIES: 1e-4}).reasons
    assert told == (COIN, Statement(Reason.BEYOND, (2, 2, "loss", tied)))
    assert "loss" in sentence(told[1]) and ("among" in sentence(told[1])) == tied


def test_a_finding_with_the_groups_swapped_rules_out_nothing_found():
    """Held-out patients who look trained on leave it open; such canaries take back no finding."""
    loud, found = {"loss": 1e-4}, {"zlib": 1e-4}
    assert conclude(swapped={"loss": 0.004}).outcome == NOTHING_FOUND, "three tests, by Holm's rule"
    for judged in (conclude(swapped=loud), conclude(found, swapped=loud)):
        assert (judged.outcome, judged.reasons) == (UNDECIDED, (EXCHANGED,))
        assert [test.reverse for test in judged.tests] == pytest.approx([3e-4, 1, 1])
    for check in set(Check) - {Check.CANARIES}:
        repeated = check in (Check.COPIES, Check.COMPLETIONS, Check.DISCLOSURES)
        judged = conclude({check: 1e-4}, swapped=loud)
        assert judged.outcome == (FLAGGED if repeated else UNDECIDED), check
        assert judged.reasons[-1] == EXCHANGED and judged.tests[-1].reverse is None
        assert conclude({check: 1e-4}, DIFFER, swapped=loud).outcome == UNDECIDED
    judged = conclude(found | {Check.CANARIES: 1e-4}, swapped=loud)
    assert judged.outcome == FLAGGED and judged.explanations == (EXCHANGED,)
    kept_out = {Check.CANARIES: 1e-4}
    assert conclude(swapped=kept_out).reasons == (INVERTED,)
    assert conclude(why=DIFFER, swapped=kept_out).reasons == (*DIFFER, INVERTED)
    flagged = conclude(found, swapped=kept_out)
    assert flagged.outcome == FLAGGED and flagged.reasons[1:] == (INVERTED,) and not flagged.explanations


def test_what_a_leak_itself_can_invert_excuses_no_finding():
    assert conclude({"zlib": 1e-4}, swapped={"loss": 1e-6}, invertible={"loss"}).outcome == FLAGGED
    assert conclude({"zlib": 1e-4}, swapped={"loss": 1e-6}).outcome == UNDECIDED
    assert conclude(swapped={"loss": 1e-6}, invertible={"loss"}).reasons == (EXCHANGED,)


def test_swapped_files_excuse_no_tokenizer_that_learned_from_members():
    """It needs fewer tokens for their notes, each harder to predict, so the loss points the other way."""
    tokens = {AttackTest(AttackName.TOKENS, Part.ALL): 1e-4}
    judged = conclude(tokens, swapped={"loss": 1e-6})
    assert judged.outcome == FLAGGED and judged.reasons[-1] == EXCHANGED and not judged.explanations
    assert conclude(swapped={**tokens, "loss": 1e-6}).outcome == UNDECIDED
    assert conclude(tokens, DIFFER).outcome == UNDECIDED


ATTACKS = [AttackTest(name, part) for name in ("loss", "zlib", "lower_case") for part in Part]
EVERY = {key: 0.5 + n / 1000 for n, key in enumerate([*ATTACKS, *Check])}


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("found", [(), ATTACKS[:1], ATTACKS[1:4], *([one] for one in Check), list(Check)])
@pytest.mark.parametrize("turned_round", [(), ATTACKS[:2], ATTACKS[4:], [Check.CANARIES], [Check.COPIES]])
def test_no_word_decides_a_verdict(found, turned_round, monkeypatch):
    def verdict_of():
        p_values, reverse = EVERY | dict.fromkeys(found, 1e-4), EVERY | dict.fromkeys(turned_round, 1e-4)
        blind = [BlindBaseline("shape", half(0.6), 0.5, np.arange(5))]
        why = alternative_explanations(blind, [], None, alpha=0.01)
        return decide(p_values, why, swapped=reverse, invertible=ATTACKS[4:], alpha=0.01)

    usual = verdict_of()
    toy.reword(monkeypatch)
    assert verdict_of() == usual and len(usual.tests) == len(EVERY)


@pytest.mark.wrong_numbers
def test_every_name_has_its_words():
    for names, words in {
        AttackName: WORDING["attacks"],
        Part: WORDING["attack_tests"],
        Check: WORDING["tests"],
        Cause: WORDING["explanations"],
        Recipient: WORDING["recipients"],
    }.items():
        assert set(names) == set(words) and len(set(words.values())) == len(words), names
    assert set(Reason) <= set(WORDING["reasons"])
    for levels in (*WORDING["severity"].values(), *WORDING["details"]["advice"].values()):
        assert set(levels) == set(Recipient)


def test_what_explains_a_difference():
    explain = alternative_explanations
    assert explain([BlindBaseline("words", half(), 0.2, np.arange(5))], [], None, alpha=0.01) == ()
    found = explain([BlindBaseline("shape", half(0.56), 0.004, np.arange(5))], [], 0.001, alpha=0.01)
    assert found == (Statement(Cause.SHAPE, (100 * 0.56,)), Statement(Cause.REFERENCE))


def rows(count: int, seed: int) -> tuple[list[Canary], np.ndarray]:
    coins = rng.make(seed, "coins").random(count) < 0.5
    return [Canary(n, f"c{n}", bool(coin)) for n, coin in enumerate(coins, 1)], coins


def test_canaries_refute_a_claim_that_is_false_and_no_other():
    canaries, coins = rows(200, 0)
    noise = rng.make(0, "noise").normal(size=200)
    claim = Settings(epsilon=1.0, delta=1e-5, permutations=999, draws=50)
    open_book = audit_canaries(canaries, noise + 100 * coins, claim)
    assert open_book.claim.refuted and open_book.p == 0.001 and open_book.auc.estimate == 1
    assert open_book.claim.lower.epsilon_lower <= open_book.claim.most_certifiable
    inverted = audit_canaries(canaries, noise - 100 * coins, claim)
    assert (inverted.p, inverted.reverse_p) == (1, 0.001) == (open_book.reverse_p, open_book.p)
    closed = audit_canaries(canaries, noise, claim)
    assert closed.reverse_p > 0.01
    assert not closed.claim.refuted and closed.p > 0.01
    told = decide({Check.CANARIES: closed.p}, (), open_book, alpha=0.01)
    assert told.outcome == FLAGGED and told.reasons[0].key == Reason.CLAIM


def test_a_claim_and_the_tests_share_the_chance_of_a_false_alarm():
    plain, claiming = Settings(alpha=0.04), Settings(alpha=0.04, epsilon=1.0, delta=1e-5, draws=50)
    assert (plain.share, claiming.share) == (0.04, 0.02)
    for coins in (np.arange(100) % 2 == 0, np.arange(100) % 3 == 0):  # one sampled half, and single coins
        canaries = [Canary(n, f"c{n}", bool(coin)) for n, coin in enumerate(coins, 1)]
        claim = audit_canaries(canaries, 1.0 * coins, replace(claiming, permutations=9)).claim
        assert 1 - claim.lower.confidence + claiming.share == pytest.approx(claiming.alpha)
    with pytest.raises(InvalidParameter, match=r"above alpha = 0\.02 for all of them"):
        replace(claiming, permutations=99).require_permutations(4)
    replace(plain, permutations=99).require_permutations(4)


def test_a_sampled_half_is_audited_in_pairs():
    canaries = [Canary(n, f"c{n}", n % 2 == 0) for n in range(200)]
    coins, claim = np.arange(200) % 2 == 0, Settings(epsilon=0.5, delta=1e-5, permutations=199, draws=50)
    noise = rng.make(0, "noise").normal(size=200)
    loud = audit_canaries(canaries, noise + 100 * coins, claim).claim
    assert loud.lower.canaries == 100 and loud.refuted
    assert loud.lower.epsilon_lower == loud.most_certifiable, "perfect guesses certify what is said of them"
    assert not audit_canaries(canaries, noise, claim).claim.refuted
