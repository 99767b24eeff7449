"""The tables of a sweep: N* of every truth beside the bounds that speak of its estimator; worst and median."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from markov_theory._checks import MAX_SAMPLES
from markov_theory.bounds import BOUNDS
from markov_theory.bounds.base import Bound, round_up
from markov_theory.sweep import extension
from markov_theory.sweep.axes import AXES, Point
from markov_theory.sweep.problems import PROBLEMS, Problem
from markov_theory.sweep.sample_complexity import Located
from markov_theory.sweep.specification import Cell, Specification
from markov_theory.verify.verdict import INCONCLUSIVE, SILENT, VIOLATED, upper_bound_verdict


class CellBounds:
    """The bounds that speak of a cell's estimator at its truth: N (samples) by label.

    Parameters
    ----------
    specification : Specification
    problem : Problem
    names : tuple of str, optional
        Labels of built-in bounds, or ``module:Name``; by default those of the kind of problem.

    Raises
    ------
    ValueError, TypeError
        If there is no such bound, or two have the same label.
    """

    def __init__(self, specification: Specification, problem: Problem, names: tuple[str, ...] | None = None) -> None:
        self.specification, self.problem = specification, problem
        self.shown: dict[str, type[Bound]] = {}
        for name in PROBLEMS[specification.kind].default_bounds if names is None else names:
            bound = extension.resolve(name, BOUNDS, Bound, "bounds")  # type: ignore[type-abstract]
            if self.shown.setdefault(bound.label, bound) is not bound:
                raise ValueError(f"bounds: {name!r} has the label {bound.label!r}, which another bound has already")
        self.of = cache(self._of)
        self.guarantee = cache(self._guarantee)
        self.facts = cache(self._facts)

    def upper(self) -> list[str]:
        """Labels of the bounds that say how many samples suffice."""
        return [label for label, bound in self.shown.items() if bound.kind == "upper"]

    def _guarantee(self, cell: Cell) -> str:
        """The class of estimators that the cell's belongs to."""
        point, truth, name = cell
        planted = self.problem.truth(point, truth)
        tolerance = self.specification.tolerance(point)
        return planted.guarantee(self.specification.estimator(name).for_instance(planted.instances[0], tolerance))

    def _of(self, cell: Cell) -> dict[str, float]:
        point, truth, _ = cell
        planted, guarantee = self.problem.truth(point, truth), self.guarantee(cell)
        found = {}
        for label, bound in self.shown.items():
            try:
                n_samples = planted.bound(bound, guarantee, point["epsilon"], point["delta"])
            except Exception as error:
                raise RuntimeError(
                    f"bound {label} at {point}, truth {truth}: {type(error).__name__}: {error}"
                ) from error
            if n_samples is not None:
                found[label] = round_up(n_samples) if bound.kind == "upper" else float(n_samples)
        return found

    def _facts(self, point: Point, truth: int) -> dict[str, Any]:
        """What is told of a truth beside N*; margin and ratio where the rows change from point to point."""
        planted = self.problem.truth(point, truth)
        rows: dict[str, Any] = {}
        if any(AXES[name].shapes_rows for name in self.specification.swept):
            rows = {"margin": planted.dictionary.margin, "density_ratio": planted.dictionary.density_ratio}
        return planted.facts(point["epsilon"]) | rows

    def checks(self, cell: Cell) -> tuple[int, ...]:
        """The upper bounds of a cell as N to be tried, as far as counts of that size can be drawn."""
        upper = {bound for label, bound in self.of(cell).items() if self.shown[label].kind == "upper"}
        return tuple(sorted(int(bound) for bound in upper if bound <= MAX_SAMPLES))

    def verdicts(self, cell: Cell, found: Located, uncertified: int) -> dict[str, str]:
        """A verdict on each upper bound, and on what is checked at the truth itself.

        Those on bounds are inconclusive where the estimator did not certify all its fits.
        """
        judged = {}
        for label, bound in self.of(cell).items():
            if self.shown[label].kind == "upper":
                verdict = upper_bound_verdict(bound, found.low, found.high, found.was_tried(bound))
                judged[label] = verdict if verdict == SILENT or not uncertified else INCONCLUSIVE
        point, truth, _ = cell
        return judged | self.problem.truth(point, truth).verdicts()


def cell_table(
    located: dict[Cell, Located], bounds: CellBounds, uncertified: Mapping[tuple[str, int, str], int]
) -> pd.DataFrame:
    """One row a cell (point, truth, estimator), sorted: N* with its interval, regime, bounds and verdicts.

    There is a column for each axis of the sweep that results are shown against. Columns ``n_star, low, high`` and the
    bounds are in samples, ``support_margin`` in nats; a bound that does not speak of the estimator is missing.
    `uncertified` counts the fits of a cell (its point as text) that missed their certificate.
    """
    specification = bounds.specification
    place = {point: i for i, point in enumerate(specification.points)}
    order = {name: i for i, name in enumerate(specification.estimators)}
    rows = []
    for cell, found in sorted(located.items(), key=lambda item: (place[item[0][0]], order[item[0][2]], item[0][1])):
        point, truth, name = cell
        missed = uncertified.get((str(point), truth, name), 0)
        verdicts = bounds.verdicts(cell, found, missed)
        rows.append(
            {
                **{axis.name: point[axis.name] for axis in specification.axes},
                "estimator": name,
                "truth": truth,
                "n_star": found.n_star,
                "low": found.low,
                "high": found.high,
                "settled": found.settled,
                "trials": sum(trials for _, trials, _ in found.curve),
                "uncertified": missed,
                **bounds.facts(point, truth),
                "guarantee": bounds.guarantee(cell),
                **{label: bounds.of(cell).get(label, float("nan")) for label in bounds.shown},
                "verdicts": " ".join(f"{label}:{verdict.replace(' ', '-')}" for label, verdict in verdicts.items()),
            }
        )
    return pd.DataFrame(rows)


def summary_table(cells: pd.DataFrame, axes: list[str], labels: list[str]) -> pd.DataFrame:
    """Over the truths of each (point, estimator): the median N* and the worst, each with its truth's interval.

    The median is the lower median, so that it is one truth's N*, with that truth's interval. Bounds are the
    largest over the truths. `axes` are the columns that tell points apart, `labels` those of bounds.
    """
    rows = []
    for (*point, name), group in cells.groupby([*axes, "estimator"], sort=False, dropna=False):
        ranked = group.sort_values(["n_star", "truth"])
        middle, worst = ranked.iloc[(len(ranked) - 1) // 2], ranked.iloc[-1]
        regime = {"small_epsilon": bool(group["small_epsilon"].all())} if "small_epsilon" in group else {}
        rows.append(
            {
                **dict(zip(axes, point, strict=True)),
                "estimator": name,
                "truths": len(group),
                **{f"median_{key}": middle[key] for key in ("n_star", "low", "high")},
                **{f"worst_{key}": worst[key] for key in ("n_star", "low", "high")},
                "settled": bool(group["settled"].all()),
                **regime,
                "guarantee": middle["guarantee"],
                **{label: group[label].max() for label in labels},
                "violated": int(group["verdicts"].str.contains(VIOLATED).sum()),
            }
        )
    return pd.DataFrame(rows)


def write_table(table: pd.DataFrame, folder: Path, name: str) -> list[Path]:
    """Write ``<name>.csv`` and ``<name>.parquet``; return the paths."""
    paths = [folder / f"{name}.csv", folder / f"{name}.parquet"]
    table.to_csv(paths[0], index=False)
    table.to_parquet(paths[1], index=False)
    return paths
