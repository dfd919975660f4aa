"""What the report says of memory: verbatim texts, members, canaries."""

import math
import re

from privhelpers import mechanisms, stats
from privhelpers.report import published
from privhelpers.report.claims import HOLDS, UNMEASURED, UNSUPPORTED, Finding, Topic

TOPIC = Topic("memory", document="the report")


@TOPIC.claim(
    "exact-memorization",
    where="1, 9.1",
    says="Private training removes verbatim memorization altogether.",
    published="5 % to 0 %",
    severity="A",
)
def exact_memorization() -> Finding:
    """1 of 20 against 0 of 20."""
    n = published.EXACT_TRIALS
    p = stats.two_proportion(1, n, 0, n).fisher_p
    first, second = (stats.clopper_pearson(k, n) for k in (1, 0))
    return Finding(
        f"1 of {n} [{100 * first.low:.1f}, {100 * first.high:.1f}] % against 0 of {n} "
        f"[0, {100 * second.high:.1f}] %; Fisher p = {p:.2f}",
        UNSUPPORTED if p > 0.05 else HOLDS,
        "One text more or less: twenty trials cannot show an absence.",
        {"fisher_p": p, "low": first.low, "high": first.high, "zero_high": second.high},
    )


@TOPIC.claim(
    "email-reduction",
    where="7.2.3, 17.3",
    says="E-mail leakage falls to nothing.",
    published="1 to 0",
    severity="C",
)
def email_reduction() -> Finding:
    """One hit against none."""
    p = stats.two_proportion(1, published.ATTEMPTS, 0, published.ATTEMPTS).fisher_p
    return Finding(
        f"Fisher p = {p:.2f}", UNSUPPORTED, "A single hit has no rate to compare.", {"fisher_p": p}
    )


@TOPIC.claim(
    "membership-rate",
    where="7.2.1 against 15.2",
    says="Membership inference fails on every model.",
    published="0.0 %",
    severity="A",
)
def membership_rate() -> Finding:
    """The attack compares texts, not losses (an inference from two printed losses)."""
    ratio = math.log(published.PERPLEXITY["baseline"]) / published.TRAINING_LOSS
    return Finding(
        f"the printed losses differ by a factor of {ratio:.0f} (nats a token)",
        UNSUPPORTED,
        "The attack scores overlap of texts; a threshold on the loss should have worked (an inference).",
        {"ratio": ratio},
    )


@TOPIC.claim(
    "canary-rate",
    where="7.2, 16.2, 22",
    says="All 15 canaries are extracted from every model, at every budget.",
    published="100 %",
    severity="A",
)
def canary_rate() -> Finding:
    """An attack with that hit rate must fire on what was never planted."""
    # One-sided: a hit rate below this limit would give 15 of 15 in less than 5 % of the tests.
    low = stats.clopper_pearson(published.CANARIES, published.CANARIES, level=0.90).low
    floors = {e: mechanisms.smallest_fpr(tpr=low, epsilon=e, delta=published.DELTA) for e in (0.5, 1.0)}
    perfect = mechanisms.smallest_fpr(tpr=1.0, epsilon=1.0, delta=published.DELTA)
    return Finding(
        f"a true 100 % forces a false positive rate of {perfect:.5f}; even a rate of "
        f"{100 * low:.0f} %, its lower limit, forces {floors[0.5]:.2f} at ε = 0.5, {floors[1.0]:.2f} at 1",
        UNSUPPORTED,
        "Either the guarantee or the test is wrong; the report's own FAQ says the test matches keywords.",
        {"low": low, "perfect": perfect, "floor_half": floors[0.5], "floor_one": floors[1.0]},
    )


@TOPIC.claim(
    "no-look-up",
    where="8.2",
    says="A text of the model at ε = 10 is no training data.",
    published="no look-up is shown",
    severity="B",
)
def not_training_data() -> Finding:
    """The text has the form of a training template."""
    text = (
        "has chronic conditions including COPD. Treatment plan includes Lisinopril. "
        "Recent procedure: X-Ray. Contact information:"
    )
    pattern = r"Treatment plan includes \w+\. Recent procedure: [\w -]+\. Contact information:"
    third = re.search(pattern, text) is not None
    return Finding(
        "the sentence frame of training template 3" if third else "no template",
        UNMEASURED if third else HOLDS,
        "Whether these values stand in the records takes one look-up, which the report does not show.",
    )
