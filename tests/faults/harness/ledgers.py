"""The door of ledgers: damaged bytes, refused writes, kills, two writers, other terms."""

import json
import os

from faults.harness import base, values
from faults.harness.layer import FAILING, FULL, KILL, READ_ONLY, Layer, injected, survived
from faults.harness.registry import Case, Trial, fault

from privhelpers.ledger import _chain, open_ledger, read_ledger


def _lines(path):
    return path.read_bytes().splitlines(keepends=True)


@fault("bytes changed at random, read")
def _(t: Trial) -> Case:
    path = t.copy(base.ledger())
    data = path.read_bytes()
    spoiled = t.spoil(data)
    path.write_bytes(spoiled)
    # What cannot be seen: whole lines missing at the end, or an unfinished line after whole ones.
    whole = {b"".join(_lines(base.ledger())[:n]) for n in range(1, 7)}
    kept = spoiled[: spoiled.rfind(b"\n") + 1]
    if kept in whole or spoiled + b"\n" in whole:
        return Case(lambda: bool(read_ledger(path)), right=True, watch=(path,))
    return Case(lambda: read_ledger(path), watch=(path,))


@fault("bytes changed at random, opened to write")
def _(t: Trial) -> Case:
    path = t.copy(base.ledger())
    spoiled = t.spoil(path.read_bytes())
    path.write_bytes(spoiled)
    whole = {b"".join(_lines(base.ledger())[:n]): 3 * (n - 1) for n in range(1, 7)}
    kept = spoiled[: spoiled.rfind(b"\n") + 1]
    steps = whole.get(kept, whole.get(spoiled + b"\n"))

    def call():
        with open_ledger(path, base.terms()) as opened:
            opened.reserve(1)
        return read_ledger(path).steps

    if steps is None:
        return Case(call, watch=(path,))
    return Case(call, right=steps + 1, same=lambda got, right: got >= right, watch=(path,))


@fault("a line left out, doubled or moved")
def _(t: Trial) -> Case:
    path = t.copy(base.ledger())
    lines = _lines(path)
    how, at = t.choose(("out", "double", "swap")), t.below(len(lines) - 1)
    if how == "out":
        del lines[at]
    elif how == "double":
        lines.insert(at, lines[at])
    else:
        lines[at], lines[at + 1] = lines[at + 1], lines[at]
    path.write_bytes(b"".join(lines))
    return Case(lambda: read_ledger(path), watch=(path,))


@fault("a value of a line set to another")
def _(t: Trial) -> Case:
    path = t.copy(base.ledger())
    lines = _lines(path)
    at = 1 + t.below(len(lines) - 1)
    row = json.loads(lines[at])
    name = t.choose(("steps", "total_steps", "epsilon"))
    row["content"][name] = t.choose((0, -1, 1.5, 10**30, True, None, "3", [], 1e-9))
    lines[at] = json.dumps(row, sort_keys=True, separators=(",", ":")).encode() + b"\n"
    path.write_bytes(b"".join(lines))
    return Case(lambda: read_ledger(path), watch=(path,))


@fault("a chain forged with right hashes and a smaller epsilon")
def _(t: Trial) -> Case:
    path = t.copy(base.ledger())
    record = read_ledger(path)
    lines, previous = [_lines(path)[0]], record.opening
    share = 0.01 + 0.98 * float(t.rng.random())
    t.note(share)
    for entry in record.entries:
        content = {"epsilon": entry.epsilon * share, "steps": 3, "total_steps": entry.total_steps}
        line, previous = _chain.seal(entry.seq, previous, "reserve", content)
        lines.append(line)
    path.write_bytes(b"".join(lines))
    return Case(lambda: read_ledger(path), watch=(path,))


@fault("opened under other terms")
def _(t: Trial) -> Case:
    path = t.copy(base.ledger())
    changes = {
        "noise_multiplier": (1.5000001, 3.0),
        "sample_rate": (0.0400001, 0.01),
        "steps": (41, 30),
        "delta": (1e-6, 2e-5),
        "max_grad_norm": (2.0, 0.5),
        "mode": ("release",),
        "run": ("other",),
        "target_epsilon": (9.0,),
        "accountant": ("pld",),
        "unit": ("note",),
        "fingerprint": ({"data": "0" * 64, "parameters": "1" * 64, "code": "3" * 64},),
    }
    name = t.choose(changes)
    asked = base.terms(**{name: t.choose(changes[name])})
    return Case(lambda: open_ledger(path, asked).close(), watch=(path,))


