"""The parameters cell of a chapter: names, types and ranges, the same whoever starts the chapter.

Papermill runs on with the default when a name is misspelled, accepts "8" for 8, and pastes whatever it
is given; in Jupyter anybody edits the cell. Here a line such as

    target_epsilon: float = 8.0  # privacy budget of the run, nats; in (0, 1000]

becomes a strict field: the annotation is the type, the end of the comment the range (a round bracket
excludes the end) or, for text, the choices (`one of pld, rdp`). `make` checks a profile against it before
anything runs; each chapter calls `check` for those who start it by hand.
"""

from privhelpers.parameters._cell import Parameter, checked, declared_in, show, unknown_name
from privhelpers.parameters._page import check

__all__ = ["Parameter", "check", "checked", "declared_in", "show", "unknown_name"]
