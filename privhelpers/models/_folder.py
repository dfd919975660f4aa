"""The allowed content of a model folder, checked before a library builds anything of it.

The weights are `model.safetensors`, or the files of `model.safetensors.index.json`, and every safetensors
file of the folder is one of them. No size that `config.json` names is larger than the tensors allow.
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
_WHOLE, _INDEX = "model.safetensors", "model.safetensors.index.json"
_JSON_FILES = (CONFIG, "tokenizer_config.json", "generation_config.json", ADAPTER)
# Keys that name code, a kernel, a library or another file to load.
_LOADERS = re.compile(
    r"(auto_map|custom_\w+|trust_remote_code|quantization_config|kernel_config|fusion_config|\w+_files"
    r"|transformers_weights|\w*_implementation(?!_autoset)\w*)"
)
_READ = {".json", ".txt", ".model", ".jinja", ".tiktoken", ".codes", ".safetensors"}
_LAYERS = re.compile(r"(^|_)layers?$")
_SIZES = re.compile(
    r"(^|_)(size|dim|dims|embd|inner|width|labels|heads?|experts|groups|channels|rank|kernel)$"
)
_POSITIONS = re.compile(r"(^|_)(positions|position_embeddings|ctx|seq_len|seq_length)$")
_FARTHEST = 2**24  # positions: more than any published model reads


def called(name: str) -> str:
    """Return how a message names the model of a folder of this name."""
    return f"model {shown(name)}"


def listed(names: object) -> str:
    """Return up to three names, in words.

    >>> listed("dacb")
    'a, b, c and 1 more'
    """
    names = sorted(map(str, names))
    return quoted(", ".join(names[:3]), 300) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")


def read_files(folder: Path) -> list[Path]:
    """Return the files of a folder that libraries may read, by name."""
    return sorted(path for path in folder.iterdir() if path.suffix in _READ and path.is_file())


def read_json(folder: Path, name: str) -> dict:
    """Return an object of a folder's JSON file.

    Raises:
        UnsupportedModel: it is not clean JSON, or not an object.
    """
    try:
        read = parse_json((folder / name).read_bytes(), f"{folder.name}/{name}")
    except (DamagedArtifact, OSError) as error:
        raise UnsupportedModel(f"{called(folder.name)}: {name} is not clean JSON ({quoted(error)})") from None
    if not isinstance(read, dict):
        raise UnsupportedModel(f"{called(folder.name)}: {name} must be an object, in braces")
    return read


def _values(value: object, key: str = "") -> Iterator[tuple[str, object]]:
    """Yield key and value of everything in nested JSON; the items of a list have its key."""
    yield key, value
    inner = value.items() if isinstance(value, dict) else ()
    inner = ((key, one) for one in value) if isinstance(value, list) else inner
    for name, one in inner:
        yield from _values(one, name)


def refuse_code(folder: Path) -> None:
    """Refuse a folder whose weights or files could run code, or make a library load something else.

    Raises:
        UnsupportedModel: it has no safetensors, or contains Python code or a key that names what to load.
    """
    for name in _JSON_FILES:
        keys = {key for key, _ in _values(read_json(folder, name))} if (folder / name).is_file() else set()
        if bad := sorted(filter(_LOADERS.fullmatch, keys)):
            raise UnsupportedModel(
                f"{called(folder.name)}: {name} has {shown(bad[0])}, which may load code, libraries or "
                "other files; if the model works without it, remove it"
            )
    if not list(folder.glob("*.safetensors")):
        pickled = listed(path.name for path in folder.glob("*.bin"))
        raise UnsupportedModel(
            f"{called(folder.name)}: has no .safetensors weights, and pickled ones ({pickled}) can run code; "
            "convert it where it was made, with transformers: model.save_pretrained('new-folder') and "
            "tokenizer.save_pretrained('new-folder')"
        )
    if list(folder.glob("*.py")):
        raise UnsupportedModel(f"{called(folder.name)}: contains Python code, which is never run")


def _headers(folder: Path) -> dict[str, tuple[str, list[int]]]:
    """Return type and shape of each tensor of a folder's weights, from the headers alone.

    Raises:
        UnsupportedModel: the files of weights do not match the index, or one is not safetensors.
    """
    found, named = {path.name for path in folder.glob("*.safetensors")}, {_WHOLE}
    if (folder / _INDEX).is_file():
        places = read_json(folder, _INDEX).get("weight_map")
        named = set(map(str, places.values())) if isinstance(places, dict) else set()
    if found != named or (_WHOLE in named and len(named) > 1):  # libraries would read the whole one alone
        raise UnsupportedModel(
            f"{called(folder.name)}: its weights are in {listed(named)}, and the folder has {listed(found)}; "
            "save the model again, and nothing else, to a folder of its own"
        )
    headers = {}
    for name in sorted(found):
        try:
            with safe_open(folder / name, "pt") as opened:
                for tensor in opened.keys():  # noqa: SIM118
                    part = opened.get_slice(tensor)
                    headers[tensor] = part.get_dtype(), part.get_shape()
        except Exception as error:  # of its own kind, and not derived from another
            raise UnsupportedModel(
                f"{called(folder.name)}: {quoted(name)} cannot be read as safetensors ({quoted(error)}); "
                "copy it again"
            ) from error
    return headers


def check_folder(folder: Path) -> set[str]:
    """Refuse a folder that is not one whole model, or that a library could not read safely.

    Returns:
        the names of the tensors of whole numbers or truth values: some constants are, and no weight is.

    Raises:
        MissingArtifact: there is no such folder.
        UnsupportedModel: naming what is wrong with which file.
    """
    if not is_there(folder / CONFIG):
        raise MissingArtifact(f"{called(folder.name)}: no folder with a config.json at that place")
    refuse_code(folder)
    if (folder / ADAPTER).exists():
        raise UnsupportedModel(
            f"{called(folder.name)}: {ADAPTER} is in the folder of a whole model; move the adapter to a "
            "folder of its own"
        )
    headers = _headers(folder)
    values = sum(math.prod(shape) for _, shape in headers.values())
    limits = ((_LAYERS, len(headers)), (_SIZES, values), (_POSITIONS, _FARTHEST))
    for key, number in _values(read_json(folder, CONFIG)):  # a library builds it before it compares
        most = next((most for names, most in limits if names.search(key)), math.inf)
        if type(number) is int and number > most:
            raise UnsupportedModel(
                f"{called(folder.name)}: config.json has {quoted(key)} = {shown(number)}, and its weights "
                f"allow {most:,} at most; restore the config.json that the weights were saved with"
            )
    return {name for name, (kind, _) in headers.items() if not kind.startswith(("F", "BF"))}
