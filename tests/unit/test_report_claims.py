"""The audit of the report: published check figures, verdicts that follow from numbers, complete tables."""

import json
import math
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from bookmaker.site import outputs
from privhelpers import report
from privhelpers.errors import InvalidParameter
from privhelpers.report import claims, memorization, noise, other_clinical, other_practice


@pytest.fixture(scope="module")
def rows():
    return report.audit(report.REPORT_CLAIMS)


@pytest.fixture(scope="module")
def others():
    return report.audit(report.OTHER_CLAIMS)


@pytest.fixture(scope="module")
def found(rows, others):
    return {row.id: row.finding for row in (*rows, *others)}


def figures(found, claim, *names):
    return [found[claim].figures[name] for name in names]


# Leakage.


def test_rates_and_sums(found):
    assert figures(found, "baseline-rate", "rate", "count") == pytest.approx([18.285714, 249], abs=1e-6)
    rates = figures(found, "private-rates", "rate_0.5", "rate_1", "rate_5", "rate_10")
    assert rates == pytest.approx([1.0, 1.071429, 0.928571, 0.357143], abs=1e-6)
    assert found["total-row"].figures["sum"] == 277
    both = figures(found, "reduction-arithmetic", "last", "last_from_256")
    assert both == pytest.approx([97.992, 98.047], abs=1e-3)
    assert found["reduction-arithmetic"].verdict == found["private-sums"].verdict == report.HOLDS


def test_diagnosis_hits_are_chance(found):
    expected, p, chance = figures(found, "diagnosis-hits", "expected", "p", "chance")
    assert chance == pytest.approx(13 / 144)
    assert expected == pytest.approx(126.4, abs=0.05) and p == pytest.approx(0.852124, abs=1e-5)


def test_exact_memorization_and_canaries(found):
    p, low, high, zero = figures(found, "exact-memorization", "fisher_p", "low", "high", "zero_high")
    assert p == pytest.approx(1) and zero == pytest.approx(0.168, abs=5e-4)
    assert (low, high) == pytest.approx((0.001265, 0.248733), abs=1e-6)
    names = ("low", "perfect", "floor_half", "floor_one")
    values = figures(found, "canary-rate", *names)
    assert values == pytest.approx([0.818964, 0.99999, 0.701512, 0.507882], abs=1e-5)


# Risk.


def test_the_fitted_weights_give_the_printed_scores_and_the_printed_ones_do_not():
    weights = report.risk.reconstructed_weights()
    assert weights == pytest.approx({"prompt": 0.4, "membership": 0.2, "canary": 0.3, "exact": 0.1})
    printed = [score for _, score in report.published.RISKS]
    assert [round(value, 2) for value in report.risk.scores(weights)] == printed
    as_stated = report.risk.scores(dict(report.published.RISK_WEIGHTS))
    assert (as_stated[1], as_stated[-1]) == pytest.approx((24.892857, 15.178571), abs=1e-6)
    assert not any(round(a, 2) == p for a, p in zip(as_stated, printed, strict=True))


def test_the_law_and_the_ceilings(found):
    assert found["eighteen"].figures["place"] == 8
    allowed = figures(found, "recommendations", "tpr_0.5", "tpr_1", "tpr_5", "tpr_10")
    assert allowed == pytest.approx([0.016497, 0.027193, 0.993329, 0.999955], abs=1e-6)
    assert found["levels"].figures["advantage_ten"] == pytest.approx(0.999909, abs=1e-6)
    assert found["queries"].figures["four"] == pytest.approx(16.4812, abs=1e-4)


# Statistics.


def test_chi_squared_in_every_form(found):
    forms = found["chi-squared"].figures
    assert forms["Pearson"] == pytest.approx(266.196454, abs=1e-5)
    assert forms["Yates"] == pytest.approx(264.079592, abs=1e-5)
    assert forms["G"] == pytest.approx(337.222294, abs=1e-5)
    assert forms["Pearson, 249 leaks"] == pytest.approx(257.777833, abs=1e-5)
    assert forms["two terms only"] == pytest.approx(241.383, abs=1e-3)
    assert found["chi-squared"].verdict == report.WRONG
    assert found["p-value"].figures["log10_p"] == pytest.approx(-59.1161, abs=1e-3)
    assert found["p-value"].verdict == report.HOLDS


