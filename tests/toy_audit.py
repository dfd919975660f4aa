"""Records and models for the tests of an audit: small, quick, and with or without something to find."""

import dataclasses
import html
import io
import json
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pypdf
import torch
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

import privaudit
from privaudit import console
from privaudit.kit import Unit
from privaudit.loading import TextTokenizer
from privaudit.probes.membership import AttackName, AttackTest, Part
from privaudit.verdict import FLAGGED, NOTHING_FOUND, UNDECIDED, Cause, Reason, Statement
from privaudit.words import WORDING
from privhelpers import models, rng, training

SENTENCE = (
    "ward seen mild pain left right knee chest clear sent home again with two pills and rest after the "
    "test was fine no fever slept well eats little walks alone came by taxi on foot Monday Friday noon"
)
WORDS = SENTENCE.split()


def first_page(page: str) -> str:
    """Return the HTML of the first page of a report from `privaudit.report_page`."""
    return page.partition("<main>")[2].partition('<div class="full">')[0]


def text_of(page: str) -> str:
    """Return the text of some HTML, without white space: a PDF breaks lines where it likes."""
    return "".join(html.unescape(re.sub("<[^>]+>", "", page)).split())


def crowded(audit, outcome: str):
    """Return an audit with canaries whose first page is the longest there can be with an outcome.

    A sample of the patients, every kind of reason, and the longest name of a test.
    """
    longest = AttackTest(AttackName.EZ_MIA if audit.is_of_model else AttackName.CLOSEST, Part.FEW)
    reasons = {
        FLAGGED: (
            Statement(Reason.CLAIM_GAUSSIAN, (4.0, 5.12, 97.5, Unit.PATIENT)),
            Statement(Reason.BEYOND, (12, 15, longest, True)),
            Statement(Reason.CANARIES),
        ),
        UNDECIDED: (
            Statement(Cause.EXCHANGED),
            *(Statement(cause, (88,)) for cause in (Cause.WORDS, Cause.SHAPE, Cause.RARITY)),
            *(Statement(cause) for cause in (Cause.UNTRAINED, Cause.INVERTED)),
        ),
        NOTHING_FOUND: (Statement(Reason.NOTHING, (15,)),),
    }[outcome]
    judged = dataclasses.replace(
        audit.verdict,
        outcome=outcome,
        reasons=reasons,
        explanations=reasons if outcome == UNDECIDED else (),
        tests=tuple(
            dataclasses.replace(test, key=longest, p=1e-4, adjusted=1e-3) for test in audit.verdict.tests
        ),
    )
    kept = [n for n, note in enumerate(audit.sample.notes) if int(note.patient[1:]) < 55]
    sample = privaudit.Sample([audit.sample.notes[n] for n in kept], audit.sample.member[kept], 3)
    return dataclasses.replace(audit, verdict=judged, sample=sample)


def _reworded(words: dict | list | str) -> dict | list | str:
    """Return wording in reverse order, each sentence the same words around its placeholders."""
    if isinstance(words, dict):
        return {key: _reworded(words[key]) for key in reversed(words)}
    if isinstance(words, list):
        return [_reworded(part) for part in reversed(words)]
    return " ".join(["same", *re.findall("{[^{}]*}", words)])


def reword(monkeypatch) -> None:
    """Give every sentence of a report other words, and another order, in all modules that hold them."""
    changed = _reworded(WORDING)
    for key in list(WORDING):
        monkeypatch.delitem(WORDING, key)
    for key, part in changed.items():
        monkeypatch.setitem(WORDING, key, part)


def longest_page(audit, outcome: str) -> tuple[dict, str]:
    """Return the facts and the page of a crowded audit."""
    facts = privaudit.report_facts(crowded(audit, outcome), made="2026-01-01 00:00 UTC")
    return facts, privaudit.report_page(facts)


def check_first_sheet(facts: dict, page: str) -> bytes:
    """Print a page, and return the PDF, whose first sheet must contain the first page alone.

    Args:
        facts, page: from `longest_page`.
    """
    pdf = console.print_pdf(page, "the report")
    first, second, *more = (
        text_of(html.escape(sheet.extract_text())) for sheet in pypdf.PdfReader(io.BytesIO(pdf)).pages
    )
    labels = facts["first_page"]["labels"]
    assert first == text_of(first_page(page))
    for text in (
        *facts["answers"].values(),
        facts["key_figures"][0]["sentence"],
        facts["first_page"]["named"],
    ):
        assert text and text_of(html.escape(text)) in first
    assert first.endswith("".join(labels[name] for name in ("decision", "name", "date")))
    assert second.startswith(text_of(labels["full"])) and more
    return pdf


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


def compared(blind: list):
    """Give audits these blind baselines: to compare two files takes longer than all else."""
    return mock.patch("privaudit.probes.blind.blind_baselines", lambda *_, **__: blind)


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


def peak_of(function: Callable[[], object]) -> int:
    """Return how many bytes Python and numpy held at most while a function ran, beyond those before it."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def save(model, tok, folder: Path) -> Path:
    models.save(model, tok, folder)
    return folder


def wrapped(tokenizer, context):
    """Return a tokenizer of transformers as an audit calls it, for a model that reads `context` tokens."""
    made = object.__new__(TextTokenizer)
    made._name, made._width, made._tokenizer, made.context = "it", len(tokenizer), tokenizer, context
    for name in ("bos", "eos", "pad", "mask"):
        setattr(made, f"{name}_token_id", getattr(tokenizer, f"{name}_token_id"))
    return made
