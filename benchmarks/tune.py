"""Tune every arm on the auxiliary hospital, never on the private notes.

    python benchmarks/tune.py            prints the table of benchmarks/tune.md

The private hospital's notes enter nowhere: the grid is scored on held-out patients of the auxiliary
hospital, which has other wards, phrases and drug choices. The non-private arm gets as many tries as the
private one, so that the price of privacy is not a price of bad tuning.
"""

import copy
import itertools
import time

import torch

from privhelpers import dpsgd, models, records, training
from privhelpers.models.adapters import with_adapters

SEED, EPSILON, DELTA = 0, 8.0, 1e-5
PUBLIC = training.Settings(epochs=4, learning_rate=4e-3, batch_size=32, weight_decay=0.01)


def texts(notes: list[dict]) -> list[str]:
    """Return the texts of notes."""
    return [note["text"] for note in notes]


def private_grid(hospital, start) -> list[tuple[str, float, float]]:
    """Return (settings, perplexity, CPU seconds) of DP-SGD at one budget."""
    units, rows = list(records.by_patient(hospital.train).values()), []
    for sample_rate, steps, rate in [
        *itertools.product((0.1,), (150,), (4e-3, 6e-3, 8e-3)),
        (0.15, 100, 6e-3),
    ]:
        net, tokenizer = start()
        clock = time.process_time()
        plan = dpsgd.plan_privacy(
            target_epsilon=EPSILON,
            target_delta=DELTA,
            sample_rate=sample_rate,
            steps=steps,
            max_grad_norm=0.5,
            units=len(units),
        )
        dpsgd.train(net, tokenizer, units, plan, dpsgd.Settings(rate), chance=dpsgd.research(SEED))
        seconds = time.process_time() - clock
        name = f"DP-SGD, sample rate {sample_rate}, {steps} steps, learning rate {rate}"
        rows.append((name, models.score(net, tokenizer, texts(hospital.heldout)).perplexity, seconds))
    return rows


def plain_grid(hospital, start) -> list[tuple[str, float, float]]:
    """Return the same for ordinary training with early stopping."""
    rows = []
    for epochs, rate, size, decay in [
        (8, 3e-3, 16, 0.0),
        (8, 4e-3, 16, 0.05),
        (8, 6e-3, 32, 0.05),
        (8, 2e-3, 8, 0.05),
        (12, 4e-3, 16, 0.05),
        (12, 4e-3, 32, 0.05),
    ]:
        net, tokenizer = start()
        clock = time.process_time()
        settings = training.Settings(
            epochs=epochs, learning_rate=rate, batch_size=size, weight_decay=decay, patience=2
        )
        _, best = training.train(
            net,
            tokenizer,
            texts(hospital.train),
            settings,
            seed=SEED,
            validation_texts=texts(hospital.validation),
        )
        seconds = time.process_time() - clock
        net.load_state_dict(best)
        name = f"non-private, {epochs} epochs, learning rate {rate}, batch {size}, weight decay {decay}"
        rows.append((name, models.score(net, tokenizer, texts(hospital.heldout)).perplexity, seconds))
    return rows


def adapter_grid(hospital, start) -> list[tuple[str, float, float]]:
    """Return the same for adapters on GPT-2's matrices, without a budget, all epochs run."""
    rows = []
    for rank, rate in [(8, 0.02), (16, 0.015), (32, 0.01), (32, 0.02)]:
        net, tokenizer = start()
        net = with_adapters(
            copy.deepcopy(net),
            rank=rank,
            targets=("c_attn", "c_proj", "c_fc"),
            seed=SEED,
            fan_in_fan_out=True,
        )
        clock = time.process_time()
        settings = training.Settings(epochs=5, learning_rate=rate)
        training.train(net, tokenizer, texts(hospital.train), settings, seed=SEED)
        seconds = time.process_time() - clock
        name = f"adapters of rank {rank}, 5 epochs, learning rate {rate}, batch 16"
        rows.append((name, models.score(net, tokenizer, texts(hospital.heldout)).perplexity, seconds))
    return rows


def main() -> None:
    """Pretrain once, run the grids, print the table."""
    torch.set_num_threads(1)
    hospital = records.make_hospital_records(
        seed=SEED,
        patients=1000,
        validation_patients=150,
        heldout_patients=600,
        canaries_per_level=8,
        hospital="auxiliary",
    )
    public = records.make_public_corpus(seed=SEED, documents=12000, excluded_names=hospital.names)
    net, tokenizer = models.start("tiny-gpt2", public, vocab_size=1536, seed=SEED)
    training.train(net, tokenizer, public, PUBLIC, seed=SEED)
    weights = {name: value.clone() for name, value in net.state_dict().items()}

    def start():
        net.load_state_dict(weights)
        return net, tokenizer

    print("| settings | perplexity on never-trained auxiliary patients | CPU seconds |\n|---|---|---|")
    grids = (private_grid, plain_grid, adapter_grid)
    for name, perplexity, seconds in itertools.chain(*(grid(hospital, start) for grid in grids)):
        print(f"| {name} | {perplexity:.3f} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
