"""The only room that touches the disk: atomic, hashed, typed files under `runs/<profile>/artifacts/`.

A file is written beside its place, flushed to the device and renamed, so that a kill leaves the old
file or the new one and never half of one. Its SHA-256 is written next to it (`name.sha256`, the format
of `sha256sum -c`) and checked on every read, because a flipped bit in a tensor loads without a word. A
file that is replaced has no hash for a moment: a kill then leaves an artifact that counts as missing.

    store = open_store("course")
    store.write_json("extraction/baseline/attack.json", {"attempts": 1400})
    store.read_json("extraction/baseline/attack.json")

Only a run that `make` started changes a profile's artifacts. A chapter that someone starts by hand, in
Jupyter or with papermill, reads them and writes to a folder of its own.
"""

import errno
import hashlib
import json
import math
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import BinaryIO

from privhelpers.artifacts._yaml import parse_yaml as parse_yaml
from privhelpers.errors import ArtifactUnavailable, DamagedArtifact, InvalidParameter, MissingArtifact
from privhelpers.text import inert
from privhelpers.validate import shown

# Set in the environment of every run that the runner starts: a hash of its code, inputs and versions.
RUNNER = "PRIVAI_LEAK_RUNNER"
NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,62}")
SEAL, _LONGEST_SEAL = ".sha256", 1000  # bytes
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def check_name(name: str) -> str:
    """Return `name` if it is safe as a file, run or profile name, and refuse it otherwise."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InvalidParameter(
            f"name {shown(name)}: use 1 to 63 of a-z, 0-9, '-', '_' and '.', starting with a letter or digit"
        )
    return name


def _check_parts(name: str) -> None:
    for part in name.split("/") if isinstance(name, str) else [name]:
        check_name(part)


def repository_root(start: Path | None = None) -> Path:
    """Return the copy of the book around `start` (default: where we are), or else the one of this package.

    Raises:
        MissingArtifact: neither is in a copy of the book.
    """
    here = (start or Path.cwd()).resolve()
    package = Path(__file__).resolve().parents[2]
    for folder in (here, *here.parents, package):
        if (folder / "_toc.yml").exists() and (folder / "privhelpers").is_dir():
            return folder
    raise MissingArtifact(f"{here.name}: not inside a copy of the book (no _toc.yml above it)")


def is_there(place: str | Path) -> bool:
    """Return whether a path exists; False for an invalid name."""
    try:
        return Path(place).exists()
    except (OSError, ValueError):
        return False


@contextmanager
def open_regular_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file to read it: never a device, and never waiting for a pipe.

    Raises:
        OSError: it cannot be read, or is not a regular file.
    """
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        yield file


def read_bounded(path: Path, most: int) -> bytes:
    """Return what a file holds that may come from outside: `most` bytes, or fewer.

    Raises:
        OSError: it cannot be read, is not a regular file, or is larger; `strerror` says which.
    """
    with open_regular_file(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it has more than {most:,} bytes")
    return data


def sha256_of(path: Path) -> str:
    """Return the hexadecimal SHA-256 of the bytes of a regular file."""
    with open_regular_file(path) as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise ArtifactUnavailable for an OSError of the block; the message names the file alone.

    Raises:
        ArtifactUnavailable: the disk is full, fails or may not be written to.
    """
    try:
        yield
    except OSError as error:
        raise ArtifactUnavailable(error.errno, f"{path.name}: {error.strerror or error}") from error


def _link_new(temporary: Path, path: Path) -> None:
    """Move a file to a path that does not exist."""
    try:
        path.hardlink_to(temporary)
        temporary.unlink()
    except FileExistsError as error:
        raise FileExistsError(
            error.errno, "appeared meanwhile, and is kept as it is; name a new file"
        ) from None
    except OSError:  # of a file system without links
        path.open("xb").close()
        temporary.replace(path)


def write_atomic(path: Path, data: bytes, *, new: bool = False) -> None:
    """Put `data` at `path` so that a reader, or a crash, sees the old bytes or the new ones.

    Args:
        path: of the file.
        data: what it shall hold.
        new: refuse if the path exists.

    Raises:
        ArtifactUnavailable: the system refuses to; the old bytes are there.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".part-")
        try:
            with os.fdopen(handle, "wb") as out:
                out.write(data)
                out.flush()
                os.fsync(out.fileno())
            Path(temporary).chmod(0o644)
            if new:
                _link_new(Path(temporary), path)
            else:
                Path(temporary).replace(path)
        except BaseException:
            with suppress(OSError):  # a second error would hide the first
                Path(temporary).unlink(missing_ok=True)
            raise
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)  # the new name is on the device too
        finally:
            os.close(folder)


