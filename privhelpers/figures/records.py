"""Pictures of the synthetic records: how often each condition occurs, how long the notes are."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from scipy.stats import chi2

from privhelpers.errors import InvalidParameter
from privhelpers.figures import style
from privhelpers.stats import checks


@style.drawn
def condition_counts(
    conditions: Sequence[str], counts: ArrayLike, *, rare: ArrayLike | None = None
) -> Figure:
    """Draw how often each condition occurs against its rank, on logarithmic axes (a Zipf plot).

    The bars are exact 95 % Poisson intervals: how much a count would move if the notes were drawn again.

    Args:
        conditions: name of each condition.
        counts: notes with it, 1 or more.
        rare: whether each condition counts as rare; rare ones are drawn hollow.

    Raises:
        InvalidParameter: lengths differ or a count is below 1.
    """
    counts = checks.vector("counts", counts)
    flags = np.zeros(counts.size, bool) if rare is None else np.asarray(rare, dtype=bool)
    if len(conditions) != counts.size or flags.shape != counts.shape or counts.min() < 1:
        raise InvalidParameter("conditions, counts and rare: same length, counts of 1 or more")
    order = np.argsort(-counts, kind="stable")
    ranks, counts, flags = np.arange(1, counts.size + 1), counts[order], flags[order]
    lows, highs = chi2.ppf(0.025, 2 * counts) / 2, chi2.ppf(0.975, 2 * counts + 2) / 2
    figure, (axes,) = style.canvas()
    for part, fill, label in ((~flags, style.NON_PRIVATE, "common"), (flags, "white", "rare")):
        if part.any():
            ends = style.whiskers(counts[part], lows[part], highs[part])
            looks = {"fmt": "o", "color": style.NON_PRIVATE, "mfc": fill, "elinewidth": 0.8}
            axes.errorbar(ranks[part], counts[part], ends, label=f"{label} ({part.sum()})", **looks)
    first, last = (style.literal(conditions[place], 32) for place in (order[0], order[-1]))
    axes.annotate(first, (1, counts[0]), (9, 0), textcoords="offset points", va="center", size=8)
    if counts.size > 1:
        below = {"textcoords": "offset points", "ha": "right", "va": "top", "size": 8}
        axes.annotate(last, (ranks[-1], lows[-1]), (0, -3), **below)
    axes.set(xscale="log", yscale="log", xlabel="rank of the condition (1 = most frequent)")
    axes.set(ylabel="notes (count)", ylim=(0.3 * lows.min(), 2 * highs.max()))
    style.log_axis(axes.xaxis)
    style.log_axis(axes.yaxis)
    style.legend_above(figure, axes)
    return figure


@style.drawn
def note_lengths(lengths: ArrayLike, *, limit: int | None = None) -> Figure:
    """Draw how long the notes are, with one Poisson standard error a bin and the median.

    Args:
        lengths: tokens of each note.
        limit: context length of the model, in tokens; longer notes are cut.

    Raises:
        InvalidParameter: there is no note or a length is not finite.
    """
    lengths = checks.vector("lengths", lengths)
    counts, edges = np.histogram(lengths, bins=min(40, max(1, int(np.ptp(lengths)))))
    centers = (edges[1:] + edges[:-1]) / 2
    figure, (axes,) = style.canvas()
    axes.stairs(counts, edges, fill=True, color=style.PUBLIC, label=f"notes (n = {lengths.size:,})")
    axes.errorbar(centers, counts, np.sqrt(counts), fmt="none", ecolor=style.NON_PRIVATE, elinewidth=0.8)
    median = float(np.median(lengths))
    axes.axvline(median, color=style.NON_PRIVATE, linestyle="--", label=f"median: {median:g} tokens")
    if limit is not None:
        axes.axvline(limit, color=style.ATTACK, linestyle=":", label=f"context length: {limit} tokens")
    axes.set(xlabel="length of a note (tokens)", ylabel="notes (count)", ylim=(0, None))
    style.legend_above(figure, axes)
    return figure
