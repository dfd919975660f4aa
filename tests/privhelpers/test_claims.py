"""The audited claims: published check figures, verdicts that follow from numbers, complete files."""

import json
import math

import numpy as np
import pandas as pd
import pytest

from privhelpers import accounting, claims, stats
from privhelpers.attacks import extraction
from privhelpers.claims import _documents, _null_model
from privhelpers.errors import InvalidParameter

HOLDS, WRONG, CONTRADICTS, UNSUPPORTED, UNMEASURED = claims.VERDICTS


@pytest.fixture(scope="module")
def rows():
    return claims.audit("report")


@pytest.fixture(scope="module")
def every(rows):
    return [*rows, *claims.audit(*(name for name in claims.DOCUMENTS if name != "report"))]


@pytest.fixture(scope="module")
def audited(every):
    return {row.id: row for row in every}


# Claim -> figure -> value, and how far it may be off.
PUBLISHED = {
    # Leakage and memory.
    "baseline-rate": {"rate": (18.285714, 1e-6), "count": (249, 0)},
    "private-rates": {"rates": ([1.0, 1.071429, 0.928571, 0.357143], 1e-6)},
    "total-row": {"sum": (277, 0)},
    "reduction-arithmetic": {"last": (97.992, 1e-3), "last_from_256": (98.047, 1e-3)},
    "diagnosis-hits": {"expected": (126.4, 0.05), "p": (0.852124, 1e-5), "chance": (13 / 144, 1e-9)},
    "exact-memorization": {"p": (1, 1e-9), "low": (0.001265, 1e-6), "high": (0.248733, 1e-6)},
    "canary-rate": {
        "low": (0.818964, 1e-5),
        "perfect": (0.99999, 1e-5),
        "floor_half": (0.701512, 1e-5),
        "floor_one": (0.507882, 1e-5),
    },
    # Risk and law.
    "risk-score": {"weights": ([0.4, 0.3, 0.1], 1e-6), "gap": (0, 0.005)},
    "eighteen": {"place": (8, 0)},
    "recommendations": {"allowed": ([0.016497, 0.027193, 0.993329, 0.999955], 1e-6)},
    "levels": {"advantage": (0.999909, 1e-6)},
    "queries": {"four": (16.4812, 1e-4)},
    # Statistics.
    "chi-squared": {
        "pearson": (266.196454, 1e-5),
        "yates": (264.079592, 1e-5),
        "g": (337.222294, 1e-5),
        "from_249": (257.777833, 1e-5),
        "two_terms": (241.383, 1e-3),
    },
    "p-value": {"p": (10**-59.1161, 10**-61)},
    "effect-size": {"h": (0.750747, 1e-6), "h_counts": (0.764118, 1e-6)},
    "interval-baseline": {"wilson": ([16.3486, 20.3964], 1e-4), "exact": ([16.2934, 20.4121], 1e-4)},
    "interval-private": {"wilson": ([0.1526, 0.8333], 1e-4), "exact": ([0.1161, 0.8315], 1e-4)},
    "independence": {"by_record": (596, 0.6), "by_prompt": (128, 0.6)},
    "overlap": {"base": ([12.5, 25.9], 0.1)},
    "sign": {"p": (0.146, 1e-3), "p_half_ten": (0.063, 1e-3), "p_one_ten": (0.041, 1e-3)},
    # Accounting: the printed digits of sigma and epsilon leave that much room.
    "epsilon-source": {
        "fits": ([8] * 4, 4e-3),
        "own": (0.00667, 1e-5),
        "printed": ([0.183035, 0.183899, 0.206817, 0.264613], 2e-5),
    },
    "sigma-epsilon": {"pld": ([0.0071, 0.0154, 0.0851, 0.1743], 2e-4)},
    "epsilon-log": {"curve": ([4.0671, 5.9317, 7.4340, 8.7487, 9.9436], 1e-4)},
    "calibration": {"sigmas": ([1.1721, 0.5386, 0.5, 0.5], 5e-5)},
    "clamp": {"spent": ([4.159, 7.287, 11.597], 1e-3)},
    "tolerance": {"over": (3, 0)},
    "printed-accountant": {"ratio_2": (1.72, 0.005), "ratio_22": (61246, 180), "true": (6.267, 0.02)},
    # Noise and design.
    "code-as-run": {
        "nulled": ([0.0414, 0.0885, 0.4640, 0.9055], 6e-5),
        "replaced": ([0.0887, 0.1888, 0.9898, 1.9475], 6e-5),
    },
    "noise-place": {"formula": (0.5707, 1e-4), "code": (2.2829, 1e-4)},
    "noise-against-signal": {"length": (25_466, 1)},
    "poisson": {"empty": (0.018218, 1e-6), "plain": (11.48, 0.01), "poisson": (0.59, 0.01)},
    "price-of-privacy": {"needed": (1.0889, 1e-3), "used": (153.36, 1e-4)},
    "model": {"gpt2": (124_439_808, 0), "distilgpt2": (81_912_576, 0)},
    "orders": {"count": (152, 0), "last": (10.9, 1e-9)},
    "steps": {"steps": (935, 0)},
    "hours": {"hours": ([18.0, 3.7], 1e-6)},
    "ssn-never-leaks": {"could": (233.3, 0.1)},
    # The other documents.
    "order-floor": {"floors": ([0.222831, 0.219294], 1e-6)},
    "group-of-fifty": {"delta": (2.782953, 1e-6), "tight": (0.278451, 1e-6), "other": (1.05e9, 5e6)},
    "nine-runs": {"advanced": (143.794165, 1e-5), "best": (17.999969, 1e-5)},
    "lecture-neyman": {"threshold": (-1.144854, 1e-6), "fnr": (0.740489, 1e-6)},
    "delta-one-over-n": {"exposed": (0.632, 5e-4)},
    "focus-sign": {"spread": (-math.log(4), 1e-9)},
    "leakage-definition": {"leakage": (0.25, 0)},
    "downstream": {"p": (0.096, 2e-3)},
    "twice-the-steps": {"ratios": ([1.241, 1.415, 1.449, 1.457], 8e-3)},
    "twice-the-noise": {"ratios": ([0.094, 0.348, 0.440, 0.461], 5e-3)},
    "four-anonymous": {"k": (4, 0), "l": (1, 0), "t": (7 / 12, 1e-9)},
    "three-diverse": {"l": (3, 0), "t_disease": (4 / 9, 1e-9), "t_salary": (0.375, 1e-9)},
    "composition-attack": {"left": (1, 0), "without": (3, 0)},
    "scrubber": {"digits": (6, 0)},
    "first-epoch": {"batches": (2.294, 1e-3)},
    "small-delta": {"exposed": (0.014888, 1e-6)},
    "hard-diversity": {"groups": (100, 0), "patients": (100, 0)},
    "before-and-after": {"after": (0.231969, 1e-6)},
    "case-study": {"kept": ([0.904762, 0.761905], 1e-6)},
    "joined-facts": {"alone": (2, 0), "joined": (1, 0)},
    "accountants": {"mu": (1000, 1e-9), "allowed": (1, 1e-12)},
    "one-percent": {"people": (460, 1e-9)},
    "larger-leaks": {"ratio": (1.148919, 1e-6)},
    "mean-threshold": {"kept": (0.996, 1e-3), "unequal": (0.209, 2e-3)},
}
VERDICTS = {
    HOLDS: [
        "reduction-arithmetic",
        "private-sums",
        "p-value",
        "interval-baseline",
        "gradient-size",
        "mean-threshold",
    ],
    WRONG: ["chi-squared"],
    CONTRADICTS: ["risk-score", "effect-label", "first-epoch", "private-and-better"],
    UNSUPPORTED: ["epsilon-log"],
}


