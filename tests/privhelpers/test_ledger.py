"""The ledger of a private run: what it seals, what it counts, what it refuses."""

import dataclasses
import errno
import fcntl
import hashlib
import json
import math
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privhelpers import accounting
from privhelpers.errors import (
    BudgetExceeded,
    DamagedArtifact,
    InvalidParameter,
    LedgerDamaged,
    LedgerInUse,
    LedgerUnavailable,
    MissingArtifact,
    PrivHelpersError,
    ResumeRefused,
    SamplerMismatch,
)
from privhelpers.ledger import Terms, _chain, open_ledger, read_ledger
from privhelpers.ledger import _terms as terms_room

ROOT = Path(__file__).parents[2]
VALUES = {
    "run": "dp-8",
    "target_epsilon": 8.0,
    "delta": 1e-5,
    "noise_multiplier": 1.5,
    "sample_rate": 0.04,
    "steps": 2000,
    "max_grad_norm": 1.0,
    "accountant": "rdp",
    "mode": "research",
    "fingerprint": {"data": "0" * 64, "parameters": "1" * 64, "code": "2" * 64},
}
TERMS = Terms(**VALUES)


def changed(**changes):
    return Terms(**{**VALUES, **changes})


def rdp(steps):
    return accounting.epsilon(
        noise_multiplier=1.5, sample_rate=0.04, steps=steps, delta=1e-5, accountant="rdp"
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "dp-8" / "ledger.jsonl"


@pytest.fixture
def filled(path):
    """A ledger of four lines."""
    with open_ledger(path, TERMS) as ledger:
        for steps in (100, 300, 50):
            ledger.reserve(steps)
    return path


# What it counts


def test_steps_of_a_run_with_a_part_under_study_are_counted_and_no_epsilon_is(path):
    terms = changed(not_counted=["make_draws: mine"])
    with open_ledger(path, terms) as ledger:
        assert (ledger.steps, ledger.epsilon) == (0, None)
        assert ledger.reserve(1000).epsilon is None and ledger.reserve(500).epsilon is None
        assert (ledger.steps, ledger.epsilon, ledger.remaining) == (1500, None, 500)
    record = read_ledger(path)
    assert record.terms.not_counted == ("make_draws: mine",) and record.epsilon is None
    opening, *entries = (json.loads(line)["content"] for line in path.read_bytes().splitlines())
    assert opening["not_counted"] == ["make_draws: mine"]
    assert [entry["epsilon"] for entry in entries] == [None, None]
    with pytest.raises(ResumeRefused, match=r"not_counted was sealed as .'make_draws: mine',. and is now ()"):
        open_ledger(path, TERMS)


@pytest.mark.parametrize("terms", [TERMS, changed(not_counted=["make_draws: mine"])])
def test_an_epsilon_stands_exactly_where_one_is_counted(terms):
    opening, digest = _chain.seal(0, _chain.START, "open", terms.content())
    counted, other = (rdp(100), None) if terms is TERMS else (None, rdp(100))
    steps = {"steps": 100, "total_steps": 100}
    right, wrong = (
        opening + _chain.seal(1, digest, "reserve", {**steps, "epsilon": epsilon})[0]
        for epsilon in (counted, other)
    )
    assert _chain.verify(right, "ledger.jsonl").epsilon == counted
    with pytest.raises(LedgerDamaged, match="line 2: epsilon stands where none is counted, or is missing"):
        _chain.verify(wrong, "ledger.jsonl")
    empty = {**terms.content(), "not_counted": []}
    with pytest.raises(LedgerDamaged, match="line 1:"):
        _chain.verify(_chain.seal(0, _chain.START, "open", empty)[0], "ledger.jsonl")


def test_what_was_reserved_is_there_after_closing(path):
    with open_ledger(path, TERMS) as ledger:
        assert (ledger.steps, ledger.epsilon, ledger.remaining) == (0, 0.0, 2000)
        entry = ledger.reserve(1000)
        assert (entry.seq, entry.steps, entry.total_steps) == (1, 1000, 1000)
        assert entry.epsilon == ledger.epsilon == rdp(1000) and entry.hash == ledger.head
        ledger.reserve(500)
    with open_ledger(path, TERMS) as ledger:
        assert (ledger.steps, ledger.epsilon, ledger.remaining) == (1500, rdp(1500), 500)
        ledger.reserve(500)
        assert ledger.remaining == 0 and ledger.epsilon == rdp(2000) <= 8.0
    record = read_ledger(path)
    assert record.terms == TERMS and [entry.steps for entry in record.entries] == [1000, 500, 500]


def test_every_line_is_canonical_and_carries_the_hash_of_the_one_before(filled):
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
    assert json.loads(lines[0])["content"] == TERMS.content() and "not_counted" not in TERMS.content()
    assert read_ledger(filled).head == previous


def test_the_epsilon_is_that_of_the_accountant_of_the_terms(path):
    terms = changed(accountant="pld", steps=400)
    with open_ledger(path, terms) as ledger:
        ledger.reserve(150)
        expected = accounting.epsilon(noise_multiplier=1.5, sample_rate=0.04, steps=150, delta=1e-5)
        assert ledger.epsilon == expected < rdp(150)
    assert read_ledger(path).epsilon == expected


def test_the_accountant_is_asked_once_a_reserve(path, monkeypatch):
    calls, real = [], accounting.epsilon
    monkeypatch.setattr(accounting, "epsilon", lambda **run: calls.append(run["steps"]) or real(**run))
    terms_room._epsilon.cache_clear()
    with open_ledger(path, TERMS) as ledger:
        assert calls == [2000]
        ledger.reserve(10)
        ledger.reserve(10)
    with open_ledger(path, TERMS) as ledger:
        ledger.reserve(10)
    assert calls == [2000, 10, 20, 30]


def test_an_accountant_that_rounds_unevenly_lowers_no_epsilon_and_exceeds_no_budget(path, monkeypatch):
    def wobbling(*, steps, **_):
        return {5: 1.1, 6: 1.0, 9: 8.5}.get(steps, steps * 0.8)

    monkeypatch.setattr(accounting, "epsilon", wobbling)
    terms_room._epsilon.cache_clear()
    try:
        terms, seen = changed(steps=10), []
        for steps in (5, 1, 3, 1):
            with open_ledger(path, terms) as ledger:
                seen.append(ledger.reserve(steps).epsilon)
        assert seen == [1.1, 1.1, 8.0, 8.0]
        assert read_ledger(path).epsilon == 8.0
    finally:
        terms_room._epsilon.cache_clear()


def test_a_line_is_on_the_device_before_reserve_returns(path, monkeypatch):
    calls, write, sync = [], os.write, os.fsync

    def recorded(name, real):
        def call(descriptor, *rest):
            calls.append((name, stat.S_ISDIR(os.fstat(descriptor).st_mode)))
            return real(descriptor, *rest)

        return call

    monkeypatch.setattr(os, "write", recorded("write", write))
    monkeypatch.setattr(os, "fsync", recorded("sync", sync))
    with open_ledger(path, TERMS) as ledger:
        assert calls[-2:] == [("sync", False), ("sync", True)], "the new file, then its folder"
        calls.clear()
        ledger.reserve(5)
        assert calls == [("write", False), ("sync", False)]


# What it refuses to do


@pytest.mark.parametrize("steps", [0, -1, True, 1.0, "1", None, math.nan, math.inf])
def test_what_is_no_number_of_steps_is_refused(filled, steps):
    before = filled.read_bytes()
    with open_ledger(filled, TERMS) as ledger, pytest.raises(InvalidParameter, match="steps"):
        ledger.reserve(steps)
    assert filled.read_bytes() == before


def test_more_than_the_plan_is_refused_before_anything_is_written(filled):
    before = filled.read_bytes()
    with open_ledger(filled, TERMS) as ledger:
        with pytest.raises(BudgetExceeded, match=r"1551: 450 of the 2000 planned"):
            ledger.reserve(1551)
        assert filled.read_bytes() == before
        assert ledger.reserve(1550).epsilon <= 8.0, "a refusal leaves the ledger usable"


def test_a_plan_over_its_budget_is_refused_before_anything_else(path):
    for terms in (changed(steps=3000), changed(noise_multiplier=1.0), changed(noise_multiplier=1e-3)):
        with pytest.raises(BudgetExceeded, match=rf"steps = {terms.steps}: .* target_epsilon = 8"):
            open_ledger(path, terms)
    with pytest.raises(BudgetExceeded) as refusal:
        open_ledger(path, changed(target_epsilon=rdp(2000) * (1 - 1e-9)))
    assert float(re.search(r"epsilon (\S+), more", str(refusal.value))[1]) >= rdp(2000)
    assert not path.parent.exists()
    with open_ledger(path, changed(target_epsilon=rdp(2000))) as ledger:
        assert ledger.reserve(2000).epsilon == rdp(2000), "all of a budget may be spent"


SEALED = {
    "run": "dp-9",
    "target_epsilon": 9.0,
    "delta": 1e-4,
    "noise_multiplier": 1.6,
    "sample_rate": 0.03,
    "steps": 1999,
    "max_grad_norm": 0.5,
    "accountant": "pld",
    "unit": "note",
    "mode": "release",
    "not_counted": ("make_draws: mine",),
}


@pytest.mark.parametrize("name", SEALED)
def test_other_terms_are_refused_with_both_values(filled, name):
    before = filled.read_bytes()
    asked = changed(**{name: SEALED[name]})
    sealed = getattr(TERMS, name)
    with pytest.raises(ResumeRefused) as refusal:
        open_ledger(filled, asked)
    assert str(refusal.value).endswith(
        f"other terms: {name} was sealed as {sealed!r} and is now {SEALED[name]!r}"
    )
    assert filled.read_bytes() == before
    with open_ledger(filled, TERMS) as ledger:  # the refusal let go of the lock
        assert ledger.steps == 450


@pytest.mark.parametrize(
    "asked, shown",
    [(1.5731554867783162, "1.5 and is now 1.57316"), (1.5000000001, "1.5 and is now 1.5000000001")],
)
def test_a_refusal_shows_the_digits_in_which_two_values_differ(asked, shown):
    assert TERMS.differences(changed(noise_multiplier=asked)) == [f"noise_multiplier was sealed as {shown}"]


def test_every_value_that_can_vary_is_in_the_list_of_sealed_ones():
    assert {*SEALED, "fingerprint", "sampler", "adjacency"} == {f.name for f in dataclasses.fields(Terms)}


@pytest.mark.parametrize("name", ["data", "parameters", "code"])
def test_other_data_parameters_or_code_are_refused(filled, name):
    asked = changed(fingerprint={**VALUES["fingerprint"], name: "f" * 64}, noise_multiplier=2.0)
    with pytest.raises(ResumeRefused) as refusal:
        open_ledger(filled, asked)
    text = str(refusal.value)
    assert f"fingerprint.{name} was sealed as {VALUES['fingerprint'][name]!r}" in text
    assert f"is now {'f' * 64!r}" in text and "noise_multiplier was sealed as 1.5 and is now 2.0" in text
    assert text.count("was sealed") == 2


def test_what_is_changed_after_opening_is_not_what_was_sealed(path):
    hashes = dict(VALUES["fingerprint"])
    terms = changed(fingerprint=hashes)
    hashes["data"] = "e" * 64
    assert terms == TERMS
    with open_ledger(path, terms) as ledger:
        terms.fingerprint["data"] = "e" * 64
        assert ledger.terms == TERMS
    with pytest.raises(ResumeRefused, match=r"fingerprint\.data"):
        open_ledger(path, terms)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, value) for name in terms_room._REALS for value in (0, -1, math.nan, math.inf, True, "1")),
        *((name, 10**400) for name in terms_room._REALS),
        *((name, 1.5) for name in ("sample_rate", "delta")),
        ("delta", 1.0),
        *(("steps", value) for value in (0, -1, 1.0, True, "1", 10**7 + 1, 10**4000)),
        *((name, value) for name in ("run", "unit") for value in ("", "../up", "A", "x" * 64, "a\0", None)),
        ("accountant", "linear"),
        ("accountant", None),
        ("sampler", "chance"),
        ("adjacency", "zero-out"),
        *(("not_counted", value) for value in (None, 5, "draws", [5])),
        ("mode", "debug"),
        ("fingerprint", None),
        ("fingerprint", {}),
        ("fingerprint", {"data": "0" * 64}),
        ("fingerprint", {**VALUES["fingerprint"], "more": "0" * 64}),
        ("fingerprint", {**VALUES["fingerprint"], "code": "0" * 63}),
        ("fingerprint", {**VALUES["fingerprint"], "code": "A" * 64}),
        ("fingerprint", {**VALUES["fingerprint"], "code": 5}),
    ],
)
def test_values_out_of_range_are_refused_by_name(name, value):
    with pytest.raises(InvalidParameter, match=name):
        changed(**{name: value})


