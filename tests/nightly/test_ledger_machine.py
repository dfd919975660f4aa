"""Ledger and private run, killed at any call to the disk: no step uncounted, and the same weights."""

import copy
import shutil
import tempfile
from pathlib import Path
from unittest import mock

import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from killed import Killed, killed_at
from transformers import GPT2Config, GPT2LMHeadModel

from privhelpers import dpsgd, models
from privhelpers.accounting import PrivacyPlan
from privhelpers.ledger import Header, open_ledger, read_ledger

PLAN = PrivacyPlan(
    target_epsilon=1e6, delta=1e-3, noise_multiplier=1.0, sample_rate=0.4, steps=6, max_grad_norm=0.5,
    units=12, accountant="rdp",
)  # fmt: skip
MARKS = dict.fromkeys(("data", "parameters", "code"), "0" * 64)
HEADER = Header(run="killed", plan=PLAN, mode="research", fingerprint=MARKS)


class LedgerMachine(RuleBasedStateMachine):
    """Opens, reserves and is killed; what `reserve` returned is never lost."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.path, self.steps, self.heads = self.folder / "ledger.jsonl", 0, []

    @rule(steps=st.integers(1, 3), moment=st.integers(0, 9), share=st.sampled_from([0.0, 0.5, 1.0]))
    def reserve(self, steps, moment, share):
        """Open the ledger and reserve, and be killed on the way; what was reserved then may count."""
        ledger, entry = None, None
        try:
            with killed_at(moment, share):
                ledger = open_ledger(self.path, HEADER)
                assert ledger.record.steps >= self.steps
                self.steps = ledger.record.steps
                if steps <= ledger.record.remaining:
                    entry = ledger.reserve(steps)
        except Killed:
            if entry is None and self.path.exists():
                assert read_ledger(self.path).steps in (self.steps, self.steps + steps)
        finally:
            if ledger:
                ledger.close()
        if entry:
            self.steps = entry.total_steps
            self.heads.append(entry.hash)

    @invariant()
    def nothing_is_lost(self):
        """Every line that `reserve` returned is there."""
        if self.path.exists():
            record = read_ledger(self.path)
            assert self.steps <= record.steps <= PLAN.steps
            for head in self.heads:
                record.require(head)

    def teardown(self):
        """Remove the folder."""
        shutil.rmtree(self.folder)


TestLedger = LedgerMachine.TestCase
TestLedger.settings = settings(max_examples=100, stateful_step_count=12, deadline=None)


@pytest.fixture(scope="module")
def hospital():
    texts = [[f"note {i} of ward {i % 3}"] * (1 + i % 2) for i in range(PLAN.units)]
    tokenizer = models.train_tokenizer([text for notes in texts for text in notes], vocab_size=280)
    sizes = {"vocab_size": len(tokenizer), "n_positions": 32, "n_embd": 8, "n_layer": 1, "n_head": 1}
    torch.manual_seed(0)
    return texts, tokenizer, GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0))


def test_a_run_killed_at_any_call_continues_to_the_same_weights(hospital, tmp_path):
    texts, tokenizer, fresh = hospital
    step, taken, run = dpsgd.PrivateOptimizer.step, [], tmp_path / "run"

    def train(folder, moment=0, share=0.0):
        model = copy.deepcopy(fresh)
        settings, keep = dpsgd.Settings(learning_rate=1e-2), dpsgd.Keep(folder, every=2)
        counting = mock.patch.object(
            dpsgd.PrivateOptimizer, "step", lambda *given: (taken.append(1), step(*given))[1]
        )
        with counting, killed_at(moment, share) as calls:
            dpsgd.train(
                model, tokenizer, texts, PLAN, settings, chance=dpsgd.research(5), keep=keep, progress=False
            )
        return [p.tolist() for p in model.parameters()], calls

    whole, calls = train(tmp_path / "whole")
    assert {"write", "fsync", "replace", "unlink"} <= set(calls)
    for moment, call in enumerate(calls, 1):
        for share in (0.0, 0.5, 1.0) if call == "write" else (0.0,):
            taken.clear()
            with pytest.raises(Killed):
                train(run, moment, share)
            path = run / "ledger.jsonl"
            assert (read_ledger(path).steps if path.exists() else 0) >= len(taken), (moment, call)
            assert train(run)[0] == whole and read_ledger(path).steps == PLAN.steps, (moment, call)
            shutil.rmtree(run)
