"""Artifacts that are written by a process that is killed: what was written, or nothing, and never damage."""

import json
import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from killed import Killed, killed_at

from privhelpers.artifacts import Store
from privhelpers.errors import MissingArtifact

NAMES = ("08_x/a.json", "08_x/run/b.json")


class ArtifactsMachine(RuleBasedStateMachine):
    """Writes values; a read returns the last one, or, after a kill, an older one or that it is missing."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.store = Store(self.folder / "artifacts", "toy")
        self.may_be = {name: {None} for name in NAMES}  # None: missing

    @rule(
        name=st.sampled_from(NAMES),
        value=st.dictionaries(st.text(max_size=3), st.integers(), max_size=3),
        moment=st.integers(0, 12),
        many=st.booleans(),
    )
    def write(self, name, value, moment, many):
        """Write, and be killed at a call."""
        value = [value] * 3 if many else [value]
        try:
            with killed_at(moment):
                self.store.write_jsonl(name, value)
            self.may_be[name] = {json.dumps(value, sort_keys=True)}
        except Killed:
            self.may_be[name] |= {json.dumps(value, sort_keys=True), None}

    @invariant()
    def nothing_is_damaged(self):
        """DamagedArtifact would fail here."""
        for name, values in self.may_be.items():
            try:
                found = json.dumps(self.store.read_jsonl(name), sort_keys=True)
            except MissingArtifact:
                found = None
            assert found in values
            self.may_be[name] = {found}

    def teardown(self):
        """Remove the folder."""
        shutil.rmtree(self.folder)


TestArtifacts = ArtifactsMachine.TestCase
TestArtifacts.settings = settings(max_examples=100, stateful_step_count=15, deadline=None)
