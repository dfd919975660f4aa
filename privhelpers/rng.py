"""One seed, many named streams: a new consumer never shifts the numbers of an old one.

Every random stream of the book is drawn here by name, so that two helpers that both ask for
seed 0 do not share a stream by accident. A global generator is seeded only where a library reads no other,
and put back as it was (`torch_seeded`).

>>> make(0, "canaries").integers(10, size=3).tolist() == make(0, "canaries").integers(10, size=3).tolist()
True
>>> derive(0, "canaries") == derive(0, "patients")
False
"""

import hashlib
import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from privhelpers import validate


def derive(seed: int, name: str) -> int:
    """Return a 63-bit seed for the stream `name` under the run's `seed` (0 or more)."""
    seed = validate.non_negative_int(seed=seed)
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def make(seed: int, name: str) -> np.random.Generator:
    """Return the numpy generator of the stream `name`."""
    return np.random.default_rng(derive(seed, name))


def plain(seed: int, name: str) -> random.Random:
    """Return the standard-library generator of the stream `name` (fast for choices of text)."""
    return random.Random(derive(seed, name))


def torch_generator(seed: int, name: str):  # -> torch.Generator; torch is imported late on purpose
    """Return the CPU torch generator of the stream `name`."""
    import torch

    return torch.Generator().manual_seed(derive(seed, name))


@contextmanager
def torch_seeded(seed: int) -> Iterator[None]:
    """Seed torch's global generators, on GPUs too, and restore them afterwards.

    Args:
        seed: of a stream, as `derive` gives it.
    """
    import torch

    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        yield
