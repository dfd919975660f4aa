"""What the attacks cost: batched generation and scoring against one text at a time.

`make bench` runs it. The variants of a comparison take turns in one process on one core, round after round;
what counts is the 25th percentile of CPU time over rounds, and the ratio within one run: a figure from
another run or machine is never compared. Before anything is timed, both variants must give the same result.

To add a comparison, write a function that returns a `Comparison` and name it in `COMPARISONS`.
"""

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
import transformers
from dpsgd_table import markdown, quartile, shown
from tqdm import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from bookmaker.runner._environment import KEEP_MEMORY, THREAD_VARIABLES
from privhelpers import models, records
from privhelpers.attacks.extraction import PROMPTS

ONE, LIBRARY, OURS = "one text at a time", "library, batched", "ours, batched"
PER_PROMPT = 100
SAMPLING = models.Sampling()


@dataclass(frozen=True)
class Variant:
    """One way of doing the job.

    Attributes:
        run: does `share` of the job; its result is not looked at.
        share: part of the whole job that one call does, in (0, 1]; the seconds are extrapolated by it.
    """

    run: Callable[[], object]
    share: float = 1.0


@dataclass(frozen=True)
class Comparison:
    """What is to be timed.

    Attributes:
        title: the job.
        variants: ways of doing it, by name.
        slow, fast: the two whose ratio counts.
        least: what the ratio should reach.
        notes: what a reader must know.
    """

    title: str
    variants: dict[str, Variant]
    slow: str
    fast: str
    least: float
    notes: tuple[str, ...] = ()


@dataclass
class Scene:
    """A model of the book's default size with fresh weights, and the notes of a small hospital."""

    model: PreTrainedModel = field(init=False)
    tokenizer: PreTrainedTokenizerBase = field(init=False)
    texts: list[str] = field(init=False)

    def __post_init__(self) -> None:
        """Make everything from a seed: no earlier run is needed."""
        public = records.make_public_corpus(seed=0, documents=2000)
        self.tokenizer = models.train_tokenizer(public, vocab_size=1536)
        self.model = models.build("tiny-gpt2", self.tokenizer, seed=0).eval()
        hospital = records.make_hospital_records(
            seed=0, patients=250, validation_patients=1, heldout_patients=1, canaries_per_level=1
        )
        self.texts = [note["text"] for note in hospital.train][:400]


def generate_one(scene: Scene, prompt: str, samples: int = 1) -> torch.Tensor:
    """Generate as the report does: the library's own loop with its cache, and its settings."""
    start = [scene.tokenizer.eos_token_id, *scene.tokenizer(prompt, add_special_tokens=False)["input_ids"]]
    ids = torch.tensor([start])
    with torch.inference_mode():
        return scene.model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=True,
            num_return_sequences=samples,
            max_length=SAMPLING.max_length,
            temperature=SAMPLING.temperature,
            top_k=SAMPLING.top_k,
            top_p=SAMPLING.top_p,
            pad_token_id=scene.tokenizer.eos_token_id,
        )


def compare_generation(scene: Scene) -> Comparison:
    """Return the comparison of 1,400 texts of 80 tokens: 14 prompts, 100 texts each."""

    def ours() -> list[list[str]]:
        many = {"samples": PER_PROMPT, "seed": 0, "sampling": SAMPLING}
        return [models.generate(scene.model, scene.tokenizer, prompt, **many) for prompt in PROMPTS]

    def one_by_one() -> list[torch.Tensor]:
        return [generate_one(scene, prompt) for prompt in PROMPTS]

    def library() -> torch.Tensor:
        return generate_one(scene, PROMPTS[0], PER_PROMPT)

    rows = [row for _ in range(3) for row in one_by_one()]
    alone = [len(scene.tokenizer.decode(row[0], skip_special_tokens=True)) for row in rows]
    together = [len(text) for texts in ours() for text in texts]
    check_lengths(together, alone)
    notes = (
        f"Up to {SAMPLING.max_length} tokens with the end token first; with fresh weights nearly every text "
        f"is as long: {np.mean([row.shape[1] for row in rows]):.0f} tokens on average.",
        f"In characters ours have {np.mean(together):.0f} and the library's {np.mean(alone):.0f}.",
        f"One at a time: one text a prompt is timed, and its seconds are multiplied by {PER_PROMPT}.",
        f"Library, batched: the {PER_PROMPT} texts of one prompt, multiplied by {len(PROMPTS)}.",
        "The distribution is the same: tests/unit/test_models_generation.py.",
    )
    variants = {
        ONE: Variant(one_by_one, 1 / PER_PROMPT),
        LIBRARY: Variant(library, 1 / len(PROMPTS)),
        OURS: Variant(ours),
    }
    return Comparison("Generation: 1,400 texts of 80 tokens", variants, ONE, OURS, 15.0, notes)


