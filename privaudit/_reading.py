"""What two models are compared on: the part of each text that both of them read."""

from collections.abc import Sequence

import numpy as np

from privaudit._target import MASKED, Target
from privhelpers.attacks.signals import shared_part
from privhelpers.models import TokenScores


def read_alike(
    models: tuple[Target, Target],
    scored: tuple[TokenScores, TokenScores],
    texts: Sequence[str],
    *,
    seed: int,
) -> tuple[TokenScores, TokenScores]:
    """Return what two models say of texts of which neither sees more than the other.

    A causal model does not know what follows a token, so nothing changes. A masked one does, and gains by
    what it reads further than the other: it is asked again for the part that both read, without the rest.

    Args:
        models: the audited model and its reference.
        scored: the tokens of the texts by each, as far as it reads.
        texts: what was scored.
        seed: of the groups in which tokens are hidden.
    """
    parts = [
        shared_part(*(one.bounds_of(number, text) for one in scored)) for number, text in enumerate(texts)
    ]
    alike = []
    for place, (model, whole) in enumerate(zip(models, scored, strict=True)):
        ends = [
            len(row) if part is None else part[place].stop
            for row, part in zip(whole.log_p, parts, strict=True)
        ]
        longer = np.flatnonzero(ends < whole.tokens)
        if model.kind == MASKED and longer.size:
            some = [texts[n] for n in longer]
            again = model.score(some, seed=seed, most=[ends[n] for n in longer])
            whole = _replaced(whole, again, longer)
        alike.append(whole)
    return alike[0], alike[1]


def _replaced(whole: TokenScores, again: TokenScores, places: Sequence[int]) -> TokenScores:
    """Return scores in which those of some texts are others."""
    fields = {}
    for name in ("log_p", "mean", "deviation", "greedy", "bounds"):
        fields[name] = list(getattr(whole, name))
        for place, values in zip(places, getattr(again, name), strict=True):
            fields[name][place] = values
    return TokenScores(truncated=whole.truncated, **fields)
