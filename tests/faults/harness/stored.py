"""The door of artifacts: damaged files and seals, refused or slow writes, kills, names, JSON of strangers."""

import contextlib
import json
import os
import time

from faults.harness import base, values
from faults.harness.beside import Beside
from faults.harness.layer import FAILING, FULL, KILL, READ_ONLY, SLOW, Layer, injected, survived
from faults.harness.registry import Case, Trial, fault
from faults.harness.scarce import Exhausted, bounded

from privhelpers import artifacts
from privhelpers.artifacts import Store
from privhelpers.errors import DamagedArtifact

TABLE = {"figures": [0.5, 1e-300, "µ"], "n": 7}
READ = {
    "audit.json": lambda store: store.read_json("auditing/audit.json"),
    "rows.jsonl": lambda store: store.read_jsonl("auditing/rows.jsonl"),
    "data.bin": lambda store: store.existing("auditing/data.bin").read_bytes(),
}


def _copy(t: Trial) -> Store:
    return Store(t.copy(base.store()), "toy")


def _damaged(t: Trial, name: str, ending: str) -> Case:
    store = _copy(t)
    right = READ[name](store)
    path = store.root / "auditing" / (name + ending)
    data = path.read_bytes()
    path.write_bytes(spoiled := t.spoil(data))
    # Of a seal, the first word counts; of a file, every byte.
    unseen = spoiled == data or (ending and spoiled.split()[:1] == data.split()[:1])
    call = lambda: READ[name](store)  # noqa: E731
    return Case(call, right=right, watch=(store.root,)) if unseen else Case(call, watch=(store.root,))


@fault("bytes of a table changed")
def _(t: Trial) -> Case:
    return _damaged(t, "audit.json", "")


@fault("bytes of rows changed")
def _(t: Trial) -> Case:
    return _damaged(t, "rows.jsonl", "")


@fault("bytes of a binary file changed")
def _(t: Trial) -> Case:
    return _damaged(t, "data.bin", "")


@fault("bytes of a seal changed")
def _(t: Trial) -> Case:
    return _damaged(t, t.choose(READ), artifacts.SEAL)


@fault("a file or a seal that is gone, a folder, a pipe or a link")
def _(t: Trial) -> Case:
    store, name = _copy(t), t.choose(READ)
    path = store.root / "auditing" / (name + t.choose(("", artifacts.SEAL)))
    how = t.choose(("gone", "folder", "pipe", "nowhere", "loop", "empty"))
    path.unlink()
    if how == "folder":
        path.mkdir()
    elif how == "pipe":
        os.mkfifo(path)
    elif how in ("nowhere", "loop"):
        path.symlink_to(path if how == "loop" else t.place / "nowhere")
    elif how == "empty":
        path.touch()
    return Case(lambda: READ[name](store))


@fault("the seal of another file")
def _(t: Trial) -> Case:
    store, (one, other) = _copy(t), t.choose([(a, b) for a in READ for b in READ if a != b])
    seal = (store.root / "auditing" / (other + artifacts.SEAL)).read_bytes()
    (store.root / "auditing" / (one + artifacts.SEAL)).write_bytes(seal)
    return Case(lambda: READ[one](store), watch=(store.root,))


@fault("a name that leaves the store")
def _(t: Trial) -> Case:
    store, name = _copy(t), t.choose(values.HOSTILE_NAMES[:5] + values.HOSTILE_NAMES[6:])
    name = t.choose((name, f"auditing/{name}", f"{name}/audit.json"))
    call = t.choose((store.read_json, lambda n: store.write_json(n, {}), store.folder, store.unfinished))
    return Case(lambda: call(name), watch=(store.root,))


@fault("a name that is no text")
def _(t: Trial) -> Case:
    store, name = _copy(t), t.choose(values.NO_TEXTS)
    call = t.choose((store.read_json, lambda n: store.write_json(n, {}), store.folder, store.unfinished))
    return Case(lambda: call(name), watch=(store.root,))


@fault("a folder of the store that is a link outside")
def _(t: Trial) -> Case:
    store = _copy(t)
    (outside := t.place / "outside").mkdir()
    (store.root / "linked").symlink_to(outside)
    return Case(lambda: store.write_json("linked/a.json", {}), watch=(store.root, outside))


@fault("a value that JSON cannot hold")
def _(t: Trial) -> Case:
    store = _copy(t)
    cycle: list = []
    cycle.append(cycle)
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    bad = (float("nan"), float("inf"), object(), b"x", {1, 2}, "\ud800", cycle, deep, 1j, {(1, 2): 3})
    value = bad[t.below(len(bad))]
    write = t.choose(("json", "jsonl"))
    name = "auditing/audit.json" if write == "json" else "auditing/rows.jsonl"
    call = store.write_json if write == "json" else lambda n, v: store.write_jsonl(n, [{"a": v}])
    return Case(lambda: call(name, value), watch=(store.root,))


