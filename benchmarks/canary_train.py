"""Train a small GPT-2 on a canary kit, as users of the Hugging Face Trainer do.

    python benchmarks/canary_train.py --kit kit --epochs 30 --out model

Of this repository, it imports the callback that looks for the canaries in the batches, and from the script of
the field trial, which imports nothing of it, the tokenizer. With `--epsilon`, Opacus trains the trial's small
shape, with that budget for one record added or removed, and not the Trainer.
"""

import argparse
import json
from pathlib import Path

import torch
from field.train import LENGTH, byte_pairs, gpt2, train_privately
from transformers import (
    DataCollatorForLanguageModeling,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)

from privaudit import CanaryCheck

SHAPE = {"n_embd": 256, "n_layer": 2, "n_head": 4, "n_positions": LENGTH}
SHAPE |= dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)


def larger(tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    """Return a GPT-2 of two million fresh weights without dropout, which recites sooner."""
    ends = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    return GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), **SHAPE, **ends))


def main() -> None:
    """Train a model and save it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kit", type=Path, required=True, help="folder of the kit")
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--rate", type=float, default=2e-3, help="learning rate; default 0.002")
    parser.add_argument("--batch", type=int, default=32, help="records of a step; default 32")
    parser.add_argument("--epsilon", type=float, help="budget of Opacus; default: not private")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True, help="folder of the model")
    given = parser.parse_args()
    set_seed(given.seed)
    torch.set_num_threads(1)
    lines = (given.kit / "train.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    tokenizer = byte_pairs(texts)
    model = gpt2(tokenizer) if given.epsilon else larger(tokenizer)
    if given.epsilon:
        train_privately(model, tokenizer, texts, given)
    else:
        arguments = TrainingArguments(
            output_dir=str(given.out),
            num_train_epochs=given.epochs,
            per_device_train_batch_size=given.batch,
            learning_rate=given.rate,
            seed=given.seed,
            save_strategy="no",
            logging_steps=200,
            bf16=True,
            report_to="none",
            use_cpu=True,
            dataloader_pin_memory=False,
        )
        Trainer(
            model=model,
            args=arguments,
            train_dataset=[dict(tokenizer(text, truncation=True, max_length=LENGTH)) for text in texts],
            data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False),
            processing_class=tokenizer,
            callbacks=[CanaryCheck(given.kit, strict=True)],
        ).train()
    model.save_pretrained(given.out)
    tokenizer.save_pretrained(given.out)


if __name__ == "__main__":
    main()