@pytest.mark.parametrize("claim", PUBLISHED)
def test_a_recomputed_figure_is_the_published_one(audited, claim):
    for name, (value, room) in PUBLISHED[claim].items():
        assert audited[claim].figures[name] == pytest.approx(value, abs=room), name


def test_verdicts_follow_from_the_figures(audited):
    for verdict, names in VERDICTS.items():
        assert {audited[name].verdict for name in names} == {verdict}
    assert audited["effect-label"].evidence == "medium"
    assert (np.diff(audited["epsilon-log"].figures["curve"], n=2) < 0).all()
    floors = audited["test-perplexity"].figures["floors"]
    assert 1.05 < floors[0] < floors[1] < 1.4


def test_a_verdict_turns_with_what_is_printed(monkeypatch):
    loaded = _documents._loaded("report")
    loaded["printed"] |= {"chi_squared": 266.2, "cohens_h": 0.81, "exact_trials": 2000}
    loaded["printed"]["risk_weights"] = {"prompt": 0.4, "membership": 0.2, "canary": 0.3, "exact": 0.1}
    ids = ("chi-squared", "effect-label", "risk-score", "exact-memorization")
    loaded["claims"] = [claim for claim in loaded["claims"] if claim["id"] in ids]
    monkeypatch.setattr(_documents, "_loaded", lambda document: loaded)
    turned = {row.id: row for row in claims.audit("report")}
    assert [turned[name].verdict for name in ids[:3]] == [HOLDS] * 3
    assert turned["exact-memorization"].figures["zero_high"] < 0.002


def test_unknown_names_are_refused(rows):
    with pytest.raises(InvalidParameter, match="document"):
        claims.printed("newspaper")
    with pytest.raises(InvalidParameter, match="topics"):
        claims.claim_table(rows, "leakage", "weather")


# What the report's code did to its noise, tried on ours: the rule that must fail, fails.


SIGMA, BOUND, BATCH = 2.2829, 1.0, 4.0
PRINTED = claims.printed("report")
RUN = {"sample_rate": 4 / 1500, "steps": PRINTED.steps, "delta": PRINTED.delta}


