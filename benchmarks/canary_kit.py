"""Whether the usual canary kit refutes a claim if there was no noise, and never one that is true.

    PYTHONPATH=. python benchmarks/canary_kit.py

This was fixed before any result: the kit is what `privai-leak canaries` makes of the records without an
option, 4,128 canaries with one copy; the claim is epsilon = 8 at delta = 1e-5 for one record; the score is
the audit's, minus the mean loss of a canary's tokens; and a claim counts as refuted if the report says so.
The epochs of the run without noise were chosen by its training loss alone.

Two kinds of runs are audited with `privai-leak audit`: one by the Hugging Face Trainer without noise, and
three by Opacus with a budget of 8 for one record (`canary_train.py`). A real training with noise leaks far
less than its budget allows, so it says little about the test. So three mechanisms that spend exactly
(8, 1e-5) on each canary are simulated, 100 runs each with coins of their own, and their scores go through
the same test:

    Gaussian noise       the curve that the audit's bound assumes
    DP-SGD               the log-likelihood ratio of all noisy sums, 150 steps at a sampling rate of 0.1
    randomized response  the coin, or its opposite with probability 1 / (1 + e^8); with probability 1e-5, the
                         coin is shown with certainty. No training with Gaussian noise: only the bound for any
                         mechanism applies to it

Results are kept line by line in `build/canary_kit.jsonl`. The table is in `canary_kit.md`.
"""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from audit_coverage import RUN, sigma_of
from kept import Key, go_on
from scipy.optimize import brentq

from privaudit import Settings, cli
from privaudit.probes.canaries import audit_canaries
from privaudit.records import read_canaries
from privhelpers import lower_bounds, rng
from privhelpers.artifacts import to_json
from privhelpers.mechanisms import gdp_epsilon
from privhelpers.records import Stays, make_hospital_records
from privhelpers.stats import clopper_pearson

EPSILON, DELTA, RUNS, PATIENTS = 8.0, 1e-5, 100, 500
WORDS = 5  # of a record: the beginning of a note, so that thousands are learned in minutes
HOME = Path("build/canary_kit")
KIT = HOME / "kit"
CLAIM = [f"--epsilon={EPSILON}", f"--delta={DELTA}"]
PLAIN = ["--epochs=30"]
PRIVATE = ["--epochs=2", "--batch=256", f"--epsilon={EPSILON}"]
HONEST = ("Gaussian noise", "DP-SGD", "randomized response")
COUNTS = {"Trainer, no noise": 1, **dict.fromkeys(HONEST, RUNS), "Opacus, budget 8": 3}


def make_material() -> None:
    """Write two files of invented notes, and the kit."""
    sizes = {"validation_patients": PATIENTS, "heldout_patients": PATIENTS, "canaries_per_level": 1}
    habits = {"report_share": 1.0, "stays": Stays((1.0,), (1.0,))}
    records = make_hospital_records(seed=0, patients=1, **sizes, **habits)
    HOME.mkdir(parents=True, exist_ok=True)
    taken: set[str] = set()  # a text may be in one file only
    for name, notes in {"members": records.validation, "heldout": records.heldout}.items():
        owners = {" ".join(note["text"].split()[:WORDS]): note["patient_id"] for note in notes}
        rows = [{"patient_id": owner, "text": text} for text, owner in owners.items() if text not in taken]
        taken |= owners.keys()
        (HOME / f"{name}.jsonl").write_bytes(b"".join(to_json(row, indent=None) for row in rows))
    if cli.main(["canaries", f"--records={HOME / 'members.jsonl'}", f"--out={KIT}", "--seed=0"]):
        raise SystemExit("the kit was not made")


