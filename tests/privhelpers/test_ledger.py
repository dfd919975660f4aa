"""The ledger of a private run: what it seals, what it counts, what it refuses."""

import dataclasses
import hashlib
import json
import math
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from privhelpers import accounting
from privhelpers.errors import (
    ArtifactUnavailable,
    BudgetExceeded,
    InvalidParameter,
    LedgerDamaged,
    LedgerInUse,
    MissingArtifact,
    PrivHelpersError,
    ResumeRefused,
    SamplerMismatch,
)
from privhelpers.ledger import Header, _chain, open_ledger, read_ledger, verify

ROOT = Path(__file__).parents[2]
PLAN = accounting.PrivacyPlan(
    target_epsilon=8.0, delta=1e-5, noise_multiplier=1.5, sample_rate=0.04, steps=2000, max_grad_norm=1.0,
    units=5000, accountant="rdp",
)  # fmt: skip
MARKS = {"data": "0" * 64, "parameters": "1" * 64, "code": "2" * 64}
HEADER = Header(run="dp-8", plan=PLAN, mode="research", fingerprint=MARKS)


def changed(**changes):
    """Return the header with changes of its own or of its plan."""
    plan = {name: changes.pop(name) for name in list(changes) if name in vars(PLAN)}
    return dataclasses.replace(HEADER, plan=dataclasses.replace(PLAN, **plan), **changes)


def rdp(steps):
    return PLAN.epsilon_after(steps)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "dp-8" / "ledger.jsonl"


@pytest.fixture
def filled(path):
    """A ledger of four lines."""
    with open_ledger(path, HEADER) as ledger:
        for steps in (100, 300, 50):
            ledger.reserve(steps)
    return path


# What it counts


def test_what_was_reserved_is_there_after_closing(path):
    with open_ledger(path, HEADER) as ledger:
        assert (ledger.record.steps, ledger.record.epsilon, ledger.record.remaining) == (0, 0.0, 2000)
        entry = ledger.reserve(1000)
        assert (entry.seq, entry.steps, entry.total_steps) == (1, 1000, 1000)
        assert entry.epsilon == ledger.record.epsilon == rdp(1000) and entry.hash == ledger.record.head
        ledger.reserve(500)
    with open_ledger(path, HEADER) as ledger:
        assert (ledger.record.steps, ledger.record.remaining) == (1500, 500)
        assert ledger.reserve(500).epsilon == PLAN.epsilon <= 8.0
    record = read_ledger(path)
    assert record.header == HEADER and [entry.steps for entry in record.entries] == [1000, 500, 500]


def test_every_line_is_canonical_and_carries_the_hash_of_the_one_before(filled, tmp_path):
    lines = filled.read_bytes().split(b"\n")
    assert lines.pop() == b"" and len(lines) == 4
    previous = "0" * 64
    for seq, raw in enumerate(lines):
        line = json.loads(raw)
        stated = line.pop("hash")
        bare = json.dumps(line, sort_keys=True, separators=(",", ":")).encode()
        assert stated == hashlib.sha256(bare).hexdigest()
        assert (line["seq"], line["previous"]) == (seq, previous)
        assert line["kind"] == ("reserve" if seq else "open")
        previous = stated
    assert json.loads(lines[0])["content"] == HEADER.content() and "not_counted" not in HEADER.content()
    with open_ledger(tmp_path / "again.jsonl", HEADER) as ledger:
        for steps in (100, 300, 50):
            ledger.reserve(steps)
        assert ledger.record.head == previous, "no clock and no chance in a ledger"


def test_the_epsilon_is_that_of_the_accountant_of_the_plan(path):
    with open_ledger(path, changed(accountant="pld", steps=400)) as ledger:
        ledger.reserve(150)
    expected = accounting.epsilon(noise_multiplier=1.5, sample_rate=0.04, steps=150, delta=1e-5)
    assert read_ledger(path).epsilon == expected < rdp(150)


def test_an_accountant_that_rounds_unevenly_lowers_no_epsilon_and_exceeds_no_budget(path, monkeypatch):
    def wobbling(*, steps, **_):
        return {5: 1.1, 6: 1.0, 9: 8.5}.get(steps, steps * 0.8)

    monkeypatch.setattr("privhelpers.accounting._plan.epsilon", wobbling)
    header, seen = changed(steps=10), []
    for steps in (5, 1, 3, 1):
        with open_ledger(path, header) as ledger:
            seen.append(ledger.reserve(steps).epsilon)
    assert seen == [1.1, 1.1, 8.0, 8.0] and read_ledger(path).epsilon == 8.0


