"""The same steps on a GPU: milliseconds and peak memory at 124M and 135M, in float32 and bf16 autocast.

All variants of a cell take turns, round after round, on one batch and the same weights; a ratio is the median
over the rounds of two times of one round. Before it is timed, the clipped sum of each private variant is
compared with one backward pass for each row in float32, at a few rows.
"""

import gc
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version

import numpy as np
import torch
from dpsgd_cells import Cell, Scene
from dpsgd_check import TOLERANCE, error_of, one_by_one
from dpsgd_table import LOOP, PLAIN, markdown, reason, shown
from dpsgd_variants import Step

ROWS, CHECKED_ROWS, LENGTH, WARM_UP, ROUNDS, STEPS = (32, 128), 8, 128, 2, 4, 3
BF16_TOLERANCE = 0.1  # three digits in every product, where what is wrong is wrong by tens of percents
CELLS = {
    "gpu-124m": Cell("GPT-2 124M", "gpt2", 0, LENGTH, large=True),
    "gpu-llama": Cell("Llama 135M", "llama", 0, LENGTH, large=True),
    "gpu-lora-llama": Cell("LoRA on Llama 135M", "llama", 0, LENGTH, large=True, lora=True),
}


@dataclass
class Turns:
    """What one variant gave at one number of rows: a value a round, or why there is none."""

    milliseconds: list[float] = field(default_factory=list)  # of one step
    megabytes: list[float] = field(default_factory=list)  # peak above what lay there before the turn
    failure: str = ""


def free() -> None:
    """Give back what no variant holds; hooks and models refer to each other."""
    gc.collect()
    torch.cuda.empty_cache()


def checked(cell: Cell, kinds: dict[str, type[Step]], bf16: bool) -> tuple[dict[str, float], dict[str, str]]:
    """Return the error of each private variant's clipped sum, and why a variant has none."""
    scene, sums, errors, failures = Scene(cell, "cuda", bf16), {}, {}, {}
    tolerance = BF16_TOLERANCE if bf16 else TOLERANCE
    for name, kind in kinds.items():
        if not kind.private:
            continue
        try:
            if kind.tied not in sums:
                sums[kind.tied] = one_by_one(scene, kind.tied)
            variant = kind(scene)
            errors[name] = error_of(variant, sums[kind.tied], tolerance)
            variant.optimizer.zero_grad()
        except Exception as error:  # one that does not work must not hide the others
            failures[name] = reason(error)
    return errors, failures


def take(variant: Step, steps: int) -> tuple[float, float]:
    """Take a turn; return milliseconds of a step and peak MB above what lay there before."""
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(steps):
        variant.step()
    end.record()
    torch.cuda.synchronize()
    megabytes = (torch.cuda.max_memory_allocated() - before) / 2**20
    variant.optimizer.zero_grad()  # or all gradients of all variants would lie in memory at once
    return start.elapsed_time(end) / steps, megabytes


def time_cell(cell: Cell, kinds: dict[str, type[Step]], bf16: bool) -> dict[str, Turns]:
    """Return what each variant gave on one cell."""
    scene, variants, turns = Scene(cell, "cuda", bf16), {}, {name: Turns() for name in kinds}
    for number in range(1 + ROUNDS):  # the first only warms up
        for name, kind in kinds.items():
            if turns[name].failure:
                continue
            try:
                if number == 0:
                    variants[name] = kind(scene)
                    take(variants[name], WARM_UP)
                    continue
                milliseconds, megabytes = take(variants[name], STEPS)
                turns[name].milliseconds.append(milliseconds)
                turns[name].megabytes.append(megabytes)
            except Exception as error:
                full = isinstance(error, torch.OutOfMemoryError)
                turns[name].failure = "it needs more memory than the GPU has" if full else reason(error)
                variants.pop(name, None)
                free()
    return turns


def cells_of(turns: Turns, plain: Turns) -> list[str]:
    """Return the four cells of a variant: milliseconds, ratio with its range, MB, and their ratio."""
    if turns.failure or plain.failure or not turns.milliseconds:
        return ["-"] * 4
    ratios = np.divide(turns.milliseconds, plain.milliseconds)
    megabytes = max(turns.megabytes)
    return [
        shown(float(np.median(turns.milliseconds)), ".1f"),
        f"{np.median(ratios):.2f} ({ratios.min():.2f}-{ratios.max():.2f})",
        shown(megabytes, ".0f"),
        shown(megabytes / max(plain.megabytes), ".2f"),
    ]


def table(cell: Cell, variants: dict[str, type[Step]], bf16: bool) -> str:
    """Return the table of one cell in one precision; ratios are to a plain step of the same round."""
    kinds = {name: kind for name, kind in variants.items() if kind.lora or not cell.lora}
    errors, failures = checked(replace(cell, rows=CHECKED_ROWS), kinds, bf16)
    free()
    kinds = {name: kind for name, kind in kinds.items() if name not in failures}
    notes = [f"- {name}: not timed. {why}" for name, why in failures.items()]
    columns = {name: [name] for name in kinds}
    for rows in ROWS:
        # Row after row, the loop's time is that of a row times the rows: the few are enough.
        timed = {name: kind for name, kind in kinds.items() if name != LOOP or rows == min(ROWS)}
        turns = time_cell(replace(cell, rows=rows), timed, bf16)
        for name in kinds:
            columns[name] += cells_of(turns[name], turns[PLAIN]) if name in turns else ["-"] * 4
        notes += [f"- {name}, B{rows}: {t.failure}" for name, t in turns.items() if t.failure]
        free()
    body = [[*cells, shown(errors.get(name), ".0e")] for name, cells in columns.items()]
    units = ("ms", "/ plain", "MB", "MB / plain")
    head = ["variant", *(f"{unit} B{rows}" for rows in ROWS for unit in units), "error of the sum"]
    precision = "bf16 autocast" if bf16 else "float32"
    title = f"## {cell.name}, T{LENGTH}, {precision}"
    return "\n".join([title, "", markdown(head, body), "", *notes]).rstrip()


def report(keys: Sequence[str], variants: dict[str, type[Step]]) -> Iterator[str]:
    """Yield how it was measured, then one table for each cell and precision as it is done."""
    if not torch.cuda.is_available():
        yield "No GPU was there."
        return
    packages = ", ".join(f"{name} {version(name)}" for name in ("torch", "transformers", "opacus"))
    yield (
        f"One {torch.cuda.get_device_name()}; Python {platform.python_version()}, {packages}.\n"
        f"All variants take turns of {STEPS} steps, {ROUNDS} rounds after a first of {WARM_UP} steps.\n"
        "A ratio is the median over rounds of two times of one round, with the least and the most.\n"
        "Memory: the peak that torch allocated in a turn above weights and AdamW's state.\n"
        f"Error of the sum: against one backward pass a row in float32, at {CHECKED_ROWS} rows."
    )
    for key in keys:
        for bf16 in (False, True):
            yield table(CELLS[key], variants, bf16)
