"""The report's tests and intervals, redone; and what they take for granted."""

import math
from functools import cache
from itertools import combinations

from scipy.stats import chi2_contingency
from statsmodels.stats.proportion import proportion_confint, proportion_effectsize

from privhelpers import stats
from privhelpers.report import published
from privhelpers.report.claims import CONTRADICTS, HOLDS, UNSUPPORTED, WRONG, Finding, Topic, agrees

TOPIC = Topic("statistics", document="the report")
N = published.ATTEMPTS


@cache
def variants() -> dict[str, float]:
    """Return every usual form of the report's chi-squared statistic."""
    table = [[256, N - 256], [5, N - 5]]
    other = [[249, N - 249], [5, N - 5]]
    expected = (256 + 5) / 2
    forms = {
        "Pearson": {"correction": False},
        "Yates": {"correction": True},
        "G": {"correction": False, "lambda_": "log-likelihood"},
    }
    found = {name: float(chi2_contingency(table, **how)[0]) for name, how in forms.items()}
    found["Pearson, 249 leaks"] = float(chi2_contingency(other, correction=False)[0])
    found["two terms only"] = (256 - expected) ** 2 / expected + (5 - expected) ** 2 / expected
    return found


def effective_size(*, cluster: int, correlation: float) -> float:
    """Return how many independent attempts 1400 are worth, with clusters of this size and correlation.

    Args:
        cluster: attempts of a cluster, 1 or more.
        correlation: of two attempts in a cluster, in [0, 1].

    Source: Kish 1965, design effect 1 + (m - 1) rho.
    """
    return N / (1 + (cluster - 1) * correlation)


def effective_interval(count: int, size: float) -> stats.Interval:
    """Return Wilson's 95 % interval of a rate whose attempts are worth fewer independent ones.

    Args:
        count: leaking attempts of 1400.
        size: what `effective_size` returned; need not be whole.
    """
    low, high = proportion_confint(size * count / N, size, method="wilson")
    return stats.Interval(count / N, float(low), float(high), 0.95, f"Wilson, {size:.0f} effective")


def p_of_pairs() -> dict[tuple[float, float], float]:
    """Return Fisher's p for each pair of the private models."""
    return {
        (a, b): stats.two_proportion(published.LEAKS[a], N, published.LEAKS[b], N).fisher_p
        for a, b in combinations(published.BUDGETS, 2)
    }


@TOPIC.claim(
    "chi-squared",
    where="7.4.2, 18.1",
    says="The test statistic of 256 against 5 leaks.",
    published=f"{published.CHI_SQUARED}",
    severity="B",
)
def chi_squared() -> Finding:
    """No form of the test gives the printed statistic."""
    found = variants()
    right = any(agrees(published.CHI_SQUARED, value, 1) for value in found.values())
    text = ", ".join(f"{name} {value:.1f}" for name, value in found.items())
    return Finding(text, HOLDS if right else WRONG, "No usual form of the test gives it.", dict(found))


@TOPIC.claim(
    "p-value",
    where="7.4.2, 18.1",
    says="The difference has p < 0.0001 if the attempts are independent.",
    published="p < 0.0001",
    severity="A",
)
def p_value() -> Finding:
    """The direction is right under the stated model."""
    test = stats.two_proportion(256, N, 5, N)
    log_p = math.log10(test.chi_squared_p)
    return Finding(
        f"1e{log_p:.0f} (Fisher {test.fisher_p:.1e})",
        HOLDS if test.chi_squared_p < 1e-4 else WRONG,
        "The models write different words; that the difference is privacy is what was not tested.",
        {"log10_p": log_p, "fisher_p": test.fisher_p},
    )


@TOPIC.claim(
    "independence",
    where="6.3.2",
    says="1400 attempts are 1400 independent trials.",
    published="50 x 14 x 2 = 1,400",
    severity="A",
)
def independence() -> Finding:
    """The prompts do not depend on the record: 14 distributions, or 28 texts."""
    product = published.RECORDS * published.PROMPTS * published.TEXTS
    by_record = effective_size(cluster=published.PROMPTS * published.TEXTS, correlation=0.05)
    by_prompt = effective_size(cluster=published.RECORDS * published.TEXTS, correlation=0.1)
    return Finding(
        f"the product is {product}; worth {by_record:.0f} (correlation 0.05 in a record) "
        f"or {by_prompt:.0f} (0.1 in a prompt) independent ones",
        UNSUPPORTED,
        "The same 14 prompts are put for all 50 records; at full correlation 14 trials remain.",
        {"by_record": by_record, "by_prompt": by_prompt, "product": product},
    )