def test_a_line_is_on_the_device_before_reserve_returns(path, monkeypatch):
    calls = []
    with open_ledger(path, HEADER) as ledger:
        for name in ("write", "fsync"):
            real = getattr(os, name)
            monkeypatch.setattr(
                os, name, lambda *given, real=real, name=name: calls.append(name) or real(*given)
            )
        ledger.reserve(5)
        assert calls == ["write", "fsync"]


# What it refuses to do


def test_more_than_the_plan_is_refused_before_anything_is_written(filled):
    before = filled.read_bytes()
    with open_ledger(filled, HEADER) as ledger:
        with pytest.raises(BudgetExceeded, match="1551"):
            ledger.reserve(1551)
        assert filled.read_bytes() == before
        assert ledger.reserve(1550).epsilon <= 8.0, "a refusal leaves the ledger usable"


def test_a_plan_over_its_budget_is_refused_before_anything_else(path):
    for header in (changed(steps=3000), changed(noise_multiplier=1.0), changed(target_epsilon=1.0)):
        with pytest.raises(BudgetExceeded):
            open_ledger(path, header)
    with pytest.raises(BudgetExceeded):
        open_ledger(path, changed(target_epsilon=rdp(2000) * (1 - 1e-9)))
    assert not path.parent.exists()
    with open_ledger(path, changed(target_epsilon=rdp(2000))) as ledger:
        assert ledger.reserve(2000).epsilon == rdp(2000), "all of a budget may be spent"


SEALED = {
    **{"target_epsilon": 9.0, "delta": 1e-6, "noise_multiplier": 1.6, "sample_rate": 0.03, "steps": 1999},
    **{"max_grad_norm": 0.5, "units": 4999, "accountant": "pld", "unit": "note"},
    **{"run": "dp-9", "mode": "release", "not_counted": ("training: Mine",)},
    "fingerprint": {**MARKS, "data": "f" * 64},
}


@pytest.mark.parametrize("name", SEALED)
def test_other_terms_are_refused_with_both_values(filled, name):
    before = filled.read_bytes()
    with pytest.raises(ResumeRefused) as refusal:
        open_ledger(filled, changed(**{name: SEALED[name]}))
    assert str(refusal.value).count("was sealed as") == 1 and name in str(refusal.value)
    assert filled.read_bytes() == before
    with open_ledger(filled, changed(target_epsilon=8, max_grad_norm=1)) as ledger:  # of the same values
        assert ledger.record.steps == 450


REALS = ("target_epsilon", "delta", "noise_multiplier", "sample_rate", "max_grad_norm")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, value) for name in REALS for value in (-1, math.nan, math.inf, True, "1", 10**400)),
        *((name, 0) for name in REALS[1:]),
        *(("sample_rate", 1.5), ("delta", 1.0), ("delta", 1 / 5000)),
        *((name, value) for name in ("steps", "units") for value in (0, -1, 1.0, True, "1", 10**4000)),
        *(("unit", value) for value in ("", " ", "a\0", None)),
        *(("accountant", value) for value in ("linear", None)),
        *(("sampler", "chance"), ("adjacency", "zero-out"), ("plan", None), ("mode", "debug")),
        *(("not_counted", value) for value in (None, 5, "draws", [5])),
        *(("fingerprint", value) for value in (None, {}, {"data": "0" * 64}, {**MARKS, "more": "0" * 64})),
        *(("fingerprint", {**MARKS, "code": value}) for value in ("0" * 63, "A" * 64, 5)),
    ],
)
def test_values_out_of_range_are_refused_by_name(name, value):
    with pytest.raises(InvalidParameter, match=name):
        dataclasses.replace(HEADER, plan=None) if name == "plan" else changed(**{name: value})


@pytest.mark.parametrize("run", ["", "../up", "A", "x" * 64, "a\0", None])
def test_a_run_has_the_name_of_an_artifact(run):
    with pytest.raises(InvalidParameter):
        changed(run=run)


@pytest.mark.parametrize("sampler", ["shuffled epochs", "fixed batches", "all units"])
def test_a_sampler_that_no_accountant_counts_for_is_refused(sampler):
    with pytest.raises(SamplerMismatch, match=sampler):
        changed(sampler=sampler)


def test_a_checkpoint_notices_a_ledger_that_lost_lines_or_was_replaced(filled):
    record = read_ledger(filled)
    for head in (record.opening, *(entry.hash for entry in record.entries)):
        record.require(head)
    for head in ("0" * 64, "", None):
        with pytest.raises(ResumeRefused):
            record.require(head)
    lines = filled.read_bytes().splitlines(keepends=True)
    filled.write_bytes(b"".join(lines[:-1]))  # whole lines cut off: no chain shows it
    with open_ledger(filled, HEADER) as shorter:
        shorter.reserve(49)  # another line in its place
        with pytest.raises(ResumeRefused):
            shorter.record.require(record.head)


