"""Records and models for the tests of an audit: small, quick, and with or without something to find."""

import html
import json
import re
from pathlib import Path

import torch
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from privhelpers import models, rng, training
from privhelpers.own_model import Language

SENTENCE = (
    "ward seen mild pain left right knee chest clear sent home again with two pills and rest after the "
    "test was fine no fever slept well eats little walks alone came by taxi on foot Monday Friday noon"
)
WORDS = SENTENCE.split()


class _Foreign:
    """A catalogue that has every sentence: without a Latin letter, and with markup that must not act."""

    def get(self, sentence: str, _: str) -> str:
        return "<i>\u00a0" + re.sub(r"[A-Za-z](?![^{}]*})", "ж", sentence)


FOREIGN = Language("en", _Foreign())


def first_page(page: str) -> str:
    """Return the HTML of the first page of a report from `own_model.report_page`."""
    return page.partition("<main>")[2].partition('<div class="full">')[0]


def not_translated(page: str, *names: str) -> str:
    """Return the letters above the details in that language that went through no catalogue, but for names.

    Args:
        page: from `own_model.report_page`.
        names: of files and models.
    """
    title, first = page.partition("<title>")[2].split("</title>")[0], page.partition("<main>")[2]
    first = first.partition('</div><div class="details"')[0]
    labels = " ".join(re.findall('aria-label="([^"]*)"', first))
    shown = html.unescape(re.sub("<[^>]+>", " ", f"{title} {first}") + labels)
    for name in (*names, "UTC", "<i>"):
        shown = shown.replace(name, "")
    return "".join(re.findall("[A-Za-z]+", shown))


def notes(letter: str, patients: int, *, seed: int, extra: str = "") -> list[dict]:
    """Return notes of patients `letter0`, `letter1`, ...: one or two each, of random words and a number."""
    generator, rows = rng.plain(seed, f"toy/{letter}"), []
    for number in range(patients):
        for _ in range(1 + (generator.random() < 0.5)):
            words = generator.choices(WORDS, k=generator.randint(14, 20))
            code = f"SYN-{generator.randrange(10**8):08d}"
            rows.append(
                {
                    "patient_id": f"{letter}{number}",
                    "text": f"Seen today: {extra}{' '.join(words)}. File {code}.",
                }
            )
    return rows


def write(path: Path, rows: list[dict]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def tokenizer(texts: list[str]) -> PreTrainedTokenizerFast:
    return models.train_tokenizer(texts, vocab_size=330)


def causal(tok: PreTrainedTokenizerFast, *, seed: int = 0) -> GPT2LMHeadModel:
    config = GPT2Config(
        vocab_size=len(tok), n_positions=96, n_embd=48, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return GPT2LMHeadModel(config).eval()


def memorize(model, tok, texts: list[str], *, epochs: int):
    plan = training.Settings(epochs=epochs, learning_rate=1e-2, batch_size=16)
    training.train(model, tok, texts, plan, seed=0, progress=False)
    return model


def save(model, tok, folder: Path) -> Path:
    models.save(model, tok, folder)
    return folder
