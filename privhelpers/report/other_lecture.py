"""Claims of lecture notes on differential privacy."""

import math

import numpy as np

from privhelpers import mechanisms
from privhelpers.report.claims import CONTRADICTS, HOLDS, UNSUPPORTED, WRONG, Finding, Topic

TOPIC = Topic("lecture", document="the lecture notes")


@TOPIC.claim(
    "lecture-count",
    where="19.1.4",
    says="A count with Laplace noise of scale 1/ε is ε-DP; without noise it is not.",
    published="ratio at most e^ε",
)
def lecture_count() -> Finding:
    """The ratio of densities never exceeds e^epsilon."""
    epsilon, places = 0.7, np.linspace(-20, 20, 4001)
    ratio = np.exp(epsilon * (np.abs(places - 1) - np.abs(places)))
    return Finding(
        f"largest ratio {ratio.max():.4f}, e^0.7 = {math.exp(epsilon):.4f}",
        HOLDS if ratio.max() <= math.exp(epsilon) + 1e-12 else WRONG,
        "Theorem and counterexample are right, and so is adaptive composition.",
    )


@TOPIC.claim(
    "lecture-neyman",
    where="19.5",
    says="The best test rejects P where log f_P/f_Q is small.",
    published="reject if T < t",
)
def lecture_neyman() -> Finding:
    """Right for densities."""
    test = mechanisms.gaussian_test(mean_null=0.0, mean_alternative=1.0, sd=1.0, fpr=0.05)
    return Finding(
        f"N(0,1) against N(1,1) at 5 %: t = {test.threshold:.4f}, missed {test.fnr:.4f}",
        HOLDS,
        "Where a likelihood ratio has atoms the test must toss a coin there as well.",
        {"threshold": test.threshold, "fnr": test.fnr},
    )


@TOPIC.claim(
    "lecture-postprocessing",
    where="19.3",
    says="Any function of the output keeps the guarantee, a randomized one as well.",
    published="proof by the preimage",
    severity="C",
)
def lecture_postprocessing() -> Finding:
    """The proof covers deterministic functions."""
    return Finding(
        "a randomized g has no preimage; average over its coins first",
        UNSUPPORTED,
        "The theorem is true, its proof is for half of it.",
    )


@TOPIC.claim(
    "lecture-noise",
    where="19.4",
    says="Noise is added to the averaged gradient.",
    published="in words to the mean; in the formula to the sum",
    severity="B",
)
def lecture_noise() -> Finding:
    """Formula and words differ by the batch size."""
    batch = 4
    return Finding(
        f"σC/{batch} on the mean by the formula, σC by the words, for a batch of {batch}",
        CONTRADICTS,
        "The formula is right; the words are the fault that the report's code made.",
        {"factor": batch},
    )


@TOPIC.claim(
    "lecture-relation",
    where="19.1.2 against 19.1.3",
    says="Neighbors differ in one record; a count has sensitivity 1.",
    published="added or removed; one entry differs",
    severity="C",
)
def lecture_relation() -> Finding:
    """Two relations."""
    found = {
        relation: mechanisms.global_sensitivity("size", relation=relation, low=0, high=1).value
        for relation in mechanisms.RELATIONS
    }
    return Finding(
        ", ".join(f"{value:.0f} for {relation}" for relation, value in found.items()),
        CONTRADICTS,
        "Under replacement a count of all records never changes.",
    )
