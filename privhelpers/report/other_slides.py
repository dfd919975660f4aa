"""Claims of a slide deck on private machine learning."""

import math

import numpy as np
from scipy.stats import laplace as noise

from privhelpers import anonymity, mechanisms
from privhelpers.anonymity import tables
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

TOPIC = Topic("slides", document="the slide deck")
_QUASI = ["age", "gender", "zip_code", "nationality"]
_VISIBLE = ["zip_code", "age"]
_BOB = {"gender": "M", "age": 25, "zip_code": "30602"}


@TOPIC.claim("four-anonymous", where="k-anonymity", says="The table is 4-anonymous.", published="k = 4")
def four_anonymous() -> Finding:
    """It is, and it is no more than that."""
    table = tables.four_anonymous()
    k = anonymity.k_anonymity(table, _QUASI)
    diverse = anonymity.distinct_l_diversity(table, _QUASI, "condition")
    t = anonymity.t_closeness(table, _QUASI, "condition")
    return Finding(
        f"k = {k}; {diverse}-diverse; t = {t:.4f}",
        HOLDS if k == 4 else WRONG,
        "One class has a single disease: whoever is known to be in it has it.",
        {"k": k, "l": diverse, "t": t},
    )


@TOPIC.claim("three-diverse", where="l-diversity", says="The table is 3-diverse.", published="l = 3")
def three_diverse() -> Finding:
    """It is, and the values are alike."""
    table = tables.three_diverse()
    report = anonymity.class_report(table, _VISIBLE, "disease")
    salary = anonymity.class_report(table, _VISIBLE, "salary", order=sorted(table["salary"]))
    diverse = int(report["distinct_l"].min())
    return Finding(
        f"l = {diverse}; t of the disease {report['t'].max():.4f}, of the salary {salary['t'].max():.4f}",
        HOLDS if diverse == 3 else WRONG,
        "Three diseases of the stomach are three values: the similarity attack works.",
        {"l": diverse, "t_disease": report["t"].max(), "t_salary": salary["t"].max()},
    )


@TOPIC.claim(
    "composition-attack",
    where="composition attack",
    says="Two anonymous releases together give one disease.",
    published="cancer",
    severity="C",
)
def composition_attack() -> Finding:
    """They do, if more is known than the slide states."""
    both = list(tables.hospitals())
    found = anonymity.composition(both, "condition", _BOB)
    without = anonymity.composition(both, "condition", {k: v for k, v in _BOB.items() if k != "gender"})
    return Finding(
        f"{len(found)} disease left; {len(without)} without knowing the sex",
        HOLDS if found == {"Cancer"} else WRONG,
        "The attacker must know sex, age and both hospitals, which the slide leaves out.",
        {"left": len(found), "without": len(without)},
    )


@TOPIC.claim(
    "deterministic",
    where="intuition of DP",
    says="A deterministic answer has some probability other than 1 under the data it came from.",
    published="P(M(D₁) = r) ≠ 1",
    severity="C",
)
def deterministic() -> Finding:
    """It is 1."""
    scores = np.array([90, 80, 80, 30])
    answers = {float(scores.mean()) for _ in range(20)}
    return Finding(
        f"{len(answers)} answer in 20 calls: probability 1", WRONG, "A misprint that turns the point around."
    )


@TOPIC.claim(
    "posterior",
    where="example 2",
    says="The attacker's belief that David is in has the likelihood without David on top.",
    published="numerator with D₂; D₁ holds David",
    severity="B",
)
def posterior() -> Finding:
    """The printed formula gives the belief in the other data set."""
    answer, scale = 71.0, 5.0
    with_david, without = (math.exp(-abs(answer - mean) / scale) for mean in (70.0, 85.0))
    right, printed = with_david / (with_david + without), without / (with_david + without)
    return Finding(
        f"for a noisy answer of 71 the belief is {right:.2f}, the formula says {printed:.2f}",
        WRONG,
        "The page that should build intuition points to the wrong person.",
        {"right": right, "printed": printed},
    )


@TOPIC.claim(
    "averages", where="examples 1 and 2", says="The class averages.", published="83.3, 70, 85", severity="B"
)
def averages() -> Finding:
    """They are right."""
    known = [90, 80, 80]
    found = [np.mean(known), np.mean([*known, 30]), np.mean([*known, 90])]
    right = all(agrees(p, f, 1) for p, f in zip((83.3, 70, 85), found, strict=True))
    return Finding(listed(found, 1), HOLDS if right else WRONG, "The arithmetic holds.")