def _write(t: Trial, kind: str, lasting: bool) -> Case:
    """A fault at one moment of writing a new value over an old one: old or new, never half."""
    store = _copy(t)
    new = {"figures": [t.below(10**6)] * 50}
    layer = Layer(kind, 1 + t.below(12), lasting=lasting, share=float(t.rng.random()))
    path = store.root / "auditing" / "audit.json"

    def work():
        with injected(layer):
            store.write_json("auditing/audit.json", new)

    def call():
        if kind == KILL:
            survived(work)
        else:
            work()
        return True

    def checked():
        if json.loads(path.read_bytes()) not in (TABLE, new):
            return "the file is neither the old one nor the new one"
        store.write_json("auditing/audit.json", new)  # whoever writes again is not in a dead end
        return "" if store.read_json("auditing/audit.json") == new else "the second write is lost"

    return Case(call, right=True, after=checked, parts=kind == KILL or (lasting and kind != FULL))


def _register() -> None:
    for kind, lasting in ((FULL, False), (FULL, True), (FAILING, False), (READ_ONLY, True), (KILL, False)):

        def made(t: Trial, kind: str = kind, lasting: bool = lasting) -> Case:
            return _write(t, kind, lasting)

        fault(f"{kind}{', lasting' if lasting else ''}, while a table is written")(made)


_register()


@fault("slow disk, while a table is written and read")
def _(t: Trial) -> Case:
    """Whoever reads meanwhile finds the old table or the new one, or that a seal is not its own."""
    store, lasting = _copy(t), bool(t.below(2))
    new = {"figures": [t.below(10**6)] * 50}
    pause = (1 + t.below(8 if lasting else 100)) / 1000
    layer = Layer(SLOW, 1 + t.below(12), lasting=lasting, share=float(t.rng.random()), pause=pause)

    def work() -> None:
        with injected(layer):
            store.write_json("auditing/audit.json", new)

    path, whole = store.root / "auditing" / "audit.json", {artifacts.to_json(one) for one in (TABLE, new)}

    def call() -> dict:
        writer, seen = Beside(work), set()
        while not writer.over():
            seen.add(path.read_bytes())
            with contextlib.suppress(DamagedArtifact):
                seen.add(artifacts.to_json(store.read_json("auditing/audit.json")))
            time.sleep(0.001)
        writer.result()
        if more := seen - whole:
            raise RuntimeError(f"read meanwhile: {more}")
        return store.read_json("auditing/audit.json")

    return Case(call, right=new, refusal=False)


@fault("memory runs out, while a table is written or read")
def _(t: Trial) -> Case:
    """At one call of ours, or for all that needs more than a few bytes; what was there stays, or is new."""
    store, name, writes = _copy(t), "auditing/audit.json", bool(t.below(2))
    new = {"figures": [t.below(10**6)] * (1 + t.below(200_000))}
    if not writes:
        store.write_json(name, new)
    old = store.read_json(name)
    scarce = t.choose(("call", "bytes"))
    under = Exhausted(1 + t.below(60)) if scarce == "call" else bounded(t.below(4_000_000))
    act = lambda: store.write_json(name, new) if writes else store.read_json(name)  # noqa: E731

    def call() -> dict:
        try:
            with under:
                act()
        except MemoryError:
            pass
        # Between the new seal and the new file there is no table that reads, and there is the old file.
        if json.loads((store.root / name).read_bytes()) not in (old, new):
            raise RuntimeError("the file is neither the old one nor the new one")
        act()
        return store.read_json(name)

    return Case(call, right=new, refusal=False)


@fault("JSON of strangers")
def _(t: Trial) -> Case:
    bad = (
        *(
            b'{"a": NaN}',
            b'{"a": Infinity}',
            b'{"a": 1, "a": 2}',
            b"[" * 200_000,
            b'{"a":' * 100_000,
            b"\xff",
        ),
        *(b"9" * 5000, b"", b" ", b"\xef\xbb\xbf{}", b'{"a": 1} x', b"{'a': 1}", b'{"a": 01}', b"\0", b"nul"),
        *(b'"' + b"\x01" + b'"', b'"\\ud800', b"-", b"1e", b"[1,]", b'{"a" 1}', b"-Infinity", b"--1"),
    )
    text = bad[t.below(len(bad))]
    return Case(lambda: artifacts.parse_json(text, "file.json"))


@fault("JSON with bytes changed at random")
def _(t: Trial) -> Case:
    spoiled = t.spoil(artifacts.to_json(TABLE))
    try:
        right = json.loads(spoiled.decode())
        usual = "NaN" not in spoiled.decode() and "Infinity" not in spoiled.decode()
    except (ValueError, RecursionError):
        usual = False
    call = lambda: artifacts.parse_json(spoiled, "file.json")  # noqa: E731
    return Case(call, right=right) if usual else Case(call)
