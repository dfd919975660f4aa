"""The report's risk score, and what it concludes for hospitals and for the law."""

import numpy as np

from privhelpers import mechanisms
from privhelpers.report import published
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

TOPIC = Topic("risk and law", document="the report")


def score(leaks: int, exact: float, weights: dict[str, float]) -> float:
    """Return the weighted score of a model in percent."""
    rates = {
        "prompt": 100 * leaks / published.ATTEMPTS,
        "membership": published.MEMBERSHIP_RATE,
        "canary": published.CANARY_RATE,
        "exact": exact,
    }
    return sum(weights[name] * rates[name] for name in weights)


def exact_rate(leaks: int) -> float:
    """Return the printed rate of exact memorization of the model with this count, in percent."""
    return published.EXACT_RATES["baseline" if leaks > 100 else "DP"]


def reconstructed_weights(step: float = 0.05) -> dict[str, float]:
    """Return the weights on a grid that fit the printed scores best.

    The membership rate is 0 for every model, so its weight cannot be found; it gets what is missing to 1.

    Args:
        step: of the grid, in (0, 1).
    """
    grid = np.arange(0, 1 + step / 2, step)
    prompt, canary, exact = np.meshgrid(grid, grid, grid, indexing="ij")
    error = np.zeros_like(prompt)
    for leaks, printed in published.RISKS:
        fitted = prompt * 100 * leaks / published.ATTEMPTS + canary * published.CANARY_RATE
        error += (fitted + exact * exact_rate(leaks) - printed) ** 2
    best = np.unravel_index(np.argmin(error), error.shape)
    found = {"prompt": float(prompt[best]), "canary": float(canary[best]), "exact": float(exact[best])}
    return {**found, "membership": round(1 - sum(found.values()), 10)}


def parts(weights: dict[str, float]) -> dict[str, list[float]]:
    """Return what each attack adds to the score of each printed model, in percent points."""
    alone = {name: {other: weights[other] if other == name else 0.0 for other in weights} for name in weights}
    shown = {"prompts": "prompt", "canaries": "canary", "exact memory": "exact"}
    return {label: scores(alone[name]) for label, name in shown.items()}


def scores(weights: dict[str, float]) -> list[float]:
    """Return the score of each printed model under these weights, in percent."""
    return [score(leaks, exact_rate(leaks), weights) for leaks, _ in published.RISKS]


@TOPIC.claim(
    "risk-score",
    where="5.4.3 against 7.1",
    says="The risk is 0.50 prompt + 0.20 membership + 0.15 canary + 0.15 exact.",
    published=listed(printed for _, printed in published.RISKS) + " %",
    severity="A",
)
def risk_score() -> Finding:
    """Other weights than the printed ones give the printed scores."""
    printed = scores(dict(published.RISK_WEIGHTS))
    weights = reconstructed_weights()
    refit = scores(weights)
    right = all(agrees(p, f, 2) for (_, p), f in zip(published.RISKS, printed, strict=True))
    fits = all(agrees(p, f, 2) for (_, p), f in zip(published.RISKS, refit, strict=True))
    found = f"{weights['prompt']:.2f} / {weights['canary']:.2f} / {weights['exact']:.2f}"
    return Finding(
        f"{listed(printed)} %; weights {found} give the printed six" if fits else f"{listed(printed)} %",
        HOLDS if right else CONTRADICTS,
        "The formula in the text did not make the table.",
        {"baseline": printed[1], "best": printed[-1], **{f"w_{k}": v for k, v in weights.items()}},
    )


@TOPIC.claim(
    "risk-reduction",
    where="1",
    says="The risk falls by 7.47 percentage points.",
    published="7.47",
    severity="B",
)
def risk_reduction() -> Finding:
    """A constant of 30 points hides most of the score."""
    printed = scores(dict(published.RISK_WEIGHTS))
    weights = reconstructed_weights()
    constant = weights["canary"] * published.CANARY_RATE
    without = [value - constant for value in scores(weights)]
    return Finding(
        f"{printed[0] - printed[-1]:.2f} or {printed[1] - printed[-1]:.2f} with the printed weights; "
        f"{constant:.0f} of the {published.RISKS[0][1]:.2f} points are the canary constant",
        CONTRADICTS,
        "The broken canary test puts a floor under every model: the score cannot get near zero.",
        {"printed": printed[0] - printed[-1], "constant": constant, "best_without": without[-1]},
    )


@TOPIC.claim(
    "direct-identifiers",
    where="19.2",
    says="Names, e-mail addresses and dates of birth add up to the direct identifiers.",
    published="57 / 11 / 13 / 6 / 3",
    severity="B",
)
def direct_identifiers() -> Finding:
    """The sums are right."""
    kinds = ("name", "email", "dob")
    found = {m: sum(row[k] for k in kinds) for m, row in published.CATEGORIES.items()}
    right = found == dict(published.DIRECT_IDENTIFIERS)
    return Finding(
        " / ".join(map(str, found.values())),
        HOLDS if right else WRONG,
        "Right as sums; the risk levels and legal labels that the table hangs on them follow from nothing.",
    )


