"""All shadow models' scores of the candidate notes, as one table that later chapters read.

bank = Bank(note_ids, inside, {"loss": losses})
bank.write(store)
results.Results(store).shadow_bank.rows(["t00001", "h00002"])
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from privhelpers.artifacts import Store
from privhelpers.attacks import lira
from privhelpers.errors import InvalidParameter

HOME = "shadow_models"


@dataclass(frozen=True)
class Bank:
    """Signals of the candidate notes under every shadow model.

    Attributes:
        notes: identifier of each candidate note.
        inside: whether each model trained on it, shape [models, notes].
        signals: by name, each of shape [models, notes]; `loss` is among them.
    """

    notes: tuple[str, ...]
    inside: np.ndarray
    signals: Mapping[str, np.ndarray]

    def __post_init__(self) -> None:
        """Refuse a table whose shapes do not fit."""
        shapes = {self.inside.shape, *(values.shape for values in self.signals.values())}
        if "loss" not in self.signals or shapes != {(len(self.inside), len(self.notes))}:
            raise InvalidParameter(f"bank: shapes {sorted(shapes)} do not fit {len(self.notes)} notes")

    @property
    def statistic(self) -> np.ndarray:
        """The statistic of the likelihood-ratio attack, shape [models, notes]."""
        return lira.logit_statistic(self.signals["loss"])

    def rows(self, notes: Sequence[str]) -> np.ndarray:
        """Return which of `notes` are candidates, shape [notes], in their own order."""
        return np.isin(np.asarray(notes), self.notes)

    def only(self, *, models: Sequence[int] | None = None, notes: Sequence[str] | None = None) -> "Bank":
        """Return the bank of these models, or of these notes in this order.

        Raises:
            InvalidParameter: a note is not among the candidates.
        """
        place = {note: number for number, note in enumerate(self.notes)}
        unknown = [note for note in (() if notes is None else notes) if note not in place]
        if unknown:
            raise InvalidParameter(f"note {unknown[0]!r}: is not among the candidates of the shadow models")
        columns = slice(None) if notes is None else [place[note] for note in notes]
        chosen = slice(None) if models is None else list(models)
        return Bank(
            self.notes if notes is None else tuple(str(note) for note in notes),
            self.inside[chosen][:, columns],
            {name: values[chosen][:, columns] for name, values in self.signals.items()},
        )

    def write(self, store: Store) -> None:
        """Write the bank for `results`."""
        table = {name: values.tolist() for name, values in self.signals.items()}
        inside = self.inside.astype(int).tolist()
        value = {"notes": list(self.notes), "inside": inside, "signals": table}
        store.write_json(f"{HOME}/shadows.json", value)
