"""What a private step costs: this project, its peers and the report's loop against a plain step.

`make bench` runs it. All variants take turns in one process on one core, round after round, on the same batch
and the same weights; what counts is the 25th percentile of CPU time over rounds, and the ratios within one
run: a figure from another run or machine is never compared. Before it is timed, the clipped sum of each
private variant is compared with one backward pass for each row, so that nothing wrong is timed.

The rows of 124M and 135M take 12 GB of memory.
"""

import argparse
import ctypes
import gc
import itertools
import multiprocessing
import os
import platform
import sys
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import dpsgd_gpu
import dpsgd_peers as peers
import dpsgd_table as table
import dpsgd_variants as variants
import torch
import transformers
from dpsgd_cells import Cell, Scene
from dpsgd_check import error_of, one_by_one
from dpsgd_table import Result
from tqdm import tqdm

from bookmaker.runner._environment import KEEP_MEMORY, THREAD_VARIABLES

CELLS = {
    "gpt2-b8-t64": Cell("GPT-2 tiny, B8 T64", "gpt2", 8, 64),
    "gpt2-b32-t64": Cell("GPT-2 tiny, B32 T64", "gpt2", 32, 64),
    "gpt2-b8-t128": Cell("GPT-2 tiny, B8 T128", "gpt2", 8, 128),
    "bert-b8-t64": Cell("BERT tiny, B8 T64", "bert", 8, 64),
    "bert-b8-t128": Cell("BERT tiny, B8 T128", "bert", 8, 128),
    "lora-b8-t64": Cell("LoRA on GPT-2 tiny, B8 T64", "gpt2", 8, 64, lora=True),
    "124m-b4-t128": Cell("GPT-2 124M, B4 T128", "gpt2", 4, 128, large=True),
    "lora-124m-b4-t128": Cell("LoRA on GPT-2 124M, B4 T128", "gpt2", 4, 128, large=True, lora=True),
    "llama-b4-t128": Cell("Llama 135M, B4 T128", "llama", 4, 128, large=True),
    "lora-llama-b4-t128": Cell("LoRA on Llama 135M, B4 T128", "llama", 4, 128, large=True, lora=True),
}
MEMORY = ("gpt2-b32-t64", "124m-b4-t128", "llama-b4-t128", "lora-llama-b4-t128")
VARIANTS: dict[str, type[variants.Step]] = {
    table.PLAIN: variants.Plain,
    table.SAME: variants.PlainSameKernels,
    table.LOOP: variants.Loop,
    table.HOOKS: peers.OpacusHooks,
    table.GHOST: peers.OpacusGhost,
    table.VMAP: variants.Vmap,
    table.FASTDP: peers.FastDP,
    table.PRIVATE_TRANSFORMERS: peers.PrivateTransformers,
    table.OURS: variants.Ours,
    table.LOW: variants.OursLow,
}
WARM_UP = 2
LEGEND = """\
Every private variant clips each row to C = 1, adds noise of sigma = 1 to the sum, divides by the rows and
calls the same AdamW. No dropout; learning rate 0, so that every step computes on the same weights.
Plain is the step of a Hugging Face model with its own loss and fused AdamW.
Same kernels is that step with the book's loss function, and with GPT-2's activation in one kernel instead of
eight; ours has both: the ratio to it is what privacy costs, and no faster kernel is sold as faster privacy.
Opacus hooks and fastDP have the book's loss as well, the others (two backward passes, vmap, loop) torch's.
Untied: the peer refuses, or gets wrong, one matrix that reads and scores, so its model has two.
The report's loop: forward and backward row after row, a copy of the gradients, clip, stack, sum, noise.
Error of the sum: of what AdamW gets, without noise, against one backward pass for each row; relative.
Memory: the peak of two steps above imports and weights, each variant in a process of its own."""


def chosen(options: argparse.Namespace) -> dict[str, type[variants.Step]]:
    """Return the variants whose source is here."""
    peers.FOLDERS.update({"fastDP": options.fastdp, "private_transformers": options.private_transformers})
    return {n: kind for n, kind in VARIANTS.items() if not kind.package or peers.FOLDERS[kind.package]}


