"""The two sources of a private run's randomness.

Research: every stream follows from a seed, so that the run can be repeated. Anyone who knows the seed can
subtract the noise again: the guarantee is void, and the log says so. Release: the operating system's entropy,
kept nowhere, so that no one can repeat the run, its owner included.
"""

import math
import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from itertools import pairwise

import numpy as np
import torch
from torch import distributed as dist

from privhelpers import rng
from privhelpers.errors import DamagedArtifact

_BLOCK = 1 << 18  # normals drawn at once from the system's entropy: bounds the memory
_CACHED = 1 << 16  # values filled at once: they stay in the cache between the two passes that a draw takes
_VECTOR = 16  # torch draws fewer values than these one by one, in another order
_FINE = 30  # a step of the grid of a release is the deviation of its noise over 2^30 to 2^31
_MOST_STEPS = 2.0**52  # float64 adds whole numbers of this size exactly
_WORDS = 624  # of 32 bits: the state of torch's generator on the processor


def _gpus() -> range:
    """Return the numbers of the GPUs; each has a global generator of its own."""
    return range(torch.cuda.device_count())


class RandomStreams(ABC):
    """Streams of one run.

    Attributes:
        mode: "research" or "release".
        sampling: generator of the Poisson draws.
        choices: generator of the notes that are chosen of a patient with many.
        shared: whether several processes draw the same, each with a share of every step's work.
    """

    mode: str
    shared = False
    sampling: torch.Generator
    choices: np.random.Generator

    @abstractmethod
    def fill_with_noise(self, total: torch.Tensor, deviation: float) -> None:
        """Fill `total` with independent normals of this standard deviation."""

    def before_sum(self, totals: Mapping[str, torch.Tensor], deviation: float) -> None:
        """Fill the totals with what the clipped gradients are added to: the noise, which saves one pass."""
        for total in totals.values():
            self.fill_with_noise(total, deviation)

    def after_sum(self, totals: Mapping[str, torch.Tensor], deviation: float, sensitivity: float) -> None:
        """Finish the totals, once the clipped gradients are in them.

        Args:
            totals: by name of the parameter.
            deviation: of the noise on every coordinate.
            sensitivity: Euclidean length by which one unit moves all totals together, greater than 0.
        """
        return None

    @abstractmethod
    def dropout_seed(self) -> int:
        """Return a seed for the library's global generator, which dropout reads."""

    def dropout(self) -> AbstractContextManager[None]:
        """Return a context in which the library's global generator, which dropout reads, is seeded."""
        return rng.torch_seeded(self.dropout_seed())

    def public(self) -> dict[str, object]:
        """Return what a fingerprint may contain: the mode, and a disclosed seed."""
        return {"mode": self.mode}

    @abstractmethod
    def state(self) -> dict[str, object]:
        """Return what a checkpoint must keep to continue the same streams; empty in release mode."""

    @abstractmethod
    def restore(self, state: dict[str, object]) -> None:
        """Continue from a `state`."""


def _parts(flat: torch.Tensor) -> Iterator[torch.Tensor]:
    """Yield a vector in pieces whose draws are, bit by bit, torch's draw of the whole."""
    edges = [*range(0, max(1, flat.numel() - _VECTOR + 1), _CACHED), flat.numel()]
    for start, end in pairwise(edges):
        yield flat[start:end]


class _Research(RandomStreams):
    mode = "research"

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.sampling = rng.torch_generator(seed, "dpsgd/sampling")
        self.choices = rng.make(seed, "dpsgd/notes")
        self.noise = rng.torch_generator(seed, "dpsgd/noise")
        self.noise_on: dict[str, torch.Generator] = {}  # by device other than the processor

    def fill_with_noise(self, total: torch.Tensor, deviation: float) -> None:
        if total.device.type == "cpu":
            for part in _parts(total.view(-1)):
                part.normal_(0.0, deviation, generator=self.noise)
        else:  # where it is needed: from here, the noise of 124M weights takes longer than a step
            total.normal_(0.0, deviation, generator=self._generator_on(str(total.device)))

    def _generator_on(self, device: str) -> torch.Generator:
        """Return the noise stream of a GPU; each has its own, so that no two add the same noise."""
        if device not in self.noise_on:
            seed = rng.derive(self.seed, f"dpsgd/noise/{device}")
            self.noise_on[device] = torch.Generator(device).manual_seed(seed)
        return self.noise_on[device]

    def dropout_seed(self) -> int:
        rank = dist.get_rank() if dist.is_available() and dist.is_initialized() else 0
        return rng.derive(self.seed, f"dpsgd/dropout/{rank}" if rank else "dpsgd/dropout")

    def public(self) -> dict[str, object]:
        return {"mode": self.mode, "seed": self.seed}

    def state(self) -> dict[str, object]:
        return {
            "sampling": self.sampling.get_state(),
            "choices": self.choices.bit_generator.state,
            "noise": self.noise.get_state(),
            "noise_on": {device: stream.get_state() for device, stream in self.noise_on.items()},
            "dropout": torch.get_rng_state(),
            "dropout_on": {f"cuda:{gpu}": torch.cuda.get_rng_state(gpu) for gpu in _gpus()},
        }

    def restore(self, state: dict[str, object]) -> None:
        missing = {*state["noise_on"], *state["dropout_on"]} - {f"cuda:{gpu}" for gpu in _gpus()}
        if missing:
            raise DamagedArtifact(
                f"checkpoint: has random streams of {', '.join(sorted(missing))}, which this machine lacks; "
                "continue on one that has it, or begin again"
            )
        self.sampling.set_state(state["sampling"])
        self.choices.bit_generator.state = state["choices"]
        self.noise.set_state(state["noise"])
        for device, stream in state["noise_on"].items():
            self._generator_on(device).set_state(stream)
        torch.set_rng_state(state["dropout"])
        for device, stream in state["dropout_on"].items():
            torch.cuda.set_rng_state(stream, device)


