"""The program that measures leakage over size, its settings for a toy, and made-up models to keep by it."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np

FOLDER = Path(__file__).parents[1] / "benchmarks"
SETTINGS = {
    "synthetic_records": {
        "patients": 8,
        "validation_patients": 3,
        "heldout_patients": 8,
        "canaries_per_level": 1,
        "public_documents": 60,
    },
    "public_pretraining": {"vocab_size": 400, "epochs": 1, "learning_rate": "4e-3"},
    "fine_tuning": {"epochs": 2, "learning_rate": 3e-3, "best_epochs": 8},
    "extraction": {"per_prompt": 1},
}
WEIGHTS = {"micro-gpt2": 200_000, "tiny-gpt2": 400_000, "mini-gpt2": 1_000_000}
EPOCHS = 6


def program() -> ModuleType:
    """Return `benchmarks/size.py` as a module."""
    sys.path.insert(0, str(FOLDER))
    try:
        spec = importlib.util.spec_from_file_location("measured_sizes", FOLDER / "size.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(FOLDER))
    return module


def _around(estimate: float, half: float) -> list[float]:
    return [estimate, estimate - half, estimate + half]


def model(weights: int, areas: dict[str, float], *, best_epoch: int, half: float = 0.02) -> dict:
    """Return a row as the program measures one, with this area of the loss in each state."""
    validation = np.abs(np.arange(1, EPOCHS + 1) - best_epoch) / 10 + 1
    recited = {"public": 0, "lowest validation loss": 3, "last epoch": 9}
    return {
        "weights": weights,
        "states": {
            state: {
                "auc": _around(area, half),
                "perplexity": _around(20.0 if state == "public" else 2 + area / 10, 0.05),
                "recited": {"planted": [recited[state], 9], "control": [0, 5]},
                "notes": {"members": [30, 29], "controls": [28, 27]},
            }
            for state, area in areas.items()
        },
        "training": {
            "train_loss": (validation - weights / 1e6).tolist(),
            "validation_loss": validation.tolist(),
            "best_epoch": best_epoch,
            "stopped_early": False,
        },
        "date": "2026-11-25",
        "cpu_seconds": 60.0,
    }