def test_the_most_steps_are_not_too_many():
    assert changed(steps=terms_room.MOST_STEPS).steps == terms_room.MOST_STEPS


@pytest.mark.parametrize("sampler", ["shuffled epochs", "fixed batches", "all units"])
def test_a_sampler_that_no_accountant_counts_for_is_refused(sampler):
    with pytest.raises(SamplerMismatch, match=sampler):
        changed(sampler=sampler)


def test_whole_numbers_seal_the_same_terms(filled):
    with open_ledger(filled, changed(target_epsilon=8, max_grad_norm=1)) as ledger:
        assert ledger.steps == 450


# What it proves to a checkpoint


def test_a_checkpoint_notices_a_ledger_that_lost_lines_or_was_replaced(filled):
    record = read_ledger(filled)
    with open_ledger(filled, TERMS) as ledger:
        for head in (record.opening, *(entry.hash for entry in record.entries)):
            ledger.require(head)
            assert ledger.record.contains(head)
        for head in ("0" * 64, "", None):
            assert not ledger.record.contains(head)
    lines = filled.read_bytes().splitlines(keepends=True)
    filled.write_bytes(b"".join(lines[:-1]))  # whole lines cut off: no chain shows it
    with open_ledger(filled, TERMS) as shorter:
        assert shorter.steps == 400
        with pytest.raises(ResumeRefused, match="last lines"):
            shorter.require(record.head)
        shorter.reserve(49)  # another line in its place
        with pytest.raises(ResumeRefused):
            shorter.require(record.head)
    filled.unlink()
    with open_ledger(filled, TERMS) as new, pytest.raises(ResumeRefused):
        new.require(record.head)


