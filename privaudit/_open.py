"""Open a user's model: a local folder, safetensors only, none of its code, nothing fetched.

A folder that could make a library run or fetch something is refused before any library reads it. The audit
prints the hashes of the folder's files, uses every tensor in them, and nothing else. A tokenizer is a program
all the same: open a folder that you do not trust in the container.
"""

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import torch
from safetensors.torch import load_file
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    GenerationConfig,
    PreTrainedModel,
    logging,
)
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
)

from privaudit._places import find_model
from privaudit._target import CAUSAL, MASKED, Target, typed_answers
from privaudit._tokenizer import TextTokenizer
from privhelpers import rng
from privhelpers.artifacts import sha256_of
from privhelpers.errors import UnsupportedModel
from privhelpers.models._folder import ADAPTER, CONFIG, called, read_files, read_json, refuse_code
from privhelpers.models.architecture import preferred_device, read_model
from privhelpers.text import quoted
from privhelpers.validate import shown

# Where the words of a tokenizer stand; one of bytes needs none, and its configuration says so.
_WORDS = ("tokenizer.json", "vocab.json", "*.txt", "*.model", "*.tiktoken", "*.codes")
_OF_BYTES = ("ByT5Tokenizer", "CanineTokenizer", "PerceiverTokenizer")
_ADAPTER_WEIGHTS = "adapter_model.safetensors"
_LORA = {
    *(
        "r",
        "lora_alpha",
        "target_modules",
        "exclude_modules",
        "fan_in_fan_out",
        "bias",
        "use_rslora",
        "use_dora",
    ),
    *(
        "rank_pattern",
        "alpha_pattern",
        "modules_to_save",
        "layers_to_transform",
        "layers_pattern",
        "lora_bias",
    ),
    *("trainable_token_indices", "ensure_weight_tying"),
}
# What changes no weight, or says how training began.
_LORA_NOTES = {
    *("auto_mapping", "base_model_name_or_path", "revision", "peft_type", "peft_version", "task_type"),
    *("inference_mode", "init_lora_weights", "lora_dropout", "megatron_core"),
}
# Starts of a training that leave the weights of the base as they are; others, such as PiSSA, change them.
_LORA_STARTS = (True, False, None, "gaussian", "eva", "orthogonal")
_SAME_BASE = "BASE is the model as it was when the adapter was trained, with its vocabulary as large as then"
_CLASSES = {CAUSAL: AutoModelForCausalLM, MASKED: AutoModelForMaskedLM}


def _kind(folder: Path, config: dict) -> str:
    """Return whether the folder holds a causal or a masked language model."""
    model_type, classes = config.get("model_type"), config.get("architectures") or []
    if not isinstance(model_type, str):
        raise UnsupportedModel(f"{called(folder.name)}: config.json names no model_type")
    if not isinstance(classes, list) or not all(isinstance(name, str) for name in classes):
        raise UnsupportedModel(
            f"{called(folder.name)}: config.json says architectures = {shown(classes)}; it must be a "
            'list of names, such as ["GPT2LMHeadModel"]'
        )
    if config.get("is_encoder_decoder"):
        raise UnsupportedModel(
            f"{called(folder.name)}: config.json says is_encoder_decoder; causal and masked models are "
            "none, and others cannot be audited"
        )
    known = {
        CAUSAL: MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.get(model_type),
        MASKED: MODEL_FOR_MASKED_LM_MAPPING_NAMES.get(model_type),
    }
    if known[CAUSAL] is not None and known[CAUSAL] == known[MASKED]:  # one class for both, such as XLM's
        del known[MASKED if config.get("causal") else CAUSAL]
    named = [kind for kind, name in known.items() if name is not None and name in classes]
    possible = [kind for kind, name in known.items() if name is not None]
    if not classes and len(possible) == 1:
        named = possible
    if len(named) != 1:
        raise UnsupportedModel(
            f"{called(folder.name)}: {quoted(', '.join(classes)) or 'no class'} of type {shown(model_type)} "
            "is neither a causal nor a masked language model that transformers knows; save it with its head"
        )
    return named[0]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Let transformers say nothing: its warnings are refusals here."""
    verbosity = logging.get_verbosity()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        logging.enable_progress_bar()


def _lora_config(folder: Path) -> dict:
    """Return the options of an adapter, of the keys that we know: others can name libraries to load."""
    import peft

    given = read_json(folder, ADAPTER)
    if given.get("peft_type") != "LORA":
        raise UnsupportedModel(
            f"adapter {shown(folder.name)}: is {shown(given.get('peft_type'))}; only LORA is known"
        )
    if (start := given.get("init_lora_weights", True)) not in _LORA_STARTS:
        raise UnsupportedModel(
            f"adapter {shown(folder.name)}: {ADAPTER} sets init_lora_weights to {shown(start)}, which may "
            "change its base; save it as a plain LoRA (path_initial_model_for_weight_conversion of peft's "
            "save_pretrained)"
        )
    options = {key: value for key, value in given.items() if key in _LORA}
    usual = peft.LoraConfig().to_dict()
    for key in sorted(given.keys() - _LORA - _LORA_NOTES):
        if given[key] not in (None, False, {}, [], usual.get(key)):
            raise UnsupportedModel(
                f"adapter {shown(folder.name)}: {ADAPTER} sets {shown(key)}, which is not known here"
            )
    return options


def _with_adapter(model: PreTrainedModel, folder: Path) -> PreTrainedModel:
    """Return the model with the LoRA adapter of a folder in its layers, as `peft.PeftModel` computes it.

    The adapter is not merged: the change of one of two tied matrices would become a change of both.
    """
    import peft  # late: it takes as long to load as transformers, and few bring an adapter

    refuse_code(folder)
    if over := sorted(path.name for path in folder.glob("*.safetensors") if path.name != _ADAPTER_WEIGHTS):
        raise UnsupportedModel(
            f"adapter {shown(folder.name)}: {quoted(over[0])} is no part of an adapter; move it away"
        )
    config = peft.LoraConfig(**_lora_config(folder))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a library that it will change one day
            adapted = peft.get_peft_model(model, config)
        weights = load_file(folder / _ADAPTER_WEIGHTS)
        if whole := sorted(name for name, weight in weights.items() if not weight.is_floating_point()):
            raise ValueError(f"{whole[0]} holds whole numbers")
        needed, possible = (
            peft.get_peft_model_state_dict(adapted, save_embedding_layers=with_base).keys()
            for with_base in (False, True)  # a file may hold the embeddings of the base as well
        )
        missing = (needed - weights.keys()) | (weights.keys() - needed - possible)
        if not missing:
            missing = set(peft.set_peft_model_state_dict(adapted, weights).unexpected_keys)
    except Exception as error:  # a stranger's folder can fail with any error
        said = quoted(f"{type(error).__name__}: {error}".replace(str(folder), folder.name))
        raise UnsupportedModel(
            f"adapter {shown(folder.name)}: does not fit its base model ({said}); {_SAME_BASE}"
        ) from error
    if missing:
        raise UnsupportedModel(
            f"adapter {shown(folder.name)}: does not fit its base model ({len(missing)} weights, such as "
            f"{quoted(min(missing))}); {_SAME_BASE}"
        )
    return adapted.get_base_model()


def _model(folder: Path, base: Path | None) -> tuple[str, PreTrainedModel]:
    """Return kind and model of a folder, or of an adapter's folder and its base."""
    whole = folder if base is None else base
    kind = _kind(whole, read_json(whole, CONFIG))
    with _quiet():
        model = read_model(whole, _CLASSES[kind])
        if base is not None:
            model = _with_adapter(model, folder)
    if not all(torch.isfinite(p).all() for p in model.parameters()):
        raise UnsupportedModel(f"{called(folder.name)}: some of its weights are not finite numbers")
    model.generation_config = GenerationConfig()  # what the folder says of sampling is not asked
    model.config.return_dict = True  # as it is asked here, whatever the folder says
    return kind, model.eval()