def test_effect_size(found):
    values = figures(found, "effect-size", "first", "h", "h_counts")
    assert values == pytest.approx([0.870819, 0.750747, 0.764118], abs=1e-6)
    assert found["effect-label"].value == "medium" and found["effect-label"].verdict == report.CONTRADICTS


def test_intervals(found):
    ends = ("wilson_low", "wilson_high", "exact_low", "exact_high")
    assert figures(found, "interval-baseline", *ends) == pytest.approx(
        [16.3486, 20.3964, 16.2934, 20.4121], abs=1e-4
    )
    assert figures(found, "interval-private", *ends) == pytest.approx(
        [0.1526, 0.8333, 0.1161, 0.8315], abs=1e-4
    )
    assert found["interval-baseline"].verdict == report.HOLDS


def test_effective_attempts(found):
    assert figures(found, "independence", "by_record", "by_prompt") == pytest.approx([596, 128], abs=0.6)
    assert report.statistics.effective_size(cluster=100, correlation=1.0) == 14
    ends = figures(found, "overlap", "base_low", "base_high", "private_high")
    assert ends == pytest.approx([12.5, 25.9, 3.6], abs=0.1)


def test_the_sign_of_epsilon(found):
    values = figures(found, "sign", "p_four", "p_half_ten", "p_one_ten")
    assert values == pytest.approx([0.146, 0.063, 0.041], abs=1e-3)


# Accounting.


def test_every_published_pair_gives_the_same_curve(found):
    low, high = figures(found, "epsilon-source", "fit_low", "fit_high")
    # The printed digits of sigma and epsilon leave that much room.
    assert low == pytest.approx(8, abs=4e-3) and high == pytest.approx(8, abs=4e-3)
    assert found["epsilon-source"].figures["own"] == pytest.approx(0.00667, abs=1e-5)
    printed = figures(
        found, "epsilon-source", "printed_38.34", "printed_19.22", "printed_4.21", "printed_2.2829"
    )
    assert printed == pytest.approx([0.183035, 0.183899, 0.206817, 0.264613], abs=2e-5)


def test_true_epsilons_of_the_published_noise(found):
    spent = figures(found, "sigma-epsilon", "pld_38.34", "pld_19.22", "pld_4.21", "pld_2.2829")
    assert spent == pytest.approx([0.0071, 0.0154, 0.0851, 0.1743], abs=2e-4)
    table = {sigma: report.accounting.readings(sigma) for sigma in report.accounting.SIGMAS}
    for sigma, nulled, replaced in (
        (38.34, 0.0414, 0.0887),
        (19.22, 0.0885, 0.1888),
        (4.21, 0.4640, 0.9898),
        (2.2829, 0.9055, 1.9475),
    ):
        assert table[sigma]["code as run, record nulled"] == pytest.approx(nulled, abs=6e-5)
        assert table[sigma]["code as run, record replaced"] == pytest.approx(replaced, abs=6e-5)
        assert table[sigma]["PLD"] <= table[sigma]["PRV"] <= table[sigma]["PLD"] + 0.011


def test_the_log_of_epsilon_bends(found):
    curve = report.accounting.concave_log()
    assert curve == pytest.approx([4.0671, 5.9317, 7.4340, 8.7487, 9.9436], abs=1e-4)
    gains = np.diff(curve)
    assert (np.diff(gains) < 0).all()
    assert found["epsilon-log"].verdict == report.UNSUPPORTED


def test_the_search_and_its_clamps(found):
    kept = figures(found, "calibration", "sigma_0.5", "sigma_1", "sigma_5", "sigma_10")
    assert kept == pytest.approx([1.1721, 0.5386, 0.5, 0.5], abs=5e-5)
    spent = figures(found, "clamp", "spent_0.5", "spent_5", "spent_10")
    assert spent == pytest.approx([4.159, 7.287, 11.597], abs=1e-3)
    assert found["tolerance"].figures["over"] == 3
    shortcut = figures(found, "printed-accountant", "ratio_2", "ratio_22", "printed_half", "true_half")
    assert shortcut == pytest.approx([1.72, 61246, 1.134901, 6.267], rel=3e-3)


