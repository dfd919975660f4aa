"""The audited claims: published check figures, verdicts that follow from numbers, complete files."""

import json
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup

from bookmaker.site import _outputs
from privhelpers import claims
from privhelpers.claims import _documents, _others
from privhelpers.errors import InvalidParameter

HOLDS, WRONG, CONTRADICTS, UNSUPPORTED, UNMEASURED = claims.VERDICTS
BIBLIOGRAPHY = (Path(__file__).parents[2] / "book" / "references.bib").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def rows():
    return claims.audit("report")


@pytest.fixture(scope="module")
def every(rows):
    return [*rows, *claims.audit(*(name for name in claims.DOCUMENTS if name != "report"))]


@pytest.fixture(scope="module")
def audited(every):
    return {row.id: row for row in every}


def figures(audited, claim, *names):
    values = [audited[claim].figures[name] for name in names]
    return values[0] if len(values) == 1 and isinstance(values[0], list) else values


# Leakage.


def test_rates_and_sums(audited):
    assert figures(audited, "baseline-rate", "rate", "count") == pytest.approx([18.285714, 249], abs=1e-6)
    rates = figures(audited, "private-rates", "rates")
    assert rates == pytest.approx([1.0, 1.071429, 0.928571, 0.357143], abs=1e-6)
    assert audited["total-row"].figures["sum"] == 277
    both = figures(audited, "reduction-arithmetic", "last", "last_from_256")
    assert both == pytest.approx([97.992, 98.047], abs=1e-3)
    assert audited["reduction-arithmetic"].verdict == audited["private-sums"].verdict == HOLDS


def test_diagnosis_hits_are_chance(audited):
    expected, p, chance = figures(audited, "diagnosis-hits", "expected", "p", "chance")
    assert chance == pytest.approx(13 / 144)
    assert expected == pytest.approx(126.4, abs=0.05) and p == pytest.approx(0.852124, abs=1e-5)


def test_exact_memorization_and_canaries(audited):
    p, low, high, zero = figures(audited, "exact-memorization", "p", "low", "high", "zero_high")
    assert p == pytest.approx(1) and zero == pytest.approx(0.168, abs=5e-4)
    assert (low, high) == pytest.approx((0.001265, 0.248733), abs=1e-6)
    names = ("low", "perfect", "floor_half", "floor_one")
    values = figures(audited, "canary-rate", *names)
    assert values == pytest.approx([0.818964, 0.99999, 0.701512, 0.507882], abs=1e-5)


# Risk.


def test_the_fitted_weights_give_the_printed_scores_and_the_printed_ones_do_not(audited):
    score = audited["risk-score"].figures
    assert score["weights"] == pytest.approx([0.4, 0.3, 0.1]) and score["gap"] < 0.005
    assert score["scores"][1::4] == pytest.approx([24.892857, 15.178571], abs=1e-6)
    assert audited["risk-score"].verdict == CONTRADICTS


def test_the_law_and_the_ceilings(audited):
    assert audited["eighteen"].figures["place"] == 8
    allowed = figures(audited, "recommendations", "allowed")
    assert allowed == pytest.approx([0.016497, 0.027193, 0.993329, 0.999955], abs=1e-6)
    assert audited["levels"].figures["advantage"] == pytest.approx(0.999909, abs=1e-6)
    assert audited["queries"].figures["four"] == pytest.approx(16.4812, abs=1e-4)


# Statistics.


def test_chi_squared_in_every_form(audited):
    forms = audited["chi-squared"].figures
    assert forms["pearson"] == pytest.approx(266.196454, abs=1e-5)
    assert forms["yates"] == pytest.approx(264.079592, abs=1e-5)
    assert forms["g"] == pytest.approx(337.222294, abs=1e-5)
    assert forms["from_249"] == pytest.approx(257.777833, abs=1e-5)
    assert forms["two_terms"] == pytest.approx(241.383, abs=1e-3)
    assert audited["chi-squared"].verdict == WRONG
    assert math.log10(audited["p-value"].figures["p"]) == pytest.approx(-59.1161, abs=1e-3)
    assert audited["p-value"].verdict == HOLDS


