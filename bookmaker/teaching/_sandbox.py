"""A place for code of strangers: a process without files, network or children, within bounds.

    with Sandbox(seconds=10, memory=2**29) as sandbox:
        box = sandbox.open()
        box.run("def double(x): return 2 * x", name="task 1")
        box.call("double", 21)

A clean process imports what the code may use and waits; `open` lets it fork. The fork gives up every system
call but those for memory, time and one connection (seccomp), so that it reads no file, not even to import
something. It knows nothing of the tests: these run on our side, and only plain data comes over the
connection, in JSON, never in a form whose reading could run code.
"""

import array
import contextlib
import ctypes
import importlib
import io
import json
import math
import os
import platform
import resource
import signal
import socket
import struct
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import psutil

from bookmaker.runner import _children
from privhelpers.errors import ConfinedFailed
from privhelpers.text import inert

# What a notebook may import. Each is loaded once, before anything is given up.
MODULES = (
    "abc array asyncio base64 bisect calendar cmath collections contextlib copy csv dataclasses datetime "
    "decimal enum fractions functools gc hashlib heapq inspect io itertools json logging math numbers "
    "operator os pathlib pickle pprint random re secrets statistics string struct sys tempfile textwrap time "
    "timeit traceback types typing unittest uuid warnings numpy numpy.random numpy.testing scipy.integrate "
    "scipy.linalg scipy.optimize scipy.special scipy.stats pandas matplotlib.pyplot seaborn sklearn.metrics "
    "tqdm tqdm.auto tqdm.notebook IPython IPython.display privhelpers.rng bookmaker.teaching._cells"
)
LARGEST = 2**18  # bytes of an answer; a test may compare every number of it with every one of its own
PATIENCE = 6  # times as long may it take on a busy machine
READY, REFUSED = b"+", b"-"
UNDEFINED = "{} is not defined"  # by any cell that ran

# What a process needs to compute and to answer: read, write, poll, close, fstat, lseek, mmap, mprotect,
# munmap, brk, rt_sigaction, rt_sigprocmask, rt_sigreturn, select, sched_yield, mremap, madvise, nanosleep,
# getpid, sendto, recvfrom, exit, gettimeofday, getrusage, sigaltstack, gettid, futex, sched_getaffinity,
# restart_syscall, clock_gettime, clock_nanosleep, exit_group, getrandom. By machine, after its number in
# linux/audit.h; poll and select are ppoll and pselect6 on the second.
CALLS = {
    "x86_64": "0xC000003E 0 1 7 3 5 8 9 10 11 12 13 14 15 23 24 25 28 35 39 44 45 60 96 98 131 186 202 "
    "204 219 228 230 231 318",
    "aarch64": "0xC00000B7 63 64 73 57 80 62 222 226 215 214 134 135 139 72 124 216 233 101 172 206 207 93 "
    "169 165 132 178 98 123 128 113 115 94 278",
}
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, FILTER = 22, 38, 2  # linux/prctl.h, linux/seccomp.h
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06  # linux/bpf_common.h
ALLOW, REFUSE, KILL = 0x7FFF0000, 0x00050001, 0x80000000  # linux/seccomp.h; refused with EPERM


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("lines", ctypes.c_void_p))


def _give_up_system_calls() -> bool:
    """Let this process do nothing but compute and answer, for good; return whether the system obeyed."""
    if sys.platform != "linux" or platform.machine() not in CALLS:
        return False
    machine, *allowed = (int(number, 0) for number in CALLS[platform.machine()].split())
    lines = [(LOAD, 0, 0, 4), (EQUAL, 1, 0, machine), (RETURN, 0, 0, KILL), (LOAD, 0, 0, 0)]
    lines += [(EQUAL, len(allowed) - n, 0, number) for n, number in enumerate(allowed)]
    lines += [(RETURN, 0, 0, REFUSE), (RETURN, 0, 0, ALLOW)]
    code = ctypes.create_string_buffer(
        b"".join(struct.pack("HBBI", op, yes, no, k) for op, yes, no, k in lines)
    )
    program = _Program(len(lines), ctypes.addressof(code))
    prctl = ctypes.CDLL(None).prctl
    return (
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
        and prctl(PR_SET_SECCOMP, FILTER, ctypes.byref(program), 0, 0) == 0
    )


