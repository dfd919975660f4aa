"""Work that goes on beside the trial, in a forked child."""

import os
import pickle
from collections.abc import Callable

from privhelpers.errors import PrivHelpersError


class Beside:
    """Some work in a child of its own, which begins at once."""

    def __init__(self, work: Callable[[], object]) -> None:
        """Begin it; what it returns, and what refuses it, can be pickled."""
        self._reading, writing = os.pipe()
        self._pid = os.fork()
        if not self._pid:
            try:
                os.close(self._reading)
                try:
                    said = work(), None
                except Exception as error:
                    said = None, error if isinstance(error, PrivHelpersError) else RuntimeError(repr(error))
                with open(writing, "wb") as out:
                    pickle.dump(said, out)
            finally:
                os._exit(0)
        os.close(writing)

    def over(self) -> bool:
        """Return whether the child has ended."""
        return os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def result(self) -> object:
        """Wait for the work and return its result; raise what refused it.

        Raises:
            ChildProcessError: it was killed.
        """
        with open(self._reading, "rb") as heard:
            said = heard.read()
        os.waitpid(self._pid, 0)
        if not said:
            raise ChildProcessError("the work was killed")
        result, error = pickle.loads(said)
        if error is not None:
            raise error
        return result
