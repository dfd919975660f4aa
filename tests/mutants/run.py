"""Put every mutant into a fresh copy of the package and say which tests noticed.

    python tests/mutants/run.py [words of a name [mutants at once [generated [one of how many]]]]

The heavy libraries are imported once; each mutant lives in a child of this process, whose import of its
module gets the changed source.
"""

import contextlib
import gc
import importlib.abc
import importlib.machinery
import importlib.util
import io
import json
import os
import re
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "mutants")]

import dp_accounting.pld.privacy_loss_distribution  # noqa: E402, F401
import hypothesis  # noqa: E402, F401
import opacus.accountants  # noqa: E402
import opacus.grad_sample  # noqa: E402, F401
import peft  # noqa: E402, F401
import pytest  # noqa: E402
import scipy.stats  # noqa: E402, F401
import torch  # noqa: E402
import transformers  # noqa: E402, F401
import xdist.scheduler  # noqa: E402, F401
from table import MUTANTS, Mutant  # noqa: E402
from transformers import BertForMaskedLM, DistilBertForMaskedLM, GPT2LMHeadModel  # noqa: E402, F401

GENERATED = Path(__file__).with_name("generated.json")
SUITES = (
    "tests/privhelpers/test_dpsgd_engine.py",
    "tests/privhelpers/test_dpsgd_training.py",
    "tests/privhelpers/test_dpsgd_resume.py",
    "tests/privhelpers/test_dpsgd_canaries.py",
    "tests/privhelpers/test_dpsgd_honest_logs.py",
)
ACCOUNTING = (
    "tests/privhelpers/test_accounting.py",
    "tests/privhelpers/test_accounting_renyi.py",
    "tests/privhelpers/test_accounting_search.py",
)


# No one reads why a test failed. What these tests do not need took longer than most of them: plugins,
# doctests and words about a failure.
SHORT = ["-o", "addopts=--strict-markers", "-p", "no:doctest", "-p", "no:cacheprovider", "--no-header"]
SHORT += ["--assert=plain", "--tb=no"]


class Changed(importlib.machinery.SourceFileLoader):
    """Loads a module with one replacement in its source."""

    def __init__(self, mutant: Mutant, path: str) -> None:
        """Keep the mutant."""
        super().__init__(mutant.module, path)
        self.mutant = mutant

    def get_code(self, fullname):
        """Compile the changed source, never a cached one."""
        source = Path(self.path).read_text()
        return compile(source.replace(self.mutant.old, self.mutant.new), self.path, "exec")


class Finder(importlib.abc.MetaPathFinder):
    """Finds the mutated module before anything else does."""

    def __init__(self, mutant: Mutant) -> None:
        """Keep the mutant."""
        self.mutant = mutant

    def find_spec(self, fullname, path, target=None):
        """Return a spec for the mutated module alone."""
        if fullname != self.mutant.module:
            return None
        place = str(ROOT / (fullname.replace(".", "/") + ".py"))
        return importlib.util.spec_from_loader(fullname, Changed(self.mutant, place))


def tests_of(mutant: Mutant) -> list[str]:
    """Return pytest's arguments for the tests that must notice."""
    if mutant.tests.startswith("tests/"):  # a test by its whole name, or a file that cannot be imported
        return ["-x", "-q", *SHORT, mutant.tests]
    suites = ACCOUNTING if ".accounting." in mutant.module else SUITES
    words = set(re.findall(r"\w+", mutant.tests)) - {"and", "or", "not"}
    named = [suite for suite in suites if any(word in (ROOT / suite).read_text() for word in words)]
    # Files that hold none of the tests take long to read (where all do, that shows).
    return ["-x", "-q", *SHORT, *(named or suites), "-k", mutant.tests]


def generated() -> list[Mutant]:
    """Return the mutants that `generate.py` made and a test kills; the others are equivalent, and say why."""
    rows = json.loads(GENERATED.read_text())
    return [
        Mutant(row["name"], row["module"], row["old"], row["new"], row["by"]) for row in rows if row["by"]
    ]


def try_out(mutant: Mutant) -> int:
    """Run the tests of a mutant in a child that has it and return pytest's exit status."""
    if pid := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    sys.meta_path.insert(0, Finder(mutant))
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        status = pytest.main(tests_of(mutant))
    os._exit(int(status))


def said(work: Callable[[], str]) -> str:
    """Return what a forked child says, "" where it does not come to its end."""
    reading, writing = os.pipe()
    if not (pid := os.fork()):
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                words = work().encode()
            while words:
                words = words[os.write(writing, words) :]
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        words = pipe.read().decode()
    os.waitpid(pid, 0)
    return words


def judged(mutant: Mutant) -> dict:
    """Try a mutant and return what became of it."""
    fits = (ROOT / (mutant.module.replace(".", "/") + ".py")).read_text().count(mutant.old)
    clock = time.monotonic()
    status = try_out(mutant) if fits == 1 else -1
    # Nothing else counts: no error, no empty selection.
    at_import = mutant.tests.endswith(".py") and status == pytest.ExitCode.INTERRUPTED
    killed = status == pytest.ExitCode.TESTS_FAILED or at_import
    seconds = round(time.monotonic() - clock, 1)
    return {"name": mutant.name, "killed": killed, "fits": fits, "status": status, "seconds": seconds}


def try_all(mutants: list[Mutant]) -> int:
    """Try mutants one after the other, print one JSON line for each, and return how many survived."""
    survived = 0
    for mutant in mutants:
        line = judged(mutant)
        survived += not line["killed"]
        # One write for each line: several processes print to one place.
        os.write(sys.stdout.fileno(), (json.dumps(line) + "\n").encode())
    return survived


def prepare() -> None:
    """Make this process ready to fork tests."""
    torch.set_num_threads(1)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.chdir(ROOT)


def main(words: str = "", at_once: str = "1", made: str = "", every: str = "1") -> int:
    """Try the mutants whose name holds `words`, some of them side by side; return 1 if one survived.

    Args:
        words: part of a name.
        at_once: processes.
        made: "generated" for those made by rule instead of those written by hand.
        every: only one of so many.
    """
    prepare()
    gc.freeze()  # pytest collects garbage at its end, and would look at all that is imported here
    chosen = generated() if made == "generated" else MUTANTS
    mutants, lanes = [m for m in chosen if words in m.name][:: int(every)], int(at_once)
    children = []
    for lane in range(lanes):
        if not (pid := os.fork()):
            os._exit(try_all(mutants[lane::lanes]) > 0)
        children.append(pid)
    return max(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