# What it refuses to read


@pytest.mark.parametrize("mask", [0x01, 0x20, 0x80])
def test_any_changed_byte_is_refused(filled, mask):
    data = filled.read_bytes()
    for place in range(len(data) - 1):  # without the last newline, the last line was never whole
        damaged = bytearray(data)
        damaged[place] ^= mask
        number = data.count(b"\n", 0, place) + 1
        with pytest.raises(LedgerDamaged, match=rf"ledger\.jsonl, line {number}"):
            verify(bytes(damaged), "ledger.jsonl")


def test_missing_doubled_swapped_and_inserted_lines_are_refused(filled):
    lines = filled.read_bytes().splitlines(keepends=True)
    for i in range(len(lines) - 1):
        for damaged, number in (
            (lines[:i] + lines[i + 1 :], i + 1),
            ([*lines[: i + 1], *lines[i:]], i + 2),
            ([*lines[:i], lines[i + 1], lines[i], *lines[i + 2 :]], i + 1),
            ([*lines[: i + 1], b"\n", *lines[i + 1 :]], i + 2),
        ):
            filled.write_bytes(b"".join(damaged))
            with pytest.raises(LedgerDamaged, match=rf"ledger\.jsonl, line {number}:"):
                open_ledger(filled, HEADER)
            assert filled.read_bytes() == b"".join(damaged), "what is refused is left as it is"


@pytest.mark.parametrize("reserves", [[7], [3, 5, 2]])
def test_a_last_line_that_is_cut_reserved_nothing(path, reserves):
    """`reserve` returns when the newline is on the device, so no step of a cut line was taken."""
    with open_ledger(path, HEADER) as ledger:
        for steps in reserves:
            ledger.reserve(steps)
    *before, line = path.read_bytes().splitlines(keepends=True)
    for cut in [*range(0, len(line), 50), len(line) - 1]:
        path.write_bytes(b"".join(before) + line[:cut])
        assert read_ledger(path).steps == sum(reserves[:-1])
        with open_ledger(path, HEADER) as ledger:
            assert path.read_bytes() == b"".join(before)
            assert ledger.reserve(2).total_steps == sum(reserves[:-1]) + 2


OPENING, FIRST = _chain.seal(0, _chain.START, "open", HEADER.content())


def entry(**changes):
    """Return the first entry of a ledger with other content, under a valid hash."""
    content = {"epsilon": rdp(100), "steps": 100, "total_steps": 100, **changes}
    kind = content.pop("kind", "reserve")
    content = {name: value for name, value in content.items() if value is not ...}
    return _chain.seal(1, FIRST, kind, content)[0]


def test_the_forger_of_these_tests_makes_lines_that_pass():
    assert verify(OPENING + entry(), "x").steps == 100


@pytest.mark.parametrize(
    "changes",
    [
        *({"steps": value} for value in (-100, 100.0, "100", None, [[[[1]]]])),
        {"steps": 0, "total_steps": 0, "epsilon": 0.0},
        {"steps": -100, "total_steps": -100, "epsilon": -1.0},
        {"steps": True, "total_steps": 1, "epsilon": rdp(1)},
        *({"total_steps": value} for value in (99, 101, ...)),
        {"steps": 2001, "total_steps": 2001},
        *({"epsilon": value} for value in (-rdp(100), 0.0, 1, "1", True, 1e308, ...)),
        *({"epsilon": rdp(100) * (1 + off)} for off in (-1e-8, 1e-8)),
        {"time": 5},
        *({"kind": value} for value in ("open", "refund", ["reserve"])),
    ],
    ids=lambda changes: json.dumps({k: str(v)[:12] for k, v in changes.items()}),
)
def test_a_wrong_value_under_a_right_hash_is_refused(changes):
    with pytest.raises(LedgerDamaged, match="line 2:"):
        verify(OPENING + entry(**changes), "ledger.jsonl")


def test_steps_that_do_not_add_up_in_the_middle_are_refused():
    first = entry(total_steps=50, epsilon=rdp(50))  # a total that forgot half of them
    second = {"epsilon": rdp(100), "steps": 50, "total_steps": 100}
    line = _chain.seal(2, json.loads(first)["hash"], "reserve", second)[0]
    with pytest.raises(LedgerDamaged, match="line 2: its steps"):
        verify(OPENING + first + line, "ledger.jsonl")


