"""The end of a sweep: tables and figure to files, tables, fits and verdicts on screen."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console

from markov_theory._checks import MAX_SAMPLES
from markov_theory.bounds import BOUNDS
from markov_theory.plots import sample_complexity_figure, save_figure
from markov_theory.sweep import screen
from markov_theory.sweep.engine import Cell, Outcome
from markov_theory.sweep.growth import growth_fits
from markov_theory.sweep.specification import Specification
from markov_theory.sweep.table import SHOWN_BOUNDS, CellBounds, cell_table, summary_table, write_table
from markov_theory.verify.verdict import HOLDS, INCONCLUSIVE, SILENT, VIOLATED


def present(
    console: Console,
    outcome: Outcome,
    bounds: CellBounds,
    uncertified: Mapping[Cell, int],
    origin: str,
    folder: Path,
) -> int:
    """Write and print what was measured; return the number of violated bounds."""
    specification = bounds.specification
    cells = cell_table(outcome.located, bounds, uncertified)
    summary = summary_table(cells)
    written = [*write_table(cells, folder, "cells"), *write_table(summary, folder, "summary")]
    figure = sample_complexity_figure(summary, specification.epsilon, specification.delta, origin)
    written += save_figure(figure, folder, "n_star_against_s")
    for name in dict.fromkeys(cells.estimator):
        console.print(screen.estimator_table(summary, name))
    written.append(_growth(console, cells, specification, folder))
    _regime(console, cells, specification.epsilon)
    violated = _verdicts(console, cells)
    _say(console, "written: " + ", ".join(str(path) for path in written))
    return violated


def _say(console: Console, line: str) -> None:
    """Print one line as it is, whatever the width of the screen."""
    console.print(line, soft_wrap=True, highlight=False)


def _growth(console: Console, cells: pd.DataFrame, specification: Specification, folder: Path) -> Path:
    _say(console, "growth in s (s = 1 left out; small-ε cells only; 95 % intervals):")
    stored = {}
    for name, group in cells.groupby("estimator", sort=False):
        fits = growth_fits(group, specification.epsilon, specification.delta)
        for fit in fits:
            _say(console, "  " + screen.fit_line(str(name), fit))
        stored[str(name)] = [asdict(fit) for fit in fits]
    path = folder / "growth.json"
    path.write_text(json.dumps(stored, indent=1, ensure_ascii=False))
    return path


def _regime(console: Console, cells: pd.DataFrame, epsilon: float) -> None:
    truths = cells.drop_duplicates(["s", "truth"])
    small, trivial = int(truths.small_epsilon.sum()), int((truths.kl_of_uniform_mixture <= epsilon).sum())
    _say(
        console,
        f"regime: ε <= γ_s/10 at {small} of {len(truths)} truths (small-ε); "
        f"the uniform mixture is within ε at {trivial}",
    )
    reached = cells[cells.estimator == "smoothed-empirical"].merge(
        cells[cells.estimator == "oracle"], on=["s", "truth"], suffixes=("_row", "_oracle")
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


def _verdicts(console: Console, cells: pd.DataFrame) -> int:
    """Print how each upper bound fared, tried at N = bound; return the number of violations."""
    total = 0
    for label in (label for label in SHOWN_BOUNDS if BOUNDS[label].kind == "upper"):
        spoken = cells[cells[label].notna()]
        if spoken.empty:
            continue
        counts = {
            verdict: int(spoken.verdicts.str.contains(f"{label}:{verdict.replace(' ', '-')}").sum())
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
