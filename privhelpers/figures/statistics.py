"""Pictures of certainty: coverage, false alarms, equivalence, sizes of experiments, all models at once."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from privhelpers.errors import InvalidParameter
from privhelpers.figures import style
from privhelpers.stats import Equivalence, checks

# One color, line and marker a method or quantity; they differ in lightness too.
_LOOKS = (
    (style.ATTACK, ":", "^"),
    (style.DP, "-", "o"),
    (style.NON_PRIVATE, "--", "s"),
    ("#7fb8d8", "-.", "D"),
    ("#8a5a00", (0, (5, 1)), "v"),
)
_ENDS = 1.96  # standard errors that a simulated share is drawn with


def _looks(names: Sequence[str]) -> dict[str, dict]:
    if not names or len(names) > len(_LOOKS):
        raise InvalidParameter(f"names = {list(names)!r}: must be 1 to {len(_LOOKS)}")
    found = {}
    for name, (color, line, marker) in zip(names, _LOOKS, strict=False):
        look = {"color": color, "linestyle": line, "marker": marker, "label": style.literal(name)}
        found[name] = style.in_legend(look)
    return found


def _share(name: str, values: ArrayLike, length: int) -> np.ndarray:
    shares = checks.rates(name, values)
    if shares.shape != (length,):
        raise InvalidParameter(f"{name} of shape {shares.shape}: must be {length} shares")
    return shares


@style.drawn
def coverage_by_rate(rates: ArrayLike, coverages: Mapping[str, ArrayLike], *, level: float = 0.95) -> Figure:
    """Draw how often each method's interval holds a rate, against that rate; exact, so without bars.

    Args:
        rates: true rates, in (0, 1], increasing.
        coverages: probability of holding the rate at each, in [0, 1], by method.
        level: the coverage that the methods promise.

    Raises:
        InvalidParameter: lengths differ or a share is outside [0, 1].
    """
    rates = checks.rates("rates", rates, above=0)
    figure, (axes,) = style.canvas()
    for name, look in _looks(list(coverages)).items():
        axes.plot(rates, _share(name, coverages[name], rates.size), **look, markevery=max(1, rates.size // 9))
    axes.axhline(level, color=style.CONTROL, linewidth=0.8, zorder=1)
    axes.set(xscale="log", xlabel="true rate", ylabel="share of intervals that hold it")
    axes.set_ylim(top=1.01)
    style.log_axis(axes.xaxis, style.nice_ticks(rates))
    style.legend_above(figure, axes)
    return figure


@style.drawn
def coverage_by_clusters(
    clusters: Sequence[int],
    panels: Mapping[str, Mapping[str, ArrayLike]],
    *,
    data_sets: int,
    level: float = 0.95,
) -> Figure:
    """Draw simulated coverage against the number of clusters, one panel a strength of clustering.

    Args:
        clusters: numbers of clusters, increasing.
        panels: by the title of a panel, the coverage of each method at each number; same methods in all.
        data_sets: simulated data sets behind each share, for the bars of two standard errors.
        level: the coverage that the methods promise.

    Raises:
        InvalidParameter: there is no panel, methods or lengths differ, or a share is outside [0, 1].
    """
    data_sets = checks.count("data_sets", data_sets, low=1)
    if len({tuple(panel) for panel in panels.values()}) != 1:
        raise InvalidParameter("panels: need one or more, with the same methods in each")
    figure, row = style.canvas(style.SHORT, len(panels), sharey=True)
    looks = _looks(list(next(iter(panels.values()))))
    places = np.arange(len(clusters))
    for axes, (title, panel) in zip(row, panels.items(), strict=True):
        for shift, (name, look) in zip(np.linspace(-0.12, 0.12, len(looks)), looks.items(), strict=True):
            shares = _share(name, panel[name], places.size)
            ends = _ENDS * np.sqrt(np.maximum(shares * (1 - shares), 0.25 / data_sets) / data_sets)
            axes.errorbar(places + shift, shares, ends, capsize=2, elinewidth=0.8, **look)
        axes.axhline(level, color=style.CONTROL, linewidth=0.8, zorder=1)
        axes.set_xticks(places, [str(number) for number in clusters])
        axes.set(title=style.literal(title), xlabel="patients")
    row[0].set(ylim=(None, 1.02), ylabel="share of intervals that hold it")
    style.legend_above(figure, row[0])
    return figure


@style.drawn
def false_alarms_by_tests(
    tests: Sequence[int], shares: Mapping[str, ArrayLike], *, simulations: int, alpha: float = 0.05
) -> Figure:
    """Draw the probability of at least one false alarm against the number of tests.

    Args:
        tests: numbers of tests, increasing, 1 or more.
        shares: simulated probability at each number, by method.
        simulations: behind each share, for bands of two standard errors.
        alpha: the probability that is allowed.

    Raises:
        InvalidParameter: lengths differ or a share is outside [0, 1].
    """
    simulations = checks.count("simulations", simulations, low=1)
    numbers = checks.vector("tests", tests)
    figure, (axes,) = style.canvas()
    for name, look in _looks(list(shares)).items():
        values = _share(name, shares[name], numbers.size)
        ends = _ENDS * np.sqrt(values * (1 - values) / simulations)
        axes.fill_between(numbers, values - ends, values + ends, color=look["color"], alpha=0.18, linewidth=0)
        axes.plot(numbers, values, **look)
    axes.axhline(alpha, color=style.CONTROL, linewidth=0.8, zorder=1)
    axes.set(xscale="log", xlabel="tests of hypotheses that are all true", ylabel="share with a false alarm")
    axes.set_ylim(bottom=0)
    style.log_axis(axes.xaxis, numbers)
    style.legend_above(figure, axes)
    return figure


@style.drawn
def equivalence_intervals(
    outcomes: Mapping[str, Equivalence], *, margin: float, unit: str = "difference"
) -> Figure:
    """Draw intervals of differences against a margin, first one on top, with the verdict at the right.

    Args:
        outcomes: two one-sided tests by the name of the comparison, from `stats.tost`.
        margin: smallest difference that would matter, greater than 0.
        unit: label of the axis.

    Raises:
        InvalidParameter: there is no outcome, or the margin is not greater than 0.
    """
    if not outcomes or not margin > 0:
        raise InvalidParameter("outcomes: give one or more; margin: greater than 0")
    ends = np.array([[one.difference, one.low, one.high] for one in outcomes.values()]).T
    reach, places = style.whiskers(*ends), np.arange(len(outcomes))
    figure, (axes,) = style.canvas(style.SHORT if places.size <= 6 else style.TALL)
    axes.axvspan(-margin, margin, color="#dcebf5", zorder=0, label="too small to matter")
    axes.axvline(0, color=style.CONTROL, linewidth=0.8, zorder=1)
    for place, one in enumerate(outcomes.values()):
        fill = {"mfc": style.DP if one.equivalent else "white", "color": style.CONTROL, "fmt": "o"}
        axes.errorbar(ends[0, place], place, xerr=reach[:, [place]], capsize=3, **fill)
    axes.set_yticks(places, [style.literal(name) for name in outcomes])
    axes.set(ylim=(places.size - 0.4, -0.6), xlabel=style.literal(unit, 90), ylabel="comparison")
    right = axes.secondary_yaxis("right")
    right.set_yticks(places, [style.literal(one.verdict) for one in outcomes.values()])
    right.tick_params(length=0)
    right.spines["right"].set_visible(False)
    style.legend_above(figure, axes)
    return figure


@style.drawn
def patients_needed(iccs: ArrayLike, needed: Mapping[str, ArrayLike]) -> Figure:
    """Draw how many patients an arm needs against how much alike the notes of a patient are.

    Args:
        iccs: intraclass correlations, in [0, 1], increasing.
        needed: patients at each, 1 or more, by claim.

    Raises:
        InvalidParameter: lengths differ, or a value is outside its range.
    """
    iccs = checks.rates("iccs", iccs)
    figure, (axes,) = style.canvas()
    every = []
    for name, look in _looks(list(needed)).items():
        counts = checks.vector(name, needed[name])
        if counts.shape != iccs.shape or counts.min() < 1:
            raise InvalidParameter(f"{name}: must be {iccs.size} numbers of patients, 1 or more")
        axes.plot(iccs, counts, **look, markevery=max(1, iccs.size // 6))
        every.extend(counts)
    axes.set(
        yscale="log", xlabel="intraclass correlation of a patient's notes", ylabel="patients in each arm"
    )
    style.log_axis(axes.yaxis, style.nice_ticks(every))
    style.legend_above(figure, axes, columns=2)
    return figure


def _band(axes: Axes, look: Mapping[str, str], value: ArrayLike, line: object) -> None:
    middle, low, high = checks.vector("references", value, 3)
    axes.axhspan(low, high, color=look["color"], alpha=0.16, linewidth=0, zorder=0)
    axes.axhline(middle, color=look["color"], linestyle=line, label=look["label"], zorder=1)


@style.drawn
def leakage_by_epsilon(
    epsilons: ArrayLike,
    attacks: Mapping[str, tuple[ArrayLike, ArrayLike, ArrayLike]],
    references: Mapping[str, tuple[float, float, float]],
) -> Figure:
    """Draw the area under the ROC of attacks against epsilon, with bands of the models without one.

    Args:
        epsilons: budget of each DP model, greater than 0.
        attacks: area and ends of its interval at each budget, by attack.
        references: area and ends by model name, such as `public`: the control of the picture.

    Raises:
        InvalidParameter: lengths differ, or an interval misses its estimate.
    """
    epsilons = checks.vector("epsilons", epsilons)
    if epsilons.min() <= 0:
        raise InvalidParameter("epsilons: must be greater than 0 (log axis)")
    figure, (axes,) = style.canvas(style.TALL)
    for line, (name, look) in zip(
        ("--", "-.", ":") * len(references), style.model_looks(references).items(), strict=False
    ):
        _band(axes, style.in_legend(look), references[name], line)
    axes.axhline(0.5, color=style.CONTROL, linewidth=0.8, label="coin flip", zorder=1)
    for step, (name, look) in enumerate(_looks(list(attacks)).items()):
        _, middle, lows, highs = style.columns_of(
            epsilons=epsilons, **dict(zip(("estimates", "lows", "highs"), attacks[name], strict=True))
        )
        places = epsilons * 1.05 ** (step - (len(attacks) - 1) / 2)  # side by side, not on top
        axes.errorbar(places, middle, style.whiskers(middle, lows, highs), capsize=3, **look)
    axes.set(xscale="log", xlabel="ε (privacy budget, nats)", ylabel="area under the ROC curve")
    style.log_axis(axes.xaxis, epsilons)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper")
    return figure


@style.drawn
def leakage_bars(table: pd.DataFrame) -> Figure:
    """Draw leak rates as bars, each beside its never-trained control, one panel a measure.

    Args:
        table: columns model, measure, arm (`member` or `control`), rate, low, high; one row each.

    Raises:
        InvalidParameter: an arm is missing, or an interval misses its rate.
    """
    measures, models = list(dict.fromkeys(table["measure"])), list(dict.fromkeys(table["model"]))
    found = table.set_index(["measure", "model", "arm"])
    if len(found) != 2 * len(measures) * len(models) or not found.index.is_unique:
        raise InvalidParameter("table: needs one row for each measure, model and arm (member, control)")
    looks = style.model_looks(models)
    figure, row = style.canvas(style.TALL, len(measures), sharey=True)
    arms = {"member": (-0.2, style.ATTACK, None), "control": (0.2, style.CONTROL, "////")}
    for axes, measure in zip(row, measures, strict=True):
        for arm, (shift, color, hatch) in arms.items():
            rows = found.loc[[(measure, model, arm) for model in models]]
            ends = style.whiskers(*(rows[column].to_numpy() for column in ("rate", "low", "high")))
            places = np.arange(len(models)) + shift
            fill = {"facecolor": "none" if hatch else color, "hatch": hatch, "edgecolor": color}
            label = "trained on" if arm == "member" else "never trained on (control)"
            axes.barh(places, rows["rate"], 0.36, linewidth=0.8, label=label, **fill)
            axes.errorbar(rows["rate"], places, xerr=ends, fmt="none", ecolor="black", elinewidth=0.8)
        axes.set(title=style.literal(measure), xlabel="share (percent)", xlim=(0, None))
        style.percent_axis(axes.xaxis)
        axes.locator_params(axis="x", nbins=4)
    row[0].set_yticks(range(len(models)), [look["label"] for look in looks.values()])
    row[0].set(ylim=(len(models) - 0.4, -0.6), ylabel="model")
    style.legend_above(figure, row[0])
    return figure
