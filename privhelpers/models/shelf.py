"""Checkpoints of the chapters: saved by the chapter that trains a model, loaded by later ones.

put(store, "baseline", model, tokenizer)
model, tokenizer = take(store, "dp-eps-8")

The scores of the hospital's notes are next to the model: its chapter writes them, others read them.

keep_scores(store, "baseline", model, tokenizer, texts)
losses = scores_of(store, "baseline", texts).losses
"""

import hashlib
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from privhelpers.artifacts import SEAL, Store, check_name, repository_root
from privhelpers.errors import MissingArtifact
from privhelpers.models._folder import CONFIG
from privhelpers.models.architecture import ARCHITECTURES, build, load, save
from privhelpers.models.encoding import train_tokenizer, whole_bounds
from privhelpers.models.scoring import TokenScores, score_tokens, token_scores

HOMES = {
    "public": "public_pretraining/public",
    "baseline": "fine_tuning/baseline",
    "best_nonprivate": "fine_tuning/best_nonprivate",
    "twin": "fine_tuning/twin",
    "equal_use": "private_utility/equal_use",
}
PRETRAINED, SMOLLM2 = "pretrained", "smollm2-135m-instruct"  # a folder of the book's copy, and its content
ORIGIN = f"{SMOLLM2}/origin.json"  # written last


def home(name: str) -> str:
    """Return the folder of a model within the artifacts; private models live under their own run."""
    return HOMES.get(name, f"private_training/{check_name(name)}/model")


def start(
    architecture: str, public_texts: Sequence[str], *, vocab_size: int, seed: int
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return the model that public pretraining starts from, and its tokenizer.

    Args:
        architecture: a small architecture by name, which starts from fresh weights and a tokenizer trained
            on `public_texts`; or `gpt2`, `distilgpt2` or a local Hugging Face folder, which bring their own.
        public_texts: texts that no patient appears in.
        vocab_size: of a new tokenizer.
        seed: of fresh weights.
    """
    if architecture not in ARCHITECTURES:
        return load(architecture)
    tokenizer = train_tokenizer(public_texts, vocab_size=vocab_size)
    return build(architecture, tokenizer, seed=seed), tokenizer


def put(store: Store, name: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Save a model and seal each of its files with its hash."""
    save(model, tokenizer, store.folder(home(name)))
    store.seal_folder(home(name))


def take(
    store: Store, name: str, *, dropout: float | None = None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a model after checking every file against its hash.

    Raises:
        MissingArtifact: the chapter that trains it has not run; the message names what to run.
        DamagedArtifact: a file changed since it was written.
    """
    return load(store.sealed_folder(home(name), CONFIG), dropout=dropout)


def keep_scores(
    store: Store, name: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]
) -> None:
    """Score every token of `texts` under a model that was `put`, and keep the scores for `scores_of`.

    Texts that the model reads in part only are not kept.

    Raises:
        InvalidParameter: a text is empty or there is none.
        MissingArtifact: no model of this name was put.
    """
    scores = score_tokens(model, tokenizer, texts)
    if scores.truncated:
        return
    kept = io.BytesIO()
    np.savez_compressed(
        kept,
        model=_model_hash(store, name),
        texts=[_text_hash(text) for text in texts],
        tokens=scores.tokens,
        answers=np.concatenate(_answers(scores)).astype(np.float32),  # as the model gave them
    )
    store.write_bytes(_scores_path(name), kept.getvalue())


def scores_of(store: Store, name: str, texts: Sequence[str]) -> TokenScores:
    """Return a saved model's scores of every token of `texts`, as `score_tokens` does.

    Texts that its chapter scored are read; others, or all if the model is another by now, are scored here.

    Raises:
        InvalidParameter: a text is empty or there is none.
        MissingArtifact: the chapter that trains the model has not run.
        DamagedArtifact: a file changed since it was written.
    """
    answers = _kept_answers(store, name)
    missing, truncated = [text for text in texts if _text_hash(text) not in answers], 0
    cut: dict[str, np.ndarray] = {}
    if missing or not texts:
        scores = score_tokens(*take(store, name), missing)
        truncated = scores.truncated
        answers |= zip(map(_text_hash, missing), _answers(scores), strict=True)
        cut = dict(zip(missing, scores.bounds or (), strict=scores.bounds is not None))
    found = [answers[_text_hash(text)] for text in texts]
    bounds = cut and [
        cut[text] if text in cut else whole_bounds(len(rows), text)
        for text, rows in zip(texts, found, strict=True)
    ]
    return token_scores(found, truncated, bounds or None)


def _kept_answers(store: Store, name: str) -> dict[str, np.ndarray]:
    """Return the kept answers by the hash of their text, each [tokens, 4]; none about another model."""
    try:
        path = store.existing(_scores_path(name))
    except MissingArtifact:
        return {}
    with np.load(path) as kept:
        if kept["model"].item() != _model_hash(store, name):
            return {}
        rows = np.split(kept["answers"].astype(float), np.cumsum(kept["tokens"])[:-1])
        return dict(zip(kept["texts"].tolist(), rows, strict=True))


def _scores_path(name: str) -> str:
    return f"{home(name)}_scores.npz"


def _answers(scores: TokenScores) -> list[np.ndarray]:
    """Return the answers about each text in one array, [tokens, 4]."""
    fields = scores.log_p, scores.mean, scores.deviation, scores.greedy
    return [np.stack(text, -1) for text in zip(*fields, strict=True)]


def _model_hash(store: Store, name: str) -> str:
    """Return a hash of weights, settings and tokenizer."""
    seals = sorted(store.sealed_folder(home(name), CONFIG).glob(f"*{SEAL}"))
    return hashlib.sha256(b"".join(seal.read_bytes() for seal in seals)).hexdigest()


def _text_hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]  # `encode` refuses halves


def pretrained(root: Path | None = None) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load SmolLM2-135M-Instruct, the model of 135 million weights that `make book PROFILE=real` fetches.

    Args:
        root: a copy of the book; default: the one around us.

    Raises:
        MissingArtifact: it was not fetched.
        DamagedArtifact: a file changed since it was written.
    """
    store = Store((root or repository_root()) / PRETRAINED, PRETRAINED)
    if not store.path(ORIGIN).is_file():
        raise MissingArtifact(f"{PRETRAINED}/{SMOLLM2} is missing: run `make book PROFILE=real` first")
    return load(store.sealed_folder(SMOLLM2, CONFIG))
