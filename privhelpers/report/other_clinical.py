"""Claims of a paper on membership inference against clinical language models."""

import math
from functools import cache

import numpy as np

from privhelpers import accounting, mechanisms, stats
from privhelpers.report.claims import (
    CONTRADICTS,
    HOLDS,
    UNSUPPORTED,
    WRONG,
    Finding,
    Topic,
    listed,
)

TOPIC = Topic("clinical paper", document="the clinical paper")
DELTA, GROUP = 1e-6, 50
EPSILONS = {2.0: 0.223, 1.0: 0.626}  # appendix B.1, epoch 1
BLACK_BOX = {("BERT", 2.0): (9e-2, 0.011), ("GPT2", 2.0): (0.0, 0.009)}  # table 2: S-BBA, S-AWBA
LOSSES = {0.01: 2.00, 0.1: 3.82}  # table 3, epoch 1; 3.49 without training
SAMPLE_LEVEL, PATIENT_LEVEL = (1.27, 1.61, 1.89, 2.03), (0.92, 1.42, 2.09, 2.91)  # table 6
UNTRAINED_LOSS, UNTRAINED_ACCURACY, NOISIEST_ACCURACY = 3.49, 0.776, 0.8015


@cache
def order_floor(largest: int) -> float:
    """Return the epsilon below which the classic conversion with this largest order cannot get."""
    return math.log(1 / DELTA) / (largest - 1)


def focus(attention: np.ndarray) -> float:
    """Return the paper's concentration, the sum of a log a, of attention weights that sum to 1."""
    positive = attention[attention > 0]
    return float((positive * np.log(positive)).sum())


@TOPIC.claim(
    "leakage-definition",
    where="4.1",
    says="Leakage is the true minus the false positive rate of a threshold at the mean training loss.",
    published="Pr[A=0|b=0] - Pr[A=0|b=1]",
)
def leakage_definition() -> Finding:
    """Right; a small example."""
    train, test = np.array([1, 2, 3, 6.0]), np.array([2.5, 4, 5, 7])
    found = float((train < train.mean()).mean() - (test < train.mean()).mean())
    return Finding(
        f"{found:.2f} on eight losses by hand",
        HOLDS if found == 0.25 else WRONG,
        "The same as the membership advantage of this book.",
        {"leakage": found},
    )


@TOPIC.claim(
    "focus-sign",
    where="4.1.2, equation 3",
    says="The sum of a log a is higher where attention is spread out.",
    published="higher when diffused",
    severity="B",
)
def focus_sign() -> Finding:
    """It is lower."""
    spread, sharp = focus(np.full(4, 0.25)), focus(np.array([1.0, 0, 0, 0]))
    return Finding(
        f"{spread:.4f} for four equal weights, {sharp:.0f} for one",
        WRONG if spread < sharp else HOLDS,
        "The formula is negative entropy; the sentence describes entropy.",
        {"spread": spread, "sharp": sharp},
    )


@TOPIC.claim(
    "attention-numbers",
    where="4.1.2",
    says="144 heads of 512 x 512 weights are 37 million numbers; four estimates each are 576.",
    published="about 37 million",
)
def attention_numbers() -> Finding:
    """Right."""
    found = 144 * 512**2
    return Finding(f"{found:,}; {144 * 4}", HOLDS if round(found / 1e6) == 38 else WRONG, "Right, rounded.")


@TOPIC.claim(
    "order-floor",
    where="appendix B.1",
    says="At σ = 2 the run spends 0.223 after one epoch, and 0.223 after three.",
    published="0.223; 0.223 (0.219 on the other data)",
    severity="A",
)
def the_order_floor() -> Finding:
    """It is the floor of the largest order."""
    floors = [order_floor(order) for order in (63, 64)]
    # The batch size is not published: a guess of 64 or 256 out of about 1.6 million snippets, one epoch.
    found = [
        accounting.epsilon(noise_multiplier=2.0, sample_rate=b / 1.61e6, steps=round(1.61e6 / b), delta=DELTA)
        for b in (64, 256)
    ]
    artefact = abs(floors[0] - EPSILONS[2.0]) < 5e-4
    return Finding(
        f"ln(1e6)/62 = {floors[0]:.6f}, ln(1e6)/63 = {floors[1]:.6f}; PLD about {listed(found, 3)}",
        WRONG if artefact else HOLDS,
        "The list of orders ends too early: this ε is a property of the list (batch sizes are guesses).",
        {"floor_63": floors[0], "floor_64": floors[1], "pld_low": found[0], "pld_high": found[1]},
    )


@TOPIC.claim(
    "group-of-fifty",
    where="appendix B.1",
    says="For a patient of 50 snippets, multiply ε by 50.",
    published="50 ε",
    severity="A",
)
def group_of_fifty() -> Finding:
    """Delta must be multiplied too, and is gone."""
    simple = mechanisms.group_privacy(epsilon=EPSILONS[2.0], delta=DELTA, size=GROUP)
    tight = mechanisms.group_privacy(epsilon=EPSILONS[2.0], delta=DELTA, size=GROUP, tight=True)
    other = mechanisms.group_privacy(epsilon=EPSILONS[1.0], delta=DELTA, size=GROUP)
    return Finding(
        f"ε = {simple.epsilon:.2f} with δ = {simple.delta:.2f} (tight sum {tight.delta:.3f}); "
        f"{other.delta:.1e} at ε = {EPSILONS[1.0]}",
        UNSUPPORTED,
        "A δ above 1 promises nothing: no patient of 50 snippets is protected.",
        {"simple": simple.delta, "tight": tight.delta, "other": other.delta},
    )


