"""Train one language model the way users of the Hugging Face Trainer do.

    python benchmarks/field/train.py --records members.jsonl --shape gpt2 --epochs 40 \
        --tokenizer others.jsonl --out model

This script imports nothing of this repository, so that the audit meets a model that it did not make. A shape
is a small model with fresh weights, whose tokenizer learns from records that `--tokenizer` names; `--start`
names a model to fine-tune: a folder, or a `.gguf` file. Naming a file of records twice trains on it twice.
With `--epsilon`, Opacus trains, with that budget for one record added or removed, and not the Trainer.

The result is a folder with safetensors and a tokenizer, or, with `--lora`, an adapter.
"""

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}  # read when transformers loads

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    DataCollatorForLanguageModeling,
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)

VOCABULARY, WIDTH, LAYERS, HEADS, LENGTH = 2000, 128, 2, 4, 128
DELTA = 1e-5  # of Opacus' budget
CLIP = 1.0  # norm of a record's gradient
END = "<|endoftext|>"
BERT_TOKENS = {name: f"[{name[:-6].upper()}]" for name in ("pad_token", "unk_token", "mask_token")}
BERT_TOKENS |= {"cls_token": "[CLS]", "sep_token": "[SEP]"}


def texts_of(file: Path) -> list[str]:
    """Return the texts of a file of records."""
    return [json.loads(line)["text"] for line in file.read_text(encoding="utf-8").splitlines()]


def byte_pairs(texts: list[str]) -> PreTrainedTokenizerFast:
    """Return a byte-level BPE tokenizer that learned from texts, as GPT-2 and Pythia have."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    learner = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=[END], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, learner)
    ends = dict.fromkeys(("bos_token", "eos_token", "pad_token"), END)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=LENGTH, **ends)


def word_pieces(texts: list[str]) -> PreTrainedTokenizerFast:
    """Return a WordPiece tokenizer in lower case that learned from texts, as BERT has."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    learner = trainers.WordPieceTrainer(
        vocab_size=VOCABULARY, special_tokens=list(BERT_TOKENS.values()), show_progress=False
    )
    tokenizer.train_from_iterator(texts, learner)
    ends = [(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=LENGTH, **BERT_TOKENS)


def gpt2(tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    """Return a small GPT-2 with fresh weights."""
    ends = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    size = {"n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "n_positions": LENGTH}
    return GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), **size, **ends))


def _size(tokenizer: PreTrainedTokenizerFast) -> dict[str, int]:
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": WIDTH,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "intermediate_size": 4 * WIDTH,
        "max_position_embeddings": LENGTH,
    }