def test_effect_size(audited):
    assert figures(audited, "effect-size", "angles")[0] == pytest.approx(0.870819, abs=1e-6)
    values = figures(audited, "effect-size", "h", "h_counts")
    assert values == pytest.approx([0.750747, 0.764118], abs=1e-6)
    assert audited["effect-label"].evidence == "medium" and audited["effect-label"].verdict == CONTRADICTS


def test_intervals(audited):
    ends = {name: audited[f"interval-{name}"].figures for name in ("baseline", "private")}
    assert ends["baseline"]["wilson"] == pytest.approx([16.3486, 20.3964], abs=1e-4)
    assert ends["baseline"]["exact"] == pytest.approx([16.2934, 20.4121], abs=1e-4)
    assert ends["private"]["wilson"] == pytest.approx([0.1526, 0.8333], abs=1e-4)
    assert ends["private"]["exact"] == pytest.approx([0.1161, 0.8315], abs=1e-4)
    assert audited["interval-baseline"].verdict == HOLDS


def test_effective_attempts(audited):
    assert figures(audited, "independence", "by_record", "by_prompt") == pytest.approx([596, 128], abs=0.6)
    assert figures(audited, "overlap", "base") == pytest.approx([12.5, 25.9], abs=0.1)
    assert figures(audited, "overlap", "private")[1] == pytest.approx(3.6, abs=0.1)


def test_the_sign_of_epsilon(audited):
    values = figures(audited, "sign", "p", "p_half_ten", "p_one_ten")
    assert values == pytest.approx([0.146, 0.063, 0.041], abs=1e-3)


# Accounting.


def test_every_published_pair_gives_the_same_curve(audited):
    # The printed digits of sigma and epsilon leave that much room.
    assert figures(audited, "epsilon-source", "fits") == pytest.approx([8] * 4, abs=4e-3)
    assert audited["epsilon-source"].figures["own"] == pytest.approx(0.00667, abs=1e-5)
    expected = [0.183035, 0.183899, 0.206817, 0.264613]
    assert figures(audited, "epsilon-source", "printed") == pytest.approx(expected, abs=2e-5)


def test_true_epsilons_of_the_published_noise(audited):
    spent = figures(audited, "sigma-epsilon", "pld")
    assert spent == pytest.approx([0.0071, 0.0154, 0.0851, 0.1743], abs=2e-4)
    loop = audited["code-as-run"].figures
    assert loop["nulled"] == pytest.approx([0.0414, 0.0885, 0.4640, 0.9055], abs=6e-5)
    assert loop["replaced"] == pytest.approx([0.0887, 0.1888, 0.9898, 1.9475], abs=6e-5)


def test_the_log_of_epsilon_bends(audited):
    curve = figures(audited, "epsilon-log", "curve")
    assert curve == pytest.approx([4.0671, 5.9317, 7.4340, 8.7487, 9.9436], abs=1e-4)
    assert (np.diff(curve, n=2) < 0).all()
    assert audited["epsilon-log"].verdict == UNSUPPORTED


def test_the_search_and_its_clamps(audited):
    assert figures(audited, "calibration", "sigmas") == pytest.approx([1.1721, 0.5386, 0.5, 0.5], abs=5e-5)
    assert figures(audited, "clamp", "spent") == pytest.approx([4.159, 7.287, 11.597], abs=1e-3)
    assert audited["tolerance"].figures["over"] == 3
    shortcut = figures(audited, "printed-accountant", "ratio_2", "ratio_22", "low", "true")
    assert shortcut == pytest.approx([1.72, 61246, 1.134901, 6.267], rel=3e-3)


def test_the_noise_that_was_added(audited):
    assert audited["noise-place"].figures == pytest.approx({"formula": 0.5707, "code": 2.2829}, abs=1e-4)
    assert audited["noise-against-signal"].figures["length"] == pytest.approx(25_466, abs=1)
    empty, plain, poisson = figures(audited, "poisson", "empty", "plain", "poisson")
    assert empty == pytest.approx(0.018218, abs=1e-6) and empty * 1875 == pytest.approx(34.2, abs=0.05)
    assert (plain, poisson) == pytest.approx((11.48, 0.59), abs=0.01)
    needed, used = figures(audited, "price-of-privacy", "needed", "used")
    assert needed == pytest.approx(1.0889, rel=1e-3) and used == pytest.approx(153.36)


