"""The end of a sweep: tables and figure to files, tables, fits and verdicts on screen."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console

from markov_theory._checks import MAX_SAMPLES
from markov_theory.plots import Shown, sample_complexity_figure, save_figure
from markov_theory.sweep import screen
from markov_theory.sweep.axes import Axis, as_text
from markov_theory.sweep.engine import Outcome
from markov_theory.sweep.growth import comparison, fitted_curve, growth_fits
from markov_theory.sweep.specification import Specification
from markov_theory.sweep.table import CellBounds, cell_table, summary_table, write_table
from markov_theory.verify.verdict import HOLDS, INCONCLUSIVE, SILENT, VIOLATED


def present(
    console: Console,
    outcome: Outcome,
    bounds: CellBounds,
    uncertified: Mapping[tuple[str, int, str], int],
    origin: str,
    folder: Path,
) -> int:
    """Write and print what was measured; return the number of violated bounds."""
    specification = bounds.specification
    axes, labels = specification.axes, list(bounds.shown)
    cells = cell_table(outcome.located, bounds, uncertified)
    summary = summary_table(cells, [axis.name for axis in axes], labels)
    written = [*write_table(cells, folder, "cells"), *write_table(summary, folder, "summary")]
    for name in dict.fromkeys(cells.estimator):
        console.print(screen.estimator_table(summary, name, axes, labels))
    path, curves = _growth(console, cells, specification, folder)
    figure = sample_complexity_figure(
        summary,
        _only(specification, "epsilon"),
        _only(specification, "delta"),
        origin,
        axes=[Shown(axis.name, axis.symbol, axis.label, axis.log) for axis in axes],
        kinds={label: bound.kind for label, bound in bounds.shown.items()},
        fits=curves,
        loss=bounds.problem.loss,
    )
    written += [*save_figure(figure, folder, f"n_star_against_{axes[0].name}"), path]
    _regime(console, cells, specification)
    violated = _verdicts(console, cells, bounds.upper()) + _statements(console, cells, axes, labels)
    _say(console, "written: " + ", ".join(str(path) for path in written))
    return violated


def _only(specification: Specification, axis: str) -> float | None:
    """The value of an axis, None where it is swept."""
    values = dict(specification.grid)[axis]
    return values[0] if len(values) == 1 else None


def _say(console: Console, line: str) -> None:
    """Print one line as it is, whatever the width of the screen."""
    console.print(line, soft_wrap=True, highlight=False)


def _growth(
    console: Console, cells: pd.DataFrame, specification: Specification, folder: Path
) -> tuple[Path, pd.DataFrame]:
    """Fit, compare, print and write the growth of every curve; return the file and the fits to be drawn."""
    axis, *second = specification.axes
    restricted = "s = 1 left out; small-ε cells only; " if axis.name == "s" else ""
    if axis.name != "s" and "small_epsilon" in cells:
        restricted = f"small-ε cells only, if they have three values of {axis.symbol}; "
    lines: list[str] = []
    stored: dict[str, list[dict[str, Any]]] = {}
    drawn: list[pd.DataFrame] = []
    columns = ["estimator", *(other.name for other in second)]
    for key, group in cells.groupby(columns, sort=False):
        at: dict[str, Any] = dict(zip(columns, key, strict=True))
        name = ", ".join([at["estimator"], *(f"{other.symbol} = {as_text(at[other.name])}" for other in second)])
        curve: dict[str, Any] = {swept: values[0] for swept, values in specification.grid} | at
        fits = growth_fits(group, axis, curve["epsilon"], curve["delta"])
        lines += [screen.fit_line(name, fit) for fit in fits]
        lines += [f"{name}: {preferred}"] if (preferred := comparison(fits)) else []
        stored[name] = [fit.told() for fit in fits]
        if fits:
            drawn.append(fitted_curve(group, axis, fits).assign(**at))
    _say(console, f"growth in {axis.symbol} ({restricted}95 % intervals):" if lines else _no_fit(axis))
    for line in lines:
        _say(console, "  " + line)
    path = folder / "growth.json"
    path.write_text(json.dumps(stored, indent=1, ensure_ascii=False))
    return path, pd.concat(drawn) if drawn else pd.DataFrame()


def _no_fit(axis: Axis) -> str:
    return f"growth in {axis.symbol}: no fit, which takes three values of {axis.symbol} > 0 at which N* was reached"


def _regime(console: Console, cells: pd.DataFrame, specification: Specification) -> None:
    axes = [axis.name for axis in specification.axes]
    if "kl_of_uniform_mixture" in cells:
        truths = cells.drop_duplicates([*axes, "truth"])
        epsilon = truths["epsilon"] if "epsilon" in truths else _only(specification, "epsilon")
        small, trivial = int(truths.small_epsilon.sum()), int((truths.kl_of_uniform_mixture <= epsilon).sum())
        _say(
            console,
            f"regime: ε <= γ_s/10 at {small} of {len(truths)} truths (small-ε); "
            f"the uniform mixture is within ε at {trivial}",
        )
    if "approximation_error" in cells:
        errors = cells.groupby(axes, sort=False)["approximation_error"].median()
        listed = ", ".join(f"{value:.3g} at {_words(axes, key)}" for key, value in errors.items())
        _say(console, f"approximation error min KL(q‖mixture), nats, which no data reduce: {listed}")
    reached = cells[cells.estimator == "smoothed-empirical"].merge(
        cells[cells.estimator == "oracle"], on=[*axes, "truth"], suffixes=("_row", "_oracle")
    )
    reached = reached[
        (reached.n_star_oracle > 0) & np.isfinite(reached.n_star_oracle) & np.isfinite(reached.n_star_row)
    ]
    if len(reached):
        ratio = reached.n_star_row / reached.n_star_oracle
        _say(
            console,
            "the smoothed empirical row, which knows no dictionary, needs "
            f"{ratio.min():.3g} to {ratio.max():.3g} times the oracle's samples",
        )


def _words(axes: list[str], key: Any) -> str:
    values = key if isinstance(key, tuple) else (key,)
    return " ".join(f"{axis}={as_text(value)}" for axis, value in zip(axes, values, strict=True))


def _verdicts(console: Console, cells: pd.DataFrame, labels: list[str]) -> int:
    """Print how each upper bound fared, tried at N = bound; return the number of violations."""
    total = 0
    for label in labels:
        spoken = cells[cells[label].notna()]
        if spoken.empty:
            continue
        counts = {
            verdict: sum(f"{label}:{verdict.replace(' ', '-')}" in told.split() for told in spoken.verdicts)
            for verdict in (HOLDS, VIOLATED, INCONCLUSIVE, SILENT)
        }
        finite = spoken[np.isfinite(spoken[label]) & np.isfinite(spoken.n_star) & (spoken.n_star > 0)]
        slack = f"; median bound/N* = {(finite[label] / finite.n_star).median():.3g}" if len(finite) else ""
        beyond = int((np.isfinite(spoken[label]) & (spoken[label] > MAX_SAMPLES)).sum())
        untried = f" ({beyond} bounds exceed 2^53 samples, which cannot be drawn)" if beyond else ""
        told = ", ".join(f"{verdict} at {count}" for verdict, count in counts.items() if count)
        _say(console, f"{label}, tried at N = bound: {told} of {len(spoken)} truths{untried}{slack}")
        total += counts[VIOLATED]
    return total


def _statements(console: Console, cells: pd.DataFrame, axes: tuple[Axis, ...], bounds: list[str]) -> int:
    """Print the verdicts on what is no bound, checked exactly at each truth; return the number of violations."""
    told: dict[str, Counter[str]] = {}
    for one in cells.drop_duplicates([*(axis.name for axis in axes), "truth"]).verdicts:
        for label, _, verdict in (word.partition(":") for word in one.split()):
            if label not in bounds:
                told.setdefault(label, Counter())[verdict] += 1
    for label, counts in told.items():
        words = ", ".join(f"{verdict} at {count}" for verdict, count in counts.items())
        _say(console, f"{label}, checked exactly: {words} of {counts.total()} truths")
    return sum(counts[VIOLATED] for counts in told.values())
