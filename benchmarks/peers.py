"""Cost of calibration and attacks compared with Opacus, dp-accounting, and the loop of transformers.

`python benchmarks/peers.py` runs it. The methods of a comparison take turns in one process on one core, round
after round, and a ratio is one of medians of CPU time within one run; a figure from another run or machine is
never compared. Epsilon is that of the found noise multiplier by PLD, which shows what each search is worth.
Before attacks are timed, both sides must write texts of one length, and give a note one score.
"""

import logging
import time
import warnings
from collections.abc import Callable, Mapping

import dp_accounting
import numpy as np
import pandas as pd
import torch
import transformers
from dp_accounting import pld, rdp
from kept import settle
from opacus.accountants.utils import get_noise_multiplier
from tqdm import tqdm

from bookmaker.runner.fingerprint import machine, versions
from privhelpers import accounting, models, records
from privhelpers.attacks.extraction import PROMPTS

REPORT = {"sample_rate": 4 / 1500, "steps": 1875, "delta": 1e-5}
LONGER = {"sample_rate": 0.01, "steps": 10_000, "delta": 1e-5}
SETTINGS = [(1.0, REPORT), (10.0, REPORT), (1.0, LONGER), (5.0, LONGER)]
PER_PROMPT, SAMPLING = 100, models.Sampling()
ROUNDS = 3  # turns of each method
ONE = "one text at a time"
Search = Callable[..., float]


def ours(accountant: str) -> Search:
    """Return our calibration with one accountant."""

    def search(target: float, **run: float) -> float:
        return accounting.calibrate_noise_multiplier(target_epsilon=target, accountant=accountant, **run)

    return search


def google(make_accountant: Callable[[], dp_accounting.PrivacyAccountant]) -> Search:
    """Return dp-accounting's own calibration with one of its accountants."""

    def search(target: float, *, sample_rate: float, steps: int, delta: float) -> float:
        def event(sigma: float) -> dp_accounting.DpEvent:
            step = dp_accounting.PoissonSampledDpEvent(sample_rate, dp_accounting.GaussianDpEvent(sigma))
            return dp_accounting.SelfComposedDpEvent(step, steps)

        bracket = dp_accounting.LowerEndpointAndGuess(0.3, 1.0)  # lower ends cost it much more
        return dp_accounting.calibrate_dp_mechanism(make_accountant, event, target, delta, bracket, tol=1e-3)

    return search


def opacus(accountant: str) -> Search:
    """Return Opacus' calibration with one of its accountants."""

    def search(target: float, *, delta: float, **run: float) -> float:
        options = {"accountant": accountant, "epsilon_tolerance": 0.01}
        return get_noise_multiplier(target_epsilon=target, target_delta=delta, **run, **options)

    return search


SEARCHES: dict[str, Search] = {
    "ours, RDP": ours("rdp"),
    "ours, PLD": ours("pld"),
    "Opacus RDP": opacus("rdp"),
    "Opacus PRV": opacus("prv"),
    "dp-accounting RDP": google(rdp.RdpAccountant),
    "dp-accounting PLD": google(pld.PLDAccountant),
}


def medians(title: str, variants: Mapping[str, Callable[[int], object]], rounds: int) -> dict[str, float]:
    """Return the median CPU seconds of each variant; they take turns, and get the number of the turn."""
    seconds = {name: [] for name in variants}
    for turn in tqdm(range(rounds), desc=title, unit="round", leave=False):
        for name, run in variants.items():
            start = time.process_time()
            run(turn)
            seconds[name].append(time.process_time() - start)
    return {name: float(np.median(taken)) for name, taken in seconds.items()}


def calibration(rounds: int) -> pd.DataFrame:
    """Return seconds, noise multiplier, and true epsilon of every search at every setting."""
    found, rows = {}, {}
    for search in SEARCHES.values():
        search(2.0, sample_rate=0.1, steps=10, delta=1e-5)  # imports and caches are not what is measured
    for target, run in SETTINGS:

        def again(turn: int, name: str, target: float = target, run: dict = run) -> None:
            # Of each turn another target, by a hair: no result is kept for it.
            found[name] = SEARCHES[name](target * (1 - turn * 1e-9), **run)

        variants = {name: lambda turn, name=name: again(turn, name) for name in SEARCHES}
        for name, seconds in medians("calibration", variants, rounds).items():
            spent = accounting.epsilon(noise_multiplier=found[name], **run)
            row = {"ms": 1000 * seconds, "sigma": found[name], "true epsilon (PLD)": spent}
            rows[f"epsilon {target:g}, T = {run['steps']}", name] = row
    return pd.DataFrame(rows).T


