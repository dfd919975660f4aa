"""A private run killed at every write, flush, rename and removal: the same weights, and no step uncounted."""

import copy
import hashlib
import io
import os
import shutil
import signal
from unittest import mock

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from privhelpers import dpsgd, models
from privhelpers.ledger import read_ledger

PATIENTS, STEPS, EVERY = 12, 6, 2
CALLS = ("write", "fsync", "replace", "rename", "unlink", "mkdir")
PLAIN = {name: getattr(os, name) for name in CALLS} | {"fdopen": os.fdopen}


class Moments:
    """Counts the calls that reach the disk, and kills this process at one of them.

    Attributes:
        calls: names so far.
        last: number of the call that kills, from 1; 0: none.
        share: part of the bytes of a last write that still arrives.
    """

    def __init__(self, last=0, share=0.5):
        self.calls, self.last, self.share = [], last, share

    def call(self, name):
        def called(*given, **named):
            self.calls.append(name)
            if len(self.calls) == self.last:
                if name == "write":
                    PLAIN["write"](given[0], bytes(given[1][: int(self.share * len(given[1]))]))
                os.kill(os.getpid(), signal.SIGKILL)
            return PLAIN[name](*given, **named)

        return called

    def fdopen(self, descriptor, mode="r", *rest, **named):
        """Open a file whose bytes reach the system in two writes, which are moments too."""
        if mode != "wb":
            return PLAIN["fdopen"](descriptor, mode, *rest, **named)
        write = self.call("write")

        class Raw(io.FileIO):
            def write(self, data):
                view = memoryview(data)
                for piece in (view[: len(view) // 2], view[len(view) // 2 :]):
                    done = 0
                    while done < len(piece):
                        done += write(self.fileno(), piece[done:])
                return len(view)

        return Raw(descriptor, mode)

    def watching(self):
        return mock.patch.multiple(os, fdopen=self.fdopen, **{name: self.call(name) for name in CALLS})


@pytest.fixture(scope="module")
def hospital():
    """Return the notes of a few patients, a tokenizer and a tiny model."""
    torch.set_num_threads(1)
    texts = [[f"note {i} of ward {i % 3}"] * (1 + i % 2) for i in range(PATIENTS)]
    tokenizer = models.train_tokenizer([text for notes in texts for text in notes], vocab_size=280)
    config = GPT2Config(
        vocab_size=len(tokenizer), n_positions=32, n_embd=8, n_layer=1, n_head=1, bos_token_id=0,
        eos_token_id=0, resid_pdrop=0.1, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return texts, tokenizer, GPT2LMHeadModel(config)


def trained(hospital, folder, begun):
    """Train, append a byte to the descriptor `begun` for each step, and return the hash of the weights."""
    texts, tokenizer, fresh = hospital
    model, step = copy.deepcopy(fresh), dpsgd.PrivateOptimizer.step

    def noted(self, draw):
        PLAIN["write"](begun, b"x")
        return step(self, draw)

    plan = dpsgd.plan_with_noise(
        noise_multiplier=1.0, target_delta=1e-3, sample_rate=0.4, steps=STEPS, max_grad_norm=0.5,
        units=PATIENTS, accountant="rdp",
    )  # fmt: skip
    with mock.patch.object(dpsgd.PrivateOptimizer, "step", noted):
        dpsgd.train(
            model, tokenizer, texts, plan, dpsgd.Settings(learning_rate=1e-2),
            chance=dpsgd.research(5), keep=dpsgd.Keep(folder, every=EVERY), progress=False,
        )  # fmt: skip
    return hashlib.sha256(b"".join(one.detach().numpy().tobytes() for one in model.parameters())).hexdigest()


def in_child(hospital, folder, place, moments):
    """Train in a child; return the weights, "" if it was killed, the steps that it began, and its calls."""
    place.mkdir(exist_ok=True)
    begun = os.open(place / "begun", os.O_CREAT | os.O_TRUNC | os.O_RDWR | os.O_APPEND)
    if not (child := os.fork()):
        code = 1
        try:
            with moments.watching():
                weights = trained(hospital, folder, begun)
            (place / "weights").write_text(weights)
            (place / "calls").write_text(" ".join(moments.calls))
            code = 0
        finally:
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    count = os.fstat(begun).st_size
    os.close(begun)
    assert status in (0, -signal.SIGKILL), "it was refused, or failed"
    return ("", count, []) if status else (
        (place / "weights").read_text(), count, (place / "calls").read_text().split()
    )  # fmt: skip


def test_a_run_killed_at_any_call_goes_on_to_the_same_weights(hospital, tmp_path):
    whole, _, calls = in_child(hospital, tmp_path / "whole", tmp_path / "note", Moments())
    assert {"write", "fsync", "replace", "unlink"} <= set(calls)
    edges = [
        (number, share)
        for number, call in enumerate(calls, 1)
        for share in ((0.0, 0.5, 1.0) if call == "write" else (0.0,))
    ]
    for number, share in edges:
        folder = tmp_path / "run"
        weights, begun, _ = in_child(hospital, folder, tmp_path / "note", Moments(number, share))
        where = f"killed at call {number} of {len(calls)}, {calls[number - 1]}, {share} of it written"
        assert weights == "", where
        ledger = folder / "ledger.jsonl"
        spent = read_ledger(ledger).steps if ledger.exists() else 0
        assert spent >= begun, where
        again, _, _ = in_child(hospital, folder, tmp_path / "note", Moments())
        assert again == whole and read_ledger(ledger).steps == STEPS, where
        shutil.rmtree(folder)