@TOPIC.claim(
    "effect-size",
    where="18.2",
    says="Cohen's h of the two rates.",
    published="0.877 - 0.120 = 0.757",
    severity="B",
)
def effect_size() -> Finding:
    """Both the first angle and the difference are off."""
    first, second = (2 * math.asin(math.sqrt(p)) for p in published.HEADLINE_RATES)
    h = float(proportion_effectsize(*published.HEADLINE_RATES))
    counts = stats.two_proportion(256, N, 5, N).cohens_h
    return Finding(
        f"{first:.3f} - {second:.3f} = {h:.3f} ({counts:.3f} from the counts)",
        HOLDS if agrees(published.COHENS_H, h, 3) else WRONG,
        "A slip in the first arcsine.",
        {"first": first, "h": h, "h_counts": counts},
    )


@TOPIC.claim(
    "effect-label",
    where="18.2",
    says="The effect is large.",
    published="large, in a table whose large starts at 0.80",
    severity="B",
)
def effect_label() -> Finding:
    """Medium by the report's own table."""
    label = stats.effect_label(published.COHENS_H)
    return Finding(
        label,
        HOLDS if label == "large" else CONTRADICTS,
        "Even the printed 0.757 is below the 0.80 of the table beside it.",
    )


@TOPIC.claim(
    "interval-baseline",
    where="7.4.1, 18.3",
    says="The 95 % interval of the baseline's rate.",
    published="[15.79, 19.79] %",
    severity="B",
)
def interval_baseline() -> Finding:
    """Right for 249, printed beside 256."""
    share = published.HEADLINE_RATES[0]
    low, high = (100 * end for end in proportion_confint(share * N, N, method="normal"))
    right = agrees(published.WALD["baseline"][0], low, 2) and agrees(published.WALD["baseline"][1], high, 2)
    score, exact = stats.wilson(256, N), stats.clopper_pearson(256, N)
    return Finding(
        f"[{low:.2f}, {high:.2f}] % for 249; "
        f"for 256 Wilson [{100 * score.low:.2f}, {100 * score.high:.2f}] %",
        HOLDS if right else WRONG,
        "Right as Wald's interval of the headline's rate, if attempts were independent.",
        {
            "wilson_low": 100 * score.low,
            "wilson_high": 100 * score.high,
            "exact_low": 100 * exact.low,
            "exact_high": 100 * exact.high,
        },
    )


@TOPIC.claim(
    "interval-private",
    where="7.4.1, 18.3",
    says="The 95 % interval of the rate at ε = 10.",
    published="[0.05, 0.67] %",
    severity="B",
)
def interval_private() -> Finding:
    """Wald's interval is no good at five hits."""
    score, exact = stats.wilson(5, N), stats.clopper_pearson(5, N)
    return Finding(
        f"Wilson [{100 * score.low:.2f}, {100 * score.high:.2f}] %, "
        f"Clopper-Pearson [{100 * exact.low:.2f}, {100 * exact.high:.2f}] %",
        WRONG,
        "With five hits Wald's interval lies too low at both ends; the right ones lean upward.",
        {
            "wilson_low": 100 * score.low,
            "wilson_high": 100 * score.high,
            "exact_low": 100 * exact.low,
            "exact_high": 100 * exact.high,
        },
    )


@TOPIC.claim(
    "sign",
    where="7.1, 9.1",
    says="A smaller budget brings little more privacy.",
    published="1.00 % at 0.5 against 0.36 % at 10",
    severity="A",
)
def sign() -> Finding:
    """Leakage rises where the theory says that it falls, within chance."""
    table = [[published.LEAKS[b], N - published.LEAKS[b]] for b in published.BUDGETS]
    p = float(chi2_contingency(table, correction=False)[1])
    pairs = p_of_pairs()
    rises = published.LEAKS[0.5] > published.LEAKS[10.0]
    return Finding(
        f"all four: p = {p:.2f}; 0.5 against 10: p = {pairs[0.5, 10.0]:.3f}",
        UNSUPPORTED if rises or p > 0.05 else HOLDS,
        "The most noise shows the most leaks: the wrong sign, and no more than chance.",
        {"p_four": p, "p_half_ten": pairs[0.5, 10.0], "p_one_ten": pairs[1.0, 10.0]},
    )


@TOPIC.claim(
    "overlap",
    where="18.3",
    says="Intervals that do not overlap show that private training protects.",
    published="strong evidence",
    severity="A",
)
def overlap() -> Finding:
    """Against the right comparison there is an overlap."""
    n = effective_size(cluster=published.RECORDS * published.TEXTS, correlation=0.1)
    ends = {}
    for name, model in (("base", "baseline"), ("private", 10.0)):
        found = effective_interval(published.LEAKS[model], n)
        ends |= {f"{name}_low": 100 * found.low, f"{name}_high": 100 * found.high}
    return Finding(
        f"with {n:.0f} effective trials [{ends['base_low']:.1f}, {ends['base_high']:.1f}] % and "
        f"[{ends['private_low']:.2f}, {ends['private_high']:.1f}] %",
        UNSUPPORTED,
        "They stay apart from each other, and neither is apart from its own null: that test is missing.",
        {"n": n, **ends},
    )