def seal_of(path: Path) -> Path:
    """Return the file beside `path` that holds its hash."""
    return path.with_name(path.name + SEAL)


def _write_seal(path: Path, digest: str) -> None:
    write_atomic(seal_of(path), f"{digest}  {path.name}\n".encode())


def write_sealed(path: Path, data: bytes) -> None:
    """Write a file and its hash.

    A file that is replaced loses its seal first: a kill in between leaves a file without a seal, which counts
    as missing, and never new bytes under an old hash, or old bytes under a new one, which count as damaged.
    """
    with writing(path):
        seal_of(path).unlink(missing_ok=True)
    write_atomic(path, data)
    _write_seal(path, hashlib.sha256(data).hexdigest())


def first_difference(recorded: dict[str, str], present: dict[str, str]) -> str:
    """Return the first file whose hash differs between the two, with what became of it, or ""."""
    for name in sorted(recorded.keys() | present.keys()):
        if name not in present:
            return f"{inert(name[:200])} is gone"
        if name not in recorded:
            return f"{inert(name[:200])} was added"
        if present[name] != recorded[name]:
            return f"{inert(name[:200])} changed"
    return ""


def check_seal(path: Path, name: str, digest: str | None = None) -> str:
    """Return the SHA-256 of a file, which is the one in its seal.

    Args:
        path: the file.
        name: what a message calls it.
        digest: of the file's bytes, where they were read already.

    Raises:
        DamagedArtifact: the file has other bytes, or no seal that can be read.
    """
    try:
        sealed = read_bounded(seal_of(path), _LONGEST_SEAL).split()[:1]
    except OSError as error:
        raise DamagedArtifact(f"{name}: has no {SEAL} beside it") from error
    try:
        digest = digest or sha256_of(path)
    except OSError as error:
        raise DamagedArtifact(f"{name}: cannot be read ({error.strerror})") from error
    if sealed != [digest.encode()]:
        raise DamagedArtifact(f"{name}: its bytes changed after they were written")
    return digest


def read_sealed(path: Path, name: str, most: int) -> bytes:
    """Return the bytes of a file, `most` or fewer, which are those that its seal was made for.

    Args:
        path: the file.
        name: what a message calls it.
        most: bytes.

    Raises:
        DamagedArtifact: the file has other bytes, or more, or no seal that can be read.
    """
    try:
        data = read_bounded(path, most)
    except OSError as error:
        raise DamagedArtifact(f"{name}: cannot be read ({error.strerror})") from error
    check_seal(path, name, hashlib.sha256(data).hexdigest())
    return data


def _line_of(value: object, indent: int | None = None) -> bytes:
    try:
        text = json.dumps(value, allow_nan=False, indent=indent, sort_keys=True, ensure_ascii=False)
        return f"{text}\n".encode()
    except (TypeError, ValueError, RecursionError) as error:  # UnicodeEncodeError is a ValueError
        why = " ".join(str(error).split())[:200]
        raise InvalidParameter(
            f"a value cannot be written as JSON ({why}); store plain, finite values"
        ) from None


def to_json(value: object) -> bytes:
    """Return `value` as UTF-8 JSON with sorted keys.

    Raises:
        InvalidParameter: JSON cannot hold it; NaN and infinity, a lone surrogate and a cycle are among that.
    """
    return _line_of(value, indent=1)


