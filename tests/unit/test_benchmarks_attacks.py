"""The arithmetic of the attacks' benchmark; nothing here is timed for its own sake."""

import importlib.util
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def bench():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        spec = importlib.util.spec_from_file_location("benchmarked_attacks", FOLDER / "attacks.py")
        module = importlib.util.module_from_spec(spec)
        patch.setitem(importlib.sys.modules, "benchmarked_attacks", module)  # dataclasses look it up
        spec.loader.exec_module(module)
        yield module


def comparison(bench, calls):
    variants = {
        "slow": bench.Variant(lambda: calls.append("slow"), share=0.01),
        "fast": bench.Variant(lambda: calls.append("fast")),
    }
    return bench.Comparison("Job", variants, "slow", "fast", 15.0, ("a note",))


def test_variants_take_turns_and_a_part_is_extrapolated(bench, monkeypatch):
    calls, ticks = [], iter(range(100))
    monkeypatch.setattr(bench.time, "process_time", lambda: float(next(ticks)))
    seconds = bench.time_variants(comparison(bench, calls), rounds=3)
    assert calls == ["slow", "fast"] * 3
    assert seconds == {"slow": 100.0, "fast": 1.0}


@pytest.mark.parametrize(("slow", "reached"), [(30.0, "yes"), (29.9, "no")])
def test_a_ratio_is_held_against_what_is_wanted(bench, slow, reached):
    made = comparison(bench, [])
    row = bench.ratios([(made, {"slow": slow, "fast": 2.0})]).splitlines()[-1]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells == ["Job", f"{slow / 2:.1f}", "15", reached]
    section = bench.section(made, {"slow": slow, "fast": 2.0})
    assert section.startswith("## Job\n") and section.endswith("- a note")


def test_shorter_texts_are_not_timed(bench):
    bench.check_lengths([100, 104], [100])
    with pytest.raises(SystemExit, match="lengths differ: 80 and 100"):
        bench.check_lengths([80], [100])