@TOPIC.claim(
    "hospital",
    where="9.3, 11",
    says="In a hospital of 10,000, private training would spare 1,743 patients.",
    published="1,779 at risk; 36 with ε = 10",
    severity="A",
)
def hospital() -> Finding:
    """A rate of attempts is applied to patients."""
    spared = 10_000 * (published.RATES["baseline"] - published.RATES[10.0]) / 100
    return Finding(
        f"{spared:.0f} is a rate per attempt times patients; at most {published.RECORDS} records were tested",
        UNSUPPORTED,
        "Nobody counted patients, and the labels praise the models with more hits.",
        {"spared": spared, "records": published.RECORDS},
    )


@TOPIC.claim(
    "legal-labels",
    where="9.2, 19.2, 19.3",
    says="A small ε brings a model near to meeting the Privacy Rule.",
    published="ε of 1, 5 or 10 by kind of organization",
    severity="A",
)
def legal_labels() -> Finding:
    """The regulation names no epsilon."""
    return Finding(
        "no ε in § 164.514; two ways only: Safe Harbor, Expert Determination",
        UNSUPPORTED,
        "An officer who relies on it has neither removed 18 identifiers nor a determination.",
    )


@TOPIC.claim(
    "fines",
    where="2.2",
    says="A violation may cost up to 1.5 million dollars an incident.",
    published="1.5 million dollars",
    severity="B",
)
def fines() -> Finding:
    """Penalties are tiered, and capped by calendar year."""
    low, high = 141, 2_134_831  # dollars a violation, 45 CFR 102.3 as adjusted in 2024
    return Finding(
        f"{low:,} to {high:,} dollars a violation (45 CFR 102.3, 2024), capped by year and provision",
        WRONG,
        "The figure is the unadjusted yearly cap for one provision, not an amount for an incident.",
        {"low": low, "high": high},
    )


@TOPIC.claim(
    "recommendations",
    where="1, 9.2, 9.3, 19.3",
    says="Health care should use this budget.",
    published="at most 5; at most 10 or 5; 0.5 to 1; at most 1, 5 or 10",
    severity="B",
)
def recommendations() -> Finding:
    """Four sections, four budgets; what they allow differs by orders of magnitude."""
    ceilings = {
        b: mechanisms.largest_tpr(fpr=0.01, epsilon=b, delta=published.DELTA) for b in published.BUDGETS
    }
    return Finding(
        "an attacker at 1 % false positives may reach " + listed(ceilings.values(), 3),
        CONTRADICTS,
        "Between the recommendations lies the step from real protection to hardly any.",
        {f"tpr_{b:g}": value for b, value in ceilings.items()},
    )


@TOPIC.claim(
    "levels",
    where="3.3.2 against 5.3.4",
    says="ε = 5 is moderate and ε = 10 is balanced.",
    published="moderate; balanced",
    severity="C",
)
def levels() -> Finding:
    """Its own scale puts 5 on a border and 10 under weak."""
    ten = mechanisms.largest_advantage(epsilon=10.0, delta=published.DELTA)
    return Finding(
        f"by its own scale 5 is moderate or weak and 10 is weak; advantage allowed at 10: {ten:.5f}",
        CONTRADICTS,
        "The friendlier word stands where the decision is made.",
        {"advantage_ten": ten},
    )


@TOPIC.claim(
    "queries",
    where="10.3",
    says="Every query to the released model adds to the privacy loss.",
    published="loss accumulates",
    severity="B",
)
def queries() -> Finding:
    """Queries are post-processing; releasing four models composes."""
    four = mechanisms.basic_composition(epsilons=list(published.PAIRS.values())).epsilon
    return Finding(
        f"queries add nothing; the four released models together would claim {four:.2f}",
        WRONG,
        "The loss lies in what was released from the data: here four models, not one.",
        {"four": four},
    )


@TOPIC.claim(
    "group",
    where="3.3.3",
    says="Groups are protected with a scaled ε.",
    published="scaled ε",
    severity="C",
)
def group() -> Finding:
    """Delta grows as well."""
    two = mechanisms.group_privacy(epsilon=9.9438, delta=published.DELTA, size=2)
    return Finding(
        f"for two patients at ε = 9.94: ({two.epsilon:.2f}, {two.delta:.2f})",
        UNSUPPORTED,
        "δ grows by k e^((k-1)ε): at the report's weakest budget it is gone for a couple.",
        {"epsilon": two.epsilon, "delta": two.delta},
    )