def _no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        raise ValueError("duplicate key")
    return dict(pairs)


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):  # Python reads 1e400 so
        raise ValueError("a number is too large for a float64")
    return value


def _require_whole_characters(text: str, value: object) -> None:
    """Refuse half of a character: it cannot be printed, or written again."""
    if _SURROGATE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("holds half of a character (a lone surrogate)") from None


_DECODER = json.JSONDecoder(
    object_pairs_hook=_no_duplicates, parse_constant=_refuse_constant, parse_float=_finite
)


def parse_json(text: str | bytes, where: str) -> object:
    """Return parsed JSON.

    Refused are duplicate keys, NaN and infinity, bad syntax, and what is not UTF-8 or half of a character.

    Args:
        text: one JSON value.
        where: its place, for the message.

    Raises:
        DamagedArtifact: see above.
    """
    try:
        text = text if isinstance(text, str) else text.decode("utf-8")
        if text.startswith("\ufeff"):
            raise ValueError("begins with a byte order mark; save it as UTF-8 without one")
        value = _DECODER.decode(text)
        _require_whole_characters(text, value)
        return value
    except (ValueError, RecursionError) as error:
        raise DamagedArtifact(f"{where}: {error}") from error


@dataclass(frozen=True)
class Store:
    """The artifacts of one profile; names are relative, `slug/file` or `slug/run/file`.

    Attributes:
        root: folder of the profile's artifacts.
        profile: its name.
        by_hand: where a run that the runner did not start writes, and looks first when it reads; None for
            a run that may change `root`.
        made_by: the command that makes the files, with `{profile}` for the profile's name.
    """

    root: Path
    profile: str
    by_hand: Path | None = None
    made_by: str = "make book PROFILE={profile}"

    def path(self, name: str) -> Path:
        """Return the place to write `name`, refusing anything that would leave the store."""
        return self._inside(self.by_hand or self.root, name)

    def _inside(self, root: Path, name: str) -> Path:
        _check_parts(name)
        path = root / name
        try:
            inside = path.resolve().is_relative_to(root.resolve())
        except RuntimeError:  # links that lead to each other
            inside = False
        if not inside:
            raise InvalidParameter(f"{name}: leaves the artifact folder through a link")
        return path

    def existing(self, name: str) -> Path:
        """Return the place of a file whose bytes match their recorded hash.

        Raises:
            MissingArtifact: it was never made; the message names the command that makes it.
            DamagedArtifact: its bytes are not those that were written.
        """
        path = self.path(name)
        if self.by_hand and not path.exists():
            path = self._inside(self.root, name)
        command = self.made_by.format(profile=self.profile).removesuffix(" PROFILE=course")
        if not path.exists() or not seal_of(path).exists():
            raise MissingArtifact(f"{name} of profile {self.profile!r} is missing: run `{command}` first")
        try:
            check_seal(path, name)
        except DamagedArtifact as error:
            raise DamagedArtifact(f"{error}; `{command}` makes it again") from error
        return path

    def write_bytes(self, name: str, data: bytes) -> Path:
        """Write a file and its hash."""
        path = self.path(name)
        write_sealed(path, data)
        return path

    def seal(self, name: str) -> None:
        """Record the hash of a file that a library wrote itself (safetensors, a tokenizer)."""
        path = self.path(name)
        _write_seal(path, sha256_of(path))

    def write_json(self, name: str, value: object) -> None:
        """Write one JSON value."""
        self.write_bytes(name, to_json(value))

    def read_json(self, name: str) -> dict:
        """Read one JSON value."""
        return parse_json(self.existing(name).read_bytes(), name)

    def write_jsonl(self, name: str, rows: Iterable[dict]) -> None:
        """Write one JSON object a line."""
        self.write_bytes(name, b"".join(_line_of(row) for row in rows))

    def read_jsonl(self, name: str) -> list[dict]:
        """Read one JSON object a line, refusing a broken line by its number."""
        # Only this byte ends a line of JSON; within a text, Python knows seven more ends.
        lines = self.existing(name).read_bytes().removesuffix(b"\n").split(b"\n")
        return [parse_json(line, f"{name}, line {n}") for n, line in enumerate(lines, 1) if lines != [b""]]

    def folder(self, name: str) -> Path:
        """Return a folder of the store, made if needed, for libraries that write several files."""
        path = self.path(name)
        path.mkdir(parents=True, exist_ok=True)
        return path

    def _unfinished(self, name: str) -> Path:
        """Return the place of `name` beside the artifacts, refusing any link on the way to it."""
        _check_parts(name)
        place, home = Path("unfinished", name), self.by_hand or self.root.parent
        if (home / place).resolve() != home.resolve() / place:
            raise InvalidParameter(f"{place}: a link is on the way to it; remove the link")
        return home / place

    def unfinished(self, name: str) -> Path:
        """Return a folder, made if needed, in which a run that was killed finds its files again.

        It is beside the artifacts, in `runs/<profile>/unfinished`: the folder of a run's artifacts is
        emptied whenever the run starts. The runner removes it once the run is complete.
        """
        path = self._unfinished(name)
        path.mkdir(parents=True, exist_ok=True)
        return path

    def forget(self, name: str) -> None:
        """Remove the folder `unfinished(name)`, if it is there: its run is complete, or is to start again."""
        path = self._unfinished(name)
        if path.exists():
            # Away in one piece: a kill must not leave a checkpoint without the ledger that counts for it.
            gone = Path(tempfile.mkdtemp(dir=path.parent, prefix=".part-"))
            shutil.rmtree(path.replace(gone))


