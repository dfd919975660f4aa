"""How commands speak: messages, progress, refusals in one line, exit codes, and Chromium for PDFs."""

import contextlib
import errno
import io
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from privhelpers.artifacts import repository_root
from privhelpers.errors import MissingProgram, PrivHelpersError, RunFailed
from privhelpers.text import quoted

CURES = dict.fromkeys(
    (errno.EROFS, errno.EACCES, errno.EPERM), "let it be read and written, or work in a copy of your own"
)
CURES |= {errno.ENOSPC: "make room", errno.EDQUOT: "make room", errno.ENOENT: "put it back, or install it"}
CURE = "make room or move it away"


def terminal() -> TextIO | None:
    """Return where progress bars go: a terminal, or anywhere that PRIVHELPERS_PROGRESS=1 asks for them."""
    wanted = sys.stderr.isatty() or os.environ.get("PRIVHELPERS_PROGRESS") == "1"
    return sys.stderr if wanted else None


def message(line: str) -> None:
    """Print a line on stderr; a stream that is closed or full stops nothing."""
    try:
        sys.stderr.write(f"{line}\n")  # one write: lines of parallel runs do not mix
        sys.stderr.flush()
    except OSError:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - until the end, which else fails as well


def show_every_character() -> None:
    """Let both streams show every character, whatever their encoding: one that they lack by its number."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def say(profile: str, text: str) -> None:
    """Print one line of progress on stderr."""
    message(f"[{profile}] {text}")


def counted(number: int, one: str, more: str) -> str:
    """Return a number with what it counts, such as `1 run is` and `2 runs are`."""
    return f"{number} {one if number == 1 else more}"


def duration(seconds: float) -> str:
    """Return seconds as short words."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def named(place: Path) -> str:
    """Return a place for a message: from the repository on, or its name alone where it lies elsewhere."""
    shown = place.name if place.is_absolute() else place.as_posix()
    with contextlib.suppress(FileNotFoundError):  # the package is installed, and used elsewhere
        root = repository_root(place.parent)
        shown = place.relative_to(root).as_posix() if place.is_relative_to(root) else shown
    return quoted(shown)


def worded(place: Path, error: OSError) -> str:
    """Return what the system refused at a place, and what helps."""
    return f"{named(place)}: {error.strerror or error}; {CURES.get(error.errno, CURE)}"


def told(error: Exception) -> str:
    """Return what an error says; where it is the system's, by its place, and with what helps."""
    number = getattr(error, "errno", None)
    if number and isinstance(error.filename, str):
        return worded(Path(error.filename), error)
    # What could not be written has its name in its words.
    return f"{error.strerror}; {CURES[number]}" if number in CURES else str(error)


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
        message(f"refused: {worded(told(error))}")
        return 2


# The system's Chromium, which prints and shows pages; nothing downloads one.
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def require_chromium(what_for: str, otherwise: str = "") -> str:
    """Return the path of Chromium.

    Args:
        what_for: for the message: what cannot be done without it.
        otherwise: for the message: how to do without, if one can.

    Raises:
        MissingProgram: there is none; the message says how to get it.
    """
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        rest = f"; {otherwise}" if otherwise else ""
        raise MissingProgram(
            f"no Chromium on this machine, which {what_for}: on Debian, apt-get install chromium{rest}"
        )
    return path


def _arguments() -> list[str]:
    """Return what Chromium must be started with here: its sandbox does not work for root."""
    return ["--no-sandbox"] if os.geteuid() == 0 else []


def print_pdf(fill: Callable[[Any], None], what: str, **context: Any) -> bytes:
    """Return a page as a tagged PDF with bookmarks.

    Args:
        fill: puts the page into the tab of Chromium that it is given.
        what: is printed, for the messages.
        context: how the tab is opened, such as `offline=True`, in the words of playwright.

    Raises:
        MissingProgram: there is no Chromium.
        RunFailed: it made no PDF.
    """
    from playwright.sync_api import Error, sync_playwright

    path = require_chromium(f"prints {what}")
    try:
        with sync_playwright() as tools:
            opened = tools.chromium.launch(executable_path=path, args=_arguments())
            tab = opened.new_context(**context).new_page()
            fill(tab)
            made = tab.pdf(prefer_css_page_size=True, print_background=True, tagged=True, outline=True)
            opened.close()
    except Error as error:
        raise RunFailed(f"Chromium did not print {what} ({error.message.splitlines()[0]})") from error
    return made
