"""The files that outlive a kill: the ledger, which counts a step before it is taken, and the checkpoint.

A checkpoint is what `torch.save` makes of plain values: weights, optimizer, random streams and counts, with
its SHA-256 in a file next to it. Only the newest is kept.

Research mode continues from the checkpoint with the same streams and repeats what was lost to the bit, so the
steps in between are counted once. Release mode cannot repeat them: they stay counted, and the run continues
with the step after them.
"""

import hashlib
import hmac
import io
import itertools
import json
import pickle
import secrets
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import torch

from privhelpers import artifacts, validate
from privhelpers.dpsgd._batches import Rows
from privhelpers.dpsgd._callbacks import Callback, Taken, require_finite
from privhelpers.dpsgd._chance import RandomStreams
from privhelpers.dpsgd._engine import trainable
from privhelpers.dpsgd._log import Tally
from privhelpers.errors import DamagedArtifact, InvalidParameter, ResumeRefused
from privhelpers.ledger import Header, Ledger, open_ledger

LEDGER, KEY = "ledger.jsonl", "secret.key"
PACKAGE = Path(__file__).parents[1]
# Whose code a private step runs, besides the modules that belong to no room.
ROOMS = ("accounting", "artifacts", "dpsgd", "ledger", "mechanisms", "models")
LIBRARIES = ("torch", "transformers", "opacus", "peft", "numpy")
ON_CHANGE = ("refuse", "restart")


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _weights(model: torch.nn.Module) -> str:
    digest = hashlib.sha256()
    for name, value in model.named_parameters():
        digest.update(f"{name} {value.dtype} {tuple(value.shape)} {value.requires_grad}".encode())
        digest.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _settings(model: torch.nn.Module) -> list[str]:
    """Return what a model computes with besides its weights, as texts; not where it was loaded from."""
    config = model.config.to_dict() if hasattr(model, "config") else {}
    config.pop("_name_or_path", None)
    adapters = {name: {**vars(one)} for name, one in getattr(model, "peft_config", {}).items()}
    for one in adapters.values():
        one.pop("base_model_name_or_path", None)
    return [*(json.dumps(one, sort_keys=True, default=_plain) for one in (config, adapters)), repr(model)]


def _plain(value: object) -> object:
    """Return a value of a configuration as text; a set in an order that no process chooses."""
    return sorted(map(repr, value)) if isinstance(value, set) else repr(value)


def _code(model: torch.nn.Module, parts: Iterable[object]) -> list[list[str]]:
    """Return name and SHA-256 of every file that the gradient passes through, if it is in a file."""
    ours = [*PACKAGE.glob("*.py"), *(path for room in ROOMS for path in (PACKAGE / room).rglob("*.py"))]
    files = {str(path.relative_to(PACKAGE)): path for path in ours}
    for name in {part.__module__ for part in (*map(type, model.modules()), *parts)}:
        file = getattr(sys.modules.get(name), "__file__", None)
        if file and Path(file).is_file():  # a notebook has none
            files[name] = Path(file)
    return [[name, artifacts.sha256_of(path)] for name, path in sorted(files.items())]


def fingerprint(
    model: torch.nn.Module,
    rows: list[Rows],
    parameters: Mapping[str, object],
    parts: Iterable[object] = (),
    *,
    key: bytes = b"",
) -> dict[str, str]:
    """Return what a run depends on, as SHA-256 of its data, its parameters (with first weights), its code.

    Args:
        model, rows, parameters: of the run.
        parts: user-supplied classes and functions.
        key: of a release, whose ledger is published: without it, anyone who knows all patients but one could
            tell by the hash of the data whether that one took part. Empty: the data are hashed without a key.
    """
    code, data = _code(model, parts), _digest(rows)
    return {
        "data": hmac.new(key, data.encode(), "sha256").hexdigest() if key else data,
        "parameters": _digest([dict(parameters), _weights(model), _settings(model)]),
        "code": _digest([code, *([name, version(name)] for name in LIBRARIES)]),
    }


@dataclass(frozen=True)
class Keep:
    """The folder in which a private run keeps the files that outlive a kill.

    Attributes:
        folder: of the ledger and the checkpoints; made if needed. The checkpoints, and in release mode the
            key next to them, are as private as the notes; the ledger alone is for others.
        run: name in the ledger.
        every: steps between two checkpoints, and reserved at once, 1 or more.
        on_change: what to do with a folder of another run: "refuse", or "restart" next to its old ledger.
            What that one counts is still spent: if anything of the old run is published, budgets add up.

    Raises:
        InvalidParameter: a value is out of its range.
    """

    folder: Path | str
    run: str = "run"
    every: int = 10
    on_change: str = "refuse"

    def __post_init__(self) -> None:
        """Refuse settings out of range."""
        validate.fields(self, validate.positive_int, "every")
        if self.on_change not in ON_CHANGE:
            raise InvalidParameter(
                f"on_change = {validate.shown(self.on_change)}: must be one of {', '.join(ON_CHANGE)}"
            )

    def key(self) -> bytes:
        """Return the folder's key, random bytes that are stored nowhere else; made if it is missing."""
        path = Path(self.folder) / KEY
        if not path.exists():
            artifacts.write_atomic(path, secrets.token_bytes(32), new=True)
        with artifacts.writing(path):
            return path.read_bytes()