def test_equal_runs_have_equal_heads(filled, tmp_path):
    with open_ledger(tmp_path / "again.jsonl", TERMS) as ledger:
        for steps in (100, 300, 50):
            ledger.reserve(steps)
        assert ledger.head == read_ledger(filled).head, "no clock and no chance in a ledger"


# What it refuses to read


@pytest.mark.parametrize("mask", [0x01, 0x20, 0x80])
def test_any_changed_byte_is_refused(filled, mask):
    data = filled.read_bytes()
    for place in range(len(data) - 1):  # without the last newline, the last line was never whole
        damaged = bytearray(data)
        damaged[place] ^= mask
        number = data.count(b"\n", 0, place) + 1
        with pytest.raises(LedgerDamaged, match=rf"ledger\.jsonl, line {number}"):
            _chain.verify(bytes(damaged), "ledger.jsonl")


def test_a_newline_or_a_brace_in_any_place_is_refused(filled):
    data = filled.read_bytes()
    for new in (b"\n", b"}", b"\0"):
        for place in range(len(data) - 1):
            if data[place : place + 1] != new:
                with pytest.raises(LedgerDamaged):
                    _chain.verify(data[:place] + new + data[place + 1 :], "ledger.jsonl")


def test_missing_doubled_swapped_and_inserted_lines_are_refused(filled):
    lines = filled.read_bytes().splitlines(keepends=True)
    for i in range(len(lines) - 1):
        for damaged, number in (
            (lines[:i] + lines[i + 1 :], i + 1),
            ([*lines[: i + 1], *lines[i:]], i + 2),
            ([*lines[:i], lines[i + 1], lines[i], *lines[i + 2 :]], i + 1),
            ([*lines[: i + 1], b"\n", *lines[i + 1 :]], i + 2),
            ([*lines[: i + 1], b"{}\n", *lines[i + 1 :]], i + 2),
        ):
            filled.write_bytes(b"".join(damaged))
            with pytest.raises(LedgerDamaged, match=rf"ledger\.jsonl, line {number}:"):
                open_ledger(filled, TERMS)
            with pytest.raises(LedgerDamaged):
                read_ledger(filled)
            assert filled.read_bytes() == b"".join(damaged), "what is refused is left as it is"


