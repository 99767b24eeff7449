"""The tables of a sweep: N* of every truth beside the bounds that speak of its estimator; worst and median."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path

import pandas as pd

from markov_theory._checks import MAX_SAMPLES
from markov_theory.bounds import BOUNDS
from markov_theory.estimators import ESTIMATORS
from markov_theory.instance import Instance
from markov_theory.sweep.engine import Cell
from markov_theory.sweep.sample_complexity import Located
from markov_theory.sweep.specification import Specification
from markov_theory.verify.verdict import INCONCLUSIVE, SILENT, VIOLATED, upper_bound_verdict

SHOWN_BOUNDS = ("O1", "O2", "S1", "S2", "S6", "S3")


class CellBounds:
    """The bounds that speak of a cell's estimator at its truth: N (samples) by label.

    Parameters
    ----------
    specification : Specification
    instance : callable
        Returns the truth of (s, truth).
    """

    def __init__(self, specification: Specification, instance: Callable[[int, int], Instance]) -> None:
        self.specification, self.instance = specification, instance
        self.of = lru_cache(maxsize=None)(self._of)

    def bound_class(self, cell: Cell) -> str:
        """The class of estimators that the cell's belongs to."""
        s, truth, name = cell
        estimator = ESTIMATORS[name].for_instance(self.instance(s, truth), self.specification.tolerance)
        if estimator.bound_class == "one-to-one" and s > 1:
            return "none"  # the bounds of that class suppose that the truth is a single row
        return estimator.bound_class

    def _of(self, cell: Cell) -> dict[str, float]:
        instance, bound_class = self.instance(*cell[:2]), self.bound_class(cell)
        size = {"sparsity": instance.n_tokens} if bound_class == "simplex" else {}
        given = {"epsilon": self.specification.epsilon, "delta": self.specification.delta, **size}
        return {
            label: BOUNDS[label].at(instance, **given)
            for label in SHOWN_BOUNDS
            if bound_class in BOUNDS[label].speaks_of
        }

    def checks(self, cell: Cell) -> tuple[int, ...]:
        """The upper bounds of a cell as N to be tried, as far as counts of that size can be drawn."""
        upper = {bound for label, bound in self.of(cell).items() if BOUNDS[label].kind == "upper"}
        return tuple(sorted(int(bound) for bound in upper if bound <= MAX_SAMPLES))

    def verdicts(self, cell: Cell, found: Located, uncertified: int) -> dict[str, str]:
        """A verdict on each upper bound; inconclusive where the estimator did not certify all its fits."""
        judged = {}
        for label, bound in self.of(cell).items():
            if BOUNDS[label].kind == "upper":
                verdict = upper_bound_verdict(bound, found.low, found.high, found.was_tried(bound))
                judged[label] = verdict if verdict == SILENT or not uncertified else INCONCLUSIVE
        return judged


def cell_table(located: dict[Cell, Located], bounds: CellBounds, uncertified: Mapping[Cell, int]) -> pd.DataFrame:
    """One row a cell (s, truth, estimator), sorted: N* with its interval, regime, bounds and verdicts.

    Columns ``n_star, low, high`` and the bounds are in samples, ``support_margin`` in nats; a bound that does not
    speak of the estimator is missing. `uncertified` counts the fits of a cell that missed their certificate.
    """
    specification = bounds.specification
    order = {name: i for i, name in enumerate(specification.estimators)}
    rows = []
    for cell, found in sorted(located.items(), key=lambda item: (item[0][0], order[item[0][2]], item[0][1])):
        s, truth, name = cell
        planted = bounds.instance(s, truth)
        verdicts = bounds.verdicts(cell, found, uncertified.get(cell, 0))
        rows.append(
            {
                "s": s,
                "estimator": name,
                "truth": truth,
                "n_star": found.n_star,
                "low": found.low,
                "high": found.high,
                "settled": found.settled,
                "trials": sum(trials for _, trials, _ in found.curve),
                "uncertified": uncertified.get(cell, 0),
                "support_margin": planted.support_margin,
                "small_epsilon": planted.in_small_epsilon_regime(specification.epsilon),
                "kl_of_uniform_mixture": planted.kl_of_uniform_mixture,
                "guarantee": bounds.bound_class(cell),
                **{label: bounds.of(cell).get(label, float("nan")) for label in SHOWN_BOUNDS},
                "verdicts": " ".join(f"{label}:{verdict.replace(' ', '-')}" for label, verdict in verdicts.items()),
            }
        )
    return pd.DataFrame(rows)


def summary_table(cells: pd.DataFrame) -> pd.DataFrame:
    """Over the truths of each (s, estimator): the median N* and the worst, each with its truth's interval.

    The median is the lower median, so that it is one truth's N*, with that truth's interval. Bounds are the
    largest over the truths.
    """
    rows = []
    for (s, name), group in cells.groupby(["s", "estimator"], sort=False):
        ranked = group.sort_values(["n_star", "truth"])
        middle, worst = ranked.iloc[(len(ranked) - 1) // 2], ranked.iloc[-1]
        rows.append(
            {
                "s": s,
                "estimator": name,
                "truths": len(group),
                **{f"median_{key}": middle[key] for key in ("n_star", "low", "high")},
                **{f"worst_{key}": worst[key] for key in ("n_star", "low", "high")},
                "settled": bool(group["settled"].all()),
                "small_epsilon": bool(group["small_epsilon"].all()),
                "guarantee": middle["guarantee"],
                **{label: group[label].max() for label in SHOWN_BOUNDS},
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
