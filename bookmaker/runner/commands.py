"""How every command ends: with an exit code, and with one line on stderr where it refused or failed."""

import errno
import os
import re
from collections.abc import Callable

from bookmaker.runner import _refusals
from bookmaker.runner._terminal import message, show_every_character
from privhelpers.errors import PrivHelpersError, RunFailed


def one_line(text: str) -> str:
    """Return a message of several lines as one."""
    return " ".join(text.split())


def _no_memory(error: Exception) -> bool:
    """Return whether memory ran out: of Python, of the system, or of torch, which says so in words alone."""
    if isinstance(error, PrivHelpersError | OSError):
        return getattr(error, "errno", None) == errno.ENOMEM
    words = r"allocate memory|\bout of memory\b|\bnot enough memory\b|bad_alloc"
    return isinstance(error, MemoryError) or re.search(words, str(error), re.IGNORECASE) is not None


def guarded(call: Callable[[], int], worded: Callable[[str], str] = str) -> int:
    """Return the exit code of a command: its own, or that of a refusal or a failure, which it prints.

    Args:
        call: the command; what it and those that it starts print may have any character, whatever a
            user's settings of Python say.
        worded: turns a message into the words of the command.
    """
    show_every_character()
    for name in ("PYTHONIOENCODING", "PYTHONINSPECT"):  # the latter makes 1 of the exit code of a command
        os.environ.pop(name, None)
    try:
        return call()
    except KeyboardInterrupt:
        return 130
    except RunFailed as error:
        message(f"failed: {worded(str(error))}")
        return 1
    except (PrivHelpersError, OSError, MemoryError, RuntimeError) as error:
        if _no_memory(error):
            message(
                "failed: memory ran out; free some, or use fewer cores, and call again: what is complete "
                "is kept"
            )
            return 1
        if not isinstance(error, PrivHelpersError | OSError):
            raise
        message(f"refused: {worded(_refusals.told(error))}")
        return 2