def _require_tokenizer(folder: Path) -> None:
    """Refuse a folder without a tokenizer, before a library says so in words of its own."""
    settings = "tokenizer_config.json"
    named = read_json(folder, settings).get("tokenizer_class") if (folder / settings).is_file() else None
    if named not in _OF_BYTES and not any(next(folder.glob(pattern), None) for pattern in _WORDS):
        raise UnsupportedModel(
            f"{called(folder.name)}: the tokenizer cannot be read, as the folder has no tokenizer.json or "
            "vocabulary; save there the one that the model was trained with: "
            "tokenizer.save_pretrained('folder')"
        )


def _weight_bytes(folder: Path, base: Path | None) -> int:
    """Return the bytes of the weights of a folder and its base."""
    files = [*read_files(folder), *([] if base is None else read_files(base))]
    return sum(path.stat().st_size for path in files if path.suffix == ".safetensors")


def _hashes(folder: Path, base: Path | None) -> dict[str, str]:
    """Return the SHA-256 of every file that may be opened, by name, those of a base marked so."""
    hashes = {ascii(path.name)[1:-1]: sha256_of(path) for path in read_files(folder)}
    if base is None:
        return hashes
    return hashes | {f"base: {name}": digest for name, digest in _hashes(base, None).items()}


def open_model(source: str | Path, *, base: str | Path | None = None) -> Target:
    """Return the model of a local Hugging Face folder, ready to be asked.

    Args:
        source: a folder with config.json, safetensors and a tokenizer, or one with a LoRA adapter
            (adapter_config.json, adapter_model.safetensors); nothing is fetched or run.
        base: the folder of the model that the adapter was trained on; its tokenizer is used.

    Raises:
        MissingArtifact: there is no such folder, a file of it cannot be read, or an adapter has no base.
        UnsupportedModel: it has pickled weights, code, or keys that load some; weights that do not fill it,
            or that it leaves out; an adapter that nobody named; a tokenizer that does not fit; it is neither
            a causal nor a masked language model, or reads in another direction than its kind says; it fails
            at a text, or says something else each time; or an adapter is not of its base.
    """
    folder, under = find_model(source, base)
    weights = _weight_bytes(folder, under)
    if weights > (free := psutil.virtual_memory().available):
        raise UnsupportedModel(
            f"{called(folder.name)}: its weights have {weights:,} bytes, and {free:,} bytes of memory are "
            "free; open it on a larger machine"
        )
    whole = folder if under is None else under
    _require_tokenizer(whole)
    kind, model = _model(folder, under)
    tokenizer = TextTokenizer(whole, model)
    if kind == MASKED and tokenizer.mask_token_id is None:
        raise UnsupportedModel(f"{called(folder.name)}: a masked model, but its tokenizer has no mask token")
    name, files = ascii(folder.name)[1:-1], _hashes(folder, under)
    return Target(name, kind, model.to(preferred_device()), tokenizer, tokenizer.context, files).checked()


def untrained(target: Target, *, seed: int) -> Target:
    """Return the same architecture and tokenizer with fresh weights: a model that was trained on nothing.

    Whatever an attack finds in it comes from the records, and not from what the model learned.

    Args:
        target: an opened model.
        seed: of the weights.
    """
    with rng.torch_seeded(rng.derive(seed, "checkup/untrained")), typed_answers(target.name):
        model = _CLASSES[target.kind].from_config(target.model.config)
    model = model.float().eval().to(target.model.device)
    model.generation_config = GenerationConfig()
    return replace(target, name="untrained", model=model, files={}).checked()
