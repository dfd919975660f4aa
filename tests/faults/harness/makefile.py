"""The door of make: what stands in a variable is text, and nothing of it is run."""

import json
import os
import subprocess
import sys

from faults.harness.registry import Case, Trial, fault
from faults.harness.report import ROOT

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

    def call():
        words = ["make", "-s", "-o", ".venv/.stamp", target, f"PYTHON={stub}"]
        given = {name: value}
        if not by_environment:
            words += [f"{name}={value}"]
        environment = {**os.environ, **given} if by_environment else None
        done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, timeout=60)
        passed = [word.partition("=")[2] for word in json.loads(log.read_text().splitlines()[-1])[2:]]
        passed = json.loads(log.read_text().splitlines()[-1])[2:] if target == "shape" else passed
        return done.returncode, value in passed, gone.exists()

    return Case(call, right=(0, True, False), refusal=False)
