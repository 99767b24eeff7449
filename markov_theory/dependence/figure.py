"""The figure of the five arms: a table goes in, axes come out."""

from __future__ import annotations

import math
from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from markov_theory.dependence.arms import ARMS
from markov_theory.dependence.run import Judged
from markov_theory.dependence.series import Arm
from markov_theory.plots import STYLE

COLOURS = ("#0072B2", "#009E73", "#D55E00", "#E69F00")
MARKERS = ("o", "s", "^", "D")
COLUMNS, MOST_TICKS = 3, 5


def dependence_figure(judged: Sequence[Judged]) -> Figure:
    """Draw a panel an arm, and the verdicts in the place that is left.

    Parameters
    ----------
    judged : sequence of Judged
        Of any of the arms.
    """
    arms = [arm for arm in ARMS.values() if any(one.arm is arm for one in judged)]
    n_rows = -(-(len(arms) + 1) // COLUMNS)
    n_columns = min(COLUMNS, len(arms) + 1)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(2.75 * n_columns, 2.75 * n_rows), layout="constrained")
        panels = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
        for axis, arm in zip(panels, arms, strict=False):
            _draw_arm(axis, arm, [one for one in judged if one.arm is arm])
        for axis in panels[len(arms) :]:
            axis.axis("off")
        _list_verdicts(panels[len(arms)], judged)
    return figure


def _draw_arm(axis: Axes, arm: Arm, judged: list[Judged]) -> None:
    """Means over repeats with their range; the prediction dashed, where it has a value, else the fit dotted."""
    shown = [one for one in judged if one.claim.legend]
    for one, colour, marker in zip(shown, COLOURS, MARKERS, strict=False):
        x = np.unique(one.points.x.to_numpy(float))
        values = [one.points.value[one.points.x == at].to_numpy(float) for at in x]
        middle = np.array([math.exp(np.log(v).mean()) for v in values])
        below = np.array([max(m - v.min(), 0.0) for m, v in zip(middle, values, strict=True)])
        above = np.array([max(v.max() - m, 0.0) for m, v in zip(middle, values, strict=True)])
        axis.errorbar(
            x, middle, yerr=[below, above], fmt=marker, color=colour, markersize=3.5, elinewidth=0.8,
            label=f"{one.claim.label}: {one.claim.legend}", zorder=3,
        )  # fmt: skip
        line = np.geomspace(x[0], x[-1], 65)
        if one.claim.reference is not None:
            axis.plot(line, [one.claim.reference(value) for value in line], "--", color=colour, linewidth=1)
        elif one.growth is not None:
            axis.plot(line, one.growth.at(line, one.claim.rule.law), ":", color=colour, linewidth=1)
    _scale(axis, arm, shown)
    axis.set_title(f"{arm.number}. {arm.title}", loc="left")
    axis.set_xlabel("rows T" if arm.symbol == "T" else "dimension d")
    axis.set_ylabel(arm.quantity)
    axis.grid(axis="y", linewidth=0.3, alpha=0.6)
    axis.legend(frameon=False, fontsize=6, loc="best", handlelength=1.2, borderpad=0.2, labelspacing=0.3)


def _scale(axis: Axes, arm: Arm, shown: list[Judged]) -> None:
    x = np.unique(np.concatenate([one.points.x.to_numpy() for one in shown]))
    axis.set_xscale("log", base=2)
    ticks = x[:: -(-x.size // MOST_TICKS)]
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.xaxis.set_minor_locator(NullLocator())
    highest = max(float(one.points.value.max()) for one in shown)
    if arm.log:
        lowest = min(float(one.points.value.min()) for one in shown)
        axis.set_yscale("log")
        axis.set_ylim(lowest / 2, highest * (highest / lowest) ** 0.35)
        axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if highest < 200 * lowest else (1,)))
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axis.yaxis.set_minor_formatter(NullFormatter())
    else:
        axis.set_ylim(0, highest * 1.45)


def _list_verdicts(axis: Axes, judged: Sequence[Judged]) -> None:
    axis.set_title("Verdicts on the predictions", loc="left")
    lines = [f"{one.claim.label}  {one.verdict}; rival {'' if one.refuted else 'not '}refuted" for one in judged]
    lines += ["", "dashed: predicted; dotted: fitted", "bars: range over repeats"]
    axis.text(0.0, 0.97, "\n".join(lines), fontsize=6.5, va="top", linespacing=1.3, transform=axis.transAxes)