def check_lengths(ours: Sequence[int], alone: Sequence[int]) -> None:
    """Stop if one side writes shorter texts: it would win by writing less."""
    if abs(np.mean(ours) / np.mean(alone) - 1) > 0.1:
        raise SystemExit(f"lengths differ: {np.mean(ours):.0f} and {np.mean(alone):.0f} characters")


def score_one_by_one(scene: Scene) -> np.ndarray:
    """Score text after text with the loss that the library returns."""
    losses, end = [], scene.tokenizer.eos_token_id
    with torch.inference_mode():
        for text in scene.texts:
            ids = torch.tensor([[end, *scene.tokenizer(text, add_special_tokens=False)["input_ids"], end]])
            losses.append(scene.model(input_ids=ids, labels=ids).loss.item())
    return np.array(losses)


def compare_scoring(scene: Scene) -> Comparison:
    """Return the comparison of scoring 400 notes."""

    def ours() -> np.ndarray:
        return models.score(scene.model, scene.tokenizer, scene.texts).losses

    error = float(np.abs(ours() - score_one_by_one(scene)).max())
    if not error < 1e-4:
        raise SystemExit(f"scores differ by {error:.1e} nats per token")
    lengths = [len(row) for row in scene.tokenizer(scene.texts)["input_ids"]]
    notes = (
        f"Notes of {np.mean(lengths):.0f} tokens on average ({min(lengths)} to {max(lengths)}); the losses "
        f"agree to {error:.0e} nats per token.",
        "Every attack of the book reads the same scores, so a text is scored once for each model.",
    )
    variants = {ONE: Variant(lambda: score_one_by_one(scene)), OURS: Variant(ours)}
    return Comparison("Scoring: 400 notes", variants, ONE, OURS, 1.4, notes)


COMPARISONS: dict[str, Callable[[Scene], Comparison]] = {
    "generation": compare_generation,
    "scoring": compare_scoring,
}


def time_variants(comparison: Comparison, rounds: int) -> dict[str, float]:
    """Return the seconds of the whole job for each variant; they take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in comparison.variants}
    for _ in tqdm(range(rounds), desc=comparison.title, unit="round", leave=False):
        for name, variant in comparison.variants.items():
            start = time.process_time()
            variant.run()
            seconds[name].append((time.process_time() - start) / variant.share)
    return {name: quartile(values) for name, values in seconds.items()}


def section(comparison: Comparison, seconds: dict[str, float]) -> str:
    """Return the table of one comparison and its notes."""
    rows = [
        [name, f"{value:.2f}", shown(seconds[comparison.slow] / value)] for name, value in seconds.items()
    ]
    table = markdown(["variant", "CPU seconds", f"{comparison.slow} / variant"], rows)
    return "\n".join([f"## {comparison.title}", "", table, "", *(f"- {note}" for note in comparison.notes)])


def ratios(results: Sequence[tuple[Comparison, dict[str, float]]]) -> str:
    """Return the ratios that matter, one row for each comparison."""
    rows = [
        [
            c.title,
            shown(s[c.slow] / s[c.fast], ".1f"),
            f"{c.least:g}",
            "yes" if s[c.slow] >= c.least * s[c.fast] else "no",
        ]
        for c, s in results
    ]
    return markdown(["job", "slow / fast", "wanted", "reached"], rows)


def settle() -> None:
    """Start again with one thread and the book's malloc settings."""
    wanted = {**dict.fromkeys(THREAD_VARIABLES, "1"), "HF_HUB_OFFLINE": "1", **KEEP_MEMORY}
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        os.execve(sys.executable, sys.orig_argv, {**os.environ, **wanted})


def machine() -> str:
    """Return processor, versions and settings."""
    about = Path("/proc/cpuinfo")
    lines = about.read_text().splitlines() if about.exists() else []
    names = [line.split(": ")[1] for line in lines if line.startswith("model name")]
    packages = ", ".join(f"{name} {version(name)}" for name in ("torch", "transformers"))
    return (
        f"{(names or [platform.machine()])[0]}, one core, one thread, CPU time; "
        f"Python {platform.python_version()}, {packages}."
    )


def options() -> argparse.Namespace:
    """Return what the caller asks for."""
    kind = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=kind)
    parser.add_argument("--only", nargs="+", choices=COMPARISONS, default=list(COMPARISONS))
    parser.add_argument("--rounds", type=int, default=5, help="turns of each variant")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the tables as Markdown")
    asked = parser.parse_args()
    if asked.write and not asked.write.absolute().parent.is_dir():
        parser.error(f"--write {asked.write}: there is no such folder")
    if asked.rounds < 1:
        parser.error(f"--rounds {asked.rounds}: must be at least 1")
    return asked


def main() -> None:
    """Measure, print and write."""
    asked = options()
    settle()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    scene, results = Scene(), []
    for name in asked.only:
        comparison = COMPARISONS[name](scene)
        results.append((comparison, time_variants(comparison, asked.rounds)))
    parts = ["# What the attacks cost", machine(), ratios(results), *(section(*result) for result in results)]
    text = "\n\n".join(parts)
    print(text)
    if asked.write:
        asked.write.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
