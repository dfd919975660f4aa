"""What is read from outside: valid inputs, and the call that a user's command makes with them."""

import json
import random
import warnings
from functools import cache, partial
from pathlib import Path

import nbformat
from faults.fuzz import handed
from faults.fuzz.door import Door
from faults.fuzz.mutations import mutated
from faults.harness.report import ROOT
from nbformat import v4

from bookmaker.runner import (
    _manifest,
    _parameters,
    chain,
    notebooks,
    plan,
    profiles,
)
from privhelpers import artifacts, parameters
from privhelpers.errors import BadRecords
from privhelpers.ledger import Terms, _chain, read_ledger

CELL = (
    'profile: str = "toy"  # name\nseed: int = 0  # chance; in [0, 1000]\n'
    'share: float = 0.5  # a share; in (0, 1]\nkind: str = "pld"  # which; one of pld, rdp\n'
    "private: bool = True  # whether\nwidths: list[float] = [0.5]  # widths; in (0, 1]\n"
)
SMALL = (
    b"shared:\n  seed: 3\nprivate_training:\n  target_epsilon: [1, 8]  # budgets\n  steps: 20\n",
    b'private_training: {target_epsilon: 8.0, sample_rate: 0.2}\nhipaa: {declared_by: "us"}\n',
    b"synthetic_records: {patients: 120, canaries_per_level: 2}\nfine_tuning:\n  epochs: 16\n",
)
VALUES = (
    b'{"steps": 20, "sample_rate": 0.2, "target_epsilon": 8.0, "learning_rate": 0.01}',
    b'{"target_delta": 1e-4, "seed": 3, "profile": "toy", "steps": 150, "model": "dp-eps-8"}',
)


@cache
def _terms(**changes: object) -> Terms:
    usual = {
        "run": "toy", "target_epsilon": 8.0, "delta": 1e-5, "noise_multiplier": 1.5, "sample_rate": 0.04,
        "steps": 40, "max_grad_norm": 1.0, "accountant": "rdp", "mode": "research",
        "fingerprint": dict.fromkeys(("data", "parameters", "code"), "0" * 64),
    }  # fmt: skip
    return Terms(**usual | changes)


def home(place: Path) -> Path:
    """Make what the doors read beside the changed file: the chapters' parameters, a run, a site, a model."""
    for folder in ("params", "notebooks", "net", Path(_job().sentinel).parent, "artifacts/a"):
        (place / folder).mkdir(parents=True, exist_ok=True)
    for slug in chain.SLUGS:
        real = chain.source(ROOT, slug)
        cell = v4.new_code_cell(
            notebooks.code_of(real, "parameters")[0], id="a", metadata={"tags": ["parameters"]}
        )
        nbformat.write(v4.new_notebook(cells=[cell]), place / "notebooks" / real.name)
    for name, data in _folder_files():
        (place / "net" / name).write_bytes(data)
    handed.prepare(place)
    return place


# Profiles and parameters.


@cache
def _profiles() -> tuple[tuple[str, bytes], ...]:
    real = [(ROOT / "params" / f"{name}.yml").read_bytes() for name in ("smoke", "course", "full")]
    return tuple(("params/mine.yml", data) for data in (*SMALL * 4, *real))


def _profile(home: Path, name: str, data: bytes) -> object:
    (home / name).write_bytes(data)
    return profiles.load(home, "mine")


def _values(home: Path, name: str, data: bytes) -> object:
    """What papermill's runner does with the values of a profile, as JSON gives them."""
    try:
        given = json.loads(data)
    except (ValueError, RecursionError):
        given = data.decode("utf-8", "replace")
    notebook = next(iter((home / "notebooks").glob(f"*_{chain.DPSGD}.ipynb")))
    return _parameters.resolve(notebook, given if isinstance(given, dict) else {"steps": given}, where=name)


def _cell(home: Path, name: str, data: bytes) -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Python's parser
        return parameters.declared_in.__wrapped__(data.decode("utf-8", "replace"), name)


# Ledgers.


@cache
def _ledgers() -> tuple[tuple[str, bytes], ...]:
    made = []
    for more in ({}, {"accountant": "pld"}, {"not_counted": ("noise",)}):
        record = _chain.verify(data := _chain.opening_line(_terms(**more)), "ledger.jsonl")
        for _ in range(3):
            line, entry = _chain.next_line(record, "reserve", 3)
            record, data = record.extended(entry), data + line
        made.append(("ledger.jsonl", data))
    return tuple(made)


def _ledger(home: Path, name: str, data: bytes) -> object:
    (home / name).write_bytes(data)
    return read_ledger(home / name)


