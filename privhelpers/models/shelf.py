"""Where each chapter leaves its models, and how a later one takes them down.

put(store, "baseline", model, tokenizer)
model, tokenizer = take(store, "dp-eps-8")
"""

from collections.abc import Sequence
from pathlib import Path

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from privhelpers.artifacts import Store, check_name, repository_root
from privhelpers.errors import MissingArtifact
from privhelpers.models.architecture import ARCHITECTURES, build, load, save
from privhelpers.models.encoding import train_tokenizer

HOMES = {
    "public": "public_pretraining/public",
    "baseline": "fine_tuning/baseline",
    "best_nonprivate": "fine_tuning/best_nonprivate",
    "twin": "fine_tuning/twin",
}
PRETRAINED, SMOLLM2 = "pretrained", "smollm2-135m-instruct"  # a folder of the book's copy, and what it holds
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
    place = home(name)
    for file in save(model, tokenizer, store.folder(place)):
        store.seal(f"{place}/{file}")


def take(
    store: Store, name: str, *, dropout: float | None = None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a model after checking every file against its hash.

    Raises:
        MissingArtifact: the chapter that trains it has not run; the message says what to run.
        DamagedArtifact: a file changed since it was written.
    """
    return load(_checked(store, home(name)), dropout=dropout)


def _checked(store: Store, place: str) -> Path:
    """Return the folder of a model whose every file is as it was sealed."""
    folder = store.existing(f"{place}/config.json").parent
    for seal in sorted(folder.glob("*.sha256")):
        store.existing(f"{place}/{seal.name.removesuffix('.sha256')}")
    return folder


def pretrained(root: Path | None = None) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load SmolLM2-135M-Instruct, the model of 135 million weights that `make pretrained` fetches.

    Args:
        root: a copy of the book; default: the one around us.

    Raises:
        MissingArtifact: it was not fetched.
        DamagedArtifact: a file changed since it was written.
    """
    store = Store((root or repository_root()) / PRETRAINED, PRETRAINED)
    if not store.path(ORIGIN).is_file():
        raise MissingArtifact(f"{PRETRAINED}/{SMOLLM2} is missing: run `make pretrained` first")
    return load(_checked(store, SMOLLM2))