def secret_normals(count: int) -> np.ndarray:
    """Return standard normals from the operating system's entropy, float64, shape [count].

    Each is the sum of four independent normals over two. The float64 values that one draw can take, and with
    them the value before the noise, can be worked out; for such a sum they cannot in reasonable time.

    Source: Holohan and Braghin 2021, "Secure Random Sampling in Differential Privacy", section 5; Box and
    Muller 1958.
    """
    draws = 4 * count
    words = np.frombuffer(os.urandom(16 * draws // 2), dtype=np.uint64).reshape(2, -1) >> np.uint64(11)
    radius = np.sqrt(-2 * np.log((words[0] + 1) * 2.0**-53))  # in (0, 1], so that the logarithm is finite
    angle = (2 * math.pi * 2.0**-53) * words[1]
    normals = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])
    return normals.reshape(4, count).sum(0) / 2


def grid_step(deviation: float) -> float:
    """Return the width of a release's grid: a power of two that follows from the public deviation alone."""
    return 2.0 ** max(-1022, math.frexp(deviation)[1] - 1 - _FINE)


def _add_on_grid(total: torch.Tensor, deviation: float, step: float) -> None:
    """Round `total` to whole steps and add a whole number of steps of noise to each value.

    The last rounding, to the digits of `total`, is of a sum that is already private.

    Source: Mironov 2012, "On Significance of the Least Significant Bits for Differential Privacy".
    """
    flat = total.view(-1)
    for start in range(0, flat.numel(), _BLOCK):
        part = flat[start : start + _BLOCK]
        noise = torch.from_numpy(secret_normals(part.numel())).mul_(deviation / step).round_()
        whole = (part.double() / step).round_().clamp_(-_MOST_STEPS, _MOST_STEPS)
        part.copy_(whole.add_(noise.to(part.device)).mul_(step))


def _from_entropy() -> torch.Generator:
    """Return a generator whose whole state is the system's entropy; a seed would fill 32 bits of it.

    Anyone who tried all seeds would know who took part in which step, and the guarantee rests on that secret.

    Source: Matsumoto and Nishimura 1998, "Mersenne Twister", for the state of 624 words.
    """
    generator = torch.Generator()
    state = generator.get_state()  # the seed (8 bytes), two counts and a place (16), then the words
    words = np.frombuffer(os.urandom(4 * _WORDS), dtype=np.uint32).astype(np.uint64)
    state[:8] = torch.frombuffer(bytearray(os.urandom(8)), dtype=torch.uint8)  # tells it from others
    state[24 : 24 + 8 * _WORDS] = torch.from_numpy(words.view(np.uint8))
    generator.set_state(state)
    return generator


class _Release(RandomStreams):
    mode = "release"

    def __init__(self) -> None:
        self.sampling = _from_entropy()
        self.choices = np.random.default_rng(secrets.randbits(128))

    def share(self, streams: tuple[torch.Tensor, dict]) -> None:
        """Draw as another process does, given the states of its sampling and its choices."""
        self.sampling.set_state(streams[0])
        self.choices.bit_generator.state = streams[1]

    def fill_with_noise(self, total: torch.Tensor, deviation: float) -> None:
        _add_on_grid(total.zero_(), deviation, grid_step(deviation))

    def before_sum(self, totals: Mapping[str, torch.Tensor], deviation: float) -> None:
        for total in totals.values():
            total.zero_()

    def after_sum(self, totals: Mapping[str, torch.Tensor], deviation: float, sensitivity: float) -> None:
        """Round the sum to whole steps of a fixed grid and add whole steps of noise to them.

        Whole numbers are added exactly, so what can come out is the same with and without any unit. Rounding
        to the grid moves two sums apart by at most a step in each coordinate; the noise is wider by as much.
        The clipped sum itself rounds in float32, which nothing here covers (SECURITY.md, "Floating-point
        numbers").
        """
        if deviation == 0:  # a variant under study without noise
            return
        step = grid_step(deviation)
        apart = step * math.sqrt(sum(total.numel() for total in totals.values()))
        for total in totals.values():
            _add_on_grid(total, deviation * (1 + apart / sensitivity), step)

    def dropout_seed(self) -> int:
        return secrets.randbits(63)

    @contextmanager
    def dropout(self) -> Iterator[None]:
        """Seed the global generators; the processor's, which keeps 32 bits of a seed, gets a state."""
        with super().dropout():
            torch.set_rng_state(_from_entropy().get_state())
            yield

    def state(self) -> dict[str, object]:
        return {}

    def restore(self, state: dict[str, object]) -> None:
        if state:
            raise DamagedArtifact("checkpoint: contains random streams, which a release never writes")


def is_builtin(chance: object) -> bool:
    """Return whether all randomness comes from this module."""
    return type(chance) in (_Research, _Release)


def research(seed: int) -> RandomStreams:
    """Return repeatable streams: for experiments and teaching, never for a release.

    Args:
        seed: 0 or more; published with the run, which voids its guarantee.

    Raises:
        InvalidParameter: the seed is out of its range.
    """
    return _Research(seed)


def release() -> RandomStreams:
    """Return streams from the operating system's entropy, which nothing records."""
    return _Release()