class ResumableRun(Callback):
    """The ledger and the checkpoints of one run in one folder; its maker closes its `ledger`.

    Args:
        keep: where, and how often.
        header: of the run's ledger.
        model, optimizer, chance: the content of a checkpoint.

    Raises:
        ResumeRefused: the folder is of a run with other data, parameters or code.
    """

    def __init__(
        self,
        keep: Keep,
        header: Header,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        chance: RandomStreams,
    ) -> None:
        """Open the ledger."""
        self.folder, self.every = Path(keep.folder), keep.every
        self.model, self.optimizer, self.chance, self.tally = model, optimizer, chance, Tally()
        try:
            self.ledger: Ledger = open_ledger(self.folder / LEDGER, header)
        except ResumeRefused:
            if keep.on_change == "refuse":
                raise
            self._put_aside()
            self.ledger = open_ledger(self.folder / LEDGER, header)

    def _put_aside(self) -> None:
        """Remove the checkpoints of another run, and number its ledger: what it spent stays written."""
        self._remove_checkpoints()
        names = (self.folder / f"ledger-{number}.jsonl" for number in itertools.count(1))
        (self.folder / LEDGER).rename(next(name for name in names if not name.exists()))

    def restore(self) -> tuple[int, Tally]:
        """Put everything back as the last checkpoint saw it; return the next step and the counts so far.

        Raises:
            ResumeRefused: steps are spent, and no checkpoint contains their result; or the ledger is not the
                one that the checkpoint was written under.
            DamagedArtifact: the checkpoint is not what was written.
        """
        record, gone = self.ledger.record, "this budget is gone"
        path = self._newest_checkpoint()
        if path is None:
            if record.steps and self.chance.mode == "release":
                raise ResumeRefused(
                    f"{self.folder.name}: {record.steps} steps are spent and no checkpoint holds what they "
                    f"gave; {gone}"
                )
            self._write_checkpoint(0)
            return 0, self.tally
        held = self._read_checkpoint(path)
        record.require(held["head"])
        self.tally = Tally(**held["counts"])
        if self.chance.mode == "research":  # repeat the lost steps to the bit
            self.chance.restore(held["streams"])
            return held["step"], self.tally
        # New noise would be a second answer to the same question: the lost steps stay lost.
        self.tally.lost += record.steps - held["step"]
        if self.tally.lost == record.header.plan.steps:
            raise ResumeRefused(
                f"{self.folder.name}: all {self.tally.lost} steps are spent, and a kill lost what they gave; "
                f"{gone}"
            )
        return record.steps, self.tally

    def before(self, step: int) -> None:
        """Count steps as spent before `step` (from 0) is taken."""
        if step >= self.ledger.record.steps:
            self.ledger.reserve(min(self.every, self.ledger.record.remaining))

    def after(self, taken: Taken) -> None:
        """Write a checkpoint if one is due."""
        if taken.done % self.every == 0 or taken.done == self.ledger.record.header.plan.steps:
            require_finite(trainable(self.model))
            self._write_checkpoint(taken.done)

    def _write_checkpoint(self, done: int) -> None:
        """Write a checkpoint and remove the older ones."""
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        progress = {"step": done, "head": self.ledger.record.head, "counts": asdict(self.tally)}
        file = io.BytesIO()
        torch.save({**progress, **state, "streams": self.chance.state()}, file)
        path = self.folder / f"step-{done:07d}.pt"
        artifacts.write_sealed(path, file.getvalue())
        self._remove_checkpoints(but=path)

    def _remove_checkpoints(self, but: Path | None = None) -> None:
        for old in self.folder.glob("step-*.pt*"):
            if but is None or old not in (but, artifacts.seal_of(but)):
                with artifacts.writing(old):
                    old.unlink()

    def _newest_checkpoint(self) -> Path | None:
        """Return the newest checkpoint, verified."""
        written = self.folder.glob("step-*.pt")  # a kill may leave one without its hash
        path = max((path for path in written if artifacts.seal_of(path).exists()), default=None)
        if path is not None:
            try:
                artifacts.check_seal(path, path.name)
            except DamagedArtifact as error:
                raise DamagedArtifact(f"{error}; the run cannot continue from it") from error
        return path

    def _read_checkpoint(self, path: Path) -> dict[str, object]:
        """Put weights and optimizer state in place; return `step`, `head`, `counts` and `streams`."""
        try:
            held = torch.load(path, weights_only=True, map_location="cpu")
            self.model.load_state_dict(held.pop("model"))
            self.optimizer.load_state_dict(held.pop("optimizer"))
        except (
            pickle.UnpicklingError,
            RuntimeError,
            LookupError,
            AttributeError,
            ValueError,
            EOFError,
        ) as error:
            raise DamagedArtifact(f"{path.name}: is not a checkpoint of this run ({error})") from error
        return held
