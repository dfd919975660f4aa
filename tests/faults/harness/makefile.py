"""The door of make: what stands in a variable is text, and nothing of it is run."""

import json
import os
import subprocess
import sys

from faults.harness.registry import Case, Trial, fault
from faults.harness.report import ROOT
from patience import LIMIT_SECONDS

STUB = "#!{python}\nimport json, sys\nopen({log!r}, 'a').write(json.dumps(sys.argv[1:]) + '\\n')\n"
PASSED = {
    "check": "PROFILE",
    "verify": "PROFILE",
    "audit": "OUT",
    "sweep": "EPSILONS",
    "faults": "N",
    "shape": "ROOM",
}
PIECES = (
    "$(shell touch {gone})",
    "`touch {gone}`",
    "; touch {gone}; ",
    "' ",
    '" ',
    "$(touch {gone})",
    "&",
    "|",
)
PIECES += (
    "\n",
    "\t",
    "\r",
    "#",
    "$$",
    "${{X}}",
    "%",
    "*",
    "~",
    "\\",
    "é",
    "> {gone}",
    "--help",
    " ",
    "=",
)
# With one of them Python may work otherwise, say something of its own, or not start.
SETTINGS = (
    "INSPECT",
    "HASHSEED",
    "MALLOC",
    "HOME",
    "STARTUP",
    "WARNINGS",
    "IOENCODING",
    "UTF8",
    "VERBOSE",
    "DEVMODE",
)
SETTINGS += (
    "OPTIMIZE",
    "TRACEMALLOC",
    "INTMAXSTRDIGITS",
    "PROFILEIMPORTTIME",
    "SAFEPATH",
    "PLATLIBDIR",
    "DEBUG",
)


@fault("a value of a variable with characters of make or of a shell")
def _(t: Trial) -> Case:
    target = t.choose(PASSED)
    name, gone = PASSED[target], t.place / "gone"
    value = "".join(t.choose(PIECES) for _ in range(1 + t.below(6))).replace("{gone}", str(gone))
    value = value.replace("{{", "{").replace("}}", "}") or "x"
    stub, log = t.place / "python", t.place / "log"
    stub.write_text(STUB.format(python=sys.executable, log=str(log)))
    stub.chmod(0o755)
    by_environment = bool(t.below(2))
    # make itself drops blanks before a value on its command line, as the shell does those around a word.
    right = value if by_environment else value.lstrip(" \t\n\r\v\f")

    def call():
        words = ["make", "-s", "-o", ".venv/.stamp", target, f"PYTHON={stub}"]
        given = {name: value}
        if not by_environment:
            words += [f"{name}={value}"]
        # Variables given to the make that started this program would stand above the environment's.
        plain = {name: text for name, text in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
        environment = plain | given if by_environment else plain
        done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, timeout=LIMIT_SECONDS)
        passed = [word.partition("=")[2] for word in json.loads(log.read_text().splitlines()[-1])[2:]]
        passed = json.loads(log.read_text().splitlines()[-1])[2:] if target == "shape" else passed
        return done.returncode, right in passed, gone.exists()

    return Case(call, right=(0, True, False), refusal=False)


@fault("a setting of Python in the environment of make")
def _(t: Trial) -> Case:
    name = "PYTHON" + t.choose(SETTINGS)
    value = t.choose(("1", "0", "", "x", "error", str(t.place), "-1", "9" * 50))
    plain = {key: text for key, text in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}

    def call():
        words = ["make", "-s", "-o", ".venv/.stamp", "check", f"PYTHON={sys.executable}", "PROFILE=none"]
        ways = {"cwd": ROOT, "capture_output": True, "timeout": LIMIT_SECONDS, "stdin": subprocess.DEVNULL}
        done = subprocess.run(words, env=plain | {name: value}, text=True, **ways)
        return done.returncode, done.stderr.startswith("refused: params/none.yml"), done.stderr.count("\n")

    return Case(call, right=(2, True, 2), refusal=False)
