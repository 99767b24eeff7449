"""What the trials say: success with its interval, where it passes one half, and whether the bounds hold."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from markov_theory.bounds.base import Bound
from markov_theory.bounds.support import S5, S5Plus
from markov_theory.recovery.trials import Plan, planted
from markov_theory.success import decreasing_fit, failure_bounds
from markov_theory.verify.verdict import HOLDS, INCONCLUSIVE, SILENT, VIOLATED

BOUNDS: tuple[type[Bound], ...] = (S5Plus, S5)
DELTAS = (0.5, 0.05)
LEVEL = 0.05


def phase_table(cells: pd.DataFrame) -> pd.DataFrame:
    """Success over all truths at each s, N and estimator, with Clopper-Pearson limits of 95 % each cell.

    Parameters
    ----------
    cells : DataFrame
        From `markov_theory.recovery.trials.run_all`.

    Returns
    -------
    DataFrame
        ``s``, ``n``, ``estimator``, ``trials``, ``successes``, ``success``, ``low``, ``high`` and ``uncertified``,
        the share of fits without a certificate. Limits are for the mixture of the truths that were planted.
    """
    counted = ["trials", "successes", "uncertified"]
    table = cells.groupby(["estimator", "s", "n"], sort=False, as_index=False)[counted].sum()
    limits = [
        failure_bounds(k, n, LEVEL / 2) for k, n in zip(table.successes.tolist(), table.trials.tolist(), strict=True)
    ]
    table["success"] = table.successes / table.trials
    table["low"], table["high"] = np.array(limits).T
    table["uncertified"] = table.uncertified / table.trials
    return table


def half_line(phase: pd.DataFrame) -> pd.DataFrame:
    """N at which success passes one half, log-linear between neighbours, at each estimator and s.

    Returns
    -------
    DataFrame
        ``estimator``, ``s``, ``n_half``; NaN where it is not passed on the N tried.
    """
    rows = []
    for (estimator, s), group in phase.groupby(["estimator", "s"], sort=False):
        ordered = group.sort_values("n")
        failure = decreasing_fit(1 - ordered.success, ordered.trials)
        rows.append({"estimator": estimator, "s": s, "n_half": _crossing(ordered.n.to_numpy(float), failure)})
    return pd.DataFrame(rows)


def _crossing(n: np.ndarray, failure: np.ndarray) -> float:
    below = np.flatnonzero(failure <= 0.5)
    if below.size == 0 or below[0] == 0:
        return math.nan
    i = int(below[0])
    share = (failure[i - 1] - 0.5) / (failure[i - 1] - failure[i])
    return float(n[i - 1] * (n[i] / n[i - 1]) ** share)


def bound_table(plan: Plan) -> pd.DataFrame:
    """N of each bound at each truth: ``s``, ``truth``, ``bound``, ``delta``, ``n_samples``."""
    rows = []
    for s in plan.sparsities:
        for truth in range(plan.truths):
            instance = planted(plan, s, truth)
            for bound in BOUNDS:
                for delta in DELTAS:
                    numbers = {"delta": delta, "n_samples": bound.at(instance, delta=delta)}
                    rows.append({"s": s, "truth": truth, "bound": bound.label} | numbers)
    return pd.DataFrame(rows)


def judge_bounds(cells: pd.DataFrame, bounds: pd.DataFrame) -> pd.DataFrame:
    """Judge "from N on, exact ℓ0 finds the support with probability at least 1 − δ" at every truth and N tried.

    Limits are Clopper-Pearson's at 5 % over all cells of a bound and δ. A fit without a certificate counts as a
    success where a bound might be violated, and as a failure where it might hold.

    Returns
    -------
    DataFrame
        ``bound``, ``delta``, ``tried`` (cells at N ≥ bound), ``failing`` (certified above δ), ``passing`` (certified
        at most δ) and ``verdict``.
    """
    exact = cells[cells.estimator == "exact-l0"]
    rows: list[dict[str, Any]] = []
    for label, delta in product(dict.fromkeys(bounds.bound), DELTAS):
        joined = exact.merge(bounds[(bounds.bound == label) & (bounds.delta == delta)], on=["s", "truth"])
        spoken = joined[joined.n >= joined.n_samples]
        failing = passing = 0
        for failures, uncertain, hidden, trials in _counts(spoken):
            level = LEVEL / len(spoken)
            failing += failure_bounds(failures - uncertain, trials, level)[0] > delta
            passing += failure_bounds(failures + hidden, trials, level)[1] <= delta
        verdict = VIOLATED if failing else HOLDS if passing == len(spoken) else INCONCLUSIVE
        counts = {"tried": len(spoken), "failing": int(failing), "passing": int(passing)}
        rows.append({"bound": label, "delta": delta, **counts, "verdict": verdict if len(spoken) else SILENT})
    return pd.DataFrame(rows)


def _counts(cells: pd.DataFrame) -> list[list[int]]:
    """Failures of each cell, how many of them and of the successes are not certified, and trials."""
    failures, hidden = cells.trials - cells.successes, cells.uncertified - cells.uncertified_failures
    return np.column_stack([failures, cells.uncertified_failures, hidden, cells.trials]).tolist()