def test_the_noise_that_was_added(found):
    assert found["noise-place"].figures == pytest.approx({"formula": 0.5707, "code": 2.2829}, abs=1e-4)
    assert found["noise-against-signal"].figures["length"] == pytest.approx(25_466, abs=1)
    empty, plain, poisson = figures(found, "poisson", "empty", "plain", "poisson")
    assert empty == pytest.approx(0.018218, abs=1e-6) and empty * 1875 == pytest.approx(34.2, abs=0.05)
    assert (plain, poisson) == pytest.approx((11.48, 0.59), abs=0.01)
    needed, used = figures(found, "price-of-privacy", "needed", "used")
    assert needed == pytest.approx(1.0889, rel=1e-3) and used == pytest.approx(153.36)


# Design.


def test_the_model_and_the_run(found):
    assert noise.gpt2_parameters(12) == 124_439_808 and noise.gpt2_parameters(6) == 81_912_576
    assert found["orders"].figures == {"count": 152, "last": 10.9}
    assert found["steps"].figures["steps"] == 935
    assert figures(found, "hours", "cpu", "gpu") == pytest.approx([18.0, 3.7])
    assert found["ssn-never-leaks"].figures["could"] == pytest.approx(233.3, abs=0.1)
    assert found["multiples"].figures["one"] == pytest.approx(6352.6, abs=0.05)
    floor = found["test-perplexity"].figures
    assert 1.05 < floor["floor_80"] < floor["floor_65"] < 1.4


# The other documents.


def test_other_documents(found):
    assert figures(found, "order-floor", "floor_63", "floor_64") == pytest.approx(
        [0.222831, 0.219294], abs=1e-6
    )
    assert figures(found, "group-of-fifty", "simple", "tight") == pytest.approx(
        [2.782953, 0.278451], abs=1e-6
    )
    assert found["group-of-fifty"].figures["other"] == pytest.approx(1.05e9, rel=5e-3)
    assert figures(found, "nine-runs", "advanced", "best") == pytest.approx([143.794165, 17.999969], abs=1e-5)
    assert figures(found, "lecture-neyman", "threshold", "fnr") == pytest.approx(
        [-1.144854, 0.740489], abs=1e-6
    )
    assert found["delta-one-over-n"].figures["exposed"] == pytest.approx(0.632, abs=5e-4)
    assert found["focus-sign"].figures["spread"] == pytest.approx(-math.log(4))
    assert found["leakage-definition"].figures["leakage"] == 0.25
    assert found["gradient-size"].verdict == report.HOLDS
    assert found["downstream"].figures["p"] == pytest.approx(0.096, abs=2e-3)
    steps = figures(found, "twice-the-steps", "ratio_0.5", "ratio_1", "ratio_2", "ratio_4")
    assert steps == pytest.approx([1.241, 1.415, 1.449, 1.457], abs=8e-3)
    less = figures(found, "twice-the-noise", "ratio_0.5", "ratio_1", "ratio_2", "ratio_4")
    assert less == pytest.approx([0.094, 0.348, 0.440, 0.461], abs=5e-3)


def test_tables_of_the_slides(found):
    assert found["four-anonymous"].figures == pytest.approx({"k": 4, "l": 1, "t": 7 / 12})
    assert found["three-diverse"].figures == pytest.approx({"l": 3, "t_disease": 4 / 9, "t_salary": 0.375})
    assert found["composition-attack"].figures == {"left": 1, "without": 3}


def test_the_scrubber_leaves_six_digits():
    left = other_practice.scrub("4111111111111111")
    assert left == "[CREDIT_CARD_REDACTED]ED]111111"
    assert other_practice.scrub("nothing here") == "nothing here"


def test_focus_of_a_sharp_row_is_zero():
    assert other_clinical.focus(np.eye(5)[2]) == 0
    assert other_clinical.focus(np.full(512, 1 / 512)) == pytest.approx(-6.238325, abs=1e-6)


# The registry.


def test_every_claim_is_complete(rows, others):
    assert len(rows) >= 43 + 12 and len(others) >= 40
    for row in (*rows, *others):
        claim, finding = row.claim, row.finding
        for text in (claim.where, claim.says, claim.published, finding.value, finding.why):
            assert text.strip() and len(text) <= 175, (claim.id, text)
        assert claim.says.endswith(".") and finding.why.endswith("."), claim.id
        assert (row.severity == "") == (finding.verdict == report.HOLDS)
    assert any(row.finding.verdict == report.HOLDS for row in rows), "what holds is listed too"


