"""Which audit sees which fault of DP-SGD after how many canaries, and which other check sees it at once.

Canaries of seven faulty runs and of an honest one are simulated; every audit is asked whether it refutes the
claim. The other checks look at a small model and no canary: they measure the noise of an empty step in every
tensor, the reach of one unit in a step without noise, and the sizes of drawn batches.

`python benchmarks/audit_power.py` prints the table, and with `--keep` it
keeps its numbers in `reference/audits` for the gallery of faults. Results are written line by line in
`build/`, so that a run which was cut off goes on where it stopped.
"""

import bisect
import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from audit_coverage import ONE_LOOK, RUN, in_full
from kept import Key, go_on, keep, made_with, options_of
from scipy.stats import chi2, norm
from transformers import GPT2Config, GPT2LMHeadModel

from privhelpers import accounting, dpsgd, lower_bounds
from privhelpers.dpsgd import PrivateOptimizer
from privhelpers.lower_bounds import broken

DELTA = 1e-5
LINES = Path("build/audit_power.jsonl")
CLAIMS = (1.0, 4.0, 8.0)
COUNTS = (100, 300, 1000, 3000, 12_000)
SEEDS = 20
GATE, USUAL, MISFIT = 0.9999, 0.95, 1e-6
SMALL = 1e-10  # a claim of noise is one at every delta; at a small one, many canaries cost the bound little
UNITS = 1000
BATCH = RUN["sample_rate"] * UNITS
SIGNIFICANCE = 1e-6  # of every check that is a test


class NoiseHalved(PrivateOptimizer):
    """Half of the calibrated noise."""

    def noise_deviation(self) -> float:
        """Return sigma C / (2 B)."""
        return super().noise_deviation() / 2


class OneTensorSilent(PrivateOptimizer):
    """One tensor is released without noise."""

    def noisy_mean(self, draw: Iterable) -> torch.Tensor:
        """Fill the gradients; of the last tensor, the sum alone."""
        norms = super().noisy_mean([])
        noise = self.gradients[SILENT].clone()
        norms = super().noisy_mean(draw)
        # On an empty draw, the only one asked of this variant, the sum is zero.
        self.gradients[SILENT] = torch.zeros_like(noise)
        return norms


class BatchClipped(dpsgd.ClippedGradients):
    """The mean of a batch is clipped to C, and not each unit."""

    def factors(self, norms: torch.Tensor) -> torch.Tensor:
        """Return one factor for all units, whose gradients are orthogonal here."""
        mean = float(norms.square().sum().sqrt()) / BATCH
        return torch.full_like(norms, min(1.0, self.max_grad_norm / mean))


class ClippedAsOne(PrivateOptimizer):
    """Uses an engine that clips batches."""

    clipping = BatchClipped


SILENT = "transformer.ln_f.bias"


def doubled_draws(generator: torch.Generator, *, units: int, sample_rate: float, steps: int):
    """Draw with twice the rate that is stated."""
    return dpsgd.poisson_draws(generator, units=units, sample_rate=2 * sample_rate, steps=steps)


@dataclass(frozen=True)
class Fault:
    """What the canaries show of a fault; the same as the function `shown_by` of the chapter on broken DP-SGD.

    Attributes:
        noise, rate: over the claimed ones.
        shuffled: whether the batches of an epoch divide the canaries among them.
        clipped_mean_of: units expected in a batch whose mean is clipped to C as a whole, so that canaries,
            far longer than C and as if alone in it, share that length.
    """

    noise: float = 1.0
    rate: float = 1.0
    shuffled: bool = False
    clipped_mean_of: float | None = None

    def shown(self, sigma: float, sample_rate: float) -> Callable[..., np.ndarray]:
        """Return what `lower_bounds.simulate_scores` asks at every step."""
        batch_of, batches = np.empty(0), max(1, round(1 / sample_rate))

        def shows(generator: np.random.Generator, included: np.ndarray, step: int) -> np.ndarray:
            nonlocal batch_of
            if self.shuffled:
                if step % batches == 0:
                    batch_of = generator.permutation(included.size) % batches
                drawn = included & (batch_of == step % batches)
            else:
                drawn = included & (generator.random(included.size) < self.rate * sample_rate)
            length = 1.0
            if self.clipped_mean_of and drawn.any():
                length = self.clipped_mean_of / math.sqrt(drawn.sum())
            return length * drawn + self.noise * sigma * generator.standard_normal(included.size)

        return shows


@dataclass(frozen=True)
class Bug:
    """A fault: what the canaries show of it, and the parts that have it."""

    canaries: Fault = field(default_factory=Fault)
    make_optimizer: type[PrivateOptimizer] = PrivateOptimizer
    make_draws: Callable[..., Iterable[Sequence[int]]] = dpsgd.poisson_draws


