"""What it gains to send products of matrices to oneDNN, on a processor where PyTorch's own are slow.

Both take turns, round after round, on one core with the same weights and batch; what counts is the 25th
percentile of CPU time. Before it is timed, the results of both are compared.
"""

import time
from collections.abc import Callable

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, PreTrainedModel

from privhelpers.dpsgd import clipped_gradient_sum
from privhelpers.models import _products, row_losses

ROUNDS, TOLERANCE = 20, 1e-4
MODELS = {
    "GPT-2 tiny, B32 T64": (
        lambda: GPT2LMHeadModel(GPT2Config(vocab_size=1536, n_positions=128, n_embd=96, n_layer=2, n_head=4)),
        (32, 64),
    ),
    "Llama of 9 million weights, B4 T128": (
        lambda: LlamaForCausalLM(
            LlamaConfig(
                vocab_size=4096,
                hidden_size=320,
                intermediate_size=864,
                num_hidden_layers=6,
                num_attention_heads=5,
                num_key_value_heads=5,
            )
        ),
        (4, 128),
    ),
}


def _jobs(model: PreTrainedModel, ids: torch.Tensor) -> dict[str, Callable[[], float]]:
    """Return what is timed, by name; each gives a number that must not depend on who multiplies."""

    def plain() -> float:
        model.zero_grad(set_to_none=True)
        row_losses(model(ids).logits, ids).mean().backward()
        return float(torch.sqrt(sum(p.grad.square().sum() for p in model.parameters())))

    def private() -> float:
        batch = {"input_ids": ids, "labels": ids}
        return float(clipped_gradient_sum(model, batch, max_grad_norm=0.5)[1].sum())

    def score() -> float:
        with torch.no_grad():
            return float(row_losses(model(ids).logits, ids).mean())

    return {"plain pass, both ways": plain, "clipped sum": private, "scoring": score}


def compare(job: Callable[[], float]) -> tuple[float, float]:
    """Return milliseconds with PyTorch's products, and with those of oneDNN.

    Raises:
        ValueError: the two give different results.
    """
    seconds: dict[bool, list[float]] = {False: [], True: []}
    results: dict[bool, float] = {}
    for number in range(ROUNDS + 2):
        for onednn, taken in seconds.items():
            (_products.use_onednn if onednn else _products.use_torch)()
            start = time.process_time()
            results[onednn] = job()
            if number >= 2:  # the first turns warm the caches
                taken.append(time.process_time() - start)
    if abs(results[True] / results[False] - 1) > TOLERANCE:
        raise ValueError(f"oneDNN gives {results[True]}, PyTorch {results[False]}")
    slow, fast = (1e3 * float(np.percentile(taken, 25)) for taken in seconds.values())
    return slow, fast


def main() -> None:
    """Measure and print a table."""
    torch.set_num_threads(1)
    print("# Products of matrices by oneDNN\n")
    if not _products.use_onednn():
        print("Not used on this processor: PyTorch's own products are left alone.")
        return
    print("One core, one thread, CPU time; no dropout.\n")
    print("| model | job | PyTorch's, ms | oneDNN, ms | oneDNN / PyTorch's |")
    print("|:--|:--|--:|--:|--:|")
    for name, (make, shape) in MODELS.items():
        torch.manual_seed(0)
        model = make().eval()
        ids = torch.randint(0, model.config.vocab_size, shape)
        for job_name, job in _jobs(model, ids).items():
            slow, fast = compare(job)
            print(f"| {name} | {job_name} | {slow:.1f} | {fast:.1f} | {fast / slow:.2f} |")


if __name__ == "__main__":
    main()