def ready(scene: Scene, kinds: dict[str, type[variants.Step]], result: Result) -> dict[str, variants.Step]:
    """Take one step with every variant, check the private ones, and return those that may be timed."""
    sums, usable = {}, {}
    for name, kind in kinds.items():
        try:
            variant = kind(scene)
            if kind.private:
                if kind.tied not in sums:
                    sums[kind.tied] = one_by_one(scene, kind.tied)
                result.errors[name] = error_of(variant, sums[kind.tied])
            else:
                variant.step()
            variant.optimizer.zero_grad()
            usable[name] = variant
        except Exception as error:  # a peer that does not work must not hide the others
            result.failures[name] = table.reason(error)
    return usable


def time_cell(cell: Cell, kinds: dict[str, type[variants.Step]], rounds: int) -> Result:
    """Return the seconds of each variant on one cell."""
    if cell.lora and not find_spec("peft"):
        return Result(cell.name, failures={"every variant": "peft is not installed"})
    gc.collect()  # hooks and models of the last cell refer to each other
    result, scene = Result(cell.name), Scene(cell)
    kinds = {name: kind for name, kind in kinds.items() if kind.lora or not cell.lora}
    steps, seconds = ready(scene, kinds, result), {}
    warm_up = 0 if cell.large else WARM_UP  # the check was a first step already
    for _ in tqdm(range(warm_up + rounds), desc=cell.name, unit="round", leave=False):
        for name, variant in steps.items():
            start = time.process_time()
            variant.step()
            seconds.setdefault(name, []).append(time.process_time() - start)
            variant.optimizer.zero_grad()  # or all gradients of all variants would lie in memory at once
    result.seconds = {name: table.quartile(values[warm_up:]) for name, values in seconds.items()}
    return result


def resident(field: str) -> float:
    """Return a memory figure of this process in MB: VmRSS (now) or VmHWM (the most so far)."""
    # Not ru_maxrss: a new process starts with that of its parent.
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def peak(cell: Cell, kind: type[variants.Step]) -> float:
    """Return the peak memory of a few steps in MB, above imports and weights; for a fresh process."""
    variant = kind(Scene(cell))
    ctypes.CDLL(None).malloc_trim(0)  # what building freed would hide what the steps need
    start = resident("VmRSS")
    for _ in range(2):  # in the second, AdamW has its state already
        variant.step()
    return resident("VmHWM") - start


def peaks(key: str, kinds: dict[str, type[variants.Step]]) -> str:
    """Return the table of peak memory of a cell; each variant has a process that has seen no other."""
    megabytes, failures = {}, []
    names = [n for n, kind in kinds.items() if n != table.SAME and (kind.lora or not CELLS[key].lora)]
    fork = multiprocessing.get_context("fork")  # imports are done, no model is built
    for name in tqdm(names, desc=f"memory, {CELLS[key].name}", unit="process", leave=False):
        try:
            with ProcessPoolExecutor(1, mp_context=fork) as pool:
                megabytes[name] = pool.submit(peak, CELLS[key], kinds[name]).result()
        except Exception as error:  # as above; a process that was killed is one too
            failures.append(f"- {name}: {table.reason(error)}")
    return "\n".join([table.memory_table(CELLS[key].name, megabytes), "", *failures]).rstrip()


def settle(allocator: str) -> None:
    """Start again with one thread and, unless the default is asked for, with the book's malloc settings."""
    wanted = {**dict.fromkeys(THREAD_VARIABLES, "1"), "HF_HUB_OFFLINE": "1"}
    wanted |= dict.fromkeys(KEEP_MEMORY) if allocator == "default" else KEEP_MEMORY
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        settings = {name: value for name, value in {**os.environ, **wanted}.items() if value is not None}
        os.execve(sys.executable, sys.orig_argv, settings)


