"""The report's privacy accounting: what its noise multipliers cost, and what its code would have said."""

import math
from functools import cache

import numpy as np
from scipy.optimize import brentq

from privhelpers import accounting
from privhelpers.report import published
from privhelpers.report.claims import CONTRADICTS, HOLDS, UNSUPPORTED, WRONG, Finding, Topic, listed

TOPIC = Topic("accounting", document="the report")
RUN = dict(published.RUN)
SIGMAS = tuple(published.PAIRS)


@cache
def true_epsilon(sigma: float) -> float:
    """Return the PLD epsilon of a noise multiplier on the sum, Poisson sampling, at the report's setting."""
    return accounting.epsilon(noise_multiplier=sigma, **RUN)


@cache
def readings(sigma: float) -> dict[str, float]:
    """Return what one published noise multiplier is worth, by who reads it, all at delta 1e-5."""
    # Noise of sigma C on the mean of B is B sigma C on the sum; five epochs, a record in one step of each.
    on_sum = {"noise_multiplier": published.BATCH * sigma, "participations": published.EPOCHS}
    alone = {**on_sum, "delta": published.DELTA}
    return {
        "published": published.PAIRS.get(sigma, math.nan),
        "printed code": accounting.printed_epsilon(noise_multiplier=sigma, **RUN),
        "curve 8α/σ²": accounting.curve_epsilon(noise_multiplier=sigma, delta=published.DELTA),
        "RDP, orders to 63": accounting.opacus_epsilon("rdp", noise_multiplier=sigma, **RUN),
        "PRV": accounting.opacus_epsilon("prv", noise_multiplier=sigma, **RUN),
        "PLD": true_epsilon(sigma),
        "code as run, record nulled": accounting.epsilon_without_amplification(**alone),
        "code as run, record replaced": accounting.epsilon_without_amplification(
            **alone, adjacency="replacement"
        ),
    }


def fitted_scale(sigma: float, epsilon: float) -> float:
    """Return the scale A with which min A order / sigma^2 + ln(1/delta) / (order - 1) is epsilon.

    Args:
        sigma: published noise multiplier, greater than 0.
        epsilon: published beside it, in nats.
    """

    def excess(scale: float) -> float:
        curve = accounting.curve_epsilon(noise_multiplier=sigma, delta=published.DELTA, scale=scale)
        return curve - epsilon

    return float(brentq(excess, 1e-3, 1e3))


def concave_log(scale: float = 8.0) -> list[float]:
    """Return the epsilon after each epoch on the report's own curve, which any accountant would bend."""
    return [
        accounting.curve_epsilon(
            noise_multiplier=SIGMAS[-1], delta=published.DELTA, scale=scale * epoch / published.EPOCHS
        )
        for epoch in range(1, published.EPOCHS + 1)
    ]


@TOPIC.claim(
    "sigma-epsilon",
    where="5.3.4, 15.3",
    says="These noise multipliers spend these budgets.",
    published="; ".join(f"{s:g}: {e:.4f}" for s, e in published.PAIRS.items()),
    severity="A",
)
def sigma_epsilon() -> Finding:
    """True values under the report's own assumptions are far smaller."""
    found = {sigma: true_epsilon(sigma) for sigma in SIGMAS}
    return Finding(
        f"{listed(found.values(), 4)} (PLD, Poisson, add/remove, δ = 1e-5)",
        WRONG,
        "The models carry much more noise than their labels say, so their utility says little of DP.",
        {f"pld_{sigma:g}": value for sigma, value in found.items()},
    )


@TOPIC.claim(
    "epsilon-source",
    where="5.3.4 against 14.2",
    says="The printed accountant computed the printed epsilons.",
    published=listed(published.PAIRS.values(), 4),
    severity="A",
)
def epsilon_source() -> Finding:
    """All pairs lie on another curve."""
    printed = [readings(s)["printed code"] for s in SIGMAS]
    fits = [fitted_scale(sigma, epsilon) for sigma, epsilon in published.PAIRS.items()]
    own = RUN["steps"] * RUN["sample_rate"] ** 2 / 2
    return Finding(
        f"{listed(printed, 4)}; all four pairs fit A = {np.mean(fits):.3f}, the code has {own:.5f}",
        CONTRADICTS,
        "The column comes from some other code, with about sixteen releases and no sampling.",
        {
            "fit_low": min(fits),
            "fit_high": max(fits),
            "own": own,
            **{f"printed_{s:g}": p for s, p in zip(SIGMAS, printed, strict=True)},
        },
    )


