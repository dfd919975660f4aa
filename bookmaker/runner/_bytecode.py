"""The byte code that Python keeps of our modules, compared with them by content.

By itself Python trusts what it kept as long as the module has the same size and time: after a copy that keeps
times, or an archive with fixed ones, a run would execute the old code, and be recorded under the new.
"""

import py_compile
import re
import sys
from contextlib import suppress
from importlib.util import source_from_cache
from pathlib import Path

from bookmaker.runner._fingerprint import PACKAGES

CHECKED = (3).to_bytes(4, "little")  # the flags of byte code that holds a hash of its module (PEP 552)


def trust_contents(root: Path) -> None:
    """Make byte code that holds a hash, which Python checks and renews, of all that was kept with a time.

    Args:
        root: the repository; what cannot be written there stays, and a module that is no Python has none.
    """
    for kept in (path for package in PACKAGES for path in (root / package).rglob("__pycache__/*.pyc")):
        with suppress(OSError, ValueError, py_compile.PyCompileError):
            with open(kept, "rb") as file:
                if file.read(8)[4:] == CHECKED:
                    continue
            kept.unlink()
            if not sys.dont_write_bytecode:
                mode = py_compile.PycInvalidationMode.CHECKED_HASH
                level = int((re.findall(r"\.opt-([12])\.", kept.name) or [0])[0])  # of `python -O`
                py_compile.compile(
                    source_from_cache(kept), kept, doraise=True, optimize=level, invalidation_mode=mode
                )
