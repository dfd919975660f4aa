"""What may stand in the folder of a model, looked at before a library builds anything of it.

The weights are `model.safetensors`, or the files of `model.safetensors.index.json`: plain names in the
folder, and every safetensors file of the folder is one of them. No size that `config.json` names is larger
than the tensors of these files allow.
"""

import math
import re
from collections.abc import Iterator
from pathlib import Path

from safetensors import safe_open

from privhelpers.artifacts import is_there, parse_json
from privhelpers.errors import DamagedArtifact, MissingArtifact, UnsupportedModel
from privhelpers.text import quoted
from privhelpers.validate import shown

CONFIG, ADAPTER = "config.json", "adapter_config.json"
WHOLE, INDEX = "model.safetensors", "model.safetensors.index.json"
_JSON_FILES = (CONFIG, "tokenizer_config.json", "generation_config.json", ADAPTER)
# Keys that name code, a kernel, a library or another file to load. Private keys are none of a published
# configuration's, but for those that transformers itself writes.
_LOADERS = {
    *("auto_map", "custom_pipelines", "custom_generate", "trust_remote_code", "quantization_config"),
    *(
        "transformers_weights",
        "attn_implementation",
        "experts_implementation",
        "kernel_config",
        "fusion_config",
        "configuration_files",
        "fast_tokenizer_files",
    ),
}
_OWN_PRIVATE = {
    *("_name_or_path", "_commit_hash", "_num_labels", "_from_model_config"),
    *("_model_name_or_path", "_attn_implementation_autoset"),  # of older versions, and read by none
    "_remove_final_layer_norm",  # of OPT
}
_READ = {".json", ".txt", ".model", ".jinja", ".tiktoken", ".codes", ".safetensors"}
_PICKLES = {".bin", ".pt", ".pth", ".ckpt", ".pkl"}
_LAYERS = re.compile(r"(^|_)layers?$")
_SIZES = re.compile(
    r"(^|_)(size|dim|dims|embd|inner|width|labels|heads?|experts|groups|channels|rank|kernel)$"
)
_POSITIONS = re.compile(r"(^|_)(positions|position_embeddings|ctx|seq_len|seq_length)$")
_OWN_DEFAULTS = {("max_relative_positions", -1)}  # of transformers, for: as many as there are positions
_FARTHEST = 2**24  # positions: more than any published model reads


def called(name: str) -> str:
    """Return how a message names the model of a folder of this name."""
    return f"model {shown(name)}"


def read_files(folder: Path) -> list[Path]:
    """Return the files of a folder that libraries may read, by name."""
    return sorted(path for path in folder.iterdir() if path.suffix in _READ and path.is_file())


def read_json(folder: Path, name: str) -> dict:
    """Return an object of a folder's JSON file.

    Raises:
        UnsupportedModel: it is no clean JSON, or no object.
    """
    try:
        read = parse_json((folder / name).read_bytes(), f"{folder.name}/{name}")
    except (DamagedArtifact, OSError) as error:
        raise UnsupportedModel(f"{called(folder.name)}: {name} is no clean JSON ({quoted(error)})") from None
    if not isinstance(read, dict):
        raise UnsupportedModel(f"{called(folder.name)}: {name} holds no object, in braces")
    return read


def _keys(value: object) -> set[str]:
    """Return every key of nested JSON."""
    if isinstance(value, dict):
        return set(value).union(*map(_keys, value.values()))
    return set().union(*map(_keys, value)) if isinstance(value, list) else set()


def refuse_code(folder: Path) -> None:
    """Refuse a folder whose weights or files could run code, or have files read that nobody looked at.

    Raises:
        UnsupportedModel: it has no safetensors, or comes with Python code or a key that names what to load.
    """
    for name in _JSON_FILES:
        keys = _keys(read_json(folder, name)) if (folder / name).is_file() else set()
        private = {key for key in keys if key.startswith("_")} - _OWN_PRIVATE
        if bad := sorted(keys & _LOADERS | (private if name == CONFIG else set())):
            raise UnsupportedModel(
                f"{called(folder.name)}: {name} has {shown(bad[0])}, which may load code, libraries or "
                "other files; if the model works without it, remove it"
            )
    pickles = [p.name for p in folder.glob("*") if p.suffix in _PICKLES]
    if not list(folder.glob("*.safetensors")):
        warning = f" (found {listed(pickles)}, which can run code when read)" if pickles else ""
        raise UnsupportedModel(
            f"{called(folder.name)}: holds no .safetensors weights{warning}; convert it first: if you trust "
            "whoever made it, load model and tokenizer with transformers where they were made, then "
            "model.save_pretrained('new-folder') and tokenizer.save_pretrained('new-folder')"
        )
    if list(folder.glob("*.py")):
        raise UnsupportedModel(f"{called(folder.name)}: comes with Python code, which is never run")