def machine(allocator: str) -> str:
    """Return processor, versions and settings."""
    about = Path("/proc/cpuinfo")
    lines = about.read_text().splitlines() if about.exists() else []
    names = [line.split(": ")[1] for line in lines if line.startswith("model name")]
    packages = ", ".join(f"{name} {version(name)}" for name in ("torch", "transformers", "opacus"))
    settings = ", ".join(f"{name}={value}" for name, value in KEEP_MEMORY.items())
    kept = (
        f"Every variant runs under the malloc settings of the book's runs: {settings}.\n"
        "Without them, faulting freed blocks in again costs more than some of the arithmetic."
    )
    default = (
        "Every variant runs under glibc's malloc as it comes: blocks of megabytes go back to the system as\n"
        "they are freed, and are faulted in again at the next step by the variants that need new ones."
    )
    return (
        f"{(names or [platform.machine()])[0]}, one core, one thread, CPU time.\n"
        f"Python {platform.python_version()}, {packages}.\n"
        f"{default if allocator == 'default' else kept}"
    )


def options() -> argparse.Namespace:
    """Return what the caller asks for."""
    kind = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=kind)
    parser.add_argument(
        "--rows", nargs="+", choices=[*CELLS, "memory", *dpsgd_gpu.CELLS], help="only these rows of the table"
    )
    parser.add_argument("--quick", action="store_true", help="few rounds, nothing of 124M")
    parser.add_argument("--rounds", type=int, help="rounds of every row; default: by its size")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the tables as Markdown")
    parser.add_argument("--fastdp", metavar="PATH", help="clone of awslabs/fast-differential-privacy")
    parser.add_argument(
        "--private-transformers", metavar="PATH", help="clone of lxuechen/private-transformers"
    )
    help_ = "memory of freed blocks: kept, as in the book's runs, or glibc's default"
    parser.add_argument("--allocator", choices=("kept", "default"), default="kept", help=help_)
    asked = parser.parse_args()
    if asked.write and not asked.write.absolute().parent.is_dir():
        parser.error(f"--write {asked.write}: there is no such folder")
    if asked.rounds is not None and asked.rounds < 1:
        parser.error(f"--rounds {asked.rounds}: must be at least 1")
    return asked


def rounds_of(cell: Cell, asked: argparse.Namespace) -> int:
    """Return how often each variant takes its turn."""
    if asked.rounds:
        return asked.rounds
    if cell.large:
        return 2
    return 6 if asked.quick or cell.rows > 8 else 12


def measure(asked: argparse.Namespace) -> Iterator[str]:
    """Yield the parts of the report, one after the other."""
    kinds, keys = chosen(asked), asked.rows or [*CELLS, "memory", *dpsgd_gpu.CELLS]
    keys = [key for key in keys if key not in CELLS or not (asked.quick and CELLS[key].large)]
    wanted = CELLS.keys() & keys or CELLS.keys()  # of the cells that are asked for, or of all
    places = [k for k in MEMORY if "memory" in keys and k in wanted and not (asked.quick and CELLS[k].large)]
    memory = [peaks(key, kinds) for key in places]
    results = [time_cell(CELLS[key], kinds, rounds_of(CELLS[key], asked)) for key in keys if key in CELLS]
    if results:
        yield table.price_of_the_loop(results)
        yield "## Ratios of this run"
        yield table.ratio_table(results)
    yield from map(table.cell_table, results)
    yield from memory
    if on_gpu := [key for key in keys if key in dpsgd_gpu.CELLS]:
        yield from dpsgd_gpu.report(on_gpu, kinds)


def main() -> None:
    """Measure; print and write each part as it is done."""
    asked = options()
    settle(asked.allocator)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # Opacus' remarks on hooks and on its random numbers
    transformers.logging.set_verbosity_error()
    head = ["# What a private step costs", machine(asked.allocator)]
    if asked.rows and dpsgd_gpu.CELLS.keys() >= set(asked.rows):
        head = ["# A private step on a GPU"]
    parts = []
    for part in filter(None, itertools.chain(head, [LEGEND], measure(asked))):
        parts.append(part)
        print(part, end="\n\n", flush=True)
        if asked.write:
            asked.write.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
