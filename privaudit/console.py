"""The output of commands: messages, progress, refusals in one line, exit codes, and PDFs by Chromium."""

import contextlib
import errno
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from privhelpers.artifacts import repository_root
from privhelpers.errors import MissingProgram, PrivHelpersError, RunFailed
from privhelpers.text import quoted

CURES = dict.fromkeys(
    (errno.EROFS, errno.EACCES, errno.EPERM), "let it be read and written, or work in a copy of your own"
)
CURES |= {errno.ENOSPC: "make room", errno.EDQUOT: "make room", errno.ENOENT: "put it back, or install it"}
CURE = "make room or move it away"


def terminal() -> TextIO | None:
    """Return stderr for progress bars if it is a terminal or PRIVHELPERS_PROGRESS is 1, else None."""
    wanted = sys.stderr.isatty() or os.environ.get("PRIVHELPERS_PROGRESS") == "1"
    return sys.stderr if wanted else None


def message(line: str) -> None:
    """Print a line on stderr; ignore a stream that is closed or full."""
    try:
        sys.stderr.write(f"{line}\n")  # one write, so lines of parallel runs do not mix
        sys.stderr.flush()
    except OSError:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - open until the end


def show_every_character() -> None:
    """Print characters that the encoding of a stream lacks by their numbers."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def say(profile: str, text: str) -> None:
    """Print one line of progress on stderr."""
    message(f"[{profile}] {text}")


def counted(number: int, one: str, more: str) -> str:
    """Return a number with a noun, such as `1 run is` and `2 runs are`."""
    return f"{number} {one if number == 1 else more}"


def duration(seconds: float) -> str:
    """Return seconds in short words, such as `2 min 05 s`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def named(place: Path) -> str:
    """Return a path for a message: relative to the repository, or its name alone if it is elsewhere."""
    shown = place.name if place.is_absolute() else place.as_posix()
    with contextlib.suppress(FileNotFoundError):  # the package is installed and used elsewhere
        root = repository_root(place.parent)
        shown = place.relative_to(root).as_posix() if place.is_relative_to(root) else shown
    return quoted(shown)


def told(error: Exception) -> str:
    """Return the message of an error; a system error with its path and a cure."""
    number = getattr(error, "errno", None)
    if number and isinstance(error.filename, str):
        return f"{named(Path(error.filename))}: {error.strerror or error}; {CURES.get(number, CURE)}"
    # The message names the file that could not be written.
    return f"{error.strerror}; {CURES[number]}" if number in CURES else str(error)


def one_line(text: str) -> str:
    """Return a message of several lines as one."""
    return " ".join(text.split())


def _no_memory(error: Exception) -> bool:
    """Return whether memory ran out; torch reports that only in its message."""
    if isinstance(error, PrivHelpersError | OSError):
        return getattr(error, "errno", None) == errno.ENOMEM
    words = r"allocate memory|\bout of memory\b|\bnot enough memory\b|bad_alloc"
    return isinstance(error, MemoryError) or re.search(words, str(error), re.IGNORECASE) is not None


def guarded(call: Callable[[], int], worded: Callable[[str], str] = str) -> int:
    """Run a command and return its exit code; print a refusal or a failure in one line.

    Args:
        call: the command; it may print any character.
        worded: rewords a message for the command.
    """
    show_every_character()
    for name in ("PYTHONIOENCODING", "PYTHONINSPECT"):  # the latter changes the exit code of a command to 1
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
                "failed: memory ran out; free some, or use fewer cores, and run again: completed work is kept"
            )
            return 1
        if not isinstance(error, PrivHelpersError | OSError):
            raise
        message(f"refused: {worded(told(error))}")
        return 2


# The system's Chromium, which prints pages; it is never downloaded.
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def require_chromium(what_for: str, otherwise: str = "") -> str:
    """Return the path of Chromium.

    Args:
        what_for: for the message: what needs it.
        otherwise: for the message: how to do without it, if possible.

    Raises:
        MissingProgram: it is not installed; the message names the package.
    """
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        rest = f"; {otherwise}" if otherwise else ""
        raise MissingProgram(
            f"no Chromium on this machine, which {what_for}: on Debian, apt-get install chromium{rest}"
        )
    return path


def chromium_arguments() -> list[str]:
    """Return the arguments to start Chromium with: its sandbox does not work for root."""
    return ["--no-sandbox"] if os.geteuid() == 0 else []


def print_pdf(page: str, what: str) -> bytes:
    """Return a page as a tagged PDF with bookmarks; Chromium finds no other host meanwhile.

    Args:
        page: self-contained HTML, whose policy forbids scripts.
        what: the name of the page, for messages.

    Raises:
        MissingProgram: Chromium is not installed.
        RunFailed: it made no PDF within a minute.
    """
    path, why = require_chromium(f"prints {what}"), ""
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "page.html", Path(folder) / "page.pdf"
        source.write_text(page, encoding="utf-8")
        command = [
            path,
            "--headless",
            *chromium_arguments(),
            f"--user-data-dir={folder}/profile",
            f"--print-to-pdf={made}",
        ]
        command += ["--no-pdf-header-footer", "--generate-pdf-document-outline"]
        command += ["--host-resolver-rules=MAP * ~NOTFOUND", source.as_uri()]
        try:
            why = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60).stderr
            return made.read_bytes()
        except (OSError, subprocess.TimeoutExpired) as error:
            last = why.strip().splitlines()[-1:] or [str(error)]
            raise RunFailed(f"Chromium did not print {what} ({quoted(last[0], 150)})") from error