def test_a_line_of_another_ledger_is_refused(filled, tmp_path):
    other = tmp_path / "other.jsonl"
    with open_ledger(other, changed(run="other")) as ledger:
        for steps in (100, 300, 50):
            ledger.reserve(steps)
    ours, theirs = (p.read_bytes().splitlines(keepends=True) for p in (filled, other))
    filled.write_bytes(b"".join([*ours[:3], theirs[3]]))
    with pytest.raises(LedgerDamaged, match="line 4"):
        read_ledger(filled)


OPENING, FIRST = _chain.seal(0, _chain.START, "open", TERMS.content())


def entry(**changes):
    """Return the first entry of a ledger with other content, under a valid hash."""
    content = {"epsilon": rdp(100), "steps": 100, "total_steps": 100, **changes}
    kind = content.pop("kind", "reserve")
    content = {name: value for name, value in content.items() if value is not ...}
    return _chain.seal(1, FIRST, kind, content)[0]


def test_the_forger_of_these_tests_makes_lines_that_pass():
    assert _chain.verify(OPENING + entry(), "x").steps == 100


@pytest.mark.parametrize(
    "changes",
    [
        {"steps": -100},
        {"steps": 0, "total_steps": 0, "epsilon": 0.0},
        {"steps": -100, "total_steps": -100, "epsilon": -1.0},
        {"steps": 100.0},
        {"steps": "100"},
        {"steps": None},
        {"steps": True, "total_steps": 1, "epsilon": rdp(1)},
        {"steps": [[[[1]]]]},
        {"total_steps": 99},
        {"total_steps": 101},
        {"total_steps": ...},
        {"steps": 2001, "total_steps": 2001, "epsilon": rdp(2001)},
        {"steps": 10**4000, "total_steps": 10**4000},
        {"epsilon": -rdp(100)},
        {"epsilon": 0.0},
        {"epsilon": 1},
        {"epsilon": "1"},
        {"epsilon": True},
        {"epsilon": rdp(100) * (1 - 1e-8)},
        {"epsilon": rdp(100) * (1 + 1e-8)},
        {"epsilon": 1e308},
        {"epsilon": ...},
        {"time": 5},
        {"kind": "open"},
        {"kind": "refund"},
        {"kind": ["reserve"]},
    ],
    ids=lambda changes: json.dumps({k: str(v)[:12] for k, v in changes.items()}),
)
def test_a_wrong_value_under_a_right_hash_is_refused(changes):
    with pytest.raises(LedgerDamaged, match="line 2:"):
        _chain.verify(OPENING + entry(**changes), "ledger.jsonl")