def attacks(rounds: int) -> pd.DataFrame:
    """Return seconds of generation and of scoring, one text at a time and batched."""
    public = records.make_public_corpus(seed=0, documents=2000)
    tokenizer = models.train_tokenizer(public, vocab_size=1536)
    model = models.build("tiny-gpt2", tokenizer, seed=0).eval()  # as large as the book's, fresh weights
    sizes = {"patients": 250, "validation_patients": 1, "heldout_patients": 1, "canaries_per_level": 1}
    notes = [note["text"] for note in records.make_hospital_records(seed=0, **sizes).train][:400]
    end = tokenizer.eos_token_id

    def library(prompt: str, samples: int) -> torch.Tensor:
        ids = torch.tensor([[end, *tokenizer(prompt, add_special_tokens=False)["input_ids"]]])
        options = {"max_length": SAMPLING.max_length, "temperature": SAMPLING.temperature}
        options |= {"top_k": SAMPLING.top_k, "top_p": SAMPLING.top_p, "pad_token_id": end}
        many = {"do_sample": True, "num_return_sequences": samples, "attention_mask": torch.ones_like(ids)}
        with torch.inference_mode():
            return model.generate(ids, **many, **options)

    def generated(_: int) -> list[str]:
        many = {"samples": PER_PROMPT, "seed": 0, "sampling": SAMPLING}
        return [text for prompt in PROMPTS for text in models.generate(model, tokenizer, prompt, **many)]

    def scored_alone(_: int) -> np.ndarray:
        losses = []
        with torch.inference_mode():
            for text in notes:
                ids = torch.tensor([[end, *tokenizer(text, add_special_tokens=False)["input_ids"], end]])
                losses.append(model(input_ids=ids, labels=ids).loss.item())
        return np.array(losses)

    def scored(_: int) -> np.ndarray:
        return models.score(model, tokenizer, notes).losses

    alone = [tokenizer.decode(library(p, 1)[0], skip_special_tokens=True) for p in 3 * tuple(PROMPTS)]
    lengths = np.mean([*map(len, generated(0))]) / np.mean([*map(len, alone)])
    off = np.abs(scored(0) - scored_alone(0)).max()
    if abs(lengths - 1) > 0.1 or not off < 1e-4:  # who writes less would win by that
        raise SystemExit(f"lengths differ by a factor of {lengths:.2f}, scores by {off:.1e} nats a token")
    jobs = {
        "generation": {
            # One text a prompt is timed, and one prompt of the batched loop; both are extrapolated.
            ONE: (lambda _: [library(prompt, 1) for prompt in PROMPTS], PER_PROMPT),
            "library, batched": (lambda _: library(PROMPTS[0], PER_PROMPT), len(PROMPTS)),
            "ours, batched": (generated, 1),
        },
        "scoring": {ONE: (scored_alone, 1), "ours, batched": (scored, 1)},
    }
    rows = {}
    for job, variants in jobs.items():
        seconds = medians(job, {name: run for name, (run, _) in variants.items()}, rounds)
        whole = {name: seconds[name] * variants[name][1] for name in variants}
        for name, taken in whole.items():
            rows[job, name] = {"s": taken, f"{ONE} / this": whole[ONE] / taken}
    return pd.DataFrame(rows).T


def main() -> None:
    """Measure and print."""
    settle()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    logging.getLogger("absl").setLevel(logging.ERROR)
    warnings.simplefilter("ignore", UserWarning)  # Opacus' remark on its last order
    print(machine(), versions())
    for measure in (calibration, attacks):
        table = measure(ROUNDS)
        print(f"\n{measure.__name__}\n{table.to_string(float_format=lambda value: f'{value:.4g}')}")


if __name__ == "__main__":
    main()