def pack(value: object) -> object:
    """Return plain data as what JSON can hold: numbers, texts, lists, sets, dicts, arrays, generators."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in "bif":
        return {"array": [value.dtype.kind, value.shape, value.ravel().tolist()]}
    if isinstance(value, np.random.Generator):
        return {"generator": value.bit_generator.state}
    if isinstance(value, dict):
        return {"dict": [[pack(key), pack(item)] for key, item in value.items()]}
    if isinstance(value, list):
        return [pack(item) for item in value]
    if isinstance(value, tuple | set | frozenset):
        return {"tuple" if isinstance(value, tuple) else "set": [pack(item) for item in value]}
    raise TypeError(f"a {type(value).__name__} is no number, text, list, tuple, set, dict or array")


def unpack(packed: object) -> object:
    """Return what `pack` was given."""
    if isinstance(packed, list):
        return [unpack(item) for item in packed]
    if not isinstance(packed, dict):
        return packed
    ((kind, held),) = packed.items()
    if kind == "array":
        made = np.array(held[2], dtype={"b": bool, "i": int, "f": float}[held[0]]).reshape(held[1])
        # A few bytes can name an empty array of a billion rows, and a test may go through them.
        if not made.size and math.prod(size or 1 for size in made.shape) > LARGEST:
            raise ValueError
        return made
    if kind == "generator":
        bits = np.random.PCG64()
        bits.state = held
        return np.random.Generator(bits)
    if kind == "dict":
        return {unpack(key): unpack(item) for key, item in held}
    return {"tuple": tuple, "set": set}[kind](unpack(item) for item in held)


def _send(connection: socket.socket, message: object) -> None:
    content = json.dumps(message).encode()
    connection.sendall(struct.pack("!I", len(content)) + content)


def _receive(connection: socket.socket, deadline: float | None = None) -> object:
    def read(count: int) -> bytes:
        content = bytearray()
        while len(content) < count:
            if deadline is not None:
                connection.settimeout(max(1e-3, deadline - time.monotonic()))
            if not (part := connection.recv(min(count - len(content), 1 << 16))):
                raise EOFError
            content += part
        return bytes(content)

    (length,) = struct.unpack("!I", read(4))
    if deadline is not None and length > LARGEST:
        raise OverflowError
    return json.loads(read(length))


def _answer(connection: socket.socket, seconds: int, memory: int) -> None:
    """Be the confined process: give up everything, then do as the other side says."""
    _children.prctl(_children.PR_SET_PDEATHSIG, signal.SIGKILL)
    os.dup2(connection.fileno(), 3)
    connection.detach()
    connection = socket.socket(fileno=3)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nowhere, standard)
    os.closerange(4, 1 << 16)
    for kind, limit in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_AS, psutil.Process().memory_info().vms + memory),
    ):
        resource.setrlimit(kind, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))  # the hard one cannot be caught
    connection.sendall(READY if _give_up_system_calls() else REFUSED)
    names: dict[str, object] = {"__name__": "__main__"}
    _cells, ipython = (sys.modules[name] for name in ("bookmaker.teaching._cells", "IPython"))
    shell = _cells.Shell(names)
    ipython.get_ipython = ipython.core.getipython.get_ipython = ipython.display.get_ipython = names[
        "get_ipython"
    ]
    ipython.display.display = names["display"]
    while True:
        ask, name, arguments, keywords = unpack(_receive(connection))
        try:
            answer = None
            if ask == "run":
                shell.run(arguments[0], name)
            elif name not in names:
                raise NameError(UNDEFINED.format(name))
            else:
                answer = names[name](*arguments, **keywords)
            reply = {"answer": pack(answer)}
        except BaseException as error:
            reply = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
        _send(connection, reply)


def _load_from_files() -> None:
    """Load what figures and progress bars need and a confined process cannot read or make."""
    pyplot, tqdm = sys.modules["matplotlib.pyplot"], sys.modules["tqdm"]
    fonts = sys.modules["matplotlib.font_manager"]
    file = fonts.findfont("DejaVu Sans")  # it comes with matplotlib, and is every font from now on
    font = fonts.ft2font.FT2Font(io.BytesIO(Path(file).read_bytes()))  # which reads a glyph when it draws it
    fonts.fontManager._find_fonts_by_props = lambda *_: [file]
    for module in [module for name, module in sys.modules.items() if name.startswith("matplotlib.")]:
        for name, value in (("findfont", file), ("get_font", font)):
            if hasattr(module, name):
                setattr(module, name, lambda *_, value=value, **__: value)
    sys.modules["matplotlib.text"].Text.get_parse_math = lambda _: False  # formulas need more fonts
    sys.modules["matplotlib.figure"].Figure.savefig = lambda self, *_, **__: self.canvas.draw()
    figure, axes = pyplot.subplots()
    axes.set(title="x")
    figure.canvas.draw()
    pyplot.close(figure)
    tqdm.notebook.tqdm, tqdm.notebook.trange = tqdm.tqdm, tqdm.trange  # not in widgets, which no one sees
    for _ in tqdm.tqdm([0], file=io.StringIO()):  # makes its locks once
        pass


def _main() -> None:
    """Be the clean process: fork when asked, say how the fork ended when asked."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the other side, and this one ends with it
    control, seconds, memory = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3])
    with warnings.catch_warnings(action="ignore"):
        for module in MODULES.split():
            importlib.import_module(module)
        _load_from_files()
    sys.path.clear()
    sys.path_importer_cache.clear()
    while True:
        message, passed, _, _ = socket.recv_fds(control, 1, 1)
        if not message:
            return
        if passed:
            child = os.fork()
            if child == 0:
                with contextlib.suppress(BaseException):
                    _answer(socket.socket(fileno=passed[0]), seconds, memory)
                os._exit(0)
            os.close(passed[0])
        else:
            os.kill(child, signal.SIGKILL)
            control.sendall(array.array("i", [os.waitpid(child, 0)[1]]).tobytes())


