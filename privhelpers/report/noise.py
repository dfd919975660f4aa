"""The report's noise: where its code adds it, how much, and for whom."""

import math

from privhelpers import accounting
from privhelpers.report import published
from privhelpers.report.accounting import RUN, SIGMAS, readings, true_epsilon
from privhelpers.report.claims import CONTRADICTS, UNSUPPORTED, WRONG, Finding, Topic, listed

TOPIC = Topic("noise", document="the report")


def gpt2_parameters(layers: int) -> int:
    """Return the number of weights of a GPT-2 of width 768 with this many layers."""
    width, vocabulary, context = 768, 50_257, 1024
    block = 12 * width**2 + 13 * width
    return (vocabulary + context) * width + layers * block + 2 * width


@TOPIC.claim(
    "noise-place",
    where="3.4.2 against 3.4.3, 5.3.3",
    says="The noise has standard deviation σC.",
    published="on the sum, and on the mean",
    severity="A",
)
def noise_place() -> Finding:
    """Formula and code differ by the batch size."""
    sigma = SIGMAS[-1]
    return Finding(
        f"on the mean the formula gives σC/B = {sigma / published.BATCH:.4f}, the code {sigma:.4f}",
        CONTRADICTS,
        "Four times the noise that the budget asked for.",
        {"formula": sigma / published.BATCH, "code": sigma},
    )


@TOPIC.claim(
    "code-as-run",
    where="5.3.3, 5.2.1",
    says="The runs are (ε, δ)-DP with the printed ε.",
    published=listed(published.PAIRS.values(), 4),
    severity="B",
)
def code_as_run() -> Finding:
    """What the printed loop would give: noise on the mean, each record once an epoch."""
    found = [readings(s)["code as run, record replaced"] for s in SIGMAS]
    return Finding(
        f"{listed(found, 3)} (five uses of a record, no amplification, one record replaced)",
        WRONG,
        "The printed ε is an upper bound, if only by accident: two faults in opposite directions.",
        {f"replaced_{s:g}": e for s, e in zip(SIGMAS, found, strict=True)},
    )


@TOPIC.claim(
    "poisson",
    where="3.5.3 against 15.3",
    says="Mini-batches amplify privacy.",
    published="q = 4/1500; 375 batches of 4 in every epoch",
    severity="A",
)
def poisson() -> Finding:
    """375 of 375 batches an epoch are a pass over a list; Poisson sampling would draw empty batches."""
    empty = (1 - RUN["sample_rate"]) ** published.TRAINING
    plain = accounting.epsilon_without_amplification(
        noise_multiplier=1.0, participations=published.EPOCHS, delta=published.DELTA
    )
    return Finding(
        f"one pass an epoch: at σ = 1 on the sum ε = {plain:.2f} instead of {true_epsilon(1.0):.2f}; "
        f"Poisson sampling would draw {empty * published.STEPS:.0f} empty batches a run",
        UNSUPPORTED,
        "The amplification that is accounted for belongs to a sampler that did not run.",
        {"empty": empty, "plain": plain, "poisson": true_epsilon(1.0)},
    )


@TOPIC.claim(
    "noise-against-signal",
    where="15.3",
    says="The loss falls from 9.45 to 3.12 under this noise.",
    published=listed(published.LOSS_LOG, 2),
    severity="B",
)
def noise_against_signal() -> Finding:
    """The noise vector dwarfs any mean gradient (an inference)."""
    length = SIGMAS[-1] * math.sqrt(gpt2_parameters(12))
    return Finding(
        f"the noise of a step is {length:,.0f} long, the clipped mean at most 1",
        UNSUPPORTED,
        "Implausible, not impossible: an inference from lengths, not a proof.",
        {"length": length},
    )


@TOPIC.claim(
    "price-of-privacy",
    where="7.3, 9.1",
    says="A budget of 0.5 costs a perplexity of 9,644.",
    published="9,643.91 at ε = 0.5",
    severity="A",
)
def price_of_privacy() -> Finding:
    """Far more noise was added than the budget asks for."""
    needed = accounting.calibrate_noise_multiplier(target_epsilon=0.5, **RUN)
    used = published.BATCH * SIGMAS[0]
    return Finding(
        f"ε = 0.5 needs σ = {needed:.2f} on the sum; the code added {used:.0f}, "
        f"{used / needed:.0f} times as much",
        UNSUPPORTED,
        "The utility column is a property of this noise, not of the budget beside it.",
        {"needed": needed, "used": used, "times": used / needed},
    )
