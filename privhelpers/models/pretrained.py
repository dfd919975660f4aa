"""The model that somebody else pretrained: where `make pretrained` leaves it, and how a chapter opens it."""

from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel, PreTrainedTokenizerBase

from privhelpers import rng
from privhelpers.artifacts import Store, repository_root
from privhelpers.errors import MissingArtifact
from privhelpers.models.architecture import load, preferred_device
from privhelpers.models.encoding import end_id
from privhelpers.models.shelf import sealed

NAME = "smollm2-135m-instruct"
FOLDER = "pretrained"
ORIGIN = f"{NAME}/origin.json"


def shelf(root: Path | None = None) -> Store:
    """Return the place of pretrained models in a copy of the book; default: the one around us."""
    return Store((root or repository_root()) / FOLDER, FOLDER)


def take_pretrained(root: Path | None = None) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return the pretrained model and its tokenizer, after checking every file against its hash.

    Raises:
        MissingArtifact: it was not fetched; the message says how.
        DamagedArtifact: a file changed since it was written.
    """
    store = shelf(root)
    if not (store.root / ORIGIN).is_file():
        raise MissingArtifact(f"{FOLDER}/{NAME}: not fetched yet; `make pretrained` fetches 93 MB, once")
    return load(sealed(store, NAME))


def toy_llama(tokenizer: PreTrainedTokenizerBase, *, seed: int) -> PreTrainedModel:
    """Return a Llama of two layers with random weights: four heads share two of keys and values.

    Args:
        tokenizer: gives the vocabulary size and the end token.
        seed: of the weights.
    """
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=160,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        tie_word_embeddings=True,
        bos_token_id=end_id(tokenizer),
        eos_token_id=end_id(tokenizer),
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(rng.derive(seed, "initial weights"))
        return LlamaForCausalLM(config).to(preferred_device())