def test_steps_that_do_not_add_up_in_the_middle_are_refused():
    first = entry(total_steps=50, epsilon=rdp(50))  # a total that forgot half of them
    second = {"epsilon": rdp(100), "steps": 50, "total_steps": 100}
    line = _chain.seal(2, json.loads(first)["hash"], "reserve", second)[0]
    with pytest.raises(LedgerDamaged, match="line 2: its steps in total"):
        _chain.verify(OPENING + first + line, "ledger.jsonl")


def test_an_epsilon_that_falls_under_right_hashes_is_refused():
    second = {"epsilon": rdp(50), "steps": 10, "total_steps": 110}
    digest = json.loads(entry())["hash"]
    with pytest.raises(LedgerDamaged, match="line 3: epsilon is smaller"):
        _chain.verify(OPENING + entry() + _chain.seal(2, digest, "reserve", second)[0], "ledger.jsonl")


@pytest.mark.parametrize(
    "content",
    [
        {**TERMS.content(), "target_epsilon": -1.0},
        {**TERMS.content(), "target_epsilon": 8},
        {**TERMS.content(), "sampler": "shuffled epochs"},
        {**TERMS.content(), "more": 1},
        {name: value for name, value in TERMS.content().items() if name != "steps"},
        {name: value for name, value in TERMS.content().items() if name != "unit"},
        {**TERMS.content(), "fingerprint": [1]},
        {},
    ],
)
def test_terms_that_could_not_have_been_sealed_are_refused(content):
    with pytest.raises(LedgerDamaged, match="line 1:"):
        _chain.verify(_chain.seal(0, _chain.START, "open", content)[0], "ledger.jsonl")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff\xfe",
        b"\xef\xbb\xbf{}",
        b"\0" * 100,
        b"null",
        b"[]",
        b"{}",
        b'"text"',
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b"9" * 5000,
        b'{"seq": NaN}',
        entry()[:-1] + b"\r",
        entry()[:-1].replace(b'"steps":100', b'"steps":100,"steps":100'),
        entry()[:-1].replace(b'"steps":100', b'"steps":' + b"1" * 5000),
        entry()[:-1].replace(b'"steps":100', b'"steps":' + b"[" * 500 + b"]" * 500),
        entry()[:-1].replace(b'"epsilon":', b'"epsilon":NaN,"e":'),
        entry()[:-1].replace(str(rdp(100)).encode(), b"1e999"),
        entry()[:-1].replace(b'"seq":1', b'"seq":true'),
        entry()[:-1].replace(b'"seq":1', b'"seq": 1'),
        entry()[:-1].replace(b'"kind":"reserve"', b'"kind":"\\ud800"'),
    ],
    ids=lambda text: repr(text[:24]),
)
@pytest.mark.parametrize("number", [1, 2])
def test_what_is_no_line_is_refused_by_its_number(filled, text, number):
    lines = filled.read_bytes().split(b"\n")
    lines[number - 1] = text
    filled.write_bytes(b"\n".join(lines))
    with pytest.raises(LedgerDamaged, match=rf"line {number}:"):
        open_ledger(filled, TERMS)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from([b"", OPENING, OPENING + entry()]),
    st.one_of(
        st.binary(max_size=60),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=10,
        ).map(lambda value: json.dumps(value).encode()),
        st.fixed_dictionaries(
            {
                "steps": st.integers(-5, 2100) | st.floats(),
                "total_steps": st.integers(-5, 2100),
                "epsilon": st.floats(allow_nan=False, allow_infinity=False) | st.integers(),
            }
        )
        .filter(lambda c: c["steps"] == c["steps"] and c["steps"] not in (math.inf, -math.inf))
        # A valid hash, so that only the values can be wrong.
        .map(lambda content: _chain.seal(1, FIRST, "reserve", content)[0][:-1]),
    ),
)
def test_damage_of_any_shape_ends_in_a_typed_refusal(start, line):
    try:
        record = _chain.verify(start + line + b"\n", "ledger.jsonl")
    except DamagedArtifact:
        return
    assert record.steps in (0, 100) or record.epsilon == pytest.approx(rdp(record.steps))
    assert 0 <= record.steps <= 2000 and 0 <= record.epsilon <= 8.0


