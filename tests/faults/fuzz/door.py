"""A door: where something from outside is read."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from faults.fuzz.mutations import mutated


@dataclass(frozen=True)
class Door:
    """A door.

    Attributes:
        name: of it, in the table.
        inputs: a file's name and its valid bytes, each; a case changes one.
        read: is given the home of the worker, the file's name and the changed bytes.
        share: of a hundred cases.
        says: what a refusal names, where it does not name the file.
        change: makes a case of an input and another one.
    """

    name: str
    inputs: Callable[[], tuple[tuple[str, bytes], ...]]
    read: Callable[[Path, str, bytes], object]
    share: int
    says: str = ""
    change: Callable[[random.Random, bytes, bytes], bytes] = mutated

    def case(self, draw: random.Random) -> tuple[str, bytes]:
        """Return file and bytes of a case."""
        inputs = self.inputs()
        name, data = draw.choice(inputs)
        return name, self.change(draw, data, draw.choice(inputs)[1])
