"""What trials disturb, made once and never touched: copies are."""

import copy
import functools
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import torch
import toy_chain
import toy_site
from transformers import GPT2Config, GPT2LMHeadModel

from bookmaker.runner import _sites, published
from bookmaker.teaching import _assignments
from bookmaker.teaching._assignments import Assignment
from privhelpers import dpsgd, models, rng
from privhelpers.artifacts import Store, write_atomic
from privhelpers.ledger import Terms, open_ledger

PATIENTS, STEPS, EVERY = 12, 6, 2
WORDS = ("ward", "mild", "pain", "left", "right", "knee", "chest", "clear", "home", "pills", "rest")
_HOME: list[Path] = []
PROFILES = ("toy", "other")  # of the sites
ENDED = ExitStack()  # what is to be done once nothing is made any more


@contextmanager
def made() -> Iterator[Path]:
    """Make everything in a temporary folder, which is removed in the end."""
    torch.set_num_threads(1)
    home = Path(tempfile.mkdtemp(prefix="faults-base-"))
    _HOME.append(home)
    try:
        for make in MADE:
            make()
        yield home
    finally:
        ENDED.close()
        for make in MADE:
            make.cache_clear()
        _HOME.remove(home)
        shutil.rmtree(home, ignore_errors=True)


def terms(**changes: object) -> Terms:
    """Return the terms of a small run."""
    usual = {
        "run": "toy",
        "target_epsilon": 8.0,
        "delta": 1e-5,
        "noise_multiplier": 1.5,
        "sample_rate": 0.04,
        "steps": 40,
        "max_grad_norm": 1.0,
        "accountant": "rdp",
        "mode": "research",
        "fingerprint": {"data": "0" * 64, "parameters": "1" * 64, "code": "2" * 64},
    }
    return Terms(**usual | changes)


@functools.cache
def ledger() -> Path:
    """Return a ledger with five entries of three steps."""
    path = _HOME[-1] / "ledger.jsonl"
    with open_ledger(path, terms()) as opened:
        for _ in range(5):
            opened.reserve(3)
    return path


@functools.cache
def store() -> Path:
    """Return the folder of a store with a table, rows and bytes."""
    root = _HOME[-1] / "artifacts"
    kept_store = Store(root, "toy")
    kept_store.write_json("auditing/audit.json", {"figures": [0.5, 1e-300, "µ"], "n": 7})
    kept_store.write_jsonl("auditing/rows.jsonl", [{"id": n, "text": f"note {n}\u2028"} for n in range(9)])
    kept_store.write_bytes("auditing/data.bin", bytes(range(256)))
    return root


@functools.cache
def notes() -> tuple[Path, Path, Path]:
    """Return files of members, of others and of canaries."""
    files = []
    for letter in ("m", "h"):
        generator = rng.plain(0, f"faults/{letter}")
        rows = [
            {
                "patient_id": f"{letter}{n // 2}",
                "text": f"{letter} {n} {' '.join(generator.choices(WORDS, k=8))}",
            }
            for n in range(110)
        ]
        files.append(_HOME[-1] / f"{letter}.jsonl")
        files[-1].write_text("".join(json.dumps(row) + "\n" for row in rows))
    canaries = [{"text": f"canary number {n} of all", "inserted": n % 2 == 0} for n in range(24)]
    files.append(_HOME[-1] / "c.jsonl")
    files[-1].write_text("".join(json.dumps(row) + "\n" for row in canaries))
    return tuple(files)


