"""Figures from tables: a table goes in, axes come out; nothing is computed here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

# Okabe and Ito's colours, told apart by colour-blind readers.
COLOURS = {
    "oracle": "#0072B2",
    "constrained-kl": "#D55E00",
    "kl-pursuit": "#009E73",
    "smoothed-empirical": "#999999",
    "uniform": "#56B4E9",
    "omp": "#CC79A7",
    "exact-l0": "#E69F00",
    "nearest-row": "#000000",
    "embedding-oracle": "#0072B2",
    "embedding-tuning": "#D55E00",
    "embedding-pursuit": "#009E73",
    "embedding-l0": "#E69F00",
}
BOUND_STYLES = {
    "S3": ("--", "Wilks prediction (S3)"),
    "S6": ("-", "upper bound S6"),
    "S2": ("-.", "upper bound S2"),
    "S1": (":", "upper bound S1"),
    "O1": ("none", "upper bound O1"),
    "O2": ("none", "upper bound O2"),
    "E1": (":", "upper bound E1"),
    "E2": ("-.", "upper bound E2"),
    "E3": ("--", "Wilks prediction (E3)"),
    "E4": ("-", "upper bound E4"),
}
MOST_TICKS = 6
FLOOR = 0.5  # samples: where a bar ends that reaches down to 0, on a logarithmic scale
KIND_LINES = {"upper": "-", "lower": ":", "prediction": "--"}
PANELS = {
    "Known support": ("oracle", "embedding-oracle"),
    "All mixtures, or exact ℓ0": ("constrained-kl", "exact-l0", "embedding-l0"),
    "Unconstrained tuning": ("embedding-tuning",),
}
STYLE: Any = {
    "font.size": 8,
    "axes.titlesize": 8,
    "legend.fontsize": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
}


class Shown(NamedTuple):
    """An axis of a figure: its column in the table, symbol, label, and whether it is logarithmic."""

    column: str
    symbol: str
    label: str
    log: bool = False


MIXED_ROWS = Shown("s", "s", "mixed rows s")


def sample_complexity_figure(
    summary: pd.DataFrame,
    epsilon: float | None,
    delta: float | None,
    source: str,
    axes: Sequence[Shown] = (MIXED_ROWS,),
    kinds: Mapping[str, str] | None = None,
    fits: pd.DataFrame | None = None,
    loss: str = "KL(q‖q̂)",
) -> Figure:
    """Draw N* against an axis; with two, one curve a value of the second.

    With one axis there is a panel a guarantee: known support, all mixtures, the others; with two, one an estimator.

    Parameters
    ----------
    summary : DataFrame
        From `markov_theory.sweep.table.summary_table`.
    epsilon, delta : float or None
        Of the sweep, for the title; None where swept.
    source : str
        What the dictionary is.
    axes : sequence of Shown
        One or two.
    kinds : mapping of str to str
        ``"upper"``, ``"lower"`` or ``"prediction"`` of each column that is a bound; by default those of `BOUND_STYLES`.
    fits : DataFrame, optional
        Curves to draw, with columns ``estimator``, the axes', ``n`` and ``law``.
    loss : str
        What must be at most ε.
    """
    x, *second = axes
    named = {label: (KIND_LINES[kind], f"{kind} {label}") for label, kind in (kinds or {}).items()}
    styles = {label: style for label, style in (named | BOUND_STYLES).items() if label in summary}
    panels = _panels(summary, bool(second))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(2.4 * len(panels) + 0.4, 3.4), layout="constrained")
        drawn = figure.subplots(1, len(panels), squeeze=False)[0]
        for axis, (title, names) in zip(drawn, panels, strict=True):
            for name in names:
                rows = summary[summary.estimator == name]
                fitted = fits[fits.estimator == name] if fits is not None and len(fits) else None
                for curve in _curves(rows, name, second):
                    _draw_curve(axis, curve, x, styles, fitted if fitted is None else curve.of(fitted))
            axis.set_title(title)
            axis.set_xlabel(x.label)
            if axis.dataLim.y1 > 0:  # something was drawn
                axis.set_yscale("log")
            _scale(axis, x, summary)
            handles, labels = axis.get_legend_handles_labels()
            if second:  # a bound's line has its curve's colour, and one entry
                labels, handles = list(dict.fromkeys(labels)), [handles[labels.index(w)] for w in dict.fromkeys(labels)]
            axis.legend(handles, labels, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.2))
            axis.grid(axis="y", linewidth=0.3, alpha=0.6)
        drawn[0].set_ylabel("samples N")
        accuracy, chance = ("ε" if epsilon is None else f"{epsilon:g}"), ("δ" if delta is None else f"{delta:g}")
        figure.suptitle(f"P({loss} > {accuracy} nats) ≤ {chance}; {source}", fontsize=8, parse_math=False)
    return figure


class _Curve(NamedTuple):
    """Rows of one estimator at one value of the second axis, with its colour and the words that name it."""

    rows: pd.DataFrame
    colour: str
    words: str
    second: Shown | None = None
    value: float = float("nan")

    def of(self, table: pd.DataFrame) -> pd.DataFrame:
        """The part of another table of the estimator that belongs to this curve."""
        return table if self.second is None else table[table[self.second.column] == self.value]


def _panels(summary: pd.DataFrame, one_each: bool) -> list[tuple[str, list[str]]]:
    """Title and estimators of each panel."""
    names = list(dict.fromkeys(summary.estimator))
    if one_each:
        return [(name, [name]) for name in names]
    panels = [(title, [name for name in members if name in names]) for title, members in PANELS.items()]
    taken = {name for members in PANELS.values() for name in members}
    panels.append(("No guarantee", [name for name in names if name not in taken]))
    return [panel for panel in panels if panel[1]]


def _curves(rows: pd.DataFrame, name: str, second: list[Shown]) -> list[_Curve]:
    if not second:
        return [_Curve(rows, COLOURS.get(name, "#000000"), f"N* of {name}")]
    (by,) = second
    values = sorted(rows[by.column].unique())
    colours = mpl.colormaps["viridis"](np.linspace(0, 0.85, len(values)))
    return [
        _Curve(rows[rows[by.column] == value], to_hex(colour), f"N*, {by.symbol} = {value:g}", by, value)
        for value, colour in zip(values, colours, strict=True)
    ]


def _scale(axis: Axes, x: Shown, summary: pd.DataFrame) -> None:
    """Logarithmic where the axis asks for it and its values span a factor of four; else linear from 0."""
    values = np.unique(summary[x.column])
    if x.log and values[0] > 0 and values[-1] >= 4 * values[0]:
        axis.set_xscale("log")
        ticks = values[:: -(-values.size // MOST_TICKS)]
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.xaxis.set_minor_locator(NullLocator())
    else:
        axis.set_xlim(left=0)


def _draw_curve(
    axis: Axes, curve: _Curve, x: Shown, styles: Mapping[str, tuple[str, str]], fitted: pd.DataFrame | None
) -> None:
    """Median over truths with its interval, worst truth as a dash; cells outside the small-ε regime hollow.

    What a logarithmic scale cannot show is marked at the edge of the axes: N* = 0 below, N* not reached above.
    """
    rows, colour = curve.rows, curve.colour
    shown = rows[np.isfinite(rows.median_n_star) & (rows.median_n_star > 0)]
    zero, unreached = rows[rows.median_n_star == 0], rows[~np.isfinite(rows.median_n_star)]
    label = (
        curve.words
        + (f" (0 at {len(zero)} {x.symbol})" if len(zero) else "")
        + (f" (not reached at {len(unreached)} {x.symbol})" if len(unreached) else "")
    )
    for beyond, marker, height in ((zero, "v", 0.0), (unreached, "^", 1.0)):
        axis.scatter(
            beyond[x.column], np.full(len(beyond), height), marker=marker, s=14, c="none", edgecolors=colour,
            linewidths=0.7, transform=axis.get_xaxis_transform(), clip_on=False, zorder=3,
        )  # fmt: skip
    below = shown.median_n_star - shown.median_low.clip(lower=FLOOR)
    above = shown.median_high - shown.median_n_star
    small = shown.small_epsilon if "small_epsilon" in shown else [True] * len(shown)
    filled = [colour if inside else "white" for inside in small]
    axis.errorbar(
        shown[x.column], shown.median_n_star, yerr=[below.clip(lower=0), above.clip(lower=0)],
        fmt="none", ecolor=colour, elinewidth=0.8, zorder=2,
    )  # fmt: skip
    axis.scatter(
        shown[x.column], shown.median_n_star, s=9, c=filled, edgecolors=colour, linewidths=0.7, label=label, zorder=3
    )
    worst = rows[np.isfinite(rows.worst_n_star) & (rows.worst_n_star > 0)]
    axis.scatter(worst[x.column], worst.worst_n_star, marker="_", s=18, c=colour, linewidths=0.7, zorder=2)
    for bound, (line, words) in styles.items():
        drawn = rows[np.isfinite(rows[bound]) & (rows[bound] > 0)]
        if line == "none" or drawn.empty:
            continue
        axis.plot(drawn[x.column], drawn[bound], line, color=colour, linewidth=1, label=words)
    if fitted is not None and len(fitted):
        law = "" if curve.second is None else f"{curve.second.symbol} = {curve.value:g}: "
        axis.plot(fitted[x.column], fitted.n, color=colour, linewidth=0.5, alpha=0.7, label=law + fitted.law.iloc[0])


def save_figure(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write ``<name>.png`` (200 dots an inch) and ``<name>.pdf`` (vector); return the paths."""
    paths = [folder / f"{name}.png", folder / f"{name}.pdf"]
    with mpl.rc_context(STYLE):
        figure.savefig(paths[0], dpi=200)
        figure.savefig(paths[1], metadata={"CreationDate": None})
    return paths
