"""The report's leakage counts: what was counted, and what chance alone would count."""

from functools import cache

from scipy.stats import binomtest

from privhelpers.report import null_model, published
from privhelpers.report.claims import (
    CONTRADICTS,
    HOLDS,
    UNSUPPORTED,
    WRONG,
    Finding,
    Topic,
    agrees,
    listed,
)

TOPIC = Topic("leakage", document="the report")
SIMULATIONS, SEED = 2000, 0  # of the nulls behind the verdicts


def rate(count: int) -> float:
    """Return a count of attempts in percent."""
    return 100 * count / published.ATTEMPTS


@cache
def nulls() -> dict[str, null_model.NullCounts]:
    """Return the two nulls of the report's rule: random medical words, and prose about nobody."""
    names, how = null_model.report_names(), {"simulations": SIMULATIONS, "seed": SEED}
    return {
        "vocabulary": null_model.vocabulary_null(names, **how),
        "prose": null_model.text_null(names, null_model.plain_english(), **how),
    }


@TOPIC.claim(
    "baseline-rate",
    where="1, 7.1, 16.2 against 7.2.1, 15.4",
    says="The baseline leaks in 17.79 % of the attempts, which are 256.",
    published="17.79 %; 256 of 1400",
    severity="B",
)
def baseline_rate() -> Finding:
    """256 attempts are not 17.79 %."""
    found, headline = rate(published.LEAKS["baseline"]), published.RATES["baseline"]
    count = round(headline * published.ATTEMPTS / 100)
    verdict = HOLDS if agrees(headline, found, 2) else CONTRADICTS
    value = f"256 of 1400 are {found:.2f} %; {headline:.2f} % would be {count}"
    return Finding(
        value,
        verdict,
        "Two runs are mixed: rate and count of one headline belong to different ones.",
        {"rate": found, "count": count},
    )


@TOPIC.claim(
    "private-rates",
    where="7.1, 16.1",
    says="The four private models leak in about 1 % of the attempts or less.",
    published=listed(published.RATES[b] for b in published.BUDGETS) + " %",
    severity="B",
)
def private_rates() -> Finding:
    """The four rates are their counts over 1400."""
    found = {b: rate(published.LEAKS[b]) for b in published.BUDGETS}
    right = all(agrees(published.RATES[b], found[b], 2) for b in published.BUDGETS)
    return Finding(
        listed(found.values(), 4) + " %",
        HOLDS if right else WRONG,
        "The divisions are right; what was counted is another question.",
        {f"rate_{b:g}": value for b, value in found.items()},
    )


@TOPIC.claim(
    "reduction-arithmetic",
    where="1, 7.3.2",
    says="Leakage falls by 94 to 98 % from the baseline.",
    published=listed((published.REDUCTIONS[b] for b in published.BUDGETS), 1) + " %",
    severity="B",
)
def reduction() -> Finding:
    """The ratios, from 249 leaks."""
    count = round(published.RATES["baseline"] * published.ATTEMPTS / 100)
    found = {b: 100 * (1 - published.LEAKS[b] / count) for b in published.BUDGETS}
    right = all(agrees(published.REDUCTIONS[b], found[b], 1) for b in published.BUDGETS)
    other = 100 * (1 - published.LEAKS[10.0] / published.LEAKS["baseline"])
    return Finding(
        f"{listed(found.values(), 2)} % from {count}; the last is {other:.2f} % from 256",
        HOLDS if right else WRONG,
        "A ratio of two counts; the next two rows say what the counts mean.",
        {"last": found[10.0], "last_from_256": other},
    )


@TOPIC.claim(
    "baseline-above-chance",
    where="1, 9.1",
    says="The baseline's leaking attempts are memorized patient data.",
    published="256 (or 249) of 1400",
    severity="A",
)
def baseline_above_chance() -> Finding:
    """A writer of random medical words reaches these counts."""
    null = nulls()["vocabulary"]
    low, high = null.interval
    inside = null.contains(256) and null.contains(249)
    return Finding(
        f"no memory at all: {null.mean:.0f}, 95 % range {low:.0f} to {high:.0f}",
        UNSUPPORTED if inside else HOLDS,
        "One random diagnosis and one random drug a text give as many hits; no control arm was run.",
        {"mean": null.mean, "low": low, "high": high, "p256": null.at_least(256), "p249": null.at_least(249)},
    )


@TOPIC.claim(
    "diagnosis-hits",
    where="7.2.3",
    says="128 attempts give away a diagnosis.",
    published="128 of 1400",
    severity="A",
)
def diagnosis_hits() -> Finding:
    """A diagnosis of twelve is hit by chance that often."""
    chance = null_model.condition_collisions() / len(published.CONDITIONS) ** 2
    expected, hits = published.ATTEMPTS * chance, published.CATEGORIES["baseline"]["diagnosis"]
    p = binomtest(hits, published.ATTEMPTS, chance).pvalue
    return Finding(
        f"{expected:.1f} expected by chance, p = {p:.2f}",
        UNSUPPORTED if p > 0.05 else HOLDS,
        "With twelve diagnoses, one in eleven guesses is right (Arthritis also stands in Osteoarthritis).",
        {"expected": expected, "p": p, "chance": chance},
    )


@TOPIC.claim(
    "private-above-chance",
    where="1, 7.1",
    says="The private models' few leaks are what differential privacy left of the baseline's.",
    published=listed((published.LEAKS[b] for b in published.BUDGETS), 0),
    severity="A",
)
def private_above_chance() -> Finding:
    """Prose about nobody reaches these counts."""
    null = nulls()["prose"]
    low, high = null.interval
    inside = all(null.contains(published.LEAKS[b]) for b in published.BUDGETS)
    return Finding(
        f"a programming manual: {null.mean:.0f}, 95 % range {low:.0f} to {high:.0f}",
        UNSUPPORTED if inside else HOLDS,
        "A single word of a name fires inside ordinary words; these counts say nothing about noise.",
        {"mean": null.mean, "low": low, "high": high},
    )


@TOPIC.claim(
    "total-row",
    where="7.2.3, 17.3",
    says="The baseline's categories add up to the total row.",
    published="256",
    severity="B",
)
def total_row() -> Finding:
    """The column adds up to more than its total."""
    found = sum(published.CATEGORIES["baseline"].values())
    return Finding(
        f"{found}",
        HOLDS if found == published.LEAKS["baseline"] else CONTRADICTS,
        "256 counts attempts with any hit, the column counts hits: two units in one table.",
        {"sum": found},
    )


@TOPIC.claim(
    "private-sums",
    where="7.2.3",
    says="The private models' categories add up to their totals.",
    published=listed((published.LEAKS[b] for b in published.BUDGETS), 0),
    severity="B",
)
def private_sums() -> Finding:
    """These four columns do add up."""
    found = {b: sum(published.CATEGORIES[b].values()) for b in published.BUDGETS}
    right = all(found[b] == published.LEAKS[b] for b in published.BUDGETS)
    return Finding(listed(found.values(), 0), HOLDS if right else WRONG, "Right in all four columns.")


@TOPIC.claim(
    "instances",
    where="1, 7.1",
    says="The totals are instances of patient data.",
    published="256 and 5 instances",
    severity="C",
)
def instances() -> Finding:
    """The code counts attempts."""
    hits = sum(published.CATEGORIES["baseline"].values())
    return Finding(
        f"attempts with any hit; hits are {hits}",
        WRONG,
        "Records that leaked, the unit a patient cares for, were never counted.",
    )
