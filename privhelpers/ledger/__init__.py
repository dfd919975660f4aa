"""The budget of one private run, written down before it is spent.

A ledger is a file of JSON lines. The first seals the header of the run, its plan included; every later one
reserves steps and is on the device before `reserve` returns, so that a kill at any moment leaves a ledger
that counts at least the steps that were taken. Each line carries the hash of the line before it: an edited,
moved, doubled or missing line is refused. A last line without its newline reserved nothing, and is dropped.
Lines cut off at the end are not visible in the chain; a checkpoint that keeps `head` shows them, through
`Record.require`; a line that is newer than every checkpoint can be dropped unseen.

A ledger counts for one folder, from its first step on. Anyone who continues a copy of the folder, or puts an
older state of ledger and checkpoint back, has a second run under the same budget, and no program on one
machine can tell: the epsilon holds for those who keep one copy.

If the accountant's proof does not cover a part of the run, such as another optimizer, the first line names it
in `not_counted`, and the lines count steps alone: their epsilon is null.

The noise is fixed before the first step and the plan must fit the budget, so composition of a fixed number
of steps is all that is needed. A run that stops early because of what its model showed spent the epsilon of
its whole plan: stopping by the outcome needs more than composition (Rogers, Roth, Ullman and Vadhan 2016).

>>> import tempfile
>>> from pathlib import Path
>>> from privhelpers.accounting import PrivacyPlan
>>> folder = tempfile.TemporaryDirectory()
>>> path = Path(folder.name) / "ledger.jsonl"
>>> plan = PrivacyPlan(
...     target_epsilon=8.0, delta=1e-5, noise_multiplier=1.5, sample_rate=0.04, steps=2249,
...     max_grad_norm=1.0, units=5000, accountant="rdp",
... )
>>> marks = {"data": "0" * 64, "parameters": "1" * 64, "code": "2" * 64}
>>> header = Header(run="dp-8", plan=plan, mode="research", fingerprint=marks)
>>> with open_ledger(path, header) as ledger:
...     entry = ledger.reserve(1000)  # then take 1000 steps, and keep the head in the checkpoint
...     head = ledger.record.head
>>> with open_ledger(path, header) as ledger:  # after a crash
...     ledger.record.require(head)
...     ledger.record.steps, round(ledger.record.epsilon, 2), ledger.record.remaining
(1000, 4.67, 1249)
>>> folder.cleanup()
"""

from privhelpers.ledger._chain import Entry, Record, verify
from privhelpers.ledger._header import MODES, Header
from privhelpers.ledger._writer import Ledger, open_ledger, read_ledger
