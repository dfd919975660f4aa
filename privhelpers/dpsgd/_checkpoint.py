"""What a killed run needs to go on: weights, optimizer, random streams and counts, in one sealed file.

The file is safetensors, written whole or not at all, with its SHA-256 beside it. Only the newest survives.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from privhelpers import artifacts
from privhelpers.errors import DamagedArtifact
from privhelpers.validate import shown

_NAME = "step-{:07d}.safetensors"


@dataclass
class Progress:
    """How far a run is.

    Attributes:
        step: steps done.
        head: hash of the ledger's last line when this was written.
        counts: what the log counts, as plain values.
    """

    step: int = 0
    head: str = ""
    counts: dict = field(default_factory=dict)


def _flat(model: torch.nn.Module, optimizer: torch.optim.Optimizer, streams: dict) -> dict[str, torch.Tensor]:
    tensors = {f"model/{name}": p for name, p in model.named_parameters()}
    tensors |= {f"buffer/{name}": b for name, b in model.named_buffers()}
    for number, values in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer/{number}/{name}": torch.as_tensor(v) for name, v in values.items()}
    tensors |= {f"chance/{name}": value for name, value in streams.items()}
    return {name: value.detach().cpu().contiguous() for name, value in tensors.items()}


def write(
    folder: Path,
    progress: Progress,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    streams: dict[str, torch.Tensor],
) -> None:
    """Write a checkpoint and remove the older ones."""
    words = {"step": progress.step, "head": progress.head, "counts": progress.counts}
    data = save(_flat(model, optimizer, streams), metadata={"progress": json.dumps(words)})
    path = folder / _NAME.format(progress.step)
    artifacts.write_sealed(path, data)
    for old in folder.glob("step-*.safetensors*"):
        if old not in (path, artifacts.seal_of(path)):
            with artifacts.writing(old):
                old.unlink()


def newest(folder: Path) -> Path | None:
    """Return the newest checkpoint whose seal was written, or None.

    Raises:
        DamagedArtifact: its bytes are not those that were written.
    """
    sealed = [p for p in sorted(folder.glob("step-*.safetensors")) if artifacts.seal_of(p).exists()]
    if not sealed:
        return None
    path = sealed[-1]
    try:
        artifacts.check_seal(path, path.name)
    except DamagedArtifact as error:
        raise DamagedArtifact(f"{error}; the run cannot go on from it") from error
    return path


def _put(target: torch.Tensor, value: torch.Tensor, name: str) -> None:
    if target.shape != value.shape or target.dtype != value.dtype:
        raise DamagedArtifact(f"checkpoint: {name} has another shape or type than in this model")
    with torch.no_grad():
        target.copy_(value)


def _check_progress(progress: Progress, path: Path) -> None:
    """Refuse a number of steps that is none, or not that of the file's name, and words of other types."""
    step = progress.step
    if type(step) is not int or not 0 <= step < 10**7 or path.name != _NAME.format(step):
        raise DamagedArtifact(f"{path.name}: step = {shown(step)} is not the number of steps in its name")
    if type(progress.head) is not str or type(progress.counts) is not dict:
        raise DamagedArtifact(f"{path.name}: head must be text, and counts a table")


def _check_state(state: dict, optimizer: torch.optim.Optimizer, path: Path) -> None:
    """Refuse a state that this optimizer cannot have: parts, shapes, types or numbers."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    parts = {frozenset(values) for values in state.values()}
    if len(parts) > 1 or (state and len(state) != len(parameters)):
        raise DamagedArtifact(f"{path.name}: the optimizer's state is not whole")
    if isinstance(optimizer, torch.optim.Adam) and parts - {frozenset({"step", "exp_avg", "exp_avg_sq"})}:
        raise DamagedArtifact(f"{path.name}: the optimizer's state is not that of Adam")
    for number, values in state.items():
        for part, value in values.items():
            one = part == "step"
            shape, kind = ((), torch.float32) if one else (parameters[number].shape, parameters[number].dtype)
            if value.shape != shape or value.dtype != kind or not bool(torch.isfinite(value).all()):
                raise DamagedArtifact(
                    f"{path.name}: optimizer/{number}/{part} has another shape or type than in this run, or "
                    "is not finite"
                )
            if one and not 0 <= float(value) < 10**7:
                raise DamagedArtifact(f"{path.name}: optimizer/{number}/step is no number of steps")


def read(
    path: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[Progress, dict[str, torch.Tensor]]:
    """Put a checkpoint's weights and optimizer state in place; return the progress and the random streams.

    Raises:
        DamagedArtifact: the file is not a checkpoint of this model.
    """
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
            progress = Progress(**artifacts.parse_json(file.metadata()["progress"], path.name))
    except (SafetensorError, KeyError, TypeError) as error:
        raise DamagedArtifact(f"{path.name}: is not a checkpoint of a private run ({error})") from error
    targets = {f"model/{n}": p for n, p in model.named_parameters()}
    targets |= {f"buffer/{n}": b for n, b in model.named_buffers()}
    if missing := sorted(set(targets) - set(tensors)):
        raise DamagedArtifact(f"{path.name}: lacks {missing[0]}")
    groups = optimizer.state_dict()["param_groups"]
    numbers = {str(number): number for group in groups for number in group["params"]}
    state: dict[int, dict[str, torch.Tensor]] = {}
    for name, value in tensors.items():
        kind, _, rest = name.partition("/")
        if kind == "optimizer":
            number, _, part = rest.partition("/")
            if number not in numbers:
                raise DamagedArtifact(f"{path.name}: {name} is of no weight of this model")
            state.setdefault(numbers[number], {})[part] = value
    _check_progress(progress, path)
    _check_state(state, optimizer, path)
    for name, target in targets.items():
        _put(target, tensors[name], name)
    optimizer.load_state_dict({"state": state, "param_groups": groups})
    chance = {n.partition("/")[2]: v for n, v in tensors.items() if n.startswith("chance/")}
    return progress, chance
