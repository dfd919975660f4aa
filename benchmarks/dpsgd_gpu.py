"""The same steps on a GPU: samples per second and peak memory of GPT-2 124M, in float32 and bf16 autocast."""

import gc
import time

import torch
from dpsgd_cells import Cell, Scene
from dpsgd_table import markdown, reason, shown
from dpsgd_variants import Step

ROWS, LENGTH, WARM_UP, STEPS = (8, 16, 32, 64), 128, 3, 10


def measure(kind: type[Step], rows: int, bf16: bool) -> tuple[float, float]:
    """Return samples per second, wall clock, and the peak of allocated memory in MB, weights included."""
    cell = Cell(f"B{rows}", "gpt2", rows, LENGTH, large=True)
    torch.cuda.reset_peak_memory_stats()
    variant = kind(Scene(cell, "cuda", bf16))
    for _ in range(WARM_UP):
        variant.step()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(STEPS):
        variant.step()
    torch.cuda.synchronize()
    seconds = (time.perf_counter() - start) / STEPS
    return rows / seconds, torch.cuda.max_memory_allocated() / 2**20


def tables(variants: dict[str, type[Step]]) -> list[str]:
    """Return one table for each precision."""
    parts = []
    for bf16 in (False, True):
        rows, notes = [], []
        for name, kind in variants.items():
            cells = []
            for size in ROWS:
                try:
                    speed, megabytes = measure(kind, size, bf16)
                    cells += [shown(speed, ".0f"), shown(megabytes, ".0f")]
                except Exception as error:  # one that does not work must not hide the others
                    cells += ["-", "-"]
                    notes.append(f"- {name}, B{size}: {reason(error)}")
                gc.collect()  # hooks and models refer to each other
                torch.cuda.empty_cache()
            rows.append([name, *cells])
        head = [f"{unit} B{size}" for size in ROWS for unit in ("samples/s", "MB")]
        precision = "bf16 autocast" if bf16 else "float32"
        title = f"## {torch.cuda.get_device_name()}, GPT-2 124M, T{LENGTH}, {precision}"
        parts.append("\n".join([title, "", markdown(["variant", *head], rows), "", *notes]).rstrip())
    return parts
