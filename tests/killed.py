"""A process that is killed at one of its calls to the disk, without a process."""

import os
from contextlib import contextmanager
from unittest import mock

CALLS = ("write", "fsync", "ftruncate", "replace", "rename", "link", "unlink", "mkdir")
PLAIN = {name: getattr(os, name) for name in CALLS}


class Killed(BaseException):
    """Raised by the call at which the kill comes, and by all later ones."""


@contextmanager
def killed_at(moment, share=0.5):
    """Let no call reach the disk from call `moment` (from 1) on, and yield the names of the calls.

    Of the bytes of a write at that moment, `share` arrive. 0: no kill.
    """
    calls = []

    def call(name):
        def called(*given, **named):
            calls.append(name)
            if name == "write" and len(calls) == moment:
                PLAIN["write"](given[0], bytes(given[1][: int(share * len(given[1]))]))
            if moment and len(calls) >= moment:
                raise Killed
            return PLAIN[name](*given, **named)

        return called

    with mock.patch.multiple(os, **{name: call(name) for name in CALLS}):
        yield calls