def trained(name: str, seed: int) -> dict:
    """Train on the kit, audit the model by the command, and return what its report says of the claim."""
    options = PRIVATE if name.startswith("Opacus") else PLAIN
    model = HOME / f"{name.split(',')[0].lower()}-{seed}"
    report = model.with_suffix(".json")
    train = [sys.executable, "benchmarks/canary_train.py", f"--kit={KIT}", f"--seed={seed}", f"--out={model}"]
    if not model.is_dir():  # else the audit of it was cut off
        subprocess.run([*train, *options], check=True)
    files = [f"--records={KIT / 'train.jsonl'}", f"--holdout={HOME / 'heldout.jsonl'}", f"--model={model}"]
    code = cli.main(["audit", *files, *CLAIM, "--pdf=no", "--fail-if=epsilon-refuted", f"--json={report}"])
    found = json.loads(report.read_text(encoding="utf-8"))["canaries"]
    return {"code": code, "found": found}


def gaussian(coins: np.ndarray, seed: int) -> np.ndarray:
    """Return scores of a Gaussian mechanism that spends exactly (8, 1e-5)."""
    mu = brentq(lambda mu: gdp_epsilon(mu=mu, delta=DELTA) - EPSILON, 0.0, 64.0)
    return mu * coins + rng.make(seed, "kit/gaussian").normal(size=coins.size)


def response(coins: np.ndarray, seed: int) -> np.ndarray:
    """Return scores of randomized response that spends exactly (8, 1e-5)."""
    generator = rng.make(seed, "kit/response")
    told = np.where(generator.random(coins.size) < 1 / (1 + np.exp(-EPSILON)), coins, ~coins)
    certain = generator.random(coins.size) < DELTA
    return np.where(certain, 2.0 * (2 * coins - 1), 2.0 * told - 1)


def simulated(name: str, seed: int) -> dict:
    """Return what the audit's test says of an honest run."""
    kit = read_canaries(KIT)
    if name == "DP-SGD":
        run = {"canaries": len(kit.canaries), "noise_multiplier": sigma_of(EPSILON), **RUN}
        coins, scores = lower_bounds.simulate_scores(**run, seed=seed)
    else:
        coins = rng.make(seed, "kit/coins").random(len(kit.canaries)) < 0.5
        scores = {"Gaussian noise": gaussian, "randomized response": response}[name](coins, seed)
    canaries = [replace(one, inserted=bool(coin)) for one, coin in zip(kit.canaries, coins, strict=True)]
    settings = Settings(epsilon=EPSILON, delta=DELTA, permutations=9, draws=9)  # of no use to the claim
    claim = audit_canaries(canaries, scores, settings, kit.kit).claim
    bounds = {"gaussian": claim.gaussian.epsilon_lower, "any": claim.lower.epsilon_lower}
    return {**bounds, "refuted": claim.refuted, "refuted_for_any": claim.refuted_for_any}


def measure(key: Key) -> dict:
    """Return the result of one run."""
    name, seed = key
    return simulated(name, seed) if name in HONEST else trained(name, seed)


def main() -> None:
    """Print the tables."""
    if not KIT.is_dir():
        make_material()
    keys = [(name, seed) for name, count in COUNTS.items() for seed in range(count)]
    rows = go_on(Path("build/canary_kit.jsonl"), keys, measure, "runs")
    for key in keys:
        if key[0] not in HONEST:
            print(key, json.dumps(rows[key], indent=1))
    print("| simulated run | refuted for Gaussian noise | refuted for any mechanism | largest bounds |")
    print("|---|---|---|---|")
    for name in HONEST:
        some = [rows[name, seed] for seed in range(RUNS)]
        cells = []
        for field in ("refuted", "refuted_for_any"):
            share = clopper_pearson(sum(one[field] for one in some), RUNS)
            cells.append(f"{100 * share.estimate:.0f}% [{100 * share.low:.1f}%, {100 * share.high:.1f}%]")
        largest = (max(one[bound] for one in some) for bound in ("gaussian", "any"))
        print(f"| {name} | {cells[0]} | {cells[1]} | {', '.join(f'{one:.2f}' for one in largest)} |")


if __name__ == "__main__":
    main()
