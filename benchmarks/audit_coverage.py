"""How often a lower bound of an audit lies above the truth, and how much of the truth it reaches.

Simulated gradient canaries of an honest run: their scores are log-likelihood ratios over all noisy sums,
drawn from the mechanism itself, whose epsilon the accountant knows. Every method reads the same scores. A
bound at 95% may exceed the truth in one audit of twenty; the table has the interval of how often it did.

`python benchmarks/audit_coverage.py` prints the table, and with `--keep` it
keeps its numbers in `reference/audits` for the chapter on more bounds. Results are written line by line in
`build/`, so that a run which was cut off goes on where it stopped.
"""

import bisect
import functools
import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from kept import ROOT, Key, go_on, keep, made_with, options_of
from scipy.special import ndtr
from tqdm import tqdm

from bookmaker.runner.fingerprint import commit
from privhelpers import accounting, lower_bounds, rng
from privhelpers.mechanisms import participation_log_ratio

RUN, DELTA, CONFIDENCE = {"sample_rate": 0.1, "steps": 150}, 1e-5, 0.95
LINES = Path("build/audit_coverage.jsonl")
EPSILONS = (0.5, 1.0, 4.0, 8.0, 10.0)
COUNTS = (12_000, 3000)  # the smaller audit reads the first of the same canaries
ONE_LOOK = {
    lower_bounds.FDP: lower_bounds.fdp_epsilon_lower,
    lower_bounds.BINOMIAL: lower_bounds.one_run_epsilon_lower,
}
METHODS = (lower_bounds.OWN_CURVE, *ONE_LOOK)
FRESH, FRESH_SEED = 10_000, 1  # audits of a second look at each rate of the own curve, and their seed
FIRST = 20  # audits whose median is kept as well


@functools.cache
def sigma_of(epsilon: float) -> float:
    """Return the noise multiplier that is calibrated to a budget."""
    return accounting.calibrate_noise_multiplier(target_epsilon=epsilon, **RUN, delta=DELTA)


@functools.cache
def truth_of(epsilon: float) -> float:
    """Return what the simulated run spends, by the accountant that the bounds are stated by."""
    return accounting.epsilon(noise_multiplier=sigma_of(epsilon), **RUN, delta=DELTA)


@functools.cache
def _one_look(method: str, canaries: int, guesses: int, correct: int, searched: int) -> float:
    counts = {"canaries": canaries, "guesses": guesses, "correct": correct}
    return ONE_LOOK[method](**counts, delta=DELTA, confidence=CONFIDENCE, searched=searched)


@functools.cache
def _own_curve(canaries: int, correct: int) -> float:
    return lower_bounds.own_curve_epsilon_lower(
        canaries=canaries, correct=correct, **RUN, delta=DELTA, confidence=CONFIDENCE
    )