HONEST = "none (honest)"
BUGS = {
    HONEST: Bug(),
    "noise halved": Bug(Fault(noise=0.5), NoiseHalved),
    "no noise": Bug(Fault(noise=0.0), broken.NoiseOff),
    "clipping per batch": Bug(Fault(clipped_mean_of=BATCH), ClippedAsOne),
    "noise over B twice": Bug(Fault(noise=1 / BATCH), broken.NoiseDividedTwice),
    "one layer without noise, that of the canaries": Bug(Fault(noise=0.0), OneTensorSilent),
    "one layer without noise, another": Bug(Fault(), OneTensorSilent),
    "sampler shuffled": Bug(Fault(shuffled=True), make_draws=broken.shuffled_draws),
    "q understated by half": Bug(Fault(rate=2.0), make_draws=doubled_draws),
}
GATES = {
    f"binomial, {100 * GATE:g}%": (lower_bounds.BINOMIAL, GATE, DELTA),
    f"binomial, {100 * GATE:g}%, δ = {SMALL:g}": (lower_bounds.BINOMIAL, GATE, SMALL),
    f"f-DP, {100 * GATE:g}%": (lower_bounds.FDP, GATE, DELTA),
    f"own curve, {100 * GATE:g}%": (lower_bounds.OWN_CURVE, GATE, DELTA),
    f"binomial, {100 * USUAL:g}%": (lower_bounds.BINOMIAL, USUAL, DELTA),
    f"f-DP, {100 * USUAL:g}%": (lower_bounds.FDP, USUAL, DELTA),
    f"own curve, {100 * USUAL:g}%": (lower_bounds.OWN_CURVE, USUAL, DELTA),
}
GATE_OF = ("method", "confidence", "delta")
FIT = "scores fit the claim"


@functools.cache
def claim_of(target: float, delta: float = DELTA) -> tuple[float, float]:
    """Return the noise multiplier of a claim, and the epsilon that it claims at a delta."""
    sigma = accounting.calibrate_noise_multiplier(target_epsilon=target, **RUN, delta=DELTA)
    return sigma, accounting.epsilon(noise_multiplier=sigma, **RUN, delta=delta)


@functools.cache
def enough(title: str, target: float, canaries: int, guesses: int, searched: int) -> int:
    """Return how many right guesses refute a claim, by bisection: a bound grows with them."""
    method, confidence, delta = GATES[title]
    settings = {"canaries": canaries, "delta": delta, "confidence": confidence}

    def refutes(correct: int) -> bool:
        if method == lower_bounds.OWN_CURVE:
            bound = lower_bounds.own_curve_epsilon_lower(correct=correct, **RUN, **settings)
        else:
            bound = ONE_LOOK[method](guesses=guesses, correct=correct, searched=searched, **settings)
        return bound > claim_of(target, delta)[1]

    return bisect.bisect_left(range(guesses + 1), True, key=refutes)


def refuted(title: str, target: float, coins: np.ndarray, scores: np.ndarray) -> bool:
    """Return whether a bound on these scores exceeds the claim, without computing the bound."""
    if GATES[title][0] == lower_bounds.OWN_CURVE:
        called_in = scores > np.sort(scores)[(scores.size - 1) // 2]
        return int((called_in == coins).sum()) >= enough(title, target, coins.size, coins.size, 1)
    numbers = lower_bounds.searched_guesses(coins.size)
    looks = [lower_bounds.count_correct(coins, scores, number) for number in numbers]
    return any(right >= enough(title, target, coins.size, guesses, len(numbers)) for guesses, right in looks)


def refuted_in_full(title: str, target: float, coins: np.ndarray, scores: np.ndarray) -> bool:
    """Return the same by the helpers that chapters call."""
    method, confidence, delta = GATES[title]
    return in_full(method, coins, scores, delta, confidence) > claim_of(target, delta)[1]


def one_run(key: Key) -> dict[str, bool]:
    """Return which audits refute the claim of the run (claim, fault, canaries, seed)."""
    target, name, count, seed = key
    sigma, _ = claim_of(target)
    shows = BUGS[name].canaries.shown(sigma, RUN["sample_rate"])
    seen = lower_bounds.simulate_scores(canaries=count, noise_multiplier=sigma, **RUN, seed=seed, shows=shows)
    found = {title: refuted(title, target, *seen) for title in GATES}
    if seed == 0 and found != {title: refuted_in_full(title, target, *seen) for title in GATES}:
        raise AssertionError(f"{key}: the shortcut is not what the helpers return")
    p_value = lower_bounds.claim_p_value(*seen, noise_multiplier=sigma, **RUN, seed=SEEDS + seed, times=3)
    return found | {FIT: p_value < MISFIT}


def _optimizer(bug: Bug, sigma: float) -> PrivateOptimizer:
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=61, n_positions=32, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0
    )
    model = GPT2LMHeadModel(config)
    return bug.make_optimizer(
        torch.optim.SGD(model.parameters(), lr=1.0),
        model,
        noise_multiplier=sigma,
        max_grad_norm=0.5,
        expected_batch_size=BATCH,
        chance=dpsgd.research(0),
    )


