"""Figures of a page: drawn from stored tables by `markov_theory.plots`, as SVG in data URIs."""

from __future__ import annotations

import base64
import io
import math
import re
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure as Drawing

from markov_theory.bounds import BOUNDS
from markov_theory.plots import STYLE, Shown, sample_complexity_figure
from markov_theory.report.content import Figure
from markov_theory.report.stored_sweep import StoredSweep
from markov_theory.sweep.axes import as_text
from markov_theory.sweep.growth import fitted_curve, growth_fits
from markov_theory.sweep.problems import PROBLEMS

PIXELS_A_POINT = 1.7  # letters of 8 points are read like those of the page
SALT = "markov_theory"  # of the ids in the picture: the same result gives the same page


def sample_complexity(stored: StoredSweep) -> tuple[Figure, ...]:
    """Draw N* of a sweep against its axes; nothing before it has ended once."""
    if stored.summary is None or stored.summary.empty or not stored.axes:
        return ()
    summary = stored.typed(stored.summary)
    origins = list(dict.fromkeys(rows["origin"] for rows in stored.last("rows", {}).values() if "origin" in rows))
    kinds = {label: stored.bounds.get(label, {}).get("kind") for label in stored.labels}
    known = {label: kind or BOUNDS[label].kind for label, kind in kinds.items() if kind or label in BOUNDS}
    problem = PROBLEMS.get(stored.setting("kind").strip('"'))
    drawing = sample_complexity_figure(
        _literal(summary),
        stored.only("epsilon"),
        stored.only("delta"),
        origins[0] if origins else stored.folder.resolve().name,
        axes=[Shown(axis.name, axis.symbol, axis.label, axis.log) for axis in stored.axes],
        kinds=known,
        fits=_literal(_fits(stored)),
        loss="loss" if problem is None else problem.loss,
    )
    return (Figure(*_svg(drawing), _alternative(stored, summary), _caption(stored)),)


def _fits(stored: StoredSweep) -> pd.DataFrame:
    """The fits that a sweep draws, made again from the stored cells."""
    axis, *second = stored.axes
    if stored.cells is None:
        return pd.DataFrame()
    columns = ["estimator", *(other.name for other in second)]
    drawn = []
    for key, group in stored.typed(stored.cells).groupby(columns, sort=False):
        at: dict[str, Any] = dict(zip(columns, key, strict=True))
        epsilon, delta = (at.get(name, stored.only(name) or math.nan) for name in ("epsilon", "delta"))
        fits = growth_fits(group, axis, epsilon, delta)  # which are not read along themselves
        if fits:
            drawn.append(fitted_curve(group, axis, fits).assign(**at))
    return pd.concat(drawn) if drawn else pd.DataFrame()


def _literal(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with names that are drawn as they are."""
    return frame.assign(estimator=frame["estimator"].map(_unmath)) if "estimator" in frame else frame


def _unmath(text: str) -> str:
    """Text that is not read as a formula."""
    return text.replace("$", r"\$")


def _svg(drawing: Drawing) -> tuple[str, int]:
    """The drawing as a data URI, letters as outlines, so that it looks the same everywhere; its width in CSS pixels."""
    written = io.BytesIO()
    with mpl.rc_context({**STYLE, "svg.fonttype": "path", "svg.hashsalt": SALT}):
        drawing.savefig(written, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
    svg = written.getvalue()
    points = re.search(rb'<svg[^>]* width="([\d.]+)pt"', svg)
    width = drawing.get_figwidth() * 72 if points is None else float(points[1])
    return "data:image/svg+xml;base64," + base64.b64encode(svg).decode(), round(width * PIXELS_A_POINT)


def _caption(stored: StoredSweep) -> str:
    axis, *second = stored.axes
    curves = f", a curve for each value of {second[0].words} {second[0].symbol}" if second else ""
    return (
        f"Samples needed, N*, against {axis.label}{curves}. Dots: the median truth with its interval, hollow outside "
        "the small-ε regime; dashes: the worst; triangles at an edge: N* = 0 (below) or not reached (above); "
        "lines: bounds, predictions and fits."
    )


def _alternative(stored: StoredSweep, summary: pd.DataFrame) -> str:
    """What the figure shows, in words: N* of each estimator at both ends of the axis."""
    axis = stored.axes[0]
    told = []
    for name, rows in summary.groupby("estimator", sort=False):
        along = rows.sort_values(axis.name).to_dict("records")
        ends = [f"{_samples(row['median_n_star'])} at {axis.symbol} = {as_text(row[axis.name])}" for row in along]
        told.append(f"{name}: {', '.join(dict.fromkeys((ends[0], ends[-1])))}")
    return (
        f"Plot of samples needed N* against {axis.label}. Median truth, first and last value: {'; '.join(told)}. "
        "All values are in the table summary.csv on this page."
    )


def _samples(value: float) -> str:
    return "not reached" if value == float("inf") else f"N* = {value:,.0f}"