class Box:
    """One confined process, from `Sandbox.open`."""

    def __init__(self, sandbox: "Sandbox", connection: socket.socket) -> None:
        """Take the connection to a process that was just forked."""
        self._sandbox, self._connection, self.ended = sandbox, connection, ""
        self._deadline = time.monotonic() + PATIENCE * sandbox.seconds

    def run(self, code: str, *, name: str) -> None:
        """Run code there; `name` stands for it in messages. Raises as `call` does."""
        self._ask("run", name, (code,), {})

    def call(self, function: str, *arguments: object, **keywords: object) -> object:
        """Return what a function there returns; arguments and answer are plain data.

        Raises:
            ConfinedFailed: it raised an error, gave something else than data, or its process ended.
        """
        return self._ask("call", function, arguments, keywords)

    def _ask(self, ask: str, name: str, arguments: tuple, keywords: dict) -> object:
        if self.ended:
            raise ConfinedFailed(self.ended)
        try:
            self._connection.settimeout(max(1e-3, self._deadline - time.monotonic()))
            _send(self._connection, pack((ask, name, arguments, keywords)))
            reply = _receive(self._connection, self._deadline)
            if "error" not in reply:
                return unpack(reply["answer"])
            said = inert(str(reply["error"])[:400])
        except OverflowError:
            self.close(f"its answer takes more than {LARGEST >> 10} KiB")
        except TimeoutError:
            self.close(f"it did not answer within {PATIENCE * self._sandbox.seconds} seconds")
        except (EOFError, OSError):
            self.close()
        except (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError, MemoryError):
            self.close("its answer is no plain data")
        raise ConfinedFailed(self.ended or said)

    def close(self, reason: str = "") -> None:
        """End the process; every further call fails with the reason, or with how it had ended by itself."""
        if not self.ended:
            self._connection.close()
            self.ended = f"the program was ended: {reason}" if reason else self._sandbox.end_last()
            if reason:
                self._sandbox.end_last()


class Sandbox:
    """The clean process that confined ones are forked from, one at a time."""

    def __init__(self, *, seconds: int = 10, memory: int = 2**29) -> None:
        """Start it.

        Args:
            seconds: of processor time that a confined process may take in all.
            memory: bytes of addresses that it may take beyond what it starts with.

        Raises:
            ConfinedFailed: this system cannot confine a process.
        """
        self.seconds, self._memory = seconds, memory
        self._control, other = socket.socketpair()
        # Nothing of our environment but what Python needs: what a program knows, it can say in an error.
        environment = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        environment["MPLBACKEND"] = "agg"
        environment |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        command = [
            sys.executable,
            "-m",
            "bookmaker.teaching._sandbox",
            str(other.fileno()),
            str(seconds),
            str(memory),
        ]
        self._process = subprocess.Popen(command, pass_fds=[other.fileno()], env=environment)
        other.close()
        with contextlib.closing(self._forked()) as first:
            able = first.recv(1) == READY
        self.end_last()
        if not able:
            self.close()
            raise ConfinedFailed(
                "this system lets no process give up its system calls (seccomp), and code of strangers runs "
                "nowhere else: grade on Linux, on x86-64 or arm64, if need be in a container"
            )

    def _forked(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        socket.send_fds(self._control, [b"o"], [theirs.fileno()])
        theirs.close()
        return ours

    def open(self) -> Box:
        """Return a new confined process; the one before must be closed."""
        connection = self._forked()
        connection.recv(1)
        return Box(self, connection)

    def end_last(self) -> str:
        """End the process that was opened last, and return in words how it had ended if it had."""
        self._control.sendall(b"e")
        (status,) = struct.unpack("i", self._control.recv(4))
        if os.WIFEXITED(status):
            return f"the program was ended: it left with exit code {os.WEXITSTATUS(status)}"
        number = os.WTERMSIG(status)
        if number == signal.SIGXCPU:
            return f"the program was ended: it took more than {self.seconds} seconds of processor time"
        return f"the program was ended: {signal.Signals(number).name}"

    def close(self) -> None:
        """End the clean process, and with it every other."""
        self._control.close()
        self._process.wait()

    def __enter__(self) -> "Sandbox":
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()


if __name__ == "__main__":
    _main()
