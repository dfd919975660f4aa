"""Pictures of an audit of somebody's own model: patients' scores, and every attack beside its control."""

import io
from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from privhelpers.errors import InvalidParameter
from privhelpers.figures import style
from privhelpers.figures.charts import roc
from privhelpers.stats import Interval, checks, roc_curve


@style.drawn
def patient_scores(
    member_scores: ArrayLike, other_scores: ArrayLike, *, unit: str = "nats per token", bins: int = 30
) -> Figure:
    """Draw the scores of trained and of held-out patients, with one Poisson standard error a bin.

    Args:
        member_scores, other_scores: one a patient, higher is more like a trained one.
        unit: of the scores.
        bins: number of common bins, 1 or more.

    Raises:
        InvalidParameter: an arm is empty or a score is not finite.
    """
    arms = checks.vector("member_scores", member_scores), checks.vector("other_scores", other_scores)
    edges = np.histogram_bin_edges(np.concatenate(arms), bins=checks.count("bins", bins, low=1))
    centers, width = (edges[1:] + edges[:-1]) / 2, edges[1] - edges[0]
    looks = (("trained on", style.ATTACK, None, -0.12), ("held out", style.CONTROL, "////", 0.12))
    figure, (axes,) = style.canvas()
    for scores, (name, color, hatch, shift) in zip(arms, looks, strict=True):
        counts = np.histogram(scores, edges)[0]
        shares = counts / scores.size
        fill = {"facecolor": "none" if hatch else color, "hatch": hatch, "alpha": 1 if hatch else 0.75}
        label = f"{name} ({scores.size:,} patients)"
        axes.stairs(shares, edges, fill=True, edgecolor=color, linewidth=0, label=label, **fill)
        axes.stairs(shares, edges, color=color, linewidth=1)
        ends = np.sqrt(counts) / scores.size
        axes.errorbar(centers + shift * width, shares, ends, fmt="none", ecolor=color, elinewidth=0.8)
    axes.set(xlabel=f"score of a patient ({unit}; further right: more like a trained one)")
    axes.set(ylabel="share of patients (%)")
    style.percent_axis(axes.yaxis)
    axes.set_ylim(bottom=0)
    style.legend_above(figure, axes)
    return figure


@style.drawn
def attacks_and_controls(
    attacks: Mapping[str, Interval], controls: Mapping[str, Interval], *, names: tuple[str, str]
) -> Figure:
    """Draw the area under the ROC curve of every attack, and of its control beneath it.

    Args:
        attacks: area with its interval by name, first on top.
        controls: the same where it must fail; attacks that it lacks have none.
        names: of the two, for the legend.

    Raises:
        InvalidParameter: there is no attack, or a control of none.
    """
    if not attacks or set(controls) - set(attacks):
        raise InvalidParameter("attacks: give one or more, and controls of these only")
    figure, (axes,) = style.canvas(style.SHORT if len(attacks) < 6 else style.TALL)
    axes.axvline(0.5, color=style.CONTROL, linestyle="--", zorder=1)
    looks = (
        (attacks, -0.14, {"fmt": "o", "color": style.ATTACK}),
        (controls, 0.14, {"fmt": "s", "color": style.CONTROL, "markerfacecolor": "white"}),
    )
    places = {name: place for place, name in enumerate(attacks)}
    for (areas, shift, look), label in zip(looks, names, strict=True):
        for number, (name, area) in enumerate(areas.items()):
            ends = [[area.estimate - area.low], [area.high - area.estimate]]
            shown = {"label": style.literal(label)} if number == 0 else {}
            axes.errorbar(area.estimate, places[name] + shift, xerr=ends, capsize=3, **look, **shown)
    axes.set_yticks(range(len(attacks)), [style.literal(name, 30) for name in attacks])
    axes.set(ylim=(len(attacks) - 0.4, -0.6), ylabel="attack")
    axes.set(xlabel="area under the ROC curve, patients (dashed: 0.5, guessing)")
    style.legend_above(figure, axes)
    return figure


def _svg(figure: Figure, name: str) -> bytes:
    """Return a figure as SVG that is the same in every run."""
    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def audit_pictures(attacks: Sequence, primary: int, *, draws: int = 300, seed: int = 0) -> dict[str, bytes]:
    """Return the pictures of an audit's report as SVG, by caption.

    Args:
        attacks: of an audit, `own_model.membership.Attack` each.
        primary: place of the one whose scores are shown.
        draws: bootstrap draws of the ROC band.
        seed: of the draws.
    """
    shown, arms = attacks[primary], attacks[primary].arms
    names = {a.name: a.name.replace("_plus", "+").replace("_", " ") for a in attacks}
    fresh = {names[a.name]: a.controls.untrained.auc for a in attacks if a.controls.untrained}
    halves = {names[a.name]: a.controls.held_out for a in attacks}
    drawn = {
        "Areas of every attack with 95 % intervals; hollow: the same where there is nothing to find.": (
            attacks_and_controls(
                {names[a.name]: a.patient.auc for a in attacks},
                fresh or halves,
                names=("this model", "model trained on nothing" if fresh else "held-out halves"),
            )
        ),
        f"Scores of trained and held-out patients: {shown.words}.": patient_scores(
            arms.member_scores,
            arms.control_scores,
            unit="nats per byte" if shown.name == "reference" else "nats per token",
        ),
        "Trained patients found (up) against other patients wrongly accused (right), both axes logarithmic; "
        "dotted: guessing.": roc({"this model": roc_curve(*arms, draws=draws, seed=seed)}),
    }
    return {caption: _svg(figure, f"audit-{n}") for n, (caption, figure) in enumerate(drawn.items())}