def wrong_noise(bug: Bug) -> bool:
    """Return whether an empty step has other noise than sigma C / B in some tensor, by its variance."""
    sigma = claim_of(CLAIMS[0])[0]
    private = _optimizer(bug, sigma)
    private.noisy_mean([])
    expected = sigma * private.max_grad_norm / BATCH
    tails = []
    for part in private.gradients.values():
        ratio, n = float((part.double() / expected).square().sum()), part.numel()
        tails.append(2 * min(chi2.cdf(ratio, n), chi2.sf(ratio, n)))
    return min(tails) * len(tails) < SIGNIFICANCE


def long_reach(bug: Bug) -> bool:
    """Return whether one unit with a long gradient moves the noiseless sum by more than C."""
    quiet = type("Quiet", (bug.make_optimizer,), {"noise_deviation": lambda self: 0.0})
    private = _optimizer(Bug(make_optimizer=quiet), 1.0)
    name, width = "transformer.wpe.weight", 32
    gradient = torch.zeros(1, width)
    gradient[0, 0] = 100 * private.max_grad_norm
    unit = dpsgd.GivenGradients(name, torch.tensor([31]), gradient)
    private.noisy_mean([(unit, None)])
    moved = math.sqrt(sum(float(part.double().square().sum()) for part in private.gradients.values()))
    return moved * BATCH > 1.001 * private.max_grad_norm


def wrong_batches(bug: Bug) -> bool:
    """Return whether the sizes of drawn batches have another mean or variance than Poisson samples."""
    generator = dpsgd.research(0).sampling
    draws = bug.make_draws(generator, units=UNITS, **RUN)
    sizes = np.array([len(draw) for draw in draws], dtype=float)
    variance = BATCH * (1 - RUN["sample_rate"])
    off = 2 * norm.sf(abs(sizes.mean() - BATCH) / math.sqrt(variance / len(sizes)))
    ratio = float(((sizes - BATCH) ** 2).sum() / variance)
    spread = 2 * min(chi2.cdf(ratio, len(sizes)), chi2.sf(ratio, len(sizes)))
    return min(off, spread) * 2 < SIGNIFICANCE


CHECKS = {"noise of an empty step": wrong_noise, "reach of a unit": long_reach, "batch sizes": wrong_batches}


def seen_by(flags: dict[int, list[bool]]) -> dict[str, int | None]:
    """Return from how many canaries on every run is flagged, and how many are with the most canaries."""
    enough = None
    for count in sorted(flags, reverse=True):
        if not all(flags[count]):
            break
        enough = count
    return {"fewest": enough, "flagged": sum(flags[max(flags)])}


def summary(results: dict[Key, dict[str, bool]]) -> dict:
    """Return all numbers."""
    titles = (*GATES, FIT)

    def flags(target: float, name: str, title: str) -> dict[int, list[bool]]:
        return {c: [results[target, name, c, s][title] for s in range(SEEDS)] for c in COUNTS}

    def of_honest(title: str) -> list[int]:
        flagged = [sum(some) for t in CLAIMS for some in flags(t, HONEST, title).values()]
        return [sum(flagged), SEEDS * len(flagged)]

    return {
        "made_with": made_with(),
        "run": RUN,
        "delta": DELTA,
        "runs": SEEDS,
        "counts": COUNTS,
        "honest": HONEST,
        "audits": {title: dict(zip(GATE_OF, gate, strict=True)) for title, gate in GATES.items()},
        "fit": FIT,
        "seen": [
            {"claim": target, "fault": name, "audit": title, **seen_by(flags(target, name, title))}
            for target in CLAIMS
            for name in BUGS
            for title in titles
        ],
        "honest_runs": {title: of_honest(title) for title in titles},
        "without_canaries": {
            name: {title: bool(check(bug)) for title, check in CHECKS.items()} for name, bug in BUGS.items()
        },
    }


def main() -> None:
    """Measure, and print from how many canaries on each audit sees each fault."""
    parser = options_of(__doc__)
    parser.add_argument("--keep", action="store_true", help="keep the numbers with the book")
    options = parser.parse_args()
    keys = [(t, name, c, s) for t in CLAIMS for name in BUGS for c in COUNTS for s in range(SEEDS)]
    kept = summary(go_on(LINES, keys, one_run, "runs"))
    print(pd.DataFrame(kept["seen"]).to_string(index=False))
    if options.keep:
        keep("power", kept)


if __name__ == "__main__":
    main()
