"""Training that gives the same bits every time, on a GPU too.

A GPU adds what many threads give to one number in the order in which they come, and float addition depends
on its order: the same run twice ends with different last digits, and a continued run differs from one that
was never stopped. PyTorch has an algorithm without that for most such sums; it is asked for here.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.utils import deterministic


@contextmanager
def repeatable_on(device: torch.device) -> Iterator[None]:
    """Use algorithms that repeat to the bit on a GPU within this context; a CPU needs none.

    An operation that has no such algorithm warns, by PyTorch, and goes on.

    Args:
        device: on which the weights lie.
    """
    if device.type != "cuda":
        yield
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # PyTorch warns of products without it
    before = torch.get_deterministic_debug_mode(), deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True, warn_only=True)
    deterministic.fill_uninitialized_memory = False  # nothing here reads what it did not write
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(before[0])
        deterministic.fill_uninitialized_memory = before[1]
