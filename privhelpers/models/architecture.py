"""Models by name: small GPT-2s, Llamas and BERTs, `gpt2`, `distilgpt2`, or a local Hugging Face folder.

Weights are read from safetensors only and no code that comes with a model is ever run.
"""

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from privhelpers import rng
from privhelpers.errors import InvalidParameter, MissingArtifact, PrivHelpersError, UnsupportedModel
from privhelpers.models._direction import require_causal
from privhelpers.models._folder import called, check_folder, listed
from privhelpers.models.activation import with_fast_activations
from privhelpers.models.encoding import end_id
from privhelpers.text import quoted
from privhelpers.validate import shown

HUB_NAMES = ("gpt2", "distilgpt2")
_TRIED = 32  # tokens of the texts that tell whether a model is causal
_GAPS = "its weights do not fill the model"
_LOADING = {
    "missing_keys": _GAPS,
    "mismatched_keys": _GAPS,
    "error_msgs": _GAPS,
    "conversion_errors": _GAPS,
    "unexpected_keys": "the model does not use all of its weights",
}


@dataclass(frozen=True)
class Shape:
    """The size of a small GPT-2, or of a small Llama.

    Attributes:
        layers, width, heads: of the network; the width is a multiple of the heads.
        positions: tokens of the longest text.
        key_value_heads: of a Llama, each shared by several heads of queries; 0: a GPT-2.
    """

    layers: int
    width: int
    heads: int
    positions: int
    key_value_heads: int = 0


ARCHITECTURES = {
    "micro-gpt2": Shape(layers=2, width=64, heads=4, positions=128),
    "tiny-gpt2": Shape(layers=2, width=96, heads=4, positions=128),
    "mini-gpt2": Shape(layers=4, width=128, heads=4, positions=128),
    "micro-llama": Shape(layers=2, width=64, heads=4, positions=128, key_value_heads=2),
    "tiny-llama": Shape(layers=2, width=96, heads=4, positions=128, key_value_heads=2),
}


def preferred_device() -> torch.device:
    """Return the first GPU if there is one, else the CPU; every model of the book lives there."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def build(
    architecture: str, tokenizer: PreTrainedTokenizerBase, *, seed: int, dropout: float = 0.0
) -> PreTrainedModel:
    """Return a small GPT-2 or Llama with fresh weights; its input and output embeddings are tied.

    Args:
        architecture: a key of `ARCHITECTURES`.
        tokenizer: gives the vocabulary size and the end token.
        seed: of the initial weights.
        dropout: probability in [0, 1) for embeddings, attention and residuals; a Llama has it in attention.

    Raises:
        UnsupportedModel: the name is not known.
    """
    shape = ARCHITECTURES.get(architecture) if isinstance(architecture, str) else None
    if shape is None:
        raise UnsupportedModel(f"architecture {shown(architecture)}: known are {', '.join(ARCHITECTURES)}")
    ends = {"bos_token_id": end_id(tokenizer), "eos_token_id": end_id(tokenizer)}
    make, config = _llama(shape, dropout) if shape.key_value_heads else _gpt2(shape, dropout)
    with rng.torch_seeded(rng.derive(seed, "initial weights")):
        model = make(config(vocab_size=len(tokenizer), **ends))
    return with_fast_activations(model).to(preferred_device())


def _gpt2(shape: Shape, dropout: float) -> tuple[type, Callable[..., GPT2Config]]:
    sizes = {"n_positions": shape.positions, "n_embd": shape.width}
    sizes |= {"n_layer": shape.layers, "n_head": shape.heads}
    dropouts = {"resid_pdrop": dropout, "embd_pdrop": dropout, "attn_pdrop": dropout}
    # The same function as GPT-2's own, in one kernel.
    return GPT2LMHeadModel, partial(GPT2Config, activation_function="gelu_pytorch_tanh", **sizes, **dropouts)


def _llama(shape: Shape, dropout: float) -> tuple[type, Callable[..., LlamaConfig]]:
    sizes = {"max_position_embeddings": shape.positions, "hidden_size": shape.width}
    sizes |= {"num_hidden_layers": shape.layers, "num_attention_heads": shape.heads}
    # A gated layer has three matrices where GPT-2's has two: two thirds of its width make as many weights.
    sizes |= {"num_key_value_heads": shape.key_value_heads, "intermediate_size": 8 * shape.width // 3}
    return LlamaForCausalLM, partial(
        LlamaConfig, tie_word_embeddings=True, attention_dropout=dropout, **sizes
    )


def build_masked(
    architecture: str, tokenizer: PreTrainedTokenizerBase, *, seed: int, dropout: float = 0.0
) -> PreTrainedModel:
    """Return a small masked language model with fresh weights; input and output embeddings are tied.

    It has the width, heads and positions of the GPT-2 of the same size, and about as many weights: within
    5%.

    Args:
        architecture: `micro-bert`, `tiny-bert` or `mini-bert`, of the size of the GPT-2 of that name.
        tokenizer: with a mask token.
        seed: of the initial weights.
        dropout: probability in [0, 1) for embeddings, attention and residuals.

    Raises:
        UnsupportedModel: the name is not known.
        InvalidParameter: the tokenizer has no mask token.

    Source: Devlin et al. 2019, section 3.
    """
    size, _, family = architecture.partition("-")
    shape = ARCHITECTURES.get(f"{size}-gpt2")
    if shape is None or family != "bert":
        raise UnsupportedModel(
            f"architecture {shown(architecture)}: known are micro-bert, tiny-bert and mini-bert"
        )
    if tokenizer.mask_token_id is None:
        raise InvalidParameter("tokenizer: has no mask token; models.with_mask(tokenizer) adds one")
    common = {
        "vocab_size": len(tokenizer),
        "max_position_embeddings": shape.positions,
        # BERT's 0.02 at its width of 768: with it, a narrow model stays for long at the frequencies of words.
        "initializer_range": 0.02 * math.sqrt(768 / shape.width),
        "pad_token_id": None,  # our padding is the end token, which has a meaning and is trained
    }
    with rng.torch_seeded(rng.derive(seed, "initial weights")):
        sizes = {"hidden_size": shape.width, "intermediate_size": 4 * shape.width}
        sizes |= {"num_hidden_layers": shape.layers, "num_attention_heads": shape.heads}
        dropouts = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
        model = BertForMaskedLM(BertConfig(**sizes, **dropouts, **common))
    return model.to(preferred_device())


def count_parameters(model: torch.nn.Module) -> int:
    """Return the number of trainable values, a tied matrix counted once."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def save(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path) -> list[str]:
    """Write model and tokenizer as safetensors and JSON; return the names of the files written."""
    model.save_pretrained(folder, safe_serialization=True)
    tokenizer.save_pretrained(folder)
    return sorted(p.name for p in folder.iterdir() if p.is_file() and not p.name.endswith(".sha256"))