def _resealed(draw: random.Random, data: bytes, other: bytes) -> bytes:
    """Return a ledger with a line that says something else, in a chain of right hashes; or plain damage."""
    if draw.random() < 0.4:
        return mutated(draw, data, other)
    rows = [json.loads(line) for line in data.splitlines()]
    at = draw.randrange(len(rows))
    changed = mutated(draw, json.dumps(rows[at]["content"]).encode(), other)
    try:
        rows[at]["content"] = json.loads(changed)
        lines, previous = [], _chain.START
        for seq, row in enumerate(rows):
            line, previous = _chain.seal(seq, previous, row["kind"], row["content"])
            lines.append(line)
        return b"".join(lines)
    except (ValueError, TypeError, RecursionError):
        return changed


# Records.


@cache
def _rows(ending: str) -> tuple[tuple[str, bytes], ...]:
    lines = [
        {
            "patient_id": f"p{n}",
            "text": f"note {n} of ward {n % 3}",
            "note_id": f"n{n}",
            "identifiers": [f"Dr {n}"],
        }
        for n in range(52)
    ]
    if ending == "jsonl":
        return (("m.jsonl", b"".join(json.dumps(line).encode() + b"\n" for line in lines)),)
    table = [list(lines[0]), *([*list(line.values())[:3], "|".join(line["identifiers"])] for line in lines)]
    return tuple(
        (f"m.{kind}", "".join(f"{divider.join(row)}\n" for row in table).encode())
        for kind, divider in (("csv", ","), ("tsv", "\t"), ("csv", ";"))
    )


def _records(home: Path, name: str, data: bytes) -> object:
    from privhelpers.own_model._files import read_records

    (home / name).write_bytes(data)
    return read_records(home / name)


@cache
def _canary_rows() -> tuple[tuple[str, bytes], ...]:
    lines = [{"text": f"canary number {n} of all", "inserted": n % 2 == 0} for n in range(24)]
    return (("c.jsonl", b"".join(json.dumps(line).encode() + b"\n" for line in lines)),)


def _canaries(home: Path, name: str, data: bytes) -> object:
    from privhelpers.own_model._files import read_canaries

    (home / name).write_bytes(data)
    return read_canaries(home / name)


@cache
def _parquet_files() -> tuple[tuple[str, bytes], ...]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {"patient_id": [f"p{n}" for n in range(60)], "text": [f"note {n}" for n in range(60)]}
    table, made = pa.table(columns | {"identifiers": [[f"N{n}"] for n in range(60)]}), []
    for compression in ("none", "snappy", "zstd"):
        pq.write_table(table, sink := pa.BufferOutputStream(), compression=compression, store_schema=False)
        made.append(("m.parquet", sink.getvalue().to_pybytes()))
    return tuple(made)


def _parquet(home: Path, name: str, data: bytes) -> object:
    """What the confined process does; a flood or an abort of it is a refusal to whoever asked."""
    from privhelpers.own_model._parquet import Decoded

    (home / name).write_bytes(data)
    try:
        file = Decoded(home / name)
        while file.rows(file.names()):
            pass
    except MemoryError:
        raise BadRecords(f"{name}: a flood") from None
    except BadRecords as error:  # whoever asked puts the file's name before it
        raise BadRecords(f"{name}: {error}") from None
    return file


# What runs leave: records, seals, lists of hashes, tables.


@cache
def _job() -> plan.Job:
    return plan.Job("hipaa", "toy", "hipaa", None, {}, (), {}, "0" * 64, 1, 0)


@cache
def _runs() -> tuple[tuple[str, bytes], ...]:
    record = {
        "rule": "hipaa", "notebook": "hipaa", "model": None, "parameters": {"seed": 0, "profile": "toy"},
        "started": "2026-01-01T00:00:00+00:00", "seconds": 61.0, "cpu_seconds": 80.0, "peak_memory_mib": 512,
        "activities": {"start-up": 21.0, "training": 40.0}, "versions": {"python": "3.11.0"},
        "fingerprint": "0" * 64, "artifacts": {"sheet.html": "1" * 64}, "page": "2" * 64,
        "inputs": {"comparison": "3" * 64},
    }  # fmt: skip
    return ((_job().sentinel, artifacts.to_json(record)),)


def _run(home: Path, name: str, data: bytes) -> object:
    """A record, or its seal, is changed; a manifest takes it over."""
    path = home / name
    right = data if path.suffix == ".json" else _runs()[0][1]
    artifacts.seal_of(home / _job().sentinel).write_bytes(
        data if right is not data else f"{artifacts.hashlib.sha256(data).hexdigest()}  run.json\n".encode()
    )
    (home / _job().sentinel).write_bytes(right)
    done = plan.record(home, _job())
    return artifacts.to_json({"versions": _manifest._versions([done]), "runs": {done["rule"]: done}})


@cache
def _seal_inputs() -> tuple[tuple[str, bytes], ...]:
    digest = artifacts.hashlib.sha256(_runs()[0][1]).hexdigest()
    return ((f"{_job().sentinel}.sha256", f"{digest}  run.json\n".encode()),)