# Who may touch it


def test_a_second_writer_is_refused_at_once_and_told_who_writes(filled):
    with open_ledger(filled, TERMS) as ledger:
        with pytest.raises(LedgerInUse, match=f"in use by process {os.getpid()}, since .*: wait"):
            open_ledger(filled, TERMS)
        assert read_ledger(filled).steps == 450, "a reader needs no lock"
        ledger.reserve(1)
    with open_ledger(filled, TERMS) as ledger:
        assert ledger.steps == 451


def test_a_closed_ledger_leaves_one_file(filled):
    assert list(filled.parent.iterdir()) == [filled]
    with pytest.raises(ResumeRefused):
        open_ledger(filled, changed(mode="release"))
    assert list(filled.parent.iterdir()) == [filled]


def test_a_lock_that_its_holder_removes_meanwhile_locks_nothing(filled, monkeypatch):
    holder, real, opened = open_ledger(filled, TERMS), fcntl.flock, []

    def slow(descriptor, operation):
        holder.close()  # between our opening the lock and our taking it
        opened.append(descriptor)
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", slow)
    with open_ledger(filled, TERMS) as ledger:
        assert len(opened) == 2, "the removed lock was taken for a lock"
        with pytest.raises(LedgerInUse):
            open_ledger(filled, TERMS)
        ledger.reserve(1)