def test_an_epsilon_that_falls_under_right_hashes_is_refused():
    second = {"epsilon": rdp(50), "steps": 10, "total_steps": 110}
    digest = json.loads(entry())["hash"]
    with pytest.raises(LedgerDamaged, match="line 3: epsilon"):
        verify(OPENING + entry() + _chain.seal(2, digest, "reserve", second)[0], "ledger.jsonl")


CONTENT = HEADER.content()


@pytest.mark.parametrize(
    "content",
    [
        *({**CONTENT, "plan": {**CONTENT["plan"], "target_epsilon": value}} for value in (-1.0, 8)),
        {**CONTENT, "plan": {**CONTENT["plan"], "sampler": "shuffled epochs"}},
        *({**CONTENT, name: value} for name, value in (("more", 1), ("plan", []), ("not_counted", []))),
        *({k: v for k, v in CONTENT.items() if k != name} for name in ("plan", "run")),
        {**CONTENT, "fingerprint": [1]},
        {},
    ],
)
def test_a_header_that_could_not_have_been_sealed_is_refused(content):
    with pytest.raises(LedgerDamaged, match="line 1:"):
        verify(_chain.seal(0, _chain.START, "open", content)[0], "ledger.jsonl")


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"\xff\xfe", b"[]", b"[" * 200_000, b"9" * 5000),
        *(b'{"seq": NaN}', entry()[:-1] + b"\r"),
        entry()[:-1].replace(b'"steps":100', b'"steps":100,"steps":100'),
        entry()[:-1].replace(b'"epsilon":', b'"epsilon":NaN,"e":'),
        entry()[:-1].replace(str(rdp(100)).encode(), b"1e999"),
        entry()[:-1].replace(b'"seq":1', b'"seq": 1'),
        entry()[:-1].replace(b'"kind":"reserve"', b'"kind":"\\ud800"'),
    ],
    ids=lambda text: repr(text[:24]),
)
@pytest.mark.parametrize("number", [1, 2])
def test_what_is_not_a_line_is_refused_by_its_number(filled, text, number):
    lines = filled.read_bytes().split(b"\n")
    lines[number - 1] = text
    with pytest.raises(LedgerDamaged, match=rf"line {number}:"):
        verify(b"\n".join(lines), "ledger.jsonl")


# Who may touch it


def hold(path):
    """Run a process that holds the ledger until it is killed."""
    code = (
        "import sys; from test_ledger import *; ledger = open_ledger(sys.argv[1], HEADER); "
        "print('held', flush=True); sys.stdin.read()"
    )
    env = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT}/tests:{ROOT}/tests/privhelpers"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", code, str(path)], env=env, **pipes)


def test_a_second_writer_is_refused_and_a_dead_one_is_no_obstacle(filled):
    with open_ledger(filled, HEADER), pytest.raises(LedgerInUse):
        open_ledger(filled, HEADER)
    with hold(filled) as process:
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(LedgerInUse):
            open_ledger(filled, HEADER)
        assert read_ledger(filled).steps == 450, "a reader needs no lock"
        process.kill()
    with pytest.raises(ZeroDivisionError), open_ledger(filled, HEADER):
        1 / 0  # noqa: B018
    open_ledger(filled, HEADER).close()
    assert list(filled.parent.iterdir()) == [filled]


def test_a_closed_ledger_reserves_nothing(filled):
    ledger = open_ledger(filled, HEADER)
    ledger.close()
    ledger.close()
    with pytest.raises(ArtifactUnavailable, match="closed"):
        ledger.reserve(1)


@pytest.mark.parametrize("room", [0, 100])
def test_a_full_disk_refuses_the_step(filled, room):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with open_ledger(filled, HEADER) as ledger:
        resource.setrlimit(resource.RLIMIT_FSIZE, (filled.stat().st_size + room, limits[1]))
        try:
            for words in (r"ledger\.jsonl: File too large", "open it again"):
                with pytest.raises(ArtifactUnavailable, match=words):
                    ledger.reserve(2)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert ledger.record.steps == 450, "a reserve that failed allows no step"
    with open_ledger(filled, HEADER) as ledger:
        assert ledger.reserve(2).total_steps == 452


def test_no_message_tells_where_the_files_lie(filled, tmp_path):
    filled.write_bytes(b"x\n")
    for error, call in (
        (LedgerDamaged, lambda: open_ledger(filled, HEADER)),
        (ArtifactUnavailable, lambda: open_ledger(filled / "below.jsonl", HEADER)),
        (MissingArtifact, lambda: read_ledger(tmp_path / "none")),
    ):
        with pytest.raises(PrivHelpersError) as refusal:
            call()
        assert isinstance(refusal.value, error) and str(tmp_path) not in str(refusal.value)