@TOPIC.claim(
    "noise-sign",
    where="5.2",
    says="Models with σ of 0.001 or less hardly leak, at very low ε.",
    published="σ ≤ 1e-3; very low ε",
    severity="B",
)
def noise_sign() -> Finding:
    """Both signs are turned around in the same paragraph."""
    return Finding(
        "the lines above say more than 1 % at 0.001 and less; little noise is a high ε",
        CONTRADICTS,
        "A reader who follows it adds no noise.",
    )


@TOPIC.claim(
    "always-lower",
    where="table 2",
    says="The black-box attack always leaks less than the white-box one.",
    published="always",
    severity="B",
)
def always_lower() -> Finding:
    """One printed pair says otherwise."""
    against = [key for key, (black, white) in BLACK_BOX.items() if black > white]
    model, sigma = against[0]
    black, white = BLACK_BOX[against[0]]
    return Finding(
        f"{model} at σ = {sigma:g}: {black:g} against {white:g}",
        CONTRADICTS if against else HOLDS,
        "A contradiction, or a misprint of the table.",
    )


@TOPIC.claim(
    "two-percent",
    where="5.2 against 5.1",
    says="The strongest attack on models without DP leaks 2 %.",
    published="2 %; 7 % elsewhere",
    severity="B",
)
def two_percent() -> Finding:
    """7 % elsewhere."""
    return Finding("7 % in two other sections", CONTRADICTS, "The models with noise must be meant.")


@TOPIC.claim(
    "useful-noise",
    where="table 3 against 5.2",
    says="Models with σ of 0.001 or less gain from private training.",
    published="σ ≤ 1e-3; in the text σ ≤ 0.01",
    severity="B",
)
def useful_noise() -> Finding:
    """The text is right."""
    gains = [sigma for sigma, loss in LOSSES.items() if loss < UNTRAINED_LOSS]
    return Finding(
        f"loss {LOSSES[0.01]} at 0.01 and {LOSSES[0.1]} at 0.1, without training {UNTRAINED_LOSS}",
        CONTRADICTS if gains == [0.01] else HOLDS,
        "The caption loses a factor of ten in noise.",
    )


@TOPIC.claim(
    "patient-higher",
    where="appendix B.4, table 6",
    says="Patient-level leakage is higher than sample-level leakage.",
    published="higher",
    severity="C",
)
def patient_higher() -> Finding:
    """In half of the epochs."""
    higher = sum(p > s for p, s in zip(PATIENT_LEVEL, SAMPLE_LEVEL, strict=True))
    return Finding(
        f"in {higher} of {len(PATIENT_LEVEL)} epochs",
        HOLDS if higher == len(PATIENT_LEVEL) else WRONG,
        "True of the last epochs; no interval is given.",
        {"higher": higher},
    )


@TOPIC.claim(
    "downstream",
    where="table 5",
    says="Private training improves accuracy on a clinical task.",
    published="0.8015 at σ = 2 against 0.776",
    severity="B",
)
def downstream() -> Finding:
    """Within chance, and the model with a loss of 7 does as well."""
    n = 1421
    low, high = (stats.wilson(round(n * p), n) for p in (UNTRAINED_ACCURACY, NOISIEST_ACCURACY))
    test = stats.two_proportion(round(n * NOISIEST_ACCURACY), n, round(n * UNTRAINED_ACCURACY), n)
    return Finding(
        f"[{100 * high.low:.1f}, {100 * high.high:.1f}] against [{100 * low.low:.1f}, "
        f"{100 * low.high:.1f}] %, p = {test.chi_squared_p:.2f}",
        UNSUPPORTED,
        "The best three of eight seeds were averaged; a ruined model scores like a trained one.",
        {"p": test.chi_squared_p},
    )


@TOPIC.claim(
    "sources-of-dpsgd",
    where="1, 2",
    says="DP-SGD is due to the 2014 monograph.",
    published="Dwork 2014",
    severity="C",
)
def source_of_dpsgd() -> Finding:
    """Abadi et al. 2016."""
    return Finding("Abadi 2016, as section 4.2 says", CONTRADICTS, "The method section cites it rightly.")


@TOPIC.claim(
    "gradient-size",
    where="4.1.2",
    says="The gradient attack sees 202 norms.",
    published="202",
)
def gradient_size() -> Finding:
    """One for each parameter tensor of a BERT with its masked-word head."""
    embeddings, layer, head = 5, 16, 5  # the output matrix is the word embedding, counted once
    found = embeddings + 12 * layer + head
    return Finding(f"{found}", HOLDS if found == 202 else WRONG, "Right.", {"tensors": found})


@TOPIC.claim(
    "task-size",
    where="appendix A.3, table 4",
    says="The task has 12,626 training and 1,421 test pairs.",
    published="12,626; 1,421",
    severity="C",
)
def task_size() -> Finding:
    """Off by one each, by the data set's own paper."""
    train, test = 11_232 + 1_395, 1_422
    return Finding(
        f"{train:,} (with validation) and {test:,}",
        HOLDS if (train, test) == (12_626, 1_421) else WRONG,
        "Nothing hangs on it; from the literature.",
        {"train": train, "test": test},
    )