def pythia(tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    """Return a small GPT-NeoX, the architecture of Pythia, with fresh weights."""
    ends = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    return GPTNeoXForCausalLM(GPTNeoXConfig(**_size(tokenizer), **ends))


def bert(tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    """Return a small BERT with fresh weights."""
    return BertForMaskedLM(BertConfig(**_size(tokenizer), pad_token_id=tokenizer.pad_token_id))


Shape = tuple[Callable[[list[str]], PreTrainedTokenizerFast], Callable[..., PreTrainedModel]]
SHAPES: dict[str, Shape] = {
    "gpt2": (byte_pairs, gpt2),
    "pythia": (byte_pairs, pythia),
    "bert": (word_pieces, bert),
}


def open_start(start: Path) -> tuple[PreTrainedModel, Any]:
    """Return the model and the tokenizer of a folder or of a `.gguf` file."""
    packed = {"gguf_file": start.name} if start.suffix == ".gguf" else {}
    folder = start.parent if packed else start
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **packed)
    tokenizer = AutoTokenizer.from_pretrained(folder, **packed)
    if packed:  # a model that was read from four bits cannot be saved, and a copy of its weights can
        config = model.config
        del config.quantization_config
        plain = LlamaForCausalLM(config)
        plain.load_state_dict(model.state_dict())
        model = plain
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    return model, tokenizer


def with_lora(model: PreTrainedModel, rank: int) -> Any:
    """Return a model whose linear layers have adapters of this rank, and whose own weights are frozen."""
    import peft

    config = peft.LoraConfig(
        r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM", lora_dropout=0.0
    )
    return peft.get_peft_model(model, config)


def train(model: PreTrainedModel, tokenizer: Any, texts: list[str], given: argparse.Namespace) -> None:
    """Train a model with the Trainer; a masked one on 15% masked tokens."""
    rows = [dict(tokenizer(text, truncation=True, max_length=LENGTH)) for text in texts]
    collator = DataCollatorForLanguageModeling(tokenizer, mlm=tokenizer.mask_token is not None)
    arguments = TrainingArguments(
        output_dir=str(given.out),
        num_train_epochs=given.epochs,
        per_device_train_batch_size=given.batch,
        learning_rate=given.rate,
        seed=given.seed,
        save_strategy="no",
        logging_steps=50,
        report_to="none",
        use_cpu=True,
        dataloader_pin_memory=False,
    )
    Trainer(model=model, args=arguments, train_dataset=rows, data_collator=collator).train()


def train_privately(
    model: PreTrainedModel, tokenizer: Any, texts: list[str], given: argparse.Namespace
) -> None:
    """Train a causal model with Opacus' DP-SGD; the loss of a record is the mean over its own tokens."""
    from opacus import PrivacyEngine

    rows = tokenizer(texts, truncation=True, max_length=LENGTH, padding=True, return_tensors="pt")
    data = TensorDataset(rows["input_ids"], rows["attention_mask"])
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    model, optimizer, loader = PrivacyEngine().make_private_with_epsilon(
        module=model.train(),
        optimizer=torch.optim.Adam(weights, lr=given.rate),
        data_loader=DataLoader(data, batch_size=given.batch),
        target_epsilon=given.epsilon,
        target_delta=DELTA,
        epochs=int(given.epochs),
        max_grad_norm=CLIP,
    )
    print(f"noise multiplier {optimizer.noise_multiplier:.2f}", flush=True)
    for _ in range(int(given.epochs)):
        for ids, mask in loader:
            optimizer.zero_grad()
            if len(ids):
                logits = model(input_ids=ids, attention_mask=mask, use_cache=False).logits
                losses = cross_entropy(logits[:, :-1].transpose(1, 2), ids[:, 1:], reduction="none")
                asked = mask[:, 1:]
                loss = ((losses * asked).sum(1) / asked.sum(1).clamp(min=1)).mean()
                loss.backward()
            optimizer.step()


def main() -> None:
    """Train a model and save it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=Path, nargs="*", default=[], help="files of records: text")
    start = parser.add_mutually_exclusive_group(required=True)
    start.add_argument("--shape", choices=SHAPES, help="a small model with fresh weights")
    parser.add_argument("--tokenizer", type=Path, help="a file of records: what the tokenizer learns from")
    start.add_argument("--start", type=Path, help="the folder, or the .gguf file, of a model to fine-tune")
    parser.add_argument("--epochs", type=float, default=0, help="0 saves the model as it is")
    parser.add_argument("--rate", type=float, default=1e-3, help="learning rate; default 0.001")
    parser.add_argument("--batch", type=int, default=8, help="records of a step; default 8")
    parser.add_argument("--lora", type=int, help="rank of an adapter; default: all weights are trained")
    parser.add_argument("--epsilon", type=float, help="budget of Opacus; default: not private")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True, help="folder of the model")
    given = parser.parse_args()
    set_seed(given.seed)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    texts = [text for file in given.records for text in texts_of(file)]
    if given.shape:
        make_tokenizer, make_model = SHAPES[given.shape]
        tokenizer = make_tokenizer(texts_of(given.tokenizer))
        model = make_model(tokenizer)
    else:
        model, tokenizer = open_start(given.start)
    if given.lora:
        model = with_lora(model, given.lora)
    if given.epochs:
        (train_privately if given.epsilon else train)(model, tokenizer, texts, given)
    model.save_pretrained(given.out)
    tokenizer.save_pretrained(given.out)


if __name__ == "__main__":
    main()
