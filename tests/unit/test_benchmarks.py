"""The arithmetic of the benchmarks' tables; nothing here is timed."""

import importlib.util
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "benchmarks" / "dpsgd_table.py"


@pytest.fixture(scope="module")
def table():
    spec = importlib.util.spec_from_file_location("benchmarked_table", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def result(table):
    seconds = {
        table.PLAIN: 0.100,
        table.SAME: 0.080,
        table.LOOP: 0.240,
        table.HOOKS: 0.180,
        table.VMAP: 0.150,
        table.OURS: 0.120,
        table.LOW: 0.140,
    }
    failures = {table.GHOST: "ValueError: tied"}
    return table.Result("GPT-2", seconds, {table.OURS: 3.2e-7}, failures)


def cells_of(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_quartile_lies_between_the_fast_and_the_usual_round(table):
    assert table.quartile([5, 1, 2, 4, 3]) == 2
    assert table.quartile([1.0, 2.0]) == pytest.approx(1.25)


def test_the_best_peer_is_neither_ours_nor_the_loop(table, result):
    assert table.best_peer(result.seconds) == table.VMAP
    assert table.best_peer({table.OURS: 1.0, table.LOOP: 0.1, table.PLAIN: 0.1}) is None


def test_the_ratios_are_those_of_the_seconds(table, result):
    head, _, row = (cells_of(line) for line in table.ratio_table([result]).splitlines())
    assert dict(zip(head, row, strict=True)) == {
        "cell": "GPT-2",
        "ours / plain": "1.20",
        "ours / same kernels": "1.50",
        "low / plain": "1.40",
        "loop / plain": "2.40",
        "loop / ours": "2.00",
        "best peer / ours": "1.25",
        "best peer": table.VMAP,
    }


def test_a_variant_that_failed_leaves_a_dash_and_not_a_number(table):
    lines = table.ratio_table([table.Result("empty", {table.PLAIN: 0.1})]).splitlines()
    assert set(cells_of(lines[2])[1:]) == {"-"}


def test_a_cell_shows_every_variant_and_why_one_is_missing(table, result):
    text = table.cell_table(result)
    ours = next(line for line in text.splitlines() if line.startswith(f"| {table.OURS}"))
    assert cells_of(ours) == [table.OURS, "120.0", "1.20", "1.50", "3e-07"]
    assert text.count("\n| ") == 1 + len(result.seconds)
    assert text.endswith(f"- {table.GHOST}: not timed. ValueError: tied")


def test_the_price_of_the_loop_is_the_range_over_cells(table, result):
    other = table.Result("BERT", {table.PLAIN: 1.0, table.LOOP: 1.42})
    assert "1.4 to 2.4 times a plain step" in table.price_of_the_loop([result, other])
    assert table.price_of_the_loop([table.Result("no loop", {table.PLAIN: 1.0})]) == ""


def test_every_line_of_a_table_is_equally_wide(table):
    lines = table.markdown(["a", "number"], [["long name", "1"], ["b", "12345678"]]).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert lines[1] == "|:----------|---------:|"


def test_memory_is_set_against_the_plain_step(table):
    rows = table.memory_table("GPT-2", {table.PLAIN: 200.0, table.LOW: 190.4}).splitlines()
    assert cells_of(rows[-1]) == [table.LOW, "190", "0.95"]


def test_a_reason_is_one_line(table):
    assert table.reason(RuntimeError("first\nsecond")) == "RuntimeError: first"
    assert table.reason(KeyError()) == "KeyError: "


@pytest.fixture(scope="module")
def refusals():
    spec = importlib.util.spec_from_file_location("refusals", FILE.parent / "refusals.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["refusals"] = module  # where its dataclass looks for it
    spec.loader.exec_module(module)
    yield module
    del sys.modules["refusals"]


@pytest.mark.parametrize("given", ["--rounds=0", "--notes=59"])
def test_too_little_to_measure_is_refused(refusals, capsys, given):
    with pytest.raises(SystemExit) as ended:
        refusals.main([given])
    assert ended.value.code == 2 and "or more" in capsys.readouterr().err


def test_a_mistake_counts_as_refused_only_by_the_words_that_name_it(refusals, tmp_path):
    profile, notes, shared, *_ = refusals.made(tmp_path, 60)
    assert refusals.refused(profile, tmp_path)[1] == ""
    assert refusals.refused(notes, tmp_path)[1] == refusals.refused(shared, tmp_path)[1] == ""
    other = replace(notes, names="line 59")
    assert re.search("^exit code 2: (?s:.*)line 60", refusals.refused(other, tmp_path)[1])
    sound = replace(profile, arguments=("check", "--profile=smoke"))
    assert refusals.refused(sound, tmp_path)[1].startswith("exit code 0: ")
