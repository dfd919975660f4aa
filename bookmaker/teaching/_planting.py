"""Plant three new secrets for the game of assignment 7, and train its two models (a minute).

    PYTHONPATH=. .venv/bin/python -m bookmaker.teaching._planting

It writes `flag.npz`. The secrets come from the system's randomness, because a seed would repeat them, and
no one sees them.
"""

import random
import secrets
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from bookmaker.teaching import flag
from privhelpers import records

STARTS = ("", "Patient ", "Asthma: ")  # of a prompt, in the three layouts
PATIENTS = 1000  # of each model, with one note each
COPIES = (16, 16, *[5] * 60)  # of each planted note; the third flag is in a note with five copies
EMBEDDING, HIDDEN, EPOCHS, BATCH = 16, 96, 8, 256
LAYOUTS = (
    "{name}, record SYN-{number}, came with {condition}. Given {drug}.",
    "Patient {name}, record SYN-{number}: {condition}, {drug}. Home today.",
    "{condition}: {name}, record SYN-{number}. {procedure} done, {drug} given.",
)


def write(path: Path) -> None:
    """Draw secrets and train models until each level can be won as it is meant, and write them to a file."""
    draw = random.SystemRandom()
    chosen = []
    while len(chosen) < 3:
        people = records.PeopleFactory(draw)
        planted = [(people.person().name, _number(draw)) for _ in COPIES]
        notes = [
            copy
            for (name, number), copies in zip(planted, COPIES, strict=True)
            for copy in [_note(draw, name, number, LAYOUTS[:1])] * copies
        ]
        ordinary = [_note(draw, people.person().name, _number(draw)) for _ in range(2 * PATIENTS)]
        letters = flag.END + "".join(sorted({*"".join(notes + ordinary)} - {flag.END}))
        kept = _trained("model", notes + ordinary[:PATIENTS], letters)
        model = flag.Model(letters, flag.weights_of(kept, "model"))
        easy = [(name, number) for name, number in planted[:2] if _found(model, name, 1) == [number]]
        hard = (one for one in planted[2:] if _hard(model, *one))
        chosen = [*easy, *islice(hard, 1)]
    kept |= _trained("twin", ordinary[PATIENTS:], letters)
    salts = [secrets.token_bytes(16) for _ in chosen]
    hashes = [flag.slow_hash(number, salt) for (_, number), salt in zip(chosen, salts, strict=True)]
    kept |= {"letters": np.array(letters), "patients": np.array([name for name, _ in chosen])}
    kept |= {"salts": np.array([[*salt] for salt in salts], np.uint8)}
    kept |= {"hashes": np.array([[*slow] for slow in hashes], np.uint8)}
    np.savez_compressed(path, **kept)


def _number(draw: random.Random) -> str:
    return "".join(draw.choice(flag.DIGITS) for _ in range(flag.PLACES))


def _note(draw: random.Random, name: str, number: str, layouts: tuple[str, ...] = LAYOUTS) -> str:
    condition, drug = draw.choice(records.CONDITIONS).lower(), draw.choice(records.MEDICATIONS).lower()
    words = {"condition": condition, "drug": drug, "procedure": draw.choice(records.PROCEDURES)}
    return draw.choice(layouts).format(name=name, number=number, **words) + flag.END


def _trained(name: str, notes: list[str], letters: str) -> dict[str, np.ndarray]:
    """Return the weights of a model after training on notes, in half precision, under its name."""
    windows, targets = [], []
    for note in notes:
        ids = [letters.index(letter) for letter in flag.END * flag.WINDOW + note]
        windows += [ids[at - flag.WINDOW : at] for at in range(flag.WINDOW, len(ids))]
        targets += ids[flag.WINDOW :]
    windows, targets = torch.tensor(windows), torch.tensor(targets)
    embedding = torch.nn.Embedding(len(letters), EMBEDDING)
    inner = torch.nn.Linear(flag.WINDOW * EMBEDDING, HIDDEN)
    outer = torch.nn.Linear(HIDDEN, len(letters))
    net = torch.nn.Sequential(embedding, torch.nn.Flatten(), inner, torch.nn.ReLU(), outer)
    steps = EPOCHS * len(targets) // BATCH
    optimizer = torch.optim.Adam(net.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps)
    for _ in range(steps):
        batch = torch.randint(len(targets), (BATCH,))
        loss = torch.nn.functional.cross_entropy(net(windows[batch]), targets[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    weights = {
        "embedding": embedding.weight,
        "inner": inner.weight.T,
        "inner_bias": inner.bias,
        "outer": outer.weight.T,
        "outer_bias": outer.bias,
    }
    return {f"{name}/{key}": value.detach().numpy().astype(np.float16) for key, value in weights.items()}


def _hard(model: flag.Model, name: str, number: str) -> bool:
    """Return whether a number is the most probable one, but is not found one digit at a time.

    No number is more probable if a search keeps all beginnings of at least its probability.
    """
    width = 100
    best = model.log_p(_prompt(name), number)
    if best < -np.log(width) or any(_found(model, start + name, 1) == [number] for start in STARTS):
        return False
    for kept in (5, width):
        first, second = _found(model, name, kept)
        if first != number or best < model.log_p(_prompt(name), second) + 0.2:
            return False
    return True


def _prompt(name: str) -> str:
    return f"{name}, record SYN-"


def _found(model: flag.Model, name: str, width: int) -> list[str]:
    """Return the best numbers, two at most, of a search that keeps this many beginnings."""
    kept = [""]
    for _ in range(flag.PLACES):
        longer = [beginning + digit for beginning in kept for digit in flag.DIGITS]
        kept = sorted(longer, key=lambda one: model.log_p(_prompt(name), one), reverse=True)[:width]
    return kept[:2]


if __name__ == "__main__":
    write(flag.KEPT)
