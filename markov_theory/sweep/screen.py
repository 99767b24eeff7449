"""What a sweep shows: tables on screen, the fits and the pace in words."""

from __future__ import annotations

import math

import pandas as pd
from rich.table import Table

from markov_theory.sweep.axes import Axis, as_text
from markov_theory.sweep.engine import Effort
from markov_theory.sweep.growth import Fit

MOST_COLUMNS = 6
SUFFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def samples(value: float) -> str:
    """Write a number of samples in three digits: 1.23M.

    Examples
    --------
    >>> samples(1234567), samples(12), samples(float("inf")), samples(4.5e18)
    ('1.23M', '12', '∞', '4.50e+18')
    """
    if math.isnan(value):
        return ""
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if abs(value) >= 1e15:
        return f"{value:.2e}"
    for size, suffix in SUFFIXES:
        if abs(value) >= size:
            return f"{value / size:.3g}{suffix}"
    return f"{value:.0f}"


def n_star_interval(n_star: float, low: float, high: float) -> str:
    """Write an N* with its interval (low, high]; ``> low`` where it was not reached."""
    if math.isinf(n_star):
        return f"> {samples(low)}" if low >= 0 else "undecided"
    return f"{samples(n_star)} ({samples(max(low, 0))}, {samples(high)}]" if high > 0 else "0"


def estimator_table(summary: pd.DataFrame, name: str, axes: tuple[Axis, ...], labels: list[str]) -> Table:
    """The rows of one estimator, as a table on screen."""
    rows = summary[summary.estimator == name]
    bounds = [label for label in labels if rows[label].notna().any()]
    guarantee = "no guarantee" if not bounds else f"bounds of: {', '.join(dict.fromkeys(rows.guarantee))}"
    table = Table(title=f"{name}: N* ({guarantee})", title_justify="left")
    regime = ["regime"] if "small_epsilon" in rows else []
    for heading in (*(axis.heading for axis in axes), "median truth", "worst truth", *bounds, *regime):
        table.add_column(heading, justify="right" if heading != "regime" else "left")
    for row in rows.to_dict("records"):
        table.add_row(
            *(as_text(row[axis.name]) for axis in axes),
            n_star_interval(row["median_n_star"], row["median_low"], row["median_high"]),
            n_star_interval(row["worst_n_star"], row["worst_low"], row["worst_high"]),
            *(samples(row[label]) for label in bounds),
            *(["small-ε" if row["small_epsilon"] else "not small-ε"] if regime else []),
        )
    return table


def dictionary_table(described: dict[str, dict[str, str]]) -> Table:
    """What a person should see of the rows, a column for each of the first and the last few dictionaries."""
    shown = list(described)
    if len(shown) > MOST_COLUMNS:
        shown = shown[: MOST_COLUMNS - 1] + shown[-1:]
    table = Table(title="dictionary", title_justify="left", show_header=len(described) > 1)
    for heading in ("", *shown):
        table.add_column(heading)
    for quantity in dict.fromkeys(quantity for key in shown for quantity in described[key]):
        table.add_row(quantity, *(described[key].get(quantity, "") for key in shown))
    return table


def fit_line(name: str, fit: Fit) -> str:
    """One fit in words."""
    values = "  ".join(f"{k} = {v:.4g} [{low:.4g}, {high:.4g}]" for k, (v, low, high) in fit.parameters.items())
    verdict = f": {fit.verdict}" if fit.verdict else ""
    return f"{name}: {fit.law}:  {values}  (residual {fit.residual:.1%}, {fit.n_points} points){verdict}"


def effort_line(effort: Effort, n_workers: int | None) -> str:
    """How fast trials went; `n_workers` are those that were there all the time, None where they may come and go.

    Examples
    --------
    >>> print(effort_line(Effort(n_trials=60_000, work=18.0, duration=10.0), 2))
    60,000 of them now, in 10.0 s: 6,000 trials/s; 1.80 workers at work on average, 90 % of 2
    """
    busy, rate = effort.work / effort.duration, effort.n_trials / effort.duration
    share = f", {busy / n_workers:.0%} of {n_workers}".replace("%", " %") if n_workers else ""
    return (
        f"{effort.n_trials:,} of them now, in {effort.duration:.1f} s: {rate:,.0f} trials/s; "
        f"{busy:.2f} workers at work on average{share}"
    )
