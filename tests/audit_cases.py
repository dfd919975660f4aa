"""Audits whose truth is known: models that learned 60 patients by heart, and models that never saw them.

A case is trained as a user would train it, with transformers, peft and plain torch, and saved with
`save_pretrained`; nothing of this project makes its model or its tokenizer. What comes out is what an audit
of the folder and two files of records must say.
"""

import copy
import itertools
import json
import random
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd
import peft
import torch
import transformers
from tables import parquet
from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers, processors, trainers
from tokenizers import models as token_models
from toy_audit import WORDS

import privaudit
from privhelpers.errors import PrivHelpersError

PATIENTS = 60  # a side
GROUPS = ("members", "heldout", "others", "public")
GIVEN = ("Jürgen", "Zoë", "André", "Márta", "Søren", "Anna", "Lena", "Otto", "Ruth", "Emil")
FAMILY = (
    *("Müller", "Hägg", "Núñez", "Brandt", "Kovács"),
    *("O'Brien", "Weiß", "Lindqvist", "Smith-Jones", "Ekström"),
)
SPECIAL = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
    "bos_token": "[BOS]",
    "eos_token": "[EOS]",
}
TOKENIZERS = ("BPE", "WordPiece", "Unigram")
FILES = ("jsonl", "csv", "semicolons", "tsv", "parquet", "R")
_SIZES = {
    "hidden_size": 48,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 96,
    "max_position_embeddings": 130,
}
_NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
ARCHITECTURES = {
    "GPT-2": (
        transformers.GPT2LMHeadModel,
        {
            **{"n_embd": 48, "n_layer": 1, "n_head": 2, "n_positions": 128},
            **{"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0},
        },
    ),
    "Llama": (transformers.LlamaForCausalLM, {**_SIZES, "tie_word_embeddings": True}),
    "BERT": (transformers.BertForMaskedLM, {**_SIZES, **_NO_DROPOUT}),
    "RoBERTa": (transformers.RobertaForMaskedLM, {**_SIZES, **_NO_DROPOUT}),
    "BERT, decoder": (transformers.BertLMHeadModel, {**_SIZES, **_NO_DROPOUT, "is_decoder": True}),
    "BERT, not causal": (transformers.BertLMHeadModel, {**_SIZES, **_NO_DROPOUT, "is_decoder": False}),
    "RoBERTa, not causal": (transformers.RobertaForCausalLM, {**_SIZES, **_NO_DROPOUT, "is_decoder": False}),
}
# The modules of attention, the input embeddings and the output matrix, which are tied in all of these.
_PARTS = {
    "GPT-2": (["c_attn", "c_proj", "c_fc"], "wte", "lm_head"),
    "Llama": (["q_proj", "v_proj", "o_proj", "up_proj", "down_proj"], "embed_tokens", "lm_head"),
    "BERT": (["query", "value", "dense"], "word_embeddings", "decoder"),
    "RoBERTa": (["query", "value", "dense"], "word_embeddings", "lm_head.decoder"),
}
ADAPTERS = (
    "attention",
    "output",
    "embeddings",
    "both",
    "saved output",
    "saved embeddings",
    "DoRA",
    "rank-stabilized, biases",
)


@dataclass(frozen=True)
class Case:
    """One audit.

    Attributes:
        architecture: a key of `ARCHITECTURES`.
        tokenizer: one of `TOKENIZERS`.
        adapter: one of `ADAPTERS`, or "" for a model that was trained whole.
        file: one of `FILES`.
        spelling: NFC or NFD, of the records; a model is trained on NFC.
        leaks: whether the model was trained on the members, or on others.
    """

    architecture: str = "GPT-2"
    tokenizer: str = "BPE"
    adapter: str = ""
    file: str = "jsonl"
    spelling: str = "NFC"
    leaks: bool = True

    @property
    def masked(self) -> bool:
        """Whether the model is trained to fill in masks."""
        return ARCHITECTURES[self.architecture][0].__name__.endswith("ForMaskedLM")

    def __str__(self) -> str:
        """Say the case in a line, as the name of a test."""
        parts = self.architecture, self.tokenizer, self.adapter or "whole", self.file, self.spelling
        return ", ".join((*parts, "leaks" if self.leaks else "other people"))


@cache
def _names() -> dict[str, list[str]]:
    """Return names by group: so many are possible that no model makes up another person's."""
    letters = "ABCDEFGHKLMNPRSTW"
    every = [" ".join(parts) for parts in itertools.product(GIVEN, letters, letters, FAMILY)]
    drawn = random.Random("names").sample(every, PATIENTS * len(GROUPS))
    return {group: drawn[PATIENTS * n : PATIENTS * (n + 1)] for n, group in enumerate(GROUPS)}


@cache
def notes(group: str) -> list[dict]:
    """Return the notes of 60 patients, one or two each, with the strings that name them."""
    draw, rows = random.Random(f"notes of {group}"), []
    for number, name in enumerate(_names()[group]):
        phone = f"({draw.randint(200, 989)}) 555-{draw.randrange(10000):04d}"
        code = f"SYN-{draw.randrange(10**8):08d}"
        for _ in range(1 + (draw.random() < 0.5)):
            said = " ".join(draw.choices(WORDS, k=draw.randint(6, 9)))
            text = f"Seen today: {name}, {said}. File {code}, call {phone}."
            rows.append({"patient_id": f"{group}{number}", "text": text, "identifiers": [name, code, phone]})
    return rows


def texts(group: str) -> list[str]:
    """Return the texts of a group's notes."""
    return [note["text"] for note in notes(group)]


@cache
def tokenizer(kind: str) -> transformers.PreTrainedTokenizerFast:
    """Return a tokenizer of a kind, trained on other people's notes and on every letter."""
    corpus = [*texts("public"), *texts("others"), " ".join(map(chr, range(33, 127)))]
    names = list(SPECIAL.values())
    if kind == "BPE":
        made = Tokenizer(token_models.BPE())
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        made.train_from_iterator(
            corpus, trainers.BpeTrainer(vocab_size=500, special_tokens=names, initial_alphabet=alphabet)
        )
    elif kind == "WordPiece":  # of an uncased BERT: lower case, no accents, blanks around every mark
        made = Tokenizer(token_models.WordPiece(unk_token="[UNK]"))
        made.normalizer = normalizers.BertNormalizer(lowercase=True)
        made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        made.decoder = decoders.WordPiece(cleanup=False)
        made.train_from_iterator(corpus, trainers.WordPieceTrainer(vocab_size=500, special_tokens=names))
    else:  # as SentencePiece makes them: a sign for each blank, and bytes for what is not known
        made = Tokenizer(token_models.Unigram())
        made.normalizer = normalizers.NFKC()
        made.pre_tokenizer = pre_tokenizers.Metaspace()
        made.decoder = decoders.Metaspace()
        made.train_from_iterator(
            corpus, trainers.UnigramTrainer(vocab_size=500, special_tokens=names, unk_token="[UNK]")
        )
    ends = [(name, made.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    made.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, **SPECIAL)


def _batch(case: Case, group: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ids and attention mask of a group's notes, as this kind of model is trained."""
    tok = tokenizer(case.tokenizer)
    rows = texts(group)
    if not case.masked:
        rows = [tok.bos_token + text + tok.eos_token for text in rows]
    batch = tok(rows, padding=True, return_tensors="pt", add_special_tokens=case.masked)
    return batch["input_ids"], batch["attention_mask"]


def _train(model: torch.nn.Module, case: Case, group: str, *, epochs: int, rate: float) -> None:
    """Train a model on all notes of a group, in plain torch."""
    tok, draw = tokenizer(case.tokenizer), torch.Generator().manual_seed(0)
    ids, seen = _batch(case, group)
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=rate)
    model.train()
    for _ in range(epochs):
        for rows in torch.randperm(len(ids), generator=draw).split(32):
            shown, read = ids[rows], seen[rows]
            labels = shown.masked_fill(read == 0, -100)
            if case.masked:
                hidden = (torch.rand(shown.shape, generator=draw) < 0.25) & (shown >= len(SPECIAL))
                labels = shown.masked_fill(~hidden, -100)
                shown = shown.masked_fill(hidden, tok.mask_token_id)
            model(input_ids=shown, attention_mask=read, labels=labels).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    model.eval()


def _adapter(case: Case) -> peft.LoraConfig:
    inner, embeddings, output = _PARTS[case.architecture]
    options = {"r": 16, "lora_alpha": 32, "target_modules": list(inner)}
    changes = {
        "attention": {},
        "output": {"target_modules": [*inner, output]},
        "embeddings": {"target_modules": [*inner, embeddings]},
        "both": {"target_modules": [*inner, embeddings, output]},
        "saved output": {"modules_to_save": [output]},
        "saved embeddings": {"modules_to_save": [embeddings]},
        "DoRA": {"use_dora": True},
        "rank-stabilized, biases": {"use_rslora": True, "bias": "all", "rank_pattern": {inner[0]: 8}},
    }
    return peft.LoraConfig(**options | changes[case.adapter], fan_in_fan_out=case.architecture == "GPT-2")


def fresh(case: Case, **changes: int) -> transformers.PreTrainedModel:
    """Return the model of a case before any training."""
    model_class, options = ARCHITECTURES[case.architecture]
    tok = tokenizer(case.tokenizer)
    ends = {name: getattr(tok, name) for name in ("pad_token_id", "bos_token_id", "eos_token_id")}
    torch.manual_seed(0)
    sizes = {"vocab_size": len(tok)} | options | changes
    return model_class(model_class.config_class(**sizes, **ends))


@cache
def _base(architecture: str, kind: str) -> transformers.PreTrainedModel:
    """Return a model that read the notes of 60 people of whom none is a member or held out."""
    case = Case(architecture, kind)
    model = fresh(case)
    _train(model, case, "public", epochs=40 if case.masked else 12, rate=6e-3)
    return model


def save(model: torch.nn.Module, case: Case, folder: Path) -> Path:
    """Save a model with its tokenizer; return the folder."""
    model.save_pretrained(folder)
    tokenizer(case.tokenizer).save_pretrained(folder)
    return folder


def make_model(case: Case, folder: Path) -> tuple[Path, Path | None]:
    """Train the model of a case; return its folder, and that of its base if it is an adapter."""
    group = "members" if case.leaks else "others"
    if not case.adapter:
        model = fresh(case)
        _train(model, case, group, epochs=60 if case.masked else 25, rate=6e-3)
        return save(model, case, folder / "model"), None
    base = copy.deepcopy(_base(case.architecture, case.tokenizer))
    save(base, case, folder / "base")
    adapted = peft.get_peft_model(base, _adapter(case))
    _train(adapted, case, group, epochs=90 if case.masked else 45, rate=1e-2)
    adapted.save_pretrained(folder / "adapter")
    return folder / "adapter", folder / "base"


def write(case: Case, group: str, folder: Path) -> Path:
    """Write the notes of a group as a program of the case's kind of file does."""
    rows = [
        {
            "patient_id": note["patient_id"],
            "text": unicodedata.normalize(case.spelling, note["text"]),
            "identifiers": [unicodedata.normalize(case.spelling, one) for one in note["identifiers"]],
        }
        for note in notes(group)
    ]
    frame, ending = pd.DataFrame(rows), {"semicolons": "csv", "R": "csv"}.get(case.file, case.file)
    path = folder / f"{group}.{ending}"
    if case.file == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    elif case.file == "csv":  # pandas writes a list as Python shows it
        frame.to_csv(path, index=False)
    elif case.file == "semicolons":  # a German Excel
        flat = frame.assign(identifiers=frame.identifiers.map("|".join))
        path.write_text("sep=;\r\n" + flat.to_csv(sep=";", index=False, lineterminator="\r\n"), "utf-8-sig")
    elif case.file == "tsv":
        frame.assign(identifiers=frame.identifiers.map(json.dumps)).to_csv(path, sep="\t", index=False)
    elif case.file == "parquet":
        path.write_bytes(parquet(frame))
    else:  # write.csv of R: names of the rows, and quotes around every text
        flat = frame.assign(identifiers=frame.identifiers.map(";".join))
        flat.index += 1
        flat.to_csv(path, quoting=2, index_label="")
    return path


LITTLE = privaudit.Settings(texts=120, tokens=80, permutations=1699, draws=40, lower_case=False)


def audit(case: Case, folder: Path, settings: privaudit.Settings = LITTLE) -> privaudit.Audit:
    """Make the model and the files of a case, and audit them."""
    model, base = make_model(case, folder)
    files = privaudit.read_files(write(case, "members", folder), write(case, "heldout", folder))
    return privaudit.run_audit(files, settings, target=privaudit.open_model(model, base=base))


def answer(case: Case, folder: Path) -> str:
    """Return the outcome of a case's audit, or the sentence with which it was refused."""
    try:
        return audit(case, folder).verdict.outcome
    except PrivHelpersError as error:
        return f"{type(error).__name__}: {error}"


def every_pair() -> Iterator[Case]:
    """Yield cases in which each value of a factor meets each value of every other one, leak or not.

    An adapter's modules have names of their architecture, and every architecture has a few without one.
    """
    models = list(_PARTS)
    for number, adapter in enumerate(("", *ADAPTERS)):
        for step, architecture in enumerate(models):
            place = number * len(models) + step
            yield Case(
                architecture,
                TOKENIZERS[(number + step) % 3],
                adapter,
                FILES[(number + place // 2) % 6],
                ("NFC", "NFD")[(number // 2 + step) % 2],
                leaks=(number + step // 2 + step) % 2 == 0,
            )
