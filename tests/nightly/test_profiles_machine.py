"""An edit of a profile is refused by its name, or reaches exactly the runs that declare the parameter."""

import json
import math

import pytest
import toy_chain
import yaml
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from bookmaker.runner import plan
from privhelpers.errors import InvalidParameter

# Section and name, what makes a value, and which of these the parameters cell allows.
WHOLE = st.one_of(st.integers(-5, 1200), st.booleans(), st.just("7"), st.just(None))
NUMBER = st.one_of(
    st.floats(-0.5, 1.5), st.integers(-1, 2), st.sampled_from([math.nan, math.inf, "0.5", True])
)
EDITS = {
    ("shared", "seed"): (WHOLE, lambda value: type(value) is int and 0 <= value <= 1000),
    ("hipaa", "seed"): (WHOLE, lambda value: type(value) is int and 0 <= value <= 1000),
    ("synthetic_records", "patients"): (WHOLE, lambda value: type(value) is int and 1 <= value <= 100),
    ("hipaa", "limit"): (NUMBER, lambda value: type(value) in (int, float) and 0 <= value <= 1),
    ("private_training", "accountant"): (st.text("pldr", max_size=3), lambda value: value in ("pld", "rdp")),
}


def machine(root):
    """Return a machine that edits the profile of a toy book, and plans its runs after every edit."""

    class Profiles(RuleBasedStateMachine):
        def __init__(self):
            super().__init__()
            self.given, self.notes = {}, {}

        @rule(edit=st.sampled_from(list(EDITS)).flatmap(lambda one: st.tuples(st.just(one), EDITS[one][0])))
        def give(self, edit):
            place, value = edit
            self.given[place] = value

        @rule(place=st.sampled_from(list(EDITS)))
        def leave_out(self, place):
            self.given.pop(place, None)

        @invariant()
        def the_plan_is_that_of_the_profile(self):
            sections = {}
            for (section, name), value in self.given.items():
                sections.setdefault(section, {})[name] = value
            (root / "params/toy.yml").write_text(yaml.safe_dump(sections, allow_unicode=True))
            if wrong := [place for place, value in self.given.items() if not EDITS[place][1](value)]:
                with pytest.raises(InvalidParameter) as refused:
                    plan.jobs(root, "toy")
                assert str(refused.value).startswith("params/toy.yml, ") and "\n" not in str(refused.value)
                assert any(f"{section}.{name} = " in str(refused.value) for section, name in wrong)
                return
            for job in plan.jobs(root, "toy"):
                for name, value in job.parameters.items():
                    expected = self.given.get((job.slug, name), self.given.get(("shared", name), value))
                    assert value == expected, (job.rule, name)
                plan.note(root, job)
                written = (root / job.note).stat().st_mtime_ns
                before = self.notes.get(job.rule)
                assert before is None or (before[0] == job.parameters) == (before[1] == written), job.rule
                assert json.loads((root / job.note).read_text())["parameters"] == job.parameters
                self.notes[job.rule] = job.parameters, written

    return Profiles


def test_every_edit_of_a_profile_is_refused_or_reaches_its_runs(tmp_path):
    root = toy_chain.build(tmp_path / "book")
    few = settings(max_examples=30, stateful_step_count=12, deadline=None)
    run_state_machine_as_test(machine(root), settings=few)
