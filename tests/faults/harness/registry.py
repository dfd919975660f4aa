"""Classes of faults, each behind the door that it is tried at, and what a trial hands to the judge."""

import hashlib
import importlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from privhelpers import rng

DOORS = (
    *("accounts", "arguments", "bundles", "catalogues", "checkpoints", "folders", "gradients", "identity"),
    *("ledgers", "makefile", "options", "profile", "records", "sites", "statistics", "stored"),
    *("surroundings", "sweeps", "teaching", "together", "training", "written"),
)
REFUSED = object()  # in the place of a right result: only a refusal is right


@dataclass(frozen=True)
class Case:
    """What one trial calls, and what would be right.

    Attributes:
        call: what is done to the product.
        right: what it returns undisturbed; `REFUSED` where it must be refused.
        refusal: whether a refusal is a right answer too.
        watch: files and folders that a refusal must leave as they are.
        same: how a result is compared with `right`.
        parts: whether unfinished temporary files may stay, as after a kill.
        after: a last look, which returns what is wrong, or "".
        given: whether the message may name the path that was given.
    """

    call: Callable[[], object]
    right: object = REFUSED
    refusal: bool = True
    watch: tuple[Path, ...] = ()
    same: Callable[[object, object], bool] = lambda got, right: type(got) is type(right) and got == right
    parts: bool = False
    after: Callable[[], str] = lambda: ""
    given: bool = False


@dataclass(frozen=True)
class Fault:
    """A class of faults.

    Attributes:
        name: what is done.
        door: module of this package, and place in the table.
        make: makes the case of a trial.
        seconds: of processor time that a trial may take.
        forked: whether a trial runs in a child; else in this process.
    """

    name: str
    door: str
    make: Callable[["Trial"], Case]
    seconds: float = 5.0
    forked: bool = True


@dataclass
class Trial:
    """What a class gets to make its case of.

    Attributes:
        rng: moment and value are drawn from it alone.
        place: an empty folder of the trial.
        drawn: what was drawn, in words, for the record.
    """

    rng: np.random.Generator
    place: Path
    drawn: list[str] = field(default_factory=list)

    def choose(self, options: object) -> object:
        """Return one of several values, and note it."""
        options = list(options)
        value = options[int(self.rng.integers(len(options)))]
        self.note(value)
        return value

    def below(self, number: int) -> int:
        """Return a whole number from 0 up to `number`, and note it."""
        value = int(self.rng.integers(max(1, number)))
        self.note(value)
        return value

    def note(self, value: object) -> None:
        """Keep a drawn value for the record, briefly."""
        try:
            text = repr(value)
        except ValueError:  # a whole number too long to print
            text = type(value).__name__
        self.drawn.append(ascii(text)[1:-1].replace(str(self.place), "PLACE").partition(" at 0x")[0][:80])

    def copy(self, origin: Path) -> Path:
        """Return a copy of a file or folder of the base, with the seal beside it."""
        target = self.place / origin.name
        if origin.is_dir():
            return Path(shutil.copytree(origin, target))
        shutil.copyfile(origin, target)
        seal = origin.with_name(origin.name + ".sha256")
        if seal.exists():
            shutil.copyfile(seal, self.place / seal.name)
        return target

    def spoil(self, data: bytes) -> bytes:
        """Return bytes in which chance changed something: a bit, a cut, a piece moved, doubled or added."""
        size = len(data)
        how = self.choose(("bit", "cut", "append", "insert", "remove", "double", "zero", "byte"))
        at = self.below(size)
        length = 1 + self.below(min(40, size))
        if how == "bit":
            return data[:at] + bytes([data[at] ^ (1 << self.below(8))]) + data[at + 1 :]
        if how == "byte":
            other = (data[at] + 1 + self.below(255)) % 256
            return data[:at] + bytes([other]) + data[at + 1 :]
        return {
            "cut": data[:at],
            "append": data + self.rng.bytes(length),
            "insert": data[:at] + self.rng.bytes(length) + data[at:],
            "remove": data[:at] + data[at + length :],
            "double": data[:at] + data[at : at + length] * 2 + data[at + length :],
            "zero": data[:at] + b"\0" * length + data[at + length :],
        }[how]


FAULTS: list[Fault] = []


def fault(name: str, *, seconds: float = 5.0, forked: bool = True) -> Callable:
    """Register a function that makes the case of a trial; its module is the door."""

    def registered(make: Callable[[Trial], Case]) -> Callable[[Trial], Case]:
        door = make.__module__.rpartition(".")[2]
        if any((one.door, one.name) == (door, name) for one in FAULTS):
            raise ValueError(f"{door}: {name} is registered twice")
        FAULTS.append(Fault(name, door, make, seconds, forked))
        return make

    return registered


def load() -> list[Fault]:
    """Return every class, of all doors, in a fixed order."""
    for door in DOORS:
        importlib.import_module(f"{__package__}.{door}")
    return sorted(FAULTS, key=lambda one: (one.door, one.name))


def chance(seed: int, index: int) -> np.random.Generator:
    """Return where trial `index` draws its moment and its value."""
    return rng.make(seed, f"faults {index}")


def digest(paths: tuple[Path, ...]) -> dict[str, str]:
    """Return the SHA-256 of every file at some places."""
    files = [file for path in paths for file in (sorted(path.rglob("*")) if path.is_dir() else [path])]
    return {
        str(file): hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else "no file"
        for file in files
        if not file.is_dir()
    }