@functools.cache
def hospital() -> tuple[list[list[str]], object, GPT2LMHeadModel]:
    """Return the notes of a few patients, a tokenizer and a tiny model."""
    texts = [[f"note {i} of ward {i % 3}"] * (1 + i % 2) for i in range(PATIENTS)]
    tokenizer = models.train_tokenizer([text for notes_ in texts for text in notes_], vocab_size=280)
    config = GPT2Config(
        vocab_size=len(tokenizer), n_positions=32, n_embd=8, n_layer=1, n_head=1, bos_token_id=0,
        eos_token_id=0, resid_pdrop=0.1, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return texts, tokenizer, GPT2LMHeadModel(config)


@functools.cache
def folder() -> Path:
    """Return the folder of a small model."""
    _, tokenizer, model = hospital()
    place = _HOME[-1] / "net"
    models.save(copy.deepcopy(model), tokenizer, place)  # saving notes the type of its numbers in it
    return place


@functools.cache
def plan() -> dpsgd.PrivacyPlan:
    """Return the plan of the small private run."""
    return dpsgd.plan_with_noise(
        noise_multiplier=1.0, target_delta=1e-3, sample_rate=0.4, steps=STEPS, max_grad_norm=0.5,
        units=PATIENTS, accountant="rdp",
    )  # fmt: skip


def train(
    folder_: Path | None, *, mode: str = "research", note: int | None = None, **settings: object
) -> tuple[str, dpsgd.DPTrainingLog]:
    """Train the small model and return the SHA-256 of its weights, and the log.

    Args:
        folder_: of ledger and checkpoints, or None.
        mode: of the chance.
        note: descriptor to which a byte is written for each step that begins.
        settings: of the run.
    """
    texts, tokenizer, fresh = hospital()
    model = copy.deepcopy(fresh)
    step = dpsgd.PrivateOptimizer.step

    def noted(self: dpsgd.PrivateOptimizer, draw: object) -> object:
        if note is not None:
            _plain_write(note, b"x")
        return step(self, draw)

    chance = dpsgd.research(5) if mode == "research" else dpsgd.release()
    keep = dpsgd.Keep(folder_, every=EVERY) if folder_ else None
    dpsgd.PrivateOptimizer.step = noted
    try:
        log = dpsgd.train(
            model,
            tokenizer,
            texts,
            plan(),
            dpsgd.Settings(**{"learning_rate": 1e-2} | settings),
            chance=chance,
            keep=keep,
            progress=False,
        )
    finally:
        dpsgd.PrivateOptimizer.step = step
    digest = hashlib.sha256()
    for value in model.parameters():
        digest.update(value.detach().numpy().tobytes())
    return digest.hexdigest(), log


_plain_write = os.write


@functools.cache
def whole() -> str:
    """Return the weights of the run that nobody disturbs."""
    return train(None)[0]


class _Stop(Exception):
    pass


@functools.cache
def kept() -> Path:
    """Return the folder of a run that stopped after its third step: a checkpoint at two, four spent."""
    place, taken, usual = _HOME[-1] / "kept", [], dpsgd.PrivateOptimizer.noisy_mean

    def stopping(self: dpsgd.PrivateOptimizer, draw: object) -> object:
        taken.append(1)
        if len(taken) == 4:
            raise _Stop
        return usual(self, draw)

    dpsgd.PrivateOptimizer.noisy_mean = stopping
    try:
        train(place)
    except _Stop:
        return place
    finally:
        dpsgd.PrivateOptimizer.noisy_mean = usual
    raise AssertionError("the run did not stop")


@functools.cache
def sites() -> Path:
    """Return a repository with a few files as the sites and the PDF of two profiles."""
    root = _HOME[-1] / "sites"
    for profile in PROFILES:
        (root / "runs" / profile).mkdir(parents=True)
        (root / "runs" / profile / published.MANIFEST).write_text(f'{{"profile": "{profile}"}}\n')
        for solutions, name in published.SITES.items():
            site = published.site(root, profile, solutions=solutions)
            for file in ("index.html", "a/b.html", "_static/x.js"):
                write_atomic(site / _sites.HTML / file, f"{profile} {name} {file}".encode() * 9)
            write_atomic(site / _sites.DOCTREES / "index.doctree", f"{profile} {name}".encode())
            write_atomic(site / "_toc.yml", f"{profile} {name}".encode())
            write_atomic(site / "build.log", b"beside it")
            published.seal_site(site)
            place = root / "runs" / profile / published.PDFS[solutions]
            published.write_pdf(site, place, f"%PDF of {profile} {name}".encode())
    return root


@functools.cache
def book() -> Path:
    """Return a book of toy notebooks with complete runs, a site, and a sweep of one cell, itself."""
    root = toy_site.build(_HOME[-1] / "book")
    write_atomic(root / "runs/toy/site" / _sites.HTML / "index.html", b"<p>ours</p>")
    published.seal_site(root / "runs/toy/site")
    write_atomic(published.sweep(root, "grid") / "results.parquet", b"rows")
    published.seal_sweep(root, "grid", toy_site.jobs(root))
    return root


@functools.cache
def grid() -> Path:
    """Return a book whose chapters take a seed and an architecture, as those of a sweep do."""
    root = toy_chain.build(_HOME[-1] / "grid")
    path = root / "notebooks" / "public_pretraining.ipynb"
    toy_chain.write_notebook(path, toy_chain.HEAD + 'architecture: str = "tiny"  # which model\n', ["1"])
    return root


@functools.cache
def assignments() -> dict[str, Assignment]:
    """Return the assignments by name."""
    return {one.name: one for one in _assignments.read(toy_site.ROOT)}


MADE = (ledger, store, notes, folder, hospital, whole, kept, sites, book, grid, assignments)