# Design.


def test_the_model_and_the_run(audited):
    assert audited["model"].figures == {"gpt2": 124_439_808, "distilgpt2": 81_912_576}
    assert audited["orders"].figures == {"count": 152, "last": 10.9}
    assert audited["steps"].figures["steps"] == 935
    assert figures(audited, "hours", "hours") == pytest.approx([18.0, 3.7])
    assert audited["ssn-never-leaks"].figures["could"] == pytest.approx(233.3, abs=0.1)
    assert figures(audited, "multiples", "multiples")[1] == pytest.approx(6352.6, abs=0.05)
    floors = figures(audited, "test-perplexity", "floors")
    assert 1.05 < floors[0] < floors[1] < 1.4


# The other documents.


def test_other_documents(audited):
    assert figures(audited, "order-floor", "floors") == pytest.approx([0.222831, 0.219294], abs=1e-6)
    assert figures(audited, "group-of-fifty", "delta", "tight") == pytest.approx(
        [2.782953, 0.278451], abs=1e-6
    )
    assert audited["group-of-fifty"].figures["other"] == pytest.approx(1.05e9, rel=5e-3)
    assert figures(audited, "nine-runs", "advanced", "best") == pytest.approx(
        [143.794165, 17.999969], abs=1e-5
    )
    assert figures(audited, "lecture-neyman", "threshold", "fnr") == pytest.approx(
        [-1.144854, 0.740489], abs=1e-6
    )
    assert audited["delta-one-over-n"].figures["exposed"] == pytest.approx(0.632, abs=5e-4)
    assert audited["focus-sign"].figures["spread"] == pytest.approx(-math.log(4))
    assert audited["leakage-definition"].figures["leakage"] == 0.25
    assert audited["gradient-size"].verdict == HOLDS
    assert audited["downstream"].figures["p"] == pytest.approx(0.096, abs=2e-3)
    steps = figures(audited, "twice-the-steps", "ratios")
    assert steps == pytest.approx([1.241, 1.415, 1.449, 1.457], abs=8e-3)
    less = figures(audited, "twice-the-noise", "ratios")
    assert less == pytest.approx([0.094, 0.348, 0.440, 0.461], abs=5e-3)


def test_tables_of_the_slides(audited):
    assert audited["four-anonymous"].figures == pytest.approx({"k": 4, "l": 1, "t": 7 / 12})
    assert audited["three-diverse"].figures == pytest.approx({"l": 3, "t_disease": 4 / 9, "t_salary": 0.375})
    assert audited["composition-attack"].figures == {"left": 1, "without": 3, "names": "Cancer"}


def test_the_scrubber_leaves_six_digits(audited):
    assert audited["scrubber"].figures == {"digits": 6, "tail": "]ED]111111"}
    patterns = claims.printed("textbook").patterns
    assert _others._scrub("4111111111111111", patterns) == "[CREDIT_CARD_REDACTED]ED]111111"
    assert _others._scrub("nothing here", patterns) == "nothing here"


# The files.


def test_every_claim_is_complete(every):
    assert len(every) == 120
    for row in every:
        texts = [row.claim[name] for name in ("where", "says", "published", "why")]
        for text in (*texts, row.evidence):
            assert text.strip() and len(text) <= 175, (row.id, text)
        assert row.claim["says"].endswith(".") and row.claim["why"].endswith("."), row.id
        assert (row.severity == "") == (row.verdict == HOLDS)


def test_a_recomputed_claim_stores_no_verdict_and_a_reading_cites(every):
    kinds = [row.claim["kind"] for row in every]
    assert kinds.count(claims.RECOMPUTED) >= 70
    for row in every:
        if row.claim["kind"] == claims.RECOMPUTED:
            assert "verdict" not in row.claim and row.claim["holds_if"]
            assert set(row.claim["holds_if"]) <= set(row.figures), row.id
        else:
            assert row.claim["cites"], row.id
        for work in row.claim.get("cites", []):
            if re.fullmatch(r"[a-z]+\d+\w?", work):
                assert f"{{{work}," in BIBLIOGRAPHY, (row.id, work)


