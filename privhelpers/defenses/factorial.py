"""The factorial of four layers of defense: its cells.

>>> [cell.name for cell in cells()][:3], Layers(scrub=True, dp=True).name
(['none', 'filter', 'DP'], 'scrub + DP')

Source: for a two-level factorial, Box, Hunter and Hunter 2005, chapter 5.
"""

import itertools
from dataclasses import dataclass

LAYERS = ("scrub", "dedup", "dp", "filter")
_WORDS = {"scrub": "scrub", "dedup": "dedup", "dp": "DP", "filter": "filter"}


@dataclass(frozen=True, order=True)
class Layers:
    """One cell: which layers are on.

    Attributes:
        scrub: identifiers are replaced in the notes before training.
        dedup: near-duplicates among a patient's notes are removed before training.
        dp: training is DP-SGD.
        filter: what the model writes passes an output filter.
    """

    scrub: bool = False
    dedup: bool = False
    dp: bool = False
    filter: bool = False

    @property
    def name(self) -> str:
        """Words for a table: `none`, or the layers that are on."""
        return " + ".join(_WORDS[layer] for layer in LAYERS if getattr(self, layer)) or "none"

    @property
    def training(self) -> "Layers":
        """The cell whose weights this one uses: itself without the filter."""
        return Layers(self.scrub, self.dedup, self.dp)


def cells() -> list[Layers]:
    """Return the 16 cells, the one without any layer first."""
    return [Layers(*on) for on in itertools.product((False, True), repeat=len(LAYERS))]


def trainings() -> list[Layers]:
    """Return the 8 cells that differ in training, in the order of `cells`."""
    return [cell for cell in cells() if not cell.filter]
