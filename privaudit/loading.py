"""Open a user's model from a local folder.

Only safetensors are read; nothing is downloaded, and no code of the folder is run. A folder that could make a
library run or download something is refused before any library reads it. The report lists the hashes of the
folder's files. A tokenizer is a program nevertheless: open a folder that you do not trust in the container.
"""

import contextlib
import warnings
from collections.abc import Iterator, Sequence
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

from privaudit.model import CAUSAL, MASKED, Target, typed_answers
from privhelpers import rng
from privhelpers.artifacts import is_there, sha256_of
from privhelpers.errors import MissingArtifact, UnsupportedModel
from privhelpers.models._folder import ADAPTER, CONFIG, called, listed, read_files, read_json, refuse_code
from privhelpers.models.architecture import preferred_device, read_model, read_tokenizer
from privhelpers.text import quoted
from privhelpers.validate import shown

MOST_TOKENS = 1024  # most of a text that are read: the cost of attention grows with the square
_AT_ONCE = 500  # texts: the offsets of a token take about 400 bytes
# Names of a model's length limit in its config.json.
LENGTHS = ("max_position_embeddings", "n_positions", "n_ctx", "seq_length", "max_seq_len")
_NO_LIMIT = 2**31  # a tokenizer's length limit from here on means none
_ADAPTER_WEIGHTS = "adapter_model.safetensors"
_LORA = {
    *("r", "lora_alpha", "target_modules", "exclude_modules", "fan_in_fan_out", "bias", "lora_bias"),
    *("use_rslora", "use_dora", "rank_pattern", "alpha_pattern", "layers_to_transform", "layers_pattern"),
    *("modules_to_save", "trainable_token_indices", "ensure_weight_tying"),
}
# Keys that change no weight, or describe how training began.
_LORA_NOTES = {
    *("auto_mapping", "base_model_name_or_path", "revision", "peft_type", "peft_version", "task_type"),
    *("inference_mode", "init_lora_weights", "lora_dropout", "megatron_core"),
}
# Initializations that keep the weights of the base; others, such as PiSSA, change them.
_LORA_STARTS = (True, False, None, "gaussian", "eva", "orthogonal")
_CLASSES = {CAUSAL: AutoModelForCausalLM, MASKED: AutoModelForMaskedLM}


def is_adapter(source: str | Path) -> bool:
    """Return whether a folder contains an adapter and no whole model."""
    folder = Path(source).absolute()
    return is_there(folder / ADAPTER) and not is_there(folder / CONFIG)


def find_model(source: str | Path, base: str | Path | None = None) -> tuple[Path, Path | None]:
    """Return the folder of a model, and the folder of its base if it is an adapter.

    Raises:
        MissingArtifact: a folder does not exist, or an adapter has no base.
        UnsupportedModel: a whole model has a base.
    """
    folder = Path(source).absolute()  # "." gets a name
    told = called(folder.name)
    if not is_adapter(folder):
        if not is_there(folder / CONFIG):
            raise MissingArtifact(f"{told}: no folder with a config.json at that place")
        if base is not None:
            raise UnsupportedModel(f"{told}: is a whole model, which has no base; leave out the base")
        return folder, None
    if base is None:
        raise MissingArtifact(
            f"{told}: contains only an adapter; name the folder of the model that it was trained on as base"
        )
    under = Path(base).absolute()
    if not is_there(under / CONFIG):
        raise MissingArtifact(f"base {shown(under.name)}: no folder with a config.json at that place")
    return folder, under


def context_of(model: PreTrainedModel, longest: int) -> int:
    """Return the context length: the least of the model's, the tokenizer's, and 1024.

    Args:
        model: RoBERTa and similar models number positions from the padding token on.
        longest: the length limit of the tokenizer.
    """
    tables = [m for name, m in model.named_modules() if name.endswith("position_embeddings")]
    unused = [m.padding_idx + 1 for m in tables if getattr(m, "padding_idx", None) is not None]
    said = [getattr(model.config, name, None) for name in LENGTHS]
    said = [value - max(unused, default=0) for value in said if isinstance(value, int)]
    return min(value for value in (*said, longest, MOST_TOKENS) if value >= 8)