def remembered(method: str, coins: np.ndarray, scores: np.ndarray) -> float:
    """Return the bound of a method; counts that came up before are looked up."""
    if method == lower_bounds.OWN_CURVE:
        called_in = scores > np.sort(scores)[(scores.size - 1) // 2]
        return _own_curve(coins.size, int((called_in == coins).sum()))
    numbers = lower_bounds.searched_guesses(coins.size)
    looks = [lower_bounds.count_correct(coins, scores, number) for number in numbers]
    return max(_one_look(method, coins.size, *look, len(numbers)) for look in looks)


def in_full(
    method: str,
    coins: np.ndarray,
    scores: np.ndarray,
    delta: float = DELTA,
    confidence: float = CONFIDENCE,
) -> float:
    """Return the same bound by the helper that chapters call."""
    settings = {"delta": delta, "confidence": confidence}
    if method == lower_bounds.OWN_CURVE:
        return lower_bounds.own_curve_audit(coins, scores, **RUN, **settings).epsilon_lower
    return lower_bounds.audit_in_one_run(coins, scores, method=method, **settings).epsilon_lower


def bounds_on(coins: np.ndarray, scores: np.ndarray, bound: Callable[..., float]) -> dict[str, list[float]]:
    """Return, by method, one bound for each number of canaries."""
    return {m: [bound(m, coins[:count], scores[:count]) for count in COUNTS] for m in METHODS}


def one_audit(key: Key) -> dict[str, list[float]]:
    """Return all bounds of the audit (epsilon, seed)."""
    epsilon, seed = key
    seen = lower_bounds.simulate_scores(
        canaries=max(COUNTS), noise_multiplier=sigma_of(epsilon), **RUN, seed=seed
    )
    bounds = bounds_on(*seen, remembered)
    if seed == 0 and bounds != bounds_on(*seen, in_full):
        raise AssertionError(f"epsilon {epsilon}: what is remembered is not what the helpers return")
    return bounds


def seconds_of(method: str, count: int, times: int = 3) -> float:
    """Return the median CPU time of one bound, without what is remembered, at the slowest epsilon."""
    slowest = 0.0
    for epsilon in EPSILONS:
        taken = []
        for seed in range(times):
            seen = lower_bounds.simulate_scores(
                canaries=count, noise_multiplier=sigma_of(epsilon), **RUN, seed=seed
            )
            lower_bounds._own_curve._searched.cache_clear()
            start = time.process_time()
            in_full(method, *seen)
            taken.append(time.process_time() - start)
        slowest = max(slowest, float(np.median(taken)))
    return slowest


@functools.cache
def enough_to_exceed(epsilon: float, canaries: int) -> int:
    """Return how many right calls make the own curve's bound exceed the truth."""
    settings = {"canaries": canaries, **RUN, "delta": DELTA, "confidence": CONFIDENCE}
    more_than_guessing = range(canaries // 2, canaries + 1)
    return canaries // 2 + bisect.bisect_left(
        more_than_guessing,
        True,
        key=lambda c: lower_bounds.own_curve_epsilon_lower(correct=c, **settings) > truth_of(epsilon),
    )


@functools.cache
def distribution_of_sums(epsilon: float, points: int = 2**18) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return possible scores, and of canaries out and in the run the probability of a score up to each."""
    sigma, rate = sigma_of(epsilon), RUN["sample_rate"]
    edges = np.linspace(-10 * sigma, 10 * sigma + 1, 400_001)
    without = np.diff(ndtr(edges / sigma))
    mixture = (1 - rate) * without + rate * np.diff(ndtr((edges - 1) / sigma))
    scores = participation_log_ratio((edges[1:] + edges[:-1]) / 2, noise_multiplier=sigma, sample_rate=rate)
    grid = math.sqrt(mixture @ scores**2) / 400  # so fine that rounding a step changes no rate that is shown
    place = np.rint(scores / grid).astype(int) % points

    def of_all_steps(one_step: np.ndarray) -> np.ndarray:
        waves = np.fft.rfft(np.bincount(place, one_step, points))
        return np.cumsum(np.fft.fftshift(np.fft.irfft(waves ** RUN["steps"], points)).clip(0))

    return (np.arange(points) - points // 2) * grid, of_all_steps(without), of_all_steps(mixture)


def drawn_at_once(
    epsilon: float, canaries: int, chance: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return coins and scores as `lower_bounds.simulate_scores`, without a loop over the steps."""
    values, outside, inside = distribution_of_sums(epsilon)
    coins, heights = chance.random(canaries) < 0.5, chance.random(canaries)
    scores = np.empty(canaries)
    for part, below in ((coins, inside), (~coins, outside)):
        scores[part] = np.interp(heights[part], below, values)
    return coins, scores


def again_above(epsilon: float, canaries: int) -> int:
    """Return in how many fresh audits the bound of the own curve exceeds the truth."""
    generator, above = rng.make(FRESH_SEED, f"coverage/second/{epsilon}/{canaries}"), 0
    enough = enough_to_exceed(epsilon, canaries)
    for _ in tqdm(range(FRESH), desc="second look", mininterval=5):
        coins, scores = drawn_at_once(epsilon, canaries, generator)
        called_in = scores > np.partition(scores, (canaries - 1) // 2)[(canaries - 1) // 2]
        above += int((called_in == coins).sum()) >= enough
    return above


def second_look(lines: Path) -> dict:
    """Return the rate of the own curve at every epsilon and number of canaries, from fresh audits.

    Every rate is measured again, those that looked good the first time as well: to choose by the first
    result which ones to replace would favor low rates.
    """
    keys = [(epsilon, count, FRESH_SEED, FRESH) for count in COUNTS for epsilon in EPSILONS]
    above = go_on(lines, keys, lambda key: {"above": again_above(*key[:2])}, "second look")
    return {
        "seed": FRESH_SEED,
        "audits": FRESH,
        "made_with": made_with(),
        "commit": commit(ROOT),
        "rates": [
            {"epsilon": epsilon, "canaries": count} | row for (epsilon, count, *_), row in above.items()
        ],
    }


def row_of(epsilon: float, canaries: int, method: str, bounds: np.ndarray) -> dict:
    """Return what one line of the table says, from the bounds of all audits, shape [audits]."""
    truth = truth_of(epsilon)
    shares = np.append(np.quantile(bounds / truth, [0.05, 0.5, 0.95]), np.median(bounds[:FIRST]) / truth)
    names = ("low", "median", "high", "median_of_first")
    return {
        "epsilon": epsilon,
        "truth": round(truth, 3),
        "canaries": canaries,
        "method": method,
        "above": int((bounds > truth).sum()),
        **dict(zip(names, shares.round(3).tolist(), strict=True)),
    }


def first_look(results: dict[Key, dict], seconds: list[dict], audits: int) -> dict:
    """Return all numbers but those of the second look."""
    rows = [
        row_of(epsilon, count, method, np.array([results[epsilon, s][method][place] for s in range(audits)]))
        for place, count in enumerate(COUNTS)
        for epsilon in EPSILONS
        for method in METHODS
    ]
    return {
        "made_with": made_with(),
        "run": RUN,
        "delta": DELTA,
        "confidence": CONFIDENCE,
        "audits": audits,
        "first": min(FIRST, audits),
        "rows": rows,
        "seconds": seconds,
    }


def main() -> None:
    """Measure, and print the first look."""
    parser = options_of(__doc__)
    parser.add_argument("--audits", type=int, default=1000, help="at each epsilon")
    parser.add_argument("--keep", action="store_true", help="keep the numbers with the book")
    options = parser.parse_args()
    keys = [(epsilon, seed) for epsilon in EPSILONS for seed in range(options.audits)]
    results = go_on(LINES, keys, one_audit, "audits")
    seconds = [
        {"method": m, "canaries": count, "seconds": round(seconds_of(m, count), 2)}
        for count in COUNTS
        for m in METHODS
    ]
    kept = first_look(results, seconds, options.audits)
    kept["second"] = second_look(LINES.with_name("audit_coverage_second.jsonl"))
    print(pd.DataFrame(kept["rows"]).to_string(index=False))
    if options.keep:
        keep("coverage", kept)


if __name__ == "__main__":
    main()
