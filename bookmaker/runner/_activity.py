"""What a run spends its time on: while a cell runs, its main thread is looked at ten times a second.

Loaded into the kernel of a run as an extension of IPython. A look reads the stack from the inside out and
books the time since the last look to the first module that `KINDS` knows. It costs a thousandth of the time
and changes nothing that a chapter computes.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

FILE = "BOOKMAKER_ACTIVITY"  # environment variable: where the kernel writes its seconds
PERIOD = 0.1  # seconds between two looks
START, REST = "start-up", "rest"
# Beginning of a module's name -> what its time is spent on; the innermost frame that has one decides.
KINDS = {
    "matplotlib": "drawing",
    "privhelpers.figures": "drawing",
    "privhelpers.training": "training",
    "privhelpers.dpsgd": "training",
    "privhelpers.attacks.shadow": "training",  # it waits for processes that train
    "privhelpers.defenses.suite": "training",
    "torch.optim": "training",
    "torch.autograd": "training",
    "privhelpers.models.scoring": "scoring",
    "privhelpers.models.encoding": "scoring",
    "privhelpers.models._generation": "generation",
    "privhelpers.stats": "bootstrap and tests",
    "privhelpers.accounting": "accounting",
    "dp_accounting": "accounting",
    "privhelpers.records": "records",
    "privhelpers.defenses": "scrubbing",
    "spacy": "scrubbing",
}
ACTIVITIES = tuple(dict.fromkeys([START, *KINDS.values(), REST]))


def kind(frame: FrameType | None) -> str:
    """Return what a stack is busy with: importing, or what its innermost known frame is there for."""
    innermost = REST
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module == "importlib._bootstrap":
            return START
        if innermost == REST:
            parts = module.split(".")
            names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
            innermost = next((KINDS[name] for name in names if name in KINDS), REST)
        frame = frame.f_back
    return innermost


class Sampler:
    """Counts the seconds of each activity of one thread while cells run."""

    def __init__(self, file: Path, thread: int) -> None:
        """Look at `thread`, and write to `file` after each cell."""
        self.file, self.thread = file, thread
        self.seconds: dict[str, float] = {}
        self.running = threading.Event()
        self._last = time.monotonic()

    def _look(self) -> None:
        """Book the time since the last look."""
        now, last = time.monotonic(), self._last
        self._last = now
        name = kind(sys._current_frames().get(self.thread))
        self.seconds[name] = self.seconds.get(name, 0.0) + now - last

    def watch(self) -> None:
        """Look again and again, for as long as the process lives."""
        while self.running.wait():
            time.sleep(PERIOD)
            if self.running.is_set():
                self._look()

    def start(self, *_: Any) -> None:
        """Note that a cell begins."""
        self._last = time.monotonic()
        self.running.set()

    def stop(self, *_: Any) -> None:
        """Note that a cell ended, and write what is known; nobody reads the file before the kernel ended."""
        self.running.clear()
        self.file.write_text(json.dumps(self.seconds), encoding="utf-8")


def load_ipython_extension(shell: Any) -> None:
    """Begin to look, called by the kernel."""
    if not (file := os.environ.get(FILE)):
        return
    sampler = Sampler(Path(file), threading.main_thread().ident or 0)
    shell.events.register("pre_run_cell", sampler.start)
    shell.events.register("post_run_cell", sampler.stop)
    threading.Thread(target=sampler.watch, daemon=True, name="activity").start()


def read(file: Path, seconds: float) -> dict[str, float]:
    """Return the seconds of each activity of a run; what no cell spent went into starting the kernel.

    Args:
        file: what the kernel wrote; without it nothing but the start is known.
        seconds: of the whole run.
    """
    counted = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    counted[START] = counted.get(START, 0.0) + max(0.0, seconds - sum(counted.values()))
    return {name: round(counted[name], 1) for name in ACTIVITIES if round(counted.get(name, 0.0), 1)}