@TOPIC.claim(
    "printed-accountant",
    where="3.5.3, 14.2.2",
    says="q² times the divergence of the Gaussian is a tight bound for a sampled step.",
    published="q² α / (2σ²)",
    severity="A",
)
def printed_accountant() -> Finding:
    """It is a lower estimate, which explodes past a threshold order."""
    exact = accounting.rdp(noise_multiplier=1.0, sample_rate=RUN["sample_rate"], steps=1, orders=[2, 22])
    short = RUN["sample_rate"] ** 2 * np.array([2, 22]) / 2
    ratio = exact / short
    low = accounting.printed_epsilon(noise_multiplier=0.5, **RUN)
    true = true_epsilon(0.5)
    return Finding(
        f"exact over printed at σ = 1: {ratio[0]:.2f} at order 2, {ratio[1]:,.0f} at 22; "
        f"at σ = 0.5 it says {low:.2f} for {true:.2f}",
        WRONG,
        "An accountant that says too little is the one fault that nobody sees in the results.",
        {"ratio_2": ratio[0], "ratio_22": ratio[1], "printed_half": low, "true_half": true},
    )


@TOPIC.claim(
    "calibration",
    where="14.3, 5.3.4",
    says="The printed search finds the printed noise multipliers.",
    published=listed(SIGMAS, 4),
    severity="A",
)
def calibration() -> Finding:
    """Executed, it finds others; with its clamps it could not return the printed ones."""
    kept = [
        accounting.clamped(
            accounting.printed_calibration(target_epsilon=target, **RUN), target_epsilon=target
        )
        for target in published.BUDGETS
    ]
    return Finding(
        f"{listed(kept, 4)}; with the caps at most 5, 5, 3 and 2",
        CONTRADICTS,
        "The code in the report is not the code of its experiment.",
        {f"sigma_{b:g}": s for b, s in zip(published.BUDGETS, kept, strict=True)},
    )


@TOPIC.claim(
    "clamp",
    where="14.3",
    says="Capping the calibrated noise leaves the budget as it is.",
    published="min(σ, 5), min(σ, 3) or min(σ, 2)",
    severity="A",
)
def clamp() -> Finding:
    """On the report's own curve the capped noise spends far more than its target."""
    caps = {0.5: 5.0, 5.0: 3.0, 10.0: 2.0}
    spent = {
        target: accounting.curve_epsilon(noise_multiplier=cap, delta=published.DELTA)
        for target, cap in caps.items()
    }
    return Finding(
        "; ".join(f"{value:.2f} for a target of {target:g}" for target, value in spent.items()),
        WRONG,
        "Noise that was calibrated may be raised, never lowered.",
        {f"spent_{target:g}": value for target, value in spent.items()},
    )


@TOPIC.claim(
    "tolerance",
    where="14.3, 5.3.4",
    says="The search meets its targets.",
    published="0.5060; 1.0202; 5.0112; 9.9438",
    severity="B",
)
def tolerance() -> Finding:
    """Three of four exceed the target."""
    pairs = zip(published.BUDGETS, published.PAIRS.values(), strict=True)
    over = sum(spent > target for target, spent in pairs)
    return Finding(
        f"{over} of 4 exceed their target",
        WRONG if over else HOLDS,
        "It stops within 0.05 on either side and returns a middle that it never tried.",
        {"over": over},
    )


@TOPIC.claim(
    "epsilon-log",
    where="15.3",
    says="The accountant printed this epsilon after each epoch.",
    published=listed(published.EPSILON_LOG, 4),
    severity="A",
)
def epsilon_log() -> Finding:
    """The log is a straight line but for its last entry."""
    first = published.EPSILON_LOG[0]
    straight = all(abs(value - k * first) < 2e-4 for k, value in enumerate(published.EPSILON_LOG[:-1], 1))
    curve = concave_log()
    return Finding(
        f"{listed(curve, 3)} on the same curve, which is concave",
        UNSUPPORTED if straight else HOLDS,
        "Every accountant of this kind is concave in the steps; a straight line is not its output.",
        {f"epoch_{k}": value for k, value in enumerate(curve, 1)},
    )


@TOPIC.claim(
    "delta", where="6.2.3", says="δ is smaller than one over the number of samples.", published="1e-5"
)
def delta() -> Finding:
    """Right."""
    return Finding(
        f"1/{published.TRAINING} = {1 / published.TRAINING:.1e}",
        HOLDS if published.DELTA < 1 / published.TRAINING else WRONG,
        "A δ of 1/N would allow publishing somebody's record outright.",
    )


@TOPIC.claim(
    "gaussian-divergence",
    where="3.5.2, 3.5.4",
    says="Divergence of the plain Gaussian, and a conversion to ε.",
    published="α Δ² / (2σ²); R + ln(1/δ)/(α - 1)",
)
def gaussian_divergence() -> Finding:
    """Right; the conversion is valid, though not the best known."""
    ours = accounting.rdp(noise_multiplier=3.0, sample_rate=1.0, steps=1, orders=[2, 8])
    right = np.allclose(ours, np.array([2, 8]) / 18)
    how = {"orders": [8.0], "rdp": [ours[1]], "delta": published.DELTA}
    classic = accounting.rdp_to_epsilon(**how, conversion="classic").epsilon
    better = accounting.rdp_to_epsilon(**how).epsilon
    return Finding(
        f"equal; the conversion gives {classic:.3f} where {better:.3f} can be had",
        HOLDS if right and better <= classic else WRONG,
        "These formulas are right, and may be kept.",
    )
