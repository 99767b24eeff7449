"""Phase diagrams: tables go in, axes come out."""

from __future__ import annotations

from itertools import cycle

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

from markov_theory._checks import Array
from markov_theory.plots import COLOURS, STYLE

TITLES = {"exact-l0": "Exact ℓ0", "kl-pursuit": "KL pursuit", "constrained-kl": "Constrained KL, s largest weights"}
BOUND_STYLES = {"S5+": "-", "S5": ":"}
BOUND_COLOUR = "#AA3377"
MARK_COLOUR = "#EE6677"
MARKERS = ("o", "s", "^")
UNCERTIFIED = 0.01  # share of fits from which a cell is marked
HALF = 0.5
MOST_TICKS = 10


def recovery_figure(phase: pd.DataFrame, half: pd.DataFrame, bounds: pd.DataFrame, source: str) -> Figure:
    """Draw success over s and N, a panel an estimator, and the 50 % lines of all beside the bounds.

    Parameters
    ----------
    phase, half, bounds : DataFrame
        From `markov_theory.recovery.table`.
    source : str
        What the dictionary is, for the title.
    """
    names = list(dict.fromkeys(phase.estimator))
    promised = bounds[bounds.delta == HALF].groupby(["bound", "s"], sort=False)["n_samples"].median()
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(2.35 * (len(names) + 1) + 0.6, 3.0), layout="constrained")
        panels = figure.subplots(1, len(names) + 1, sharey=True)
        for axis, name in zip(panels, names, strict=False):
            mesh = _draw_phase(axis, phase[phase.estimator == name])
            _draw_half(axis, half[half.estimator == name], "black", "50 % measured")
            if name == "exact-l0":
                _draw_bounds(axis, promised)
                axis.legend(frameon=False, fontsize=6, loc="upper left", handlelength=1.5, labelspacing=0.3)
            axis.set_title(TITLES.get(name, name), loc="left")
        _draw_lines(panels[-1], half, promised)
        panels[0].set_ylabel("samples N")
        panels[0].set_ylim(*_edges(np.unique(phase.n.to_numpy(float)))[[0, -1]])
        figure.colorbar(mesh, ax=list(panels[:-1]), label="P(support recovered exactly)", pad=0.01, aspect=30)
        figure.suptitle(source, fontsize=8, parse_math=False)
    return figure


def _draw_phase(axis: Axes, rows: pd.DataFrame) -> QuadMesh:
    table = rows.pivot(index="n", columns="s", values="success")
    s, n = table.columns.to_numpy(float), table.index.to_numpy(float)
    mesh = axis.pcolormesh(_middles(s), _edges(n), table.to_numpy(), cmap="viridis", vmin=0, vmax=1, rasterized=True)
    marked = rows[rows.uncertified > UNCERTIFIED]
    if len(marked):
        label = f"> {UNCERTIFIED:.0%} of fits uncertified"
        axis.scatter(marked.s, marked.n, marker="x", s=14, c=MARK_COLOUR, linewidths=0.9, label=label)
    axis.set_yscale("log")
    axis.set_xlabel("mixed rows s")
    _tick(axis, s)
    return mesh


def _draw_half(axis: Axes, rows: pd.DataFrame, colour: str, label: str, marker: str = "o") -> None:
    known = rows[np.isfinite(rows.n_half)]
    axis.plot(known.s, known.n_half, f"{marker}-", color=colour, markersize=3, linewidth=1.2, label=label)


def _draw_bounds(axis: Axes, promised: pd.Series) -> None:
    for label in dict.fromkeys(promised.index.get_level_values(0)):
        values = promised[label]
        known = values[np.isfinite(values) & (values > 0)]
        style = BOUND_STYLES.get(label, "--")
        axis.plot(known.index, known, style, color=BOUND_COLOUR, linewidth=1.2, label=f"50 % by {label}")


def _draw_lines(axis: Axes, half: pd.DataFrame, promised: pd.Series) -> None:
    for name, marker in zip(dict.fromkeys(half.estimator), cycle(MARKERS), strict=False):
        _draw_half(axis, half[half.estimator == name], COLOURS.get(name, "black"), name, marker)
    _draw_bounds(axis, promised)
    axis.set_title("50 % lines", loc="left")
    _tick(axis, np.unique(half.s.to_numpy(float)))
    axis.set_xlabel("mixed rows s")
    axis.grid(axis="y", linewidth=0.3, alpha=0.6)
    axis.legend(frameon=False, fontsize=6, loc="lower right")


def _tick(axis: Axes, s: Array) -> None:
    axis.set_xticks(s[:: -(-s.size // MOST_TICKS)])


def _edges(n: Array) -> Array:
    return np.asarray(np.exp(_middles(np.log(n))))


def _middles(values: Array) -> Array:
    """Edges of cells about increasing values."""
    if values.size == 1:
        return np.array([values[0] - 0.5, values[0] + 0.5])
    between = (values[1:] + values[:-1]) / 2
    return np.concatenate([[2 * values[0] - between[0]], between, [2 * values[-1] - between[-1]]])