@contextlib.contextmanager
def _typed(source: str | Path, what: str) -> Iterator[None]:
    """Turn any failure to read a folder into a typed error; a panic of Rust is not an `Exception`."""
    name = Path(source).name
    try:
        yield
    except (PrivHelpersError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        said = f"{type(error).__name__}: {error}".replace(str(source), name)
        message = f"{called(name)}: {what} cannot be read ({quoted(said, 300)})"
        if isinstance(error, OSError):
            raise MissingArtifact(message) from error
        raise UnsupportedModel(f"{message}; restore {what} as the trained model was saved") from error


def read_model(source: str | Path, kind: type, *, dropout: float | None = None) -> PreTrainedModel:
    """Return the model of a folder: safetensors only, no code of its own, nothing fetched.

    Every tensor of the folder is in the model and every weight of the model is from the folder. Left out of
    this are constants that older versions saved, such as masks, which the model's class names itself.

    Args:
        source: a folder with config.json and safetensors, or a name of `HUB_NAMES`.
        kind: the Hugging Face class that reads such a model, such as `AutoModelForMaskedLM`.
        dropout: replaces the configured dropout of a GPT-2 when given, in [0, 1).

    Raises:
        MissingArtifact: the folder does not exist, or a file in it cannot be read.
        UnsupportedModel: the folder has pickled weights or code, is not a model of that kind, or its weights
            and the model differ: transformers would fill gaps at random, drop the rest, and warn. Or a weight
            is of whole numbers, which transformers would take for what was trained.
    """
    folder, named = Path(source), str(source) in HUB_NAMES
    whole_numbers = set() if named else check_folder(folder)
    with _typed(source, "config.json with the weights"):
        safe = {"trust_remote_code": False, "local_files_only": not named}
        config = AutoConfig.from_pretrained(str(source), **safe)
        if dropout is not None:
            config.update({name: dropout for name in ("resid_pdrop", "embd_pdrop", "attn_pdrop")})
        loading_options = {"use_safetensors": True, "dtype": torch.float32, "output_loading_info": True}
        loading_options["ignore_mismatched_sizes"] = True  # then they have names, and are refused below
        model, loading = kind.from_pretrained(str(source), config=config, **loading_options, **safe)
    for problem, words in _LOADING.items():
        if loading.get(problem):
            names = loading[problem]
            raise UnsupportedModel(
                f"{called(folder.name)}: {words} ({problem.replace('_', ' ')}: {len(names)}, such as "
                f"{listed(names)}); save the whole model, with the config.json that it was "
                "trained with"
            )
    weights = [name for name, _ in model.named_parameters()] if whole_numbers else []
    for name in sorted(whole_numbers):  # a base model's file leaves out the first words of a name
        if any(f".{weight}".endswith(f".{name}") or f".{name}".endswith(f".{weight}") for weight in weights):
            raise UnsupportedModel(
                f"{called(folder.name)}: {quoted(name)} contains whole numbers, but is a weight; "
                "save the model again"
            )
    return with_fast_activations(model)


def read_tokenizer(source: str | Path) -> PreTrainedTokenizerBase:
    """Return the tokenizer of a folder or of a name of `HUB_NAMES`: no code of its own.

    Raises:
        MissingArtifact: it does not exist, or a file of it cannot be read.
        UnsupportedModel: transformers does not know its kind.
    """
    with _typed(source, "the tokenizer"):
        return AutoTokenizer.from_pretrained(
            str(source), trust_remote_code=False, local_files_only=str(source) not in HUB_NAMES
        )


def load(
    source: str | Path, *, dropout: float | None = None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return model and tokenizer of a local Hugging Face folder, `gpt2` or `distilgpt2`, in evaluation mode.

    Args:
        source: a folder with config.json, safetensors and a tokenizer, or one of the two hub names.
        dropout: replaces the configured dropout of a GPT-2 when given, in [0, 1).

    Raises:
        MissingArtifact: the folder does not exist, or a hub model is neither cached nor reachable.
        UnsupportedModel: the folder has pickled weights or code, or is not a causal language model, also
            if its class is called one and its logits depend on later tokens.
    """
    model = read_model(source, AutoModelForCausalLM, dropout=dropout)
    tokenizer = read_tokenizer(source)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    model.eval()
    length = min(_TRIED, getattr(model.config, "max_position_embeddings", _TRIED))
    require_causal(
        model, Path(source).name, [*({*range(len(tokenizer))} - {*tokenizer.all_special_ids})], length
    )
    model.config.pad_token_id = None  # rows are padded on the right and padding has no label: no mask needed
    return model.to(preferred_device()), tokenizer