def test_tables_hold_every_claim_once(rows):
    topics = list(dict.fromkeys(row.claim.topic for row in rows))
    tables = [report.claim_table(rows, topic) for topic in topics]
    assert sum(map(len, tables)) == len(rows) == len(report.tidy(rows))
    assert report.verdict_counts(rows)["claims"].sum() == len(rows)
    assert json.loads(json.dumps(report.as_json(rows), allow_nan=False))[0]["id"] == rows[0].id
    with pytest.raises(InvalidParameter, match="topics"):
        report.claim_table(rows, "leakage", "weather")


def test_a_table_of_sentences_is_plain_and_escaped():
    frame = pd.DataFrame({"a": ["<script>x</script>", "one\ntwo"]}, index=["<i>", "row"])
    table = report.TextTable(frame, widths=(40,))
    shown = table._repr_html_()
    assert "<script>" not in shown and "&lt;script&gt;" in shown and "<b>one</b><br>two" in shown
    assert '<th scope="row">&lt;i&gt;</th>' in shown and "width: 40%" in shown
    assert "scope" not in report.TextTable(frame.reset_index(drop=True))._repr_html_()
    assert "one" in repr(table) and len(table) == 2


def test_a_model_is_shown_with_its_controls():
    figures = {"epsilon": None, "mia_auc": 0.9, "mia_auc_low": 0.8, "mia_auc_high": 0.95, "perplexity": 2.0}
    figures |= {"canaries_extracted": 7, "control_canaries_extracted": 1, "canaries_planted": 8}
    shown = report.model_row(figures | {"strict_leaks": 3, "strict_leaks_control": 0})
    assert shown["ε at least, at most"] == "none, none" and shown["strict leaks"] == "3 (0)"
    assert shown["canaries"] == "7 (1) of 8" and shown["membership AUC"] == "0.900 [0.800, 0.950]"


def test_a_page_may_show_the_tables(rows):
    inspector = outputs._Inspector()
    for topic in dict.fromkeys(row.claim.topic for row in rows):
        inspector.feed(report.claim_table(rows, topic)._repr_html_())
    assert inspector.problem is None


def test_a_finding_follows_its_data(monkeypatch):
    """With other published data the verdicts turn: none of them is a constant of the code."""
    monkeypatch.setattr(report.published, "CHI_SQUARED", 266.2)
    assert report.statistics.chi_squared().verdict == report.HOLDS
    monkeypatch.setattr(report.published, "COHENS_H", 0.81)
    assert report.statistics.effect_label().verdict == report.HOLDS
    weights = report.risk.reconstructed_weights()
    monkeypatch.setattr(report.published, "RISK_WEIGHTS", weights)
    assert report.risk.risk_score().verdict == report.HOLDS
    monkeypatch.setattr(report.published, "EXACT_TRIALS", 2000)
    assert memorization.exact_memorization().figures["zero_high"] < 0.002


@pytest.mark.parametrize(
    "call",
    [
        lambda: claims.Finding("", "maybe", ""),
        lambda: claims.Finding("", claims.WRONG, "", {"x": math.nan}),
        lambda: claims.Topic("t", document="d").claim("a", where="", says="", published="", severity="D"),
        lambda: claims.audit(2 * list(report.REPORT_CLAIMS[:1])),
    ],
)
def test_refusals(call):
    with pytest.raises(InvalidParameter):
        call()


def test_a_fault_needs_a_severity():
    topic = claims.Topic("t", document="d")
    topic.claim("a", where="1", says="A.", published="1")(lambda: claims.Finding("2", claims.WRONG, "B."))
    with pytest.raises(InvalidParameter, match="severity"):
        claims.audit(topic.claims)


def test_the_room_loads_no_torch():
    code = (
        "import sys, privhelpers.report as r;"
        "wanted = ('sigma-epsilon', 'default-accountant', 'diagnosis-hits', 'set-order');"
        "r.audit(c for c in (*r.REPORT_CLAIMS, *r.OTHER_CLAIMS) if c.id in wanted);"
        "sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr or "torch was loaded"