class Parts:
    """Results of the parts of a long run, kept until it is complete: a kill loses the part under way alone.

    By hand nothing is kept: a cell may have been changed.

        parts = Parts(store, "real_model/parts", [seed, epochs])
        answers = parts.keep("baseline", train_and_attack)

    Args:
        store: of the run.
        name: of their folder, as in `Store.unfinished`.
        given: the parameters that the results follow from, as JSON takes them.
    """

    def __init__(self, store: Store, name: str, given: object) -> None:
        """Find the folder; results of other values, code, inputs or versions will not be read."""
        self._run = os.environ.get(RUNNER)
        self._mark = hashlib.sha256(to_json([given, self._run])).hexdigest()
        self._store = Store(store.unfinished(name), store.profile)

    def keep(self, part: str, make: Callable[[], object]) -> object:
        """Return the result of a part: the kept one, or what `make` returns, as JSON gives it back."""
        file = f"{part}.json"
        if not self._run:
            return parse_json(to_json(make()), file)
        try:
            kept = self._store.read_json(file)
        except (MissingArtifact, DamagedArtifact):
            kept = {}
        if kept.get("made_from") != self._mark:
            self._store.write_json(file, {"made_from": self._mark, "result": make()})
            kept = self._store.read_json(file)
        return kept["result"]


@cache
def _started() -> str:
    """Return a name for this process, the same however often a notebook opens its store."""
    return f"{time.strftime('%Y-%m-%d-%H%M%S')}-{os.getpid()}"


def open_store(profile: str = "course") -> Store:
    """Return the artifacts of `profile`, in `runs/<profile>/artifacts` of this copy of the book.

    Started by hand, a chapter writes to a new folder in `runs/<profile>/by_hand`; it says so.

    Raises:
        InvalidParameter: this Python leaves out assertions, so that a claim which fails would be written.
    """
    if not __debug__:
        raise InvalidParameter(
            "PYTHONOPTIMIZE, or python -O: leaves out the assertions that a chapter's claims rest on; "
            "start the kernel again without it"
        )
    home = repository_root() / "runs" / check_name(profile)
    if os.environ.get(RUNNER):
        return Store(home / "artifacts", profile)
    place = Path("by_hand", _started())
    print(
        f"This run was started by hand: what it writes goes to runs/{profile}/{place}.\n"
        f"It reads the artifacts of profile {profile} and leaves them as they are."
    )
    return Store(home / "artifacts", profile, home / place)
