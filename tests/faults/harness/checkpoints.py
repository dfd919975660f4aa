"""The door of checkpoints: what stands in one, what stands beside it, and a ledger that does not fit."""

import json

import torch
from faults.harness import base
from faults.harness.registry import Case, Trial, fault
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from privhelpers import artifacts


def _newest(folder):
    return sorted(folder.glob("step-*.safetensors"))[-1]


def _resumed(folder, **settings):
    return lambda: base.train(folder, **settings)[0]


def _rewritten(folder, change, words=None):
    """Change tensors and words of a checkpoint, and seal it as if it had been written so."""
    path = _newest(folder)
    with safe_open(path, "pt") as file:
        progress = json.loads(file.metadata()["progress"])
    tensors = load_file(path)
    change(tensors)
    if words:
        words(progress)
    save_file(tensors, path, metadata={"progress": json.dumps(progress)})
    artifacts.write_sealed(path, path.read_bytes())
    return path


@fault("bytes changed at random")
def _(t: Trial) -> Case:
    folder = t.copy(base.kept())
    path = _newest(folder)
    path.write_bytes(t.spoil(path.read_bytes()))
    return Case(_resumed(folder), right=base.whole(), watch=(path,))


@fault("bytes of its seal changed")
def _(t: Trial) -> Case:
    folder = t.copy(base.kept())
    path = artifacts.seal_of(_newest(folder))
    path.write_bytes(t.spoil(path.read_bytes()))
    return Case(_resumed(folder), right=base.whole())


@fault("bytes changed at random, and sealed again")
def _(t: Trial) -> Case:
    folder = t.copy(base.kept())
    path = _newest(folder)
    head = 8 + int.from_bytes(path.read_bytes()[:8], "little")
    data = path.read_bytes()
    artifacts.write_sealed(path, t.spoil(data[:head]) + data[head:])
    # Who can seal can change weights; what must not happen is a traceback, or a run that goes on wrongly.
    return Case(_resumed(folder), right=base.whole(), watch=(path,))


@fault("a word of its progress is of another type")
def _(t: Trial) -> Case:
    folder = t.copy(base.kept())
    name = t.choose(("step", "head", "counts"))
    value = t.choose((None, "2", -1, 1.5, True, [], {}, 10**30, [1], "x", 7, {"sizes": 1}))

    def words(progress):
        progress[name] = value

    path = _rewritten(folder, lambda tensors: None, words)
    return Case(_resumed(folder), watch=(path,))


@fault("a count of its log is of another type")
def _(t: Trial) -> Case:
    folder = t.copy(base.kept())
    name = t.choose(("sizes", "medians", "clipped", "refused", "lost", "canary_scores", "more"))
    value = t.choose(
        ("3", -1, 1.5, True, {}, 10**30, ["a"], [None, {}], "x", [[1]], [-1, 2], [1, 2, 3, 4, 5])
    )

    def words(progress):
        progress["counts"][name] = value

    path = _rewritten(folder, lambda tensors: None, words)
    return Case(_resumed(folder), watch=(path,))


@fault("a word of its progress is missing or new")
def _(t: Trial) -> Case:
    folder = t.copy(base.kept())
    where, name = t.choose(("progress", "counts")), t.choose(("step", "head", "counts", "sizes", "clipped"))

    def words(progress):
        mapping = progress if where == "progress" else progress["counts"]
        if name in mapping:
            del mapping[name]
        else:
            mapping[name] = 1

    path = _rewritten(folder, lambda tensors: None, words)
    return Case(_resumed(folder), watch=(path,))


def _tensors(t: Trial, kind: str) -> Case:
    folder = t.copy(base.kept())

    def change(tensors):
        names = sorted(name for name in tensors if name.startswith(f"{kind}/"))
        name = t.choose(names)
        value = tensors[name]
        how = t.choose(("gone", "shorter", "longer", "flat", "type", "scalar", "renamed"))
        if how == "gone":
            del tensors[name]
        elif how == "renamed":
            tensors[f"{kind}/999/x"] = tensors.pop(name)
        else:
            flat = value.reshape(-1)
            tensors[name] = {
                "shorter": flat[:-1].clone() if flat.numel() > 1 else torch.zeros(3),
                "longer": torch.cat([flat, flat, flat[:1]]),
                "flat": torch.stack([value, value]),
                "type": value.to(torch.int16) if value.dtype != torch.int16 else value.float(),
                "scalar": torch.tensor(1.0).repeat(2, 2, 2),
            }[how]

    path = _rewritten(folder, change)
    return Case(_resumed(folder), watch=(path,))


@fault("a weight has another shape, type or name")
def _(t: Trial) -> Case:
    return _tensors(t, "model")


@fault("a state of the optimizer has another shape, type or name")
def _(t: Trial) -> Case:
    return _tensors(t, "optimizer")


@fault("a random stream has another shape, type or name")
def _(t: Trial) -> Case:
    return _tensors(t, "chance")


@fault("a random stream holds other bytes")
def _(t: Trial) -> Case:
    folder = t.copy(base.kept())

    def change(tensors):
        name = t.choose(("chance/sampling", "chance/noise", "chance/dropout"))
        tensors[name] = torch.from_numpy(t.rng.integers(0, 256, tensors[name].numel()).astype("uint8"))

    path = _rewritten(folder, change)
    return Case(_resumed(folder), watch=(path,))


@fault("a number of the optimizer or a weight is not finite")
def _(t: Trial) -> Case:
    folder = t.copy(base.kept())

    def change(tensors):
        names = sorted(name for name in tensors if name.startswith(("model/", "optimizer/")))
        tensor = tensors[t.choose(names)]
        tensor.reshape(-1)[t.below(tensor.numel())] = t.choose((float("nan"), float("inf"), -float("inf")))

    path = _rewritten(folder, change)
    return Case(_resumed(folder), watch=(path,))


@fault("the ledger is gone, empty, cut or of another run")
def _(t: Trial) -> Case:
    folder = t.copy(base.kept())
    path = folder / "ledger.jsonl"
    how = t.choose(("gone", "empty", "cut", "other", "first lines"))
    data = path.read_bytes()
    lines = data.splitlines(keepends=True)
    if how == "gone":
        path.unlink()
    else:
        path.write_bytes(
            {
                "empty": b"",
                "cut": data[: t.below(len(lines[0]))],
                "other": base.ledger().read_bytes(),
                "first lines": lines[0],
            }[how]
        )
    return Case(_resumed(folder))


@fault("a call with another setting goes on")
def _(t: Trial) -> Case:
    folder = t.copy(base.kept())
    name, value = t.choose(
        (
            *(("learning_rate", 2e-2), ("warm_up_steps", 6), ("betas", (0.9, 0.999)), ("notes_per_step", 1)),
            *(("max_rows", 47), ("learning_rate", 1.0000001e-2)),
        )
    )
    return Case(_resumed(folder, **{name: value}), watch=(folder,))


@fault("files of others lie in the folder")
def _(t: Trial) -> Case:
    folder = t.copy(base.kept())
    name = t.choose(
        ("x", "step-9.txt", "step-0000009.safetensors", ".part-abc", "ledger.jsonl.lock", "step-")
    )
    (folder / name).write_bytes(t.rng.bytes(t.below(50)))
    return Case(_resumed(folder), right=base.whole(), parts=True)
