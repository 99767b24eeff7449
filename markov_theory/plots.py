"""Figures from tables: a table goes in, axes come out; nothing is computed here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

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
}
BOUND_STYLES = {
    "S3": ("--", "Wilks prediction (S3)"),
    "S6": ("-", "upper bound S6"),
    "S2": ("-.", "upper bound S2"),
    "S1": (":", "upper bound S1"),
    "O1": ("none", "upper bound O1"),
    "O2": ("none", "upper bound O2"),
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


def sample_complexity_figure(summary: pd.DataFrame, epsilon: float, delta: float, source: str) -> Figure:
    """Draw N* against s, one panel a guarantee: oracle with S6 and S3, all mixtures with S1 and S2, the others.

    Parameters
    ----------
    summary : DataFrame
        From `markov_theory.sweep.table.summary_table`.
    epsilon, delta : float
        Of the sweep, for the title.
    source : str
        What the dictionary is.
    """
    panels = [
        ("Known support", [name for name in ("oracle",) if name in set(summary.estimator)]),
        (
            "All mixtures, or exact ℓ0",
            [name for name in ("constrained-kl", "exact-l0") if name in set(summary.estimator)],
        ),
    ]
    taken = {name for _, names in panels for name in names}
    panels.append(("No guarantee", [name for name in dict.fromkeys(summary.estimator) if name not in taken]))
    panels = [panel for panel in panels if panel[1]]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(2.4 * len(panels) + 0.4, 3.4), layout="constrained")
        axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for axis, (title, names) in zip(axes, panels, strict=True):
            for name in names:
                _draw_estimator(axis, summary[summary.estimator == name], name)
            axis.set_title(title)
            axis.set_xlabel("mixed rows s")
            if axis.dataLim.y1 > 0:  # something was drawn
                axis.set_yscale("log")
            axis.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.2))
            axis.set_xlim(left=0)
            axis.grid(axis="y", linewidth=0.3, alpha=0.6)
        axes[0].set_ylabel("samples N")
        figure.suptitle(f"P(KL(q‖q̂) > {epsilon:g} nats) ≤ {delta:g}; {source}", fontsize=8)
    return figure


def _draw_estimator(axis: Axes, rows: pd.DataFrame, name: str) -> None:
    """Median over truths with its interval, worst truth as a dash; cells outside the small-ε regime hollow."""
    colour = COLOURS.get(name, "#000000")
    shown = rows[np.isfinite(rows.median_n_star) & (rows.median_n_star > 0)]
    zero, unreached = (rows.median_n_star == 0).sum(), (~np.isfinite(rows.median_n_star)).sum()
    label = (
        f"N* of {name}"
        + (f" (0 at {zero} s)" if zero else "")
        + (f" (not reached at {unreached} s)" if unreached else "")
    )
    below = shown.median_n_star - shown.median_low.clip(lower=0)
    above = shown.median_high - shown.median_n_star
    filled = [colour if small else "white" for small in shown.small_epsilon]
    axis.errorbar(
        shown.s, shown.median_n_star, yerr=[below.clip(lower=0), above.clip(lower=0)],
        fmt="none", ecolor=colour, elinewidth=0.8, zorder=2,
    )  # fmt: skip
    axis.scatter(shown.s, shown.median_n_star, s=9, c=filled, edgecolors=colour, linewidths=0.7, label=label, zorder=3)
    worst = rows[np.isfinite(rows.worst_n_star) & (rows.worst_n_star > 0)]
    axis.scatter(worst.s, worst.worst_n_star, marker="_", s=18, c=colour, linewidths=0.7, zorder=2)
    for bound, (line, words) in BOUND_STYLES.items():
        drawn = rows[np.isfinite(rows[bound]) & (rows[bound] > 0)]
        if line == "none" or drawn.empty:
            continue
        axis.plot(drawn.s, drawn[bound], line, color=colour, linewidth=1, label=words)


def save_figure(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write ``<name>.png`` (200 dots an inch) and ``<name>.pdf`` (vector); return the paths."""
    paths = [folder / f"{name}.png", folder / f"{name}.pdf"]
    with mpl.rc_context(STYLE):
        figure.savefig(paths[0], dpi=200)
        figure.savefig(paths[1], metadata={"CreationDate": None})
    return paths