class TextTokenizer:
    """The tokenizer of a folder, with the interface of transformers.

    Attributes:
        context: most tokens of a text.
        bos_token_id, eos_token_id, pad_token_id, mask_token_id: as in transformers, or None.
    """

    def __init__(self, folder: Path, model: PreTrainedModel) -> None:
        """Open the tokenizer of a folder.

        Raises:
            UnsupportedModel: it has only special tokens, or tokens that the model lacks.
        """
        self._name, self._width = folder.name, model.get_output_embeddings().weight.shape[0]
        self._tokenizer = read_tokenizer(folder)
        highest = max(self._tokenizer.get_vocab().values(), default=0)
        size, special = len(self._tokenizer), len(set(self._tokenizer.all_special_ids))
        if size == special or max(size, highest + 1) > self._width:
            raise UnsupportedModel(
                f"{called(folder.name)}: its tokenizer has {size} tokens up to {highest}, {special} of them "
                f"special, and the model has {self._width}; save the tokenizer that it was trained with"
            )
        longest = self._tokenizer.model_max_length
        known = isinstance(longest, int | float) and longest < _NO_LIMIT
        self.context = context_of(model, int(longest) if known else _NO_LIMIT)
        for name in ("bos_token_id", "eos_token_id", "pad_token_id", "mask_token_id"):
            setattr(self, name, getattr(self._tokenizer, name))

    def __len__(self) -> int:
        """Return the number of tokens."""
        return len(self._tokenizer)

    def __call__(self, texts: Sequence[str], *, add_special_tokens: bool = True) -> dict[str, list]:
        """Return `input_ids`, `special_tokens_mask`, and `ends`: a list of numbers for each text.

        The ends are the characters at which the tokens end, -1 if the tokenizer does not report them.

        Raises:
            UnsupportedModel: it gives tokens that the model lacks.
        """
        rows: dict[str, list] = {"input_ids": [], "special_tokens_mask": [], "ends": []}
        fast = self._tokenizer.is_fast
        for start in range(0, len(texts), _AT_ONCE):
            some = list(texts[start : start + _AT_ONCE])
            options = {"add_special_tokens": add_special_tokens, "verbose": False}
            read = self._tokenizer(
                some, return_special_tokens_mask=True, return_offsets_mapping=fast, **options
            )
            rows["input_ids"] += read["input_ids"]
            rows["special_tokens_mask"] += read["special_tokens_mask"]
            if fast:
                rows["ends"] += [[end for _, end in offsets] for offsets in read["offset_mapping"]]
            else:
                rows["ends"] += [[-1] * len(ids) for ids in read["input_ids"]]
        highest = max((max(ids) for ids in rows["input_ids"] if ids), default=0)
        if highest >= self._width:
            raise UnsupportedModel(
                f"{called(self._name)}: its tokenizer gives token {highest}, and the model has "
                f"{self._width}; they do not belong together"
            )
        return rows

    def batch_decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """Return the text of each row of tokens, without special tokens."""
        return self._tokenizer.batch_decode(rows, skip_special_tokens=True)


