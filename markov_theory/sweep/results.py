"""The end of a sweep: tables and figure to files, tables, fits and verdicts on screen."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pandas as pd
from rich.console import Console

from markov_theory.bounds import BOUNDS
from markov_theory.instance import Instance
from markov_theory.plots import sample_complexity_figure, save_figure
from markov_theory.sweep import screen
from markov_theory.sweep.engine import Outcome
from markov_theory.sweep.growth import growth_fits
from markov_theory.sweep.specification import Specification
from markov_theory.sweep.table import SHOWN_BOUNDS, cell_table, summary_table, write_table


def present(
    console: Console,
    specification: Specification,
    outcome: Outcome,
    instance: Callable[[int, int], Instance],
    origin: str,
    folder: Path,
) -> int:
    """Write and print what was measured; return the number of violated bounds."""
    cells = cell_table(specification, outcome.located, instance)
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
    reached = reached[reached.n_star_oracle > 0]
    if len(reached):
        ratio = reached.n_star_row / reached.n_star_oracle
        _say(
            console,
            "the smoothed empirical row, which knows no dictionary, needs "
            f"{ratio.min():.3g} to {ratio.max():.3g} times the oracle's samples",
        )


def _verdicts(console: Console, cells: pd.DataFrame) -> int:
    """Print how often each upper bound held; return the number of violations."""
    total = 0
    for label in (label for label in SHOWN_BOUNDS if BOUNDS[label].kind == "upper"):
        spoken = cells[cells[label].notna()]
        if spoken.empty:
            continue
        violated, undecided = (
            sum(label in labels.split() for labels in spoken[column]) for column in ("violated", "inconclusive")
        )
        slack = (spoken[label] / spoken.n_star.clip(lower=1)).median()
        _say(
            console,
            f"{label}: holds at {len(spoken) - violated - undecided} truths, violated at {violated}, inconclusive at "
            f"{undecided}; median bound/N* = {slack:.3g}",
        )
        total += violated
    return total