@cache
def _tables() -> tuple[tuple[str, bytes], ...]:
    rows = [{"id": n, "text": f"note {n}\u2028", "score": n / 7} for n in range(5)]
    return (
        ("a/audit.json", artifacts.to_json({"figures": [0.5, 1e-300, "\u00b5"], "n": 7, "of": {"x": None}})),
        ("a/rows.jsonl", b"".join(json.dumps(row).encode() + b"\n" for row in rows)),
    )


def _table(home: Path, name: str, data: bytes) -> object:
    path = home / "artifacts" / name
    path.write_bytes(data)
    digest = artifacts.hashlib.sha256(data).hexdigest()
    artifacts.seal_of(path).write_text(f"{digest}  {path.name}\n")
    store = artifacts.Store(home / "artifacts", "toy")
    return artifacts.to_json(store.read_json(name) if path.suffix == ".json" else store.read_jsonl(name))


# The folder of a model, as far as this process opens it.


@cache
def _folder_files() -> tuple[tuple[str, bytes], ...]:
    header = json.dumps({"wte.weight": {"dtype": "F32", "shape": [8, 4], "data_offsets": [0, 128]}}).encode()
    files = {
        "config.json": {
            "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 4, "n_layer": 1,
            "n_head": 1, "n_positions": 32, "vocab_size": 8, "bos_token_id": 0, "torch_dtype": "float32",
            "task_specific_params": {"text-generation": {"max_length": 50}},
        },
        "generation_config.json": {"bos_token_id": 0, "eos_token_id": 0, "do_sample": True, "top_p": 0.7},
        "tokenizer_config.json": {"tokenizer_class": "GPT2Tokenizer", "model_max_length": 32},
        "tokenizer.json": {"version": "1.0", "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}},
    }  # fmt: skip
    plain = [(name, json.dumps(value).encode()) for name, value in files.items()]
    return (*plain, ("model.safetensors", len(header).to_bytes(8, "little") + header + bytes(128)))


@cache
def _folder_inputs() -> tuple[tuple[str, bytes], ...]:
    index = {"metadata": {"total_size": 128}, "weight_map": {"wte.weight": "model.safetensors"}}
    whole = [file for file in _folder_files() if file[0] != "tokenizer.json"]
    return (*whole, whole[0], ("model.safetensors.index.json", json.dumps(index).encode()))


def _folder(home: Path, name: str, data: bytes) -> object:
    from privhelpers.models import _folder
    from privhelpers.own_model import _open, _places

    net, usual = home / "net", dict(_folder_files())
    try:
        (net / name).write_bytes(data)
        _places.find_model(net, None)
        _open._bytes(net, None, weights=True)
        _open._require_tokenizer(net)
        kind = _open._kind(net, _folder.read_json(net, _folder.CONFIG))
        return kind, _folder.check_folder(net)
    finally:
        (net / name).write_bytes(usual[name]) if name in usual else (net / name).unlink()


def _repacked(draw: random.Random, data: bytes, other: bytes) -> bytes:
    """Return a changed JSON file; of weights often a changed header of right length."""
    length = int.from_bytes(data[:8], "little")
    if data[:1] == b"{" or draw.random() < 0.3:
        return mutated(draw, data, other)
    header = mutated(draw, data[8 : 8 + length], other)
    return len(header).to_bytes(8, "little") + header + data[8 + length :]


DOORS = (
    Door("profile", _profiles, _profile, 4),
    Door("parameters: values", partial(tuple, [("params/mine.yml", value) for value in VALUES]), _values, 12),
    Door("parameters: cell", partial(tuple, [("toy", CELL.encode())]), _cell, 12),
    Door("ledger", _ledgers, _ledger, 8, change=_resealed),
    Door("records: JSONL", partial(_rows, "jsonl"), _records, 6),
    Door("records: CSV", partial(_rows, "csv"), _records, 5),
    Door("records: canaries", _canary_rows, _canaries, 3),
    Door("records: Parquet", _parquet_files, _parquet, 3),
    Door("manifest: run", _runs, _run, 6),
    Door("manifest: seal", _seal_inputs, _run, 2, says="run.json"),
    Door("tables", _tables, _table, 4),
    Door("config", _folder_inputs, _folder, 8, says="net", change=_repacked),
    *handed.DOORS,
)
TURN = tuple(door for door in DOORS for _ in range(door.share))  # case i is at door i % 100


def warm() -> None:
    """Import what the doors import late, once, before workers are forked; bounds hold in those."""
    from bookmaker.site import _entrance, _quizzes, exercises  # noqa: F401
    from privhelpers.own_model import _files, _language, _open, _parquet  # noqa: F401

    handed.parser()

    for door in DOORS:
        door.inputs()


def of(index: int) -> Door:
    """Return the door of a case: neighbors are at different ones."""
    return TURN[index * 37 % len(TURN)]