def _kind(folder: Path, config: dict) -> str:
    """Return whether the folder contains a causal or a masked language model."""
    model_type, classes = str(config.get("model_type")), config.get("architectures") or []
    known = {
        CAUSAL: MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.get(model_type),
        MASKED: MODEL_FOR_MASKED_LM_MAPPING_NAMES.get(model_type),
    }
    if known[CAUSAL] == known[MASKED]:  # one class for both, such as XLM
        del known[MASKED if config.get("causal") else CAUSAL]
    classes = classes if isinstance(classes, list) else [classes]
    kinds = [kind for kind, name in known.items() if name is not None and (name in classes or not classes)]
    if len(kinds) != 1 or config.get("is_encoder_decoder"):
        raise UnsupportedModel(
            f"{called(folder.name)}: {quoted(', '.join(map(str, classes))) or 'no class'} of type "
            f"{shown(model_type)} is neither a causal nor a masked language model that transformers knows; "
            "save it with its head"
        )
    return kinds[0]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence transformers: its warnings are refusals here."""
    verbosity = logging.get_verbosity()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        logging.enable_progress_bar()


def _lora_config(folder: Path) -> dict:
    """Return the known options of an adapter; others can name libraries to load."""
    import peft

    given, usual = read_json(folder, ADAPTER), peft.LoraConfig().to_dict()
    unknown = [
        key
        for key in sorted(given.keys() - _LORA - _LORA_NOTES)
        if given[key] not in (None, False, {}, [], usual.get(key))
    ]
    if given.get("peft_type") != "LORA":
        unknown = ["peft_type"]
    elif given.get("init_lora_weights", True) not in _LORA_STARTS:  # it may change the base
        unknown = ["init_lora_weights"]
    if unknown:
        raise UnsupportedModel(
            f"adapter {shown(folder.name)}: {ADAPTER} sets {shown(unknown[0])} to "
            f"{shown(given.get(unknown[0]))}, which is not supported; save it as a plain LoRA "
            "(path_initial_model_for_weight_conversion of peft's save_pretrained)"
        )
    return {key: value for key, value in given.items() if key in _LORA}


def _with_adapter(model: PreTrainedModel, folder: Path) -> PreTrainedModel:
    """Return the model with the LoRA adapter of a folder in its layers, as in `peft.PeftModel`.

    The adapter is not merged, because a change of one of two tied matrices would change both.
    """
    import peft  # late: it loads as long as transformers, and few models are adapters

    refuse_code(folder)
    config = peft.LoraConfig(**_lora_config(folder))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecations
            adapted = peft.get_peft_model(model, config)
        weights = load_file(folder / _ADAPTER_WEIGHTS)
        needed, possible = (
            peft.get_peft_model_state_dict(adapted, save_embedding_layers=with_base).keys()
            for with_base in (False, True)  # a file may contain the embeddings of the base
        )
        wrong = (needed - weights.keys()) | (weights.keys() - needed - possible)
        wrong |= {name for name, weight in weights.items() if not weight.is_floating_point()}
        if not wrong:
            wrong = set(peft.set_peft_model_state_dict(adapted, weights).unexpected_keys)
        if wrong:
            raise ValueError(f"missing, unexpected, or whole numbers: {listed(wrong)}")
    except Exception as error:  # any error is possible
        said = quoted(f"{type(error).__name__}: {error}".replace(str(folder), folder.name))
        raise UnsupportedModel(
            f"adapter {shown(folder.name)}: does not fit its base model ({said}); the base is the model "
            "on which the adapter was trained, with the same size of vocabulary"
        ) from error
    return adapted.get_base_model()


def _model(folder: Path, base: Path | None) -> tuple[str, PreTrainedModel]:
    """Return the kind and the model of a folder, perhaps of an adapter on its base."""
    whole = folder if base is None else base
    kind = _kind(whole, read_json(whole, CONFIG))
    with _quiet():
        model = read_model(whole, _CLASSES[kind])
        if base is not None:
            model = _with_adapter(model, folder)
    if not all(torch.isfinite(p).all() for p in model.parameters()):
        raise UnsupportedModel(f"{called(folder.name)}: some of its weights are not finite numbers")
    model.generation_config = GenerationConfig()  # not the folder's settings of sampling
    model.config.return_dict = True  # whatever the folder sets
    return kind, model.eval()


def _hashes(folder: Path, base: Path | None) -> dict[str, str]:
    """Return the SHA-256 of every file that may be opened, by name; a base's are marked."""
    hashes = {ascii(path.name)[1:-1]: sha256_of(path) for path in read_files(folder)}
    if base is None:
        return hashes
    return hashes | {f"base: {name}": digest for name, digest in _hashes(base, None).items()}


def open_model(source: str | Path, *, base: str | Path | None = None) -> Target:
    """Open the model of a local Hugging Face folder.

    Args:
        source: a folder with config.json, safetensors and a tokenizer, or one with a LoRA adapter
            (adapter_config.json, adapter_model.safetensors); nothing is downloaded or run.
        base: the folder of the model that the adapter was trained on; its tokenizer is used.

    Raises:
        MissingArtifact: the folder does not exist, a file cannot be read, or an adapter has no base.
        UnsupportedModel: it has pickled weights, code, or keys that load code; missing or unused weights; an
            adapter next to a whole model; a tokenizer that does not fit; it is neither a causal nor a masked
            language model, or reads in another direction than its kind; it fails at a text, or its answers
            change; or an adapter does not fit its base.
    """
    folder, under = find_model(source, base)
    read = [*read_files(folder), *(read_files(under) if under else ())]
    weights = sum(path.stat().st_size for path in read if path.suffix == ".safetensors")
    if weights > (free := psutil.virtual_memory().available):
        raise UnsupportedModel(
            f"{called(folder.name)}: its weights have {weights:,} bytes, and {free:,} bytes of memory are "
            "free; use a larger machine"
        )
    kind, model = _model(folder, under)
    tokenizer = TextTokenizer(under or folder, model)
    if kind == MASKED and tokenizer.mask_token_id is None:
        raise UnsupportedModel(f"{called(folder.name)}: a masked model, but its tokenizer has no mask token")
    name, files = ascii(folder.name)[1:-1], _hashes(folder, under)
    return Target(name, kind, model.to(preferred_device()), tokenizer, tokenizer.context, files).checked()


def untrained(target: Target, *, seed: int) -> Target:
    """Return the same architecture and tokenizer with fresh weights, trained on nothing.

    Whatever an attack finds in it comes from the records, not from training.

    Args:
        target: an opened model.
        seed: of the weights.
    """
    with rng.torch_seeded(rng.derive(seed, "checkup/untrained")), typed_answers(target.name):
        model = _CLASSES[target.kind].from_config(target.model.config)
    model = model.float().eval().to(target.model.device)
    model.generation_config = GenerationConfig()
    return replace(target, name="untrained", model=model, files={}).checked()