def _indexed(folder: Path) -> dict[str, set[str]]:
    """Return file -> names of tensors, as the index says, or the one file with any names."""
    if not (folder / INDEX).is_file():
        return {WHOLE: set()}
    named = read_json(folder, INDEX).get("weight_map")
    if not isinstance(named, dict) or not named:
        raise UnsupportedModel(f"{called(folder.name)}: {INDEX} has no weight_map")
    files: dict[str, set[str]] = {}
    for tensor, file in named.items():
        if not isinstance(file, str) or Path(file).name != file or not file.endswith(".safetensors"):
            raise UnsupportedModel(
                f"{called(folder.name)}: {INDEX} names {shown(file)}; it may name .safetensors files "
                "of its own folder alone"
            )
        files.setdefault(file, set()).add(tensor)
    if WHOLE in files and len(files) > 1:
        raise UnsupportedModel(
            f"{called(folder.name)}: {INDEX} names {WHOLE} and other files, and libraries would read {WHOLE} "
            "alone; save the model again"
        )
    return files


def tensors(folder: Path) -> dict[str, tuple[str, list[int]]]:
    """Return type and shape of each tensor of a folder's weights, from the headers alone.

    Raises:
        UnsupportedModel: a file is no safetensors, is over, is missing, or is not as the index says.
    """
    indexed = _indexed(folder)
    found = {path.name for path in folder.glob("*.safetensors")}
    if found != set(indexed):
        over, gone = sorted(found - set(indexed)), sorted(set(indexed) - found)
        what = (
            f"{quoted(over[0])} is no part of the model; move it away"
            if over
            else f"{quoted(gone[0])} is missing"
        )
        raise UnsupportedModel(f"{called(folder.name)}: weights are {listed(indexed)}, and {what}")
    headers: dict[str, tuple[str, list[int]]] = {}
    for file, names in indexed.items():
        try:
            with safe_open(folder / file, "pt") as opened:
                parts = {name: opened.get_slice(name) for name in opened.keys()}  # noqa: SIM118
                own = {name: (part.get_dtype(), part.get_shape()) for name, part in parts.items()}
        except Exception as error:  # of its own kind, and not derived from another
            raise UnsupportedModel(
                f"{called(folder.name)}: {quoted(file)} cannot be read as safetensors ({quoted(error)}); "
                "copy it again"
            ) from error
        if differ := sorted(own.keys() ^ names if names else own.keys() & headers.keys()):
            raise UnsupportedModel(
                f"{called(folder.name)}: {quoted(file)} and {INDEX} differ in {listed(differ)}; save the "
                "model again"
            )
        headers |= own
    # A base model's file leaves out the first word of each name: of two such tensors, libraries drop one.
    if twice := [name for name in headers if name.partition(".")[2] in headers]:
        raise UnsupportedModel(
            f"{called(folder.name)}: its weights hold {quoted(min(twice))} twice, with and without its first "
            "word; save the model again"
        )
    return headers


def listed(names: object) -> str:
    """Return up to three names, in words.

    >>> listed("dacb")
    'a, b, c and 1 more'
    """
    names = sorted(map(str, names))
    return quoted(", ".join(names[:3]), 300) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")


def _numbers(value: object, key: str = "") -> Iterator[tuple[str, int]]:
    """Yield key and value of every whole number of nested JSON; those of a list have its key."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _numbers(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _numbers(inner, key)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield key, value


def _refuse_sizes(folder: Path, config: dict, shapes: dict[str, list[int]]) -> None:
    """Refuse a size that the tensors cannot have: a library would build it before it compares."""
    values = sum(map(math.prod, shapes.values()))
    for key, number in _numbers(config):
        if _LAYERS.search(key):
            most, because = len(shapes), f"its weights are {len(shapes):,} tensors"
        elif _SIZES.search(key):
            most, because = values, f"its weights are {values:,} numbers"
        elif _POSITIONS.search(key):
            most, because = _FARTHEST, "no model reads so far"
        else:
            continue
        if not 0 <= number <= most and (key, number) not in _OWN_DEFAULTS:
            raise UnsupportedModel(
                f"{called(folder.name)}: config.json says {quoted(key)} = {shown(number)}, and {because}, "
                f"so that 0 to {most:,} are possible; restore the config.json that the weights were saved "
                "with"
            )


def check_folder(folder: Path) -> set[str]:
    """Refuse a folder that is not one whole model, or that a library could not read safely.

    Returns:
        the names of the tensors that hold whole numbers or truths, as some constants do and no weight does.

    Raises:
        MissingArtifact: there is no such folder.
        UnsupportedModel: naming what is wrong with which file.
    """
    if not is_there(folder / CONFIG):
        raise MissingArtifact(f"{called(folder.name)}: no folder with a config.json at that place")
    refuse_code(folder)
    if (folder / ADAPTER).exists():
        raise UnsupportedModel(
            f"{called(folder.name)}: {ADAPTER} lies beside a whole model, and nobody named it; move the "
            "adapter to a folder of its own"
        )
    headers = tensors(folder)
    _refuse_sizes(folder, read_json(folder, CONFIG), {name: shape for name, (_, shape) in headers.items()})
    return {name for name, (kind, _) in headers.items() if not kind.startswith(("F", "BF"))}