@fault("terms with a value that is none")
def _(t: Trial) -> Case:
    name = t.choose(("target_epsilon", "delta", "noise_multiplier", "sample_rate", "steps", "max_grad_norm"))
    pool = (*values.NO_NUMBERS, *values.NEGATIVE, *values.ZERO)
    if name not in ("steps",):
        pool = tuple(v for v in pool if type(v) is not int or v < 1)
    value = t.choose(pool)
    return Case(lambda: base.terms(**{name: value}))


@fault("terms with a text that is none")
def _(t: Trial) -> Case:
    name = t.choose(("run", "mode", "accountant", "sampler", "adjacency", "unit", "fingerprint"))
    value = t.choose((*values.NO_TEXTS, *values.HOSTILE_NAMES))
    return Case(lambda: base.terms(**{name: value}))


@fault("a reserve of steps that are none, or too many")
def _(t: Trial) -> Case:
    path = t.copy(base.ledger())
    steps = t.choose((*values.NO_COUNTS, 26, 10**12, 10**30))

    def call():
        with open_ledger(path, base.terms()) as opened:
            opened.reserve(steps)

    return Case(call, watch=(path,))


def _reserve(t: Trial, kind: str, lasting: bool) -> Case:
    """A fault at one moment of opening, reserving twice and closing; then what is there is opened again."""
    fresh = bool(t.below(2))
    path = t.place / "ledger.jsonl" if fresh else t.copy(base.ledger())
    before = 0 if fresh else 15
    layer = Layer(kind, 1 + t.below(14), lasting=lasting, share=float(t.rng.random()))
    allowed = t.place / "allowed"
    allowed.touch()

    def work():
        note = os.open(allowed, os.O_WRONLY | os.O_APPEND)
        with injected(layer), open_ledger(path, base.terms()) as opened:
            for _ in range(2):
                opened.reserve(4)
                base._plain_write(note, b"xxxx")

    def count():
        return read_ledger(path).steps if path.exists() else 0

    def checked():
        spent, taken = count(), before + allowed.stat().st_size
        if spent < taken:
            return f"the ledger counts {spent} steps and {taken} were allowed"
        with open_ledger(path, base.terms()) as again:
            if again.steps < taken or again.steps < spent:
                return f"opened again, the ledger counts {again.steps} of {taken} steps"
            again.reserve(1)
        return ""

    def call():
        if kind == KILL:
            survived(work)
        else:
            work()
        return True

    return Case(call, right=True, after=checked, parts=kind == KILL or (lasting and kind != FULL))


def _register():
    for kind in (FULL, FAILING, READ_ONLY):
        for lasting in (False, True):

            def made(t: Trial, kind: str = kind, lasting: bool = lasting) -> Case:
                return _reserve(t, kind, lasting)

            made.__module__ = __name__
            fault(f"{kind}, {'from one moment on' if lasting else 'once'}, while steps are reserved")(made)


_register()


@fault("killed at a write, a flush or a rename")
def _(t: Trial) -> Case:
    return _reserve(t, KILL, False)


@fault("changed by another hand while it is open")
def _(t: Trial) -> Case:
    path = t.copy(base.ledger())
    how = t.choose(("append", "cut", "remove", "replace"))

    def call():
        with open_ledger(path, base.terms()) as opened:
            data = path.read_bytes()
            if how == "append":
                path.write_bytes(data + b"{")
            elif how == "cut":
                path.write_bytes(data[: t.below(len(data))])
            else:
                path.unlink()
                if how == "replace":
                    path.write_bytes(data)
            opened.reserve(1)

    return Case(call)


@fault("a second writer")
def _(t: Trial) -> Case:
    path = t.copy(base.ledger())
    first = open_ledger(path, base.terms())
    first.reserve(1 + t.below(5))
    return Case(lambda: open_ledger(path, base.terms()), watch=(path,))


@fault("a path that is no file")
def _(t: Trial) -> Case:
    how, path = t.choose(("link", "folder", "pipe", "under a file", "loop")), t.place / "ledger.jsonl"
    if how == "link":
        path.symlink_to(base.ledger())
    elif how == "folder":
        path.mkdir()
    elif how == "pipe":
        os.mkfifo(path)
    elif how == "loop":
        path.symlink_to(path)
    else:
        path.write_bytes(b"")
        path = path / "ledger.jsonl"
    call = t.choose((lambda: read_ledger(path), lambda: open_ledger(path, base.terms())))
    return Case(call)


@fault("a head that is no line of it")
def _(t: Trial) -> Case:
    record = read_ledger(base.ledger())
    head = t.choose(("", record.head[:-1], record.head.upper() + " ", "0" * 64, None, 3, "é", [], b"x"))
    return Case(lambda: record.require(head))