def test_a_closed_ledger_reserves_nothing(filled):
    ledger = open_ledger(filled, TERMS)
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerUnavailable, match="closed"):
        ledger.reserve(1)
    assert read_ledger(filled).steps == ledger.steps == 450


def test_an_error_inside_closes_the_ledger(filled):
    with pytest.raises(ZeroDivisionError), open_ledger(filled, TERMS):
        1 / 0  # noqa: B018
    open_ledger(filled, TERMS).close()


def test_a_missing_ledger_is_not_read(tmp_path):
    with pytest.raises(MissingArtifact, match=r"none\.jsonl"):
        read_ledger(tmp_path / "none.jsonl")


def test_a_full_disk_is_refused_by_name(path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(LedgerUnavailable, match=r"^ledger\.jsonl: No space left"):
        open_ledger(path, TERMS)
    assert not path.exists()


def test_no_message_tells_where_the_files_lie(filled, tmp_path):
    filled.write_bytes(b"x\n")
    for call in (
        lambda: open_ledger(filled, TERMS),
        lambda: open_ledger(filled / "below.jsonl", TERMS),
        lambda: read_ledger(tmp_path / "none"),
    ):
        with pytest.raises(PrivHelpersError) as refusal:
            call()
        assert str(tmp_path) not in str(refusal.value)


# Any sequence


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_steps_and_epsilon_only_grow_and_never_exceed_the_budget(tmp_path_factory, data):
    planned = data.draw(st.integers(1, 60))
    budget = rdp(planned) * data.draw(st.sampled_from([1.0, 1.3]))
    terms = changed(steps=planned, target_epsilon=budget)
    path = tmp_path_factory.mktemp("any") / "ledger.jsonl"
    ledger, steps, epsilon, heads = open_ledger(path, terms), 0, 0.0, []
    for action in data.draw(st.lists(st.sampled_from(["reserve", "reopen", "tear"]), max_size=15)):
        if action == "reserve":
            wanted = data.draw(st.integers(1, 20))
            fits = steps + wanted <= planned
            try:
                ledger.reserve(wanted)
                assert fits and ledger.steps == steps + wanted
            except BudgetExceeded:
                assert not fits and ledger.steps == steps
        else:
            ledger.close()
            if action == "tear":
                with open(path, "ab") as handle:
                    handle.write(b'{"content":{"epsi')
            ledger = open_ledger(path, terms)
            assert ledger.steps == steps
        assert steps <= ledger.steps <= planned and epsilon <= ledger.epsilon <= budget
        steps, epsilon = ledger.steps, ledger.epsilon
        heads.append(ledger.head)
    ledger.close()
    record = read_ledger(path)
    assert (record.steps, record.epsilon) == (steps, epsilon)
    assert all(record.contains(head) for head in heads)


def test_import_is_quiet_and_loads_no_torch():
    code = "import sys, privhelpers.ledger; sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, text=True)
    assert done.returncode == 0, done.stderr or "torch was loaded"
    assert not done.stdout and not done.stderr