@pytest.mark.parametrize("target", [0.5, 1.0, 5.0, 10.0])
def test_a_calibrated_noise_multiplier_keeps_its_target(target):
    """Behavioural vector (b), first half; the report's search returns one that does not, from 1 on."""
    ours = accounting.calibrate_noise_multiplier(target_epsilon=target, **RUN)
    assert accounting.epsilon(noise_multiplier=ours, **RUN) <= target
    searched = accounting.printed_calibration(target_epsilon=target, **RUN)
    assert (accounting.epsilon(noise_multiplier=searched, **RUN) > target) == (target >= 1)


def test_a_clamp_takes_the_guarantee_away():
    """Behavioural vector (b), second half: a calibrated noise multiplier may not be lowered."""
    run = {"sample_rate": 0.5, "steps": 1875, "delta": 1e-5}
    ours = accounting.calibrate_noise_multiplier(target_epsilon=5.0, accountant="rdp", **run)
    lowered = accounting.clamped(ours, target_epsilon=5.0)
    assert lowered < ours
    assert accounting.epsilon(noise_multiplier=lowered, accountant="rdp", **run) > 5.0


@pytest.mark.parametrize("accountant", ["pld", "rdp"])
def test_epsilon_is_concave_in_the_steps_and_the_printed_log_is_not(accountant):
    """Behavioural vector (c)."""
    epochs = [PRINTED.steps * epoch // 5 for epoch in range(1, 6)]
    run = {**RUN, "noise_multiplier": 0.8, "accountant": accountant}
    spent = [accounting.epsilon(**{**run, "steps": steps}) for steps in epochs]
    gains = np.diff([0.0, *spent])
    assert (gains > 0).all() and (np.diff(gains) < 1e-3).all()
    printed = np.diff([0.0, *PRINTED.epsilon_log])
    assert np.ptp(printed[:-1]) < 2e-4, "a straight line"


# What the report's rule counts without memory; and the rules of this book on the same texts.


REPORT = claims.printed("report")
NAMES = claims.report_names()
NOBODY = ["Zzzz Qqqq"] * 225
WORDS = [f"{condition}, {drug}." for condition in REPORT.conditions for drug in REPORT.medications]


def loose(text, name, condition="COPD", medication="Tramadol"):
    return any(word.lower() in text.lower() for word in (*name.split(), condition, medication))


def middle(counts):
    return np.percentile(counts, [2.5, 97.5])


def test_the_generator_of_the_report_is_repeated():
    assert NAMES[0] == "Allison Hill" and len(NAMES) == 225
    assert _null_model.numbers_that_could_be_real() == (225, 225)


def test_the_simulated_null_of_random_words():
    null = claims.simulated_leaks(REPORT, NOBODY, WORDS, simulations=1500, seed=1)
    chance = 1 - (1 - 13 / 144) * (1 - 1 / 12)
    assert chance == pytest.approx(0.166088, abs=1e-6)
    assert null.mean() == pytest.approx(1400 * chance, abs=1.5)
    assert middle(null) == pytest.approx((204, 260), abs=4)
    assert np.mean(null >= 256) == pytest.approx(0.056, abs=0.02)
    assert np.mean(null >= 249) == pytest.approx(0.126, abs=0.03)
    named = claims.simulated_leaks(REPORT, NAMES, WORDS, simulations=1500, seed=1)
    assert named.mean() > null.mean(), "names inside medical words add to it"
    assert middle(named)[1] > 256


@pytest.mark.nightly
def test_the_strict_rule_is_silent_on_prose_about_no_patient():
    """Behavioural vector (f): an upper bound of 0.05%, where the report's rule is far above it."""
    texts = claims.plain_english()[:220]
    generations = [extraction.Generation("", text) for text in texts]
    people = [
        extraction.Profile(f"p{i}", {"name": (name,), "dob": ("1961-03-05",)}, ("COPD",), ("Tramadol",))
        for i, name in enumerate(NAMES[:50])
    ]
    hits = sum(extraction.strict_match(generations, [person]).leaks for person in people)
    attempts = len(texts) * len(people)
    assert attempts >= 10_000 and stats.clopper_pearson(hits, attempts).high <= 0.0005
    fired = sum(loose(text, name) for text in texts for name in NAMES)
    assert fired / (len(texts) * len(NAMES)) > 0.0005


def test_tables_contain_every_claim_once_as_escaped_text(every):
    tables = [claims.claim_table(every, topic) for topic in {row.claim["topic"] for row in every}]
    assert sum(map(len, tables)) == len(every) == claims.verdict_counts(every)["claims"].sum()
    assert json.loads(json.dumps(claims.as_json(every), allow_nan=False))[0]["id"] == every[0].id
    shown = claims.TextTable(pd.DataFrame({"a": ["<script>x</script>"]}))
    assert "&lt;script&gt;" in shown._repr_html_() and "<script>" in repr(shown)
