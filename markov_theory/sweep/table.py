"""The tables of a sweep: N* of every truth beside the bounds that speak of its estimator; worst and median."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from markov_theory.bounds import BOUNDS
from markov_theory.estimators import ESTIMATORS
from markov_theory.instance import Instance
from markov_theory.sweep.engine import Cell
from markov_theory.sweep.sample_complexity import Located
from markov_theory.sweep.specification import Specification
from markov_theory.verify.verdict import INCONCLUSIVE, VIOLATED, upper_bound_verdict

SHOWN_BOUNDS = ("O1", "O2", "S1", "S2", "S6", "S3")


def bounds_for(instance: Instance, bound_class: str, epsilon: float, delta: float) -> dict[str, float]:
    """N (samples) of the shown bounds that speak of an estimator class at an instance, by label."""
    size = {"sparsity": instance.n_tokens} if bound_class == "simplex" else {}
    return {
        label: BOUNDS[label].at(instance, epsilon=epsilon, delta=delta, **size)
        for label in SHOWN_BOUNDS
        if bound_class in BOUNDS[label].speaks_of
    }


def cell_table(
    specification: Specification, located: dict[Cell, Located], instance: Callable[[int, int], Instance]
) -> pd.DataFrame:
    """One row a cell (s, truth, estimator), sorted: N* with its interval, regime, bounds and verdicts.

    Columns ``n_star, low, high`` and the bounds are in samples, ``support_margin`` in nats; a bound that does not
    speak of the estimator is missing.
    """
    order = {name: i for i, name in enumerate(specification.estimators)}
    rows = []
    for (s, truth, name), found in sorted(
        located.items(), key=lambda item: (item[0][0], order[item[0][2]], item[0][1])
    ):
        planted = instance(s, truth)
        bound_class = ESTIMATORS[name].for_instance(planted, specification.tolerance).bound_class
        bounds = bounds_for(planted, bound_class, specification.epsilon, specification.delta)
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
                "support_margin": planted.support_margin,
                "small_epsilon": planted.in_small_epsilon_regime(specification.epsilon),
                "kl_of_uniform_mixture": planted.kl_of_uniform_mixture,
                "guarantee": bound_class,
                **{label: bounds.get(label, float("nan")) for label in SHOWN_BOUNDS},
                VIOLATED: " ".join(_judged(bounds, found, VIOLATED)),
                INCONCLUSIVE: " ".join(_judged(bounds, found, INCONCLUSIVE)),
            }
        )
    return pd.DataFrame(rows)


def _judged(bounds: dict[str, float], found: Located, verdict: str) -> list[str]:
    return [
        label
        for label, bound in bounds.items()
        if BOUNDS[label].kind == "upper" and upper_bound_verdict(bound, found.low, found.high) == verdict
    ]


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
                "violated": int((group["violated"] != "").sum()),
            }
        )
    return pd.DataFrame(rows)


def write_table(table: pd.DataFrame, folder: Path, name: str) -> list[Path]:
    """Write ``<name>.csv`` and ``<name>.parquet``; return the paths."""
    paths = [folder / f"{name}.csv", folder / f"{name}.parquet"]
    table.to_csv(paths[0], index=False)
    table.to_parquet(paths[1], index=False)
    return paths
