"""What the norms of every row's gradient, parameter by parameter, cost over one plain backward pass.

`ratio()` takes turns, round after round, on one core with the same weights and batch; what counts is the 25th
percentile of CPU time. Plain is a forward and a backward pass of the same Hugging Face model with its own
loss, which leaves one gradient of the batch; ours has the norm of each row's gradient of each parameter.
Before it is timed, the result is compared with one backward pass for each row.
"""

import time
from collections.abc import Callable

import numpy as np
import torch
from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel, PreTrainedModel

from privhelpers.dpsgd import ClippedGradients
from privhelpers.models.scoring import row_losses

VOCABULARY, POSITIONS, WIDTH, LAYERS, HEADS = 1536, 128, 96, 2, 4  # tiny-gpt2 and tiny-bert
TOLERANCE, LIMIT = 1e-3, 1.25


def _gpt2() -> PreTrainedModel:
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=VOCABULARY,
            n_positions=POSITIONS,
            n_embd=WIDTH,
            n_layer=LAYERS,
            n_head=HEADS,
            activation_function="gelu_pytorch_tanh",
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
        )
    )


def _bert() -> PreTrainedModel:
    return BertForMaskedLM(
        BertConfig(
            vocab_size=VOCABULARY,
            hidden_size=WIDTH,
            num_hidden_layers=LAYERS,
            num_attention_heads=HEADS,
            intermediate_size=4 * WIDTH,
            max_position_embeddings=POSITIONS,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            pad_token_id=None,
        )
    )


MODELS = {"gpt2": _gpt2, "bert": _bert}


def _batch(family: str, rows: int, tokens: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(0, VOCABULARY, (rows, tokens), generator=generator)
    if family == "gpt2":
        return {"input_ids": ids, "labels": ids.clone()}
    asked = torch.rand(ids.shape, generator=generator) < 0.15
    asked[:, 1] = True
    return {"input_ids": ids, "labels": ids.masked_fill(~asked, -100), "attention_mask": torch.ones_like(ids)}


def _plain(model: PreTrainedModel, batch: dict[str, torch.Tensor], own_loss: bool) -> Callable[[], None]:
    shift = isinstance(model, GPT2LMHeadModel)
    inputs = {name: value for name, value in batch.items() if name != "labels"}

    def run() -> None:
        model.zero_grad(set_to_none=True)
        if own_loss:
            loss = model(**batch).loss
        else:
            loss = row_losses(model(**inputs).logits, batch["labels"], shift=shift).sum()
        loss.backward()

    return run


def _check(model: PreTrainedModel, batch: dict[str, torch.Tensor]) -> None:
    norms = ClippedGradients(model, max_grad_norm=1.0).layer_norms(batch)
    for row in range(2):
        model.zero_grad(set_to_none=True)
        model(**{name: value[row : row + 1] for name, value in batch.items()}).loss.backward()
        for name, parameter in model.named_parameters():
            expected = float(parameter.grad.double().norm())
            if abs(float(norms[name][row]) - expected) > TOLERANCE * expected + 1e-6:
                raise ValueError(f"{name}, row {row}: {float(norms[name][row])} is not {expected}")
    model.zero_grad(set_to_none=True)


def ratio(family: str = "gpt2", *, rows: int = 32, tokens: int = 64, rounds: int = 40) -> dict[str, float]:
    """Return milliseconds of a pass and the ratios of the layer norms to a plain pass.

    Args:
        family: "gpt2" or "bert".
        rows, tokens: of the batch.
        rounds: turns that each takes.

    Returns:
        `plain_ms`, `same_loss_ms` (plain, with the book's loss function), `ours_ms`, and the ratios of ours
        to both: `ratio` and `ratio_same_loss`.
    """
    torch.manual_seed(0)
    model, batch = MODELS[family]().eval(), _batch(family, rows, tokens)
    _check(model, batch)
    engine = ClippedGradients(model, max_grad_norm=1.0)
    turns = {
        "plain": _plain(model, batch, own_loss=True),
        "same_loss": _plain(model, batch, own_loss=False),
        "ours": lambda: engine.layer_norms(batch),
    }
    seconds: dict[str, list[float]] = {name: [] for name in turns}
    for number in range(rounds + 2):
        for name, run in turns.items():
            start = time.process_time()
            run()
            if number >= 2:  # the first turns warm the caches
                seconds[name].append(time.process_time() - start)
        model.zero_grad(set_to_none=True)
    milliseconds = {f"{name}_ms": 1e3 * float(np.percentile(values, 25)) for name, values in seconds.items()}
    return {
        **milliseconds,
        "ratio": milliseconds["ours_ms"] / milliseconds["plain_ms"],
        "ratio_same_loss": milliseconds["ours_ms"] / milliseconds["same_loss_ms"],
    }


def main() -> None:
    """Measure and print a table."""
    torch.set_num_threads(1)
    print("# The norm of every row's gradient, parameter by parameter\n")
    print(f"One core, CPU time, batches of 32 rows of 64 tokens; wanted: {LIMIT} or less of a plain pass.\n")
    print("| model | plain pass, ms | ours, ms | ours / plain | ours / plain with the book's loss |")
    print("|:--|--:|--:|--:|--:|")
    for family in MODELS:
        timing = ratio(family)
        times = f"{timing['plain_ms']:.1f} | {timing['ours_ms']:.1f}"
        print(f"| {family} | {times} | {timing['ratio']:.2f} | {timing['ratio_same_loss']:.2f} |")


if __name__ == "__main__":
    main()
