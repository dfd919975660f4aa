"""What a killed run needs to go on: weights, optimizer, random streams and counts, in one sealed file.

The file is what `torch.save` makes of plain values, written whole or not at all, with its SHA-256 beside it.
Only the newest survives.
"""

import io
import pickle
from pathlib import Path

import torch

from privhelpers import artifacts
from privhelpers.errors import DamagedArtifact

_NAME, _ALL = "step-{:07d}.pt", "step-*.pt*"


def write(
    folder: Path,
    progress: dict[str, object],
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    streams: dict[str, object],
) -> None:
    """Write a checkpoint and remove the older ones.

    Args:
        folder: of the run.
        progress: `step` (steps done), `head` (hash of the ledger's last line) and `counts` (of the log).
        model, optimizer: their state is kept.
        streams: state of the random streams; empty in release mode.
    """
    held = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "streams": streams}
    file = io.BytesIO()
    torch.save({**progress, **held}, file)
    path = folder / _NAME.format(progress["step"])
    artifacts.write_sealed(path, file.getvalue())
    remove(folder, but=path)


def remove(folder: Path, but: Path | None = None) -> None:
    """Remove all checkpoints of a folder, or all but one."""
    for old in folder.glob(_ALL):
        if but is None or old not in (but, artifacts.seal_of(but)):
            with artifacts.writing(old):
                old.unlink()


def newest(folder: Path) -> Path | None:
    """Return the newest checkpoint whose seal was written, or None.

    Raises:
        DamagedArtifact: its bytes are not those that were written.
    """
    sealed = [p for p in sorted(folder.glob("step-*.pt")) if artifacts.seal_of(p).exists()]
    if not sealed:
        return None
    path = sealed[-1]
    try:
        artifacts.check_seal(path, path.name)
    except DamagedArtifact as error:
        raise DamagedArtifact(f"{error}; the run cannot go on from it") from error
    return path


def read(path: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, object]:
    """Put a checkpoint's weights and optimizer state in place; return `step`, `head`, `counts` and `streams`.

    Raises:
        DamagedArtifact: the file is not a checkpoint of this model.
    """
    try:
        held = torch.load(path, weights_only=True, map_location="cpu")
        model.load_state_dict(held.pop("model"))
        optimizer.load_state_dict(held.pop("optimizer"))
    except (pickle.UnpicklingError, RuntimeError, LookupError, AttributeError, ValueError, EOFError) as error:
        raise DamagedArtifact(f"{path.name}: is not a checkpoint of this run ({error})") from error
    return held