def test_a_verdict_follows_what_is_printed(monkeypatch):
    """With other published data the verdicts turn: none of them is stored."""
    loaded = _documents._loaded("report")
    loaded["printed"] |= {"chi_squared": 266.2, "cohens_h": 0.81, "exact_trials": 2000}
    loaded["printed"]["risk_weights"] = {"prompt": 0.4, "membership": 0.2, "canary": 0.3, "exact": 0.1}
    ids = ("chi-squared", "effect-label", "risk-score", "exact-memorization")
    loaded["claims"] = [claim for claim in loaded["claims"] if claim["id"] in ids]
    monkeypatch.setattr(_documents, "_loaded", lambda document: loaded)
    turned = {row.id: row for row in claims.audit("report")}
    assert [turned[name].verdict for name in ids[:3]] == [HOLDS] * 3
    assert turned["exact-memorization"].figures["zero_high"] < 0.002


def test_tables_hold_every_claim_once(rows):
    topics = list(dict.fromkeys(row.claim["topic"] for row in rows))
    tables = [claims.claim_table(rows, topic) for topic in topics]
    assert sum(map(len, tables)) == len(rows) == len(claims.tidy(rows))
    assert claims.verdict_counts(rows)["claims"].sum() == len(rows)
    assert json.loads(json.dumps(claims.as_json(rows), allow_nan=False))[0]["id"] == rows[0].id


def test_a_table_of_sentences_is_plain_and_escaped():
    frame = pd.DataFrame({"a": ["<script>x</script>", "one" * 40]}, index=["<i>", "row"])
    shown = claims.TextTable(frame)._repr_html_()
    assert "<script>" not in shown and "&lt;script&gt;" in shown and "one" * 40 in shown
    assert "&lt;i&gt;" in shown and "&lt;i&gt;" not in claims.TextTable(frame, index=False)._repr_html_()
    assert "one" in repr(claims.TextTable(frame)) and len(claims.TextTable(frame)) == 2


def test_a_page_may_show_the_tables(rows):
    for topic in dict.fromkeys(row.claim["topic"] for row in rows):
        table = claims.claim_table(rows, topic)._repr_html_()
        before, after = (BeautifulSoup(html, "html.parser") for html in (table, _outputs.clean_html(table)))
        assert after.get_text() == before.get_text() and "claims" in after.table["class"]


@pytest.mark.parametrize(
    ("error", "call"),
    [
        ("document", lambda: claims.printed("newspaper")),
        ("twice", lambda: claims.audit("lecture", "lecture")),
        ("topics", lambda: claims.claim_table(claims.audit("lecture"), "leakage", "weather")),
        ("count", lambda: claims.report_names(0)),
        ("simulations", lambda: claims.simulated_leaks(None, [], [], simulations=0, seed=0)),
        ("words", lambda: claims.plain_english(words=0)),
    ],
)
def test_unknown_names_and_invalid_values_are_refused(error, call):
    with pytest.raises(InvalidParameter, match=error):
        call()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"kind": "guess"}, "kind"),
        ({"verdict": HOLDS}, "verdict"),
        ({"otherwise": "maybe"}, "unknown"),
        ({"severity": "D"}, "unknown"),
        ({"severity": ""}, "severity"),
        ({"kind": "reading"}, "cites"),
    ],
)
def test_a_claim_that_does_not_fit_is_refused(monkeypatch, change, field):
    loaded = _documents._loaded("report")
    first = loaded["claims"][0]
    monkeypatch.setattr(_documents, "_loaded", lambda document: loaded | {"claims": [first | change]})
    with pytest.raises(InvalidParameter, match=field):
        claims.audit("report")


def test_the_rooms_of_tables_and_claims_load_no_torch():
    code = "import sys, privhelpers.claims as c, privhelpers.hipaa, privhelpers.figures\n"
    code += "c.audit('lecture', 'textbook');sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
