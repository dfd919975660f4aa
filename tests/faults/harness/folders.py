"""The door of model folders: configurations, indexes, weights and tokenizers of strangers."""

import json

import torch
from faults.harness import base
from faults.harness.registry import Case, Trial, fault
from safetensors.torch import load_file, save_file

from privhelpers import own_model
from privhelpers.models._folder import check_folder

SIZES = ("n_embd", "n_layer", "n_head", "n_positions", "vocab_size", "n_inner", "n_ctx")


def _config(t: Trial, change) -> "Path":  # noqa: F821
    folder = t.copy(base.folder())
    config = json.loads((folder / "config.json").read_text())
    change(config)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@fault("bytes of the weights' header changed")
def _(t: Trial) -> Case:
    folder = t.copy(base.folder())
    path = folder / "model.safetensors"
    data = path.read_bytes()
    head = 8 + int.from_bytes(data[:8], "little")
    spoiled = t.spoil(data[:head])
    path.write_bytes(spoiled + data[head:])
    # Names, shapes and notes can change and still be a file; a library then compares them with the model.
    return Case(lambda: isinstance(check_folder(folder), set), right=True, watch=(folder,))


@fault("the weights are cut, longer, empty or no safetensors")
def _(t: Trial) -> Case:
    folder = t.copy(base.folder())
    path = folder / "model.safetensors"
    data = path.read_bytes()
    how = t.choose(("cut", "longer", "empty", "zip", "huge header"))
    path.write_bytes(
        {
            "cut": data[: t.below(len(data))],
            "longer": data + t.rng.bytes(1 + t.below(50)),
            "empty": b"",
            "zip": b"PK\3\4" + data,
            "huge header": (2**62).to_bytes(8, "little") + data[8:],
        }[how]
    )
    return Case(lambda: check_folder(folder), watch=(folder,))


@fault("a size that the weights cannot have")
def _(t: Trial) -> Case:
    name = t.choose(SIZES)
    value = t.choose((-1, 10**9, 10**18, 10**30, -(10**9)))
    folder = _config(t, lambda config: config.update({name: value}))
    return Case(lambda: check_folder(folder), watch=(folder,))


@fault("a configuration that is no clean JSON")
def _(t: Trial) -> Case:
    folder = t.copy(base.folder())
    texts = (
        b"",
        b"{",
        b"[]",
        b"3",
        b"null",
        b'{"a": NaN}',
        b'{"a": 1, "a": 2}',
        b"\xff",
        b"[" * 100_000,
        b"\0",
    )
    (folder / "config.json").write_bytes(texts[t.below(len(texts))])
    return Case(lambda: check_folder(folder), watch=(folder,))


@fault("an index that is none, or names what it must not")
def _(t: Trial) -> Case:
    folder = t.copy(base.folder())
    name = t.choose(
        ("../x.safetensors", "/etc/passwd", "x.bin", "gone.safetensors", 3, None, "", "a/b.safetensors")
    )
    value = t.choose(
        ({"weight_map": {"a": name}}, {"weight_map": {}}, {"weight_map": [name]}, {}, [name], name)
    )
    (folder / "model.safetensors.index.json").write_text(json.dumps(value))
    return Case(lambda: check_folder(folder), watch=(folder,))


@fault("code, pickles, adapters or second weights in the folder")
def _(t: Trial) -> Case:
    folder = t.copy(base.folder())
    name = t.choose(("modeling.py", "x.py", "adapter_config.json", "second.safetensors", "model.bin only"))
    if name == "model.bin only":
        (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    else:
        (folder / name).write_bytes(b"{}")
    return Case(lambda: check_folder(folder), watch=(folder,))


@fault("a file of the folder that is none")
def _(t: Trial) -> Case:
    folder = t.copy(base.folder())
    path = folder / t.choose(("config.json", "model.safetensors", "tokenizer.json"))
    path.unlink()
    how = t.choose(("folder", "loop", "nowhere"))
    path.mkdir() if how == "folder" else path.symlink_to(path if how == "loop" else "nowhere")
    return Case(lambda: check_folder(folder))


def _opened(folder, **given) -> Case:
    return Case(lambda: own_model.open_model(folder, **given).kind, watch=(folder,))


@fault("opened: a key that loads code or another kind of model", seconds=10, forked=False)
def _(t: Trial) -> Case:
    change = t.choose(
        (
            *(
                {"auto_map": {"AutoModel": "x.y"}},
                {"quantization_config": {}},
                {"_attn_implementation_internal": "x"},
            ),
            *(
                {"is_encoder_decoder": True},
                {"architectures": 5},
                {"architectures": ["T5Model"]},
                {"model_type": 3},
            ),
            *({"model_type": "nobody"}, {"trust_remote_code": True}, {"architectures": [3]}),
        )
    )
    return _opened(_config(t, lambda config: config.update(change)))


@fault("opened: a size that does not fit the weights", seconds=10, forked=False)
def _(t: Trial) -> Case:
    name, value = t.choose(SIZES[:5]), t.choose((0, 1, 7, 3, "8", 1.5, None, True, [8]))
    folder = _config(t, lambda config: config.update({name: value}))
    same = json.loads((base.folder() / "config.json").read_text())[name] == value
    case = _opened(folder)
    return Case(case.call, right="causal language model", same=lambda got, _: True) if same else case


@fault("opened: a tensor is missing, over, of another shape or not finite", seconds=10, forked=False)
def _(t: Trial) -> Case:
    folder = t.copy(base.folder())
    tensors = load_file(folder / "model.safetensors")
    name, how = t.choose(sorted(tensors)), t.choose(("missing", "over", "shape", "nan", "inf", "whole"))
    if how == "missing":
        del tensors[name]
    elif how == "over":
        tensors["more"] = torch.zeros(2)
    elif how == "shape":
        tensors[name] = torch.cat([tensors[name], tensors[name]])
    elif how == "whole":
        tensors[name] = tensors[name].to(torch.int32)
    else:
        tensors[name].view(-1)[t.below(tensors[name].numel())] = float(how)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    return _opened(folder)


@fault("opened: a tokenizer that is none", seconds=10, forked=False)
def _(t: Trial) -> Case:
    folder = t.copy(base.folder())
    path = folder / "tokenizer.json"
    data = path.read_bytes()
    how = t.choose(("empty", "cut", "null", "list", "gone", "deep"))
    path.write_bytes(
        {
            "empty": b"",
            "cut": data[: t.below(len(data))],
            "null": b"null",
            "list": b"[]",
            "deep": b"[" * 99_999,
        }.get(how, b"")
    )
    if how == "gone":
        path.unlink()
    return _opened(folder)
