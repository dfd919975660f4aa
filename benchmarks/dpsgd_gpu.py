"""The same steps on a GPU: speed and peak memory at 124M and 135M, in float32 and bf16 autocast."""

import gc
import time
from dataclasses import replace

import torch
from dpsgd_cells import Cell, Scene
from dpsgd_table import PLAIN, markdown, reason, shown
from dpsgd_variants import Step

ROWS, LENGTH, WARM_UP, STEPS = (8, 32), 128, 3, 10
CELLS = (
    Cell("GPT-2 124M", "gpt2", 0, LENGTH, large=True),
    Cell("Llama 135M", "llama", 0, LENGTH, large=True),
    Cell("LoRA on Llama 135M", "llama", 0, LENGTH, large=True, lora=True),
)


def measure(kind: type[Step], cell: Cell, bf16: bool) -> tuple[float, float]:
    """Return samples per second, wall clock, and the peak of allocated memory in MB, weights included."""
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
    return cell.rows / seconds, torch.cuda.max_memory_allocated() / 2**20


def table(cell: Cell, variants: dict[str, type[Step]], bf16: bool) -> str:
    """Return the table of one cell in one precision; ratios are to a plain step."""
    rows, notes, plain = [], [], {}
    for name, kind in variants.items():
        if cell.lora and not kind.lora:
            continue
        cells = []
        for size in ROWS:
            try:
                speed, megabytes = measure(kind, replace(cell, rows=size), bf16)
                if name == PLAIN:
                    plain[size] = speed, megabytes
                base = plain.get(size, (float("nan"), float("nan")))
                cells += [shown(speed, ".0f"), shown(base[0] / speed, ".2f")]
                cells += [shown(megabytes, ".0f"), shown(megabytes / base[1], ".2f")]
            except Exception as error:  # one that does not work must not hide the others
                cells += ["-"] * 4
                notes.append(f"- {name}, B{size}: {reason(error)}")
            gc.collect()  # hooks and models refer to each other
            torch.cuda.empty_cache()
        rows.append([name, *cells])
    units = ("samples/s", "time / plain", "MB", "MB / plain")
    head = [f"{unit} B{size}" for size in ROWS for unit in units]
    precision = "bf16 autocast" if bf16 else "float32"
    title = f"## {torch.cuda.get_device_name()}, {cell.name}, T{LENGTH}, {precision}"
    return "\n".join([title, "", markdown(["variant", *head], rows), "", *notes]).rstrip()


def report(variants: dict[str, type[Step]]) -> list[str]:
    """Return how it was measured, and one table for each cell and precision."""
    if not torch.cuda.is_available():
        return ["No GPU was there."]
    about = (
        f"On a GPU: wall clock of {STEPS} steps after {WARM_UP}, one variant after the other, "
        f"torch {torch.__version__}.\n"
        "Memory: the peak that torch allocated, weights, gradients and AdamW's state included."
    )
    return [about, *(table(cell, variants, bf16) for cell in CELLS for bf16 in (False, True))]
