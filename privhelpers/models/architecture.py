"""Models by name: three small GPT-2 architectures, `gpt2`, `distilgpt2`, or a local Hugging Face folder.

Weights are read from safetensors only and no code that comes with a model is ever run.
"""

from pathlib import Path

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from privhelpers import rng
from privhelpers.errors import MissingArtifact, UnsupportedModel
from privhelpers.models._shapes import ARCHITECTURES
from privhelpers.models.encoding import end_id

HUB_NAMES = ("gpt2", "distilgpt2")


def preferred_device() -> torch.device:
    """Return the first GPU if there is one, else the CPU; every model of the book lives there."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def build(
    architecture: str, tokenizer: PreTrainedTokenizerBase, *, seed: int, dropout: float = 0.0
) -> PreTrainedModel:
    """Return a small GPT-2 with fresh weights; its input and output embeddings are tied.

    Args:
        architecture: a key of `ARCHITECTURES`.
        tokenizer: gives the vocabulary size and the end token.
        seed: of the initial weights.
        dropout: probability in [0, 1) for embeddings, attention and residuals.

    Raises:
        UnsupportedModel: the name is not known.
    """
    shape = ARCHITECTURES.get(architecture)
    if shape is None:
        raise UnsupportedModel(f"architecture {architecture!r}: known are {', '.join(ARCHITECTURES)}")
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=shape.positions,
        n_embd=shape.width,
        n_layer=shape.layers,
        n_head=shape.heads,
        activation_function="gelu_pytorch_tanh",  # the same function as GPT-2's own, in one kernel
        resid_pdrop=dropout,
        embd_pdrop=dropout,
        attn_pdrop=dropout,
        bos_token_id=end_id(tokenizer),
        eos_token_id=end_id(tokenizer),
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(rng.derive(seed, "initial weights"))
        return GPT2LMHeadModel(config).to(preferred_device())


def count_parameters(model: torch.nn.Module) -> int:
    """Return the number of trainable values, a tied matrix counted once."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def save(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path) -> list[str]:
    """Write model and tokenizer as safetensors and JSON; return the names of the files written."""
    model.save_pretrained(folder, safe_serialization=True)
    tokenizer.save_pretrained(folder)
    return sorted(p.name for p in folder.iterdir() if p.is_file() and not p.name.endswith(".sha256"))


def refuse_code(folder: Path) -> None:
    """Refuse a folder whose weights or files could run code when read.

    Raises:
        UnsupportedModel: it has no safetensors, or comes with Python code.
    """
    pickles = [p.name for p in folder.glob("*") if p.suffix in {".bin", ".pt", ".pth", ".ckpt", ".pkl"}]
    if not list(folder.glob("*.safetensors")):
        warning = f" (found {', '.join(pickles)}, which can run code when read)" if pickles else ""
        raise UnsupportedModel(f"{folder.name}: holds no .safetensors weights{warning}; convert it first")
    if list(folder.glob("*.py")):
        raise UnsupportedModel(f"{folder.name}: comes with Python code, which is never run")


def open_folder(
    source: str | Path, kind: type, *, dropout: float | None = None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return model and tokenizer of a folder: safetensors only, no code of its own, nothing fetched.

    Args:
        source: a folder with config.json, safetensors and a tokenizer, or a name of `HUB_NAMES`.
        kind: the Hugging Face class that reads such a model, such as `AutoModelForMaskedLM`.
        dropout: replaces the configured dropout of a GPT-2 when given, in [0, 1).

    Raises:
        MissingArtifact: the folder does not exist, or a file in it cannot be read.
        UnsupportedModel: the folder has pickled weights or code, is not a model of that kind, or its weights
            do not fill the model: transformers would fill the gaps by lot and say so in a warning.
    """
    folder, named = Path(source), str(source) in HUB_NAMES
    if not named:
        if not (folder / "config.json").exists():
            raise MissingArtifact(f"model {folder.name!r}: no folder with a config.json at that place")
        refuse_code(folder)
    safe = {"trust_remote_code": False, "local_files_only": not named}
    try:
        config = AutoConfig.from_pretrained(str(source), **safe)
        if dropout is not None:
            config.update({name: dropout for name in ("resid_pdrop", "embd_pdrop", "attn_pdrop")})
        loading_options = {"use_safetensors": True, "dtype": torch.float32, "output_loading_info": True}
        model, loading = kind.from_pretrained(str(source), config=config, **loading_options, **safe)
        tokenizer = AutoTokenizer.from_pretrained(str(source), **safe)
    except OSError as error:
        line = str(error).splitlines()[0].replace(str(folder), folder.name)
        raise MissingArtifact(f"model {folder.name!r}: cannot be read ({line})") from error
    except ValueError as error:
        raise UnsupportedModel(f"model {folder.name!r}: {str(error).splitlines()[0]}") from error
    for problem in ("missing_keys", "mismatched_keys", "error_msgs", "conversion_errors"):
        if loading.get(problem):
            raise UnsupportedModel(
                f"model {folder.name!r}: its weights do not fill the model ({problem.replace('_', ' ')}: "
                f"{len(loading[problem])}, such as {next(iter(loading[problem]))}); save the whole model"
            )
    return model, tokenizer


def load(
    source: str | Path, *, dropout: float | None = None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return model and tokenizer of a local Hugging Face folder, `gpt2` or `distilgpt2`, in evaluation mode.

    Args:
        source: a folder with config.json, safetensors and a tokenizer, or one of the two hub names.
        dropout: replaces the configured dropout of a GPT-2 when given, in [0, 1).

    Raises:
        MissingArtifact: the folder does not exist, or a hub model is neither cached nor reachable.
        UnsupportedModel: the folder has pickled weights or code, or is not a causal language model.
    """
    model, tokenizer = open_folder(source, AutoModelForCausalLM, dropout=dropout)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    model.config.pad_token_id = None  # rows are padded on the right and padding has no label: no mask needed
    return model.eval().to(preferred_device()), tokenizer