@TOPIC.claim(
    "neighbors",
    where="neighboring databases",
    says="Neighbors differ in at most one row, that is, in exactly one.",
    published="at most one; = 1",
    severity="C",
)
def neighbors() -> Finding:
    """At most is not exactly, and later slides replace a row."""
    first, second = {1, 2, 3}, {1, 2, 4}
    return Finding(
        f"equal data differ in {len(first ^ first)} rows, replacing one changes {len(first ^ second)}",
        CONTRADICTS,
        "Every sensitivity depends on which relation is meant.",
    )


@TOPIC.claim(
    "postprocessing",
    where="post-processing",
    says="Processing cannot make an output more or less private.",
    published="neither more nor less",
    severity="C",
)
def postprocessing() -> Finding:
    """It can make it more private."""
    constant = mechanisms.largest_advantage(epsilon=0.0)
    return Finding(
        f"a constant function of the output leaves an advantage of {constant:.0f}",
        WRONG,
        "It cannot make it less private; throwing information away makes it more so.",
    )


@TOPIC.claim(
    "sequential",
    where="sequential composition",
    says="The proof covers composition.",
    published="independent, discrete",
    severity="C",
)
def sequential() -> Finding:
    """It covers independent mechanisms with discrete outputs."""
    return Finding(
        "no adaptive choice, no densities",
        UNSUPPORTED,
        "Training is adaptive: each step depends on the last.",
    )


@TOPIC.claim(
    "laplace",
    where="Laplace distribution, group privacy",
    says="Density, variance, tail and sliding of Laplace noise; k persons have kε.",
    published="2λ²; exp(-t/λ); kε",
)
def laplace() -> Finding:
    """All right for location 0 and shifts of either sign by their size."""
    scale, t = 2.0, 3.0
    right = np.isclose(noise(scale=scale).var(), 2 * scale**2)
    right &= np.isclose(2 * noise(scale=scale).sf(t), math.exp(-t / scale))
    group = mechanisms.group_privacy(epsilon=1.0, size=3).epsilon
    return Finding(
        f"variance {noise(scale=scale).var():.0f} at λ = 2; three persons {group:.0f}",
        HOLDS if right and group == 3 else WRONG,
        "Right, and kept in this book.",
    )


@TOPIC.claim(
    "clipped-sensitivity",
    where="DP-SGD",
    says="The clipped gradient has sensitivity C.",
    published="C",
    severity="C",
)
def clipped_sensitivity() -> Finding:
    """C or 2C, by the relation."""
    found = {r: _clipped(r) for r in mechanisms.RELATIONS}
    text = ", ".join(f"{v:.0f}C for {r}" for r, v in found.items())
    return Finding(text, UNSUPPORTED, "The relation must be named, or ε is off by two.", found)


def _clipped(relation: str) -> float:
    """Return how far one unit moves a sum of vectors of norm 1 or less, on a line."""
    return 2.0 if relation == "replacement" else 1.0


@TOPIC.claim(
    "netflix",
    where="Netflix prize",
    says="48,000 users gave ratings such as 7 and 9.",
    published="48,000; 7 and 9",
    severity="C",
)
def netflix() -> Finding:
    """The prize data had about 480,000 users and five stars (from the literature)."""
    users, highest = 480_189, 5
    return Finding(
        f"{users:,} users; ratings up to {highest}",
        WRONG,
        "Off by a factor of ten; from the literature, not measured here.",
        {"users": users, "highest": highest},
    )


@TOPIC.claim(
    "opacus-listing",
    where="Opacus",
    says="The listing trains a private network with ε = 50.",
    published="ε = 50",
    severity="B",
)
def opacus_listing() -> Finding:
    """The listing leaves names undefined, and the budget allows everything."""
    allowed = mechanisms.largest_tpr(fpr=0.01, epsilon=50.0, delta=1e-5)
    return Finding(
        f"allows {100 * allowed:.0f} % of members to be caught at 1 % false positives",
        UNSUPPORTED,
        "A factor of e^50 is no protection; batch norm is found but not replaced.",
        {"allowed": allowed},
    )


@TOPIC.claim(
    "pair-privacy",
    where="related notions",
    says="The older notion is called (α, β)-privacy.",
    published="(α, β)",
    severity="C",
)
def pair_privacy() -> Finding:
    """The literature says (rho 1, rho 2)."""
    return Finding("(ρ₁, ρ₂)-privacy", WRONG, "A reader will not find it under the printed name.")
