"""The artifacts of one profile, and the parts of a run that is not complete."""

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from privhelpers.artifacts._json import parse_json, to_json
from privhelpers.artifacts._paths import check_name, check_parts, repository_root
from privhelpers.artifacts._seals import SEAL, check_seal, seal_of, sha256_of, write_seal, write_sealed
from privhelpers.errors import DamagedArtifact, InvalidParameter, MissingArtifact

# Set in the environment of every run that the runner starts: a hash of its code, inputs and versions.
RUNNER = "PRIVAI_LEAK_RUNNER"


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
        check_parts(name)
        path = root / name
        try:
            place = path.resolve()
            inside = place.is_relative_to(root.resolve()) and not place.is_symlink()
        except RuntimeError:  # links that lead to each other; from Python 3.13 on, they stay links
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
        write_seal(path, sha256_of(path))

    def seal_folder(self, name: str) -> None:
        """Record the hash of each file of a folder that a library wrote."""
        folder = self.folder(name)
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.suffix != SEAL:
                self.seal(f"{name}/{path.relative_to(folder).as_posix()}")

    def sealed_folder(self, name: str, first: str) -> Path:
        """Return a folder whose every file has the bytes that were sealed.

        Args:
            name: of the folder.
            first: a file that each such folder has.

        Raises:
            MissingArtifact, DamagedArtifact: as `existing`, for any of its files.
        """
        folder = self.existing(f"{name}/{first}").parent
        for seal in sorted(folder.rglob(f"*{SEAL}")):
            self.existing(f"{name}/{seal.relative_to(folder).as_posix().removesuffix(SEAL)}")
        return folder

    def write_json(self, name: str, value: object) -> None:
        """Write one JSON value."""
        self.write_bytes(name, to_json(value))

    def read_json(self, name: str) -> dict:
        """Read one JSON value."""
        return parse_json(self.existing(name).read_bytes(), name)

    def write_jsonl(self, name: str, rows: Iterable[dict]) -> None:
        """Write one JSON object a line."""
        self.write_bytes(name, b"".join(to_json(row, indent=None) for row in rows))

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
        """Return the place of `name` next to the artifacts, refusing any link on the way to it."""
        check_parts(name)
        place, home = Path("unfinished", name), self.by_hand or self.root.parent
        if (home / place).resolve() != home.resolve() / place:
            raise InvalidParameter(f"{place}: a link is on the way to it; remove the link")
        return home / place

    def unfinished(self, name: str) -> Path:
        """Return a folder, made if needed, in which a run that was killed finds its files again.

        It is next to the artifacts, in `runs/<profile>/unfinished`: the folder of a run's artifacts is
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

    def read(self, part: str) -> object | None:
        """Return the kept result of a part, as JSON gives it back; None if there is none."""
        try:
            kept = self._store.read_json(f"{part}.json") if self._run else {}
        except (MissingArtifact, DamagedArtifact):
            kept = {}
        return kept["result"] if kept.get("made_from") == self._mark else None

    def write(self, part: str, result: object) -> None:
        """Keep the result of a part."""
        if self._run:
            self._store.write_json(f"{part}.json", {"made_from": self._mark, "result": result})

    def keep(self, part: str, make: Callable[[], object]) -> object:
        """Return the result of a part: the kept one, or what `make` returns, as JSON gives it back."""
        kept = self.read(part)
        if kept is None:
            kept = parse_json(to_json(make()), part)
            self.write(part, kept)
        return kept


@cache
def _started() -> str:
    """Return a name for this process, the same however often a notebook opens its store."""
    return f"{time.strftime('%Y-%m-%d-%H%M%S')}-{os.getpid()}"


def open_store(profile: str = "course") -> Store:
    """Return the artifacts of `profile`, in `runs/<profile>/artifacts` of this copy of the book.

    Started by hand, a chapter writes to a new folder in `runs/<profile>/by_hand`, and a message says so.

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
