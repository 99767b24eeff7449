"""How N* grows with s: fits with intervals. The paper's claim is "at most linear"."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import chi2, t

from markov_theory._checks import Array

LEVEL = 0.05
REWEIGHTINGS = 20


@dataclass(frozen=True)
class Fit:
    """A fitted law of growth.

    Attributes
    ----------
    law : str
        In words.
    parameters : dict of str to (value, low, high)
        With 95 % intervals, from the scatter over s and truths.
    residual : float
        Root mean square of the relative residuals N*/fit − 1.
    n_points : int
    """

    law: str
    parameters: dict[str, tuple[float, float, float]]
    residual: float
    n_points: int


def growth_fits(cells: pd.DataFrame, epsilon: float, delta: float) -> list[Fit]:
    """Fit ``a + b·s``, ``b·χ²_{s−1,1−δ}`` and ``N ∝ s^p`` to the N* of one estimator.

    s = 1 is left out (no degree of freedom: the one-to-one theory's), and so are cells that are not in the
    small-ε regime or whose N* was not reached. Residuals are relative, so every s weighs alike.

    Parameters
    ----------
    cells : DataFrame
        Rows of one estimator, from `markov_theory.sweep.table.cell_table`.

    Returns
    -------
    list of Fit
        Empty if fewer than three values of s are left. ``2εb`` of the χ² law is 1 where Wilks' law with
        s − 1 degrees of freedom holds.
    """
    used = cells[(cells.s > 1) & cells.small_epsilon & np.isfinite(cells.n_star) & (cells.n_star > 0)]
    if used.s.nunique() < 3:
        return []
    s, n = used.s.to_numpy(float), used.n_star.to_numpy(float)
    quantile = chi2.isf(delta, s - 1)
    line = _relative_fit("N* = a + b·s", np.column_stack([np.ones_like(s), s]), n, ("a", "b"))
    wilks = _relative_fit("N* = b·χ²(s−1, 1−δ)", quantile[:, None], n, ("b",))
    b, low, high = (2 * epsilon * value for value in wilks.parameters["b"])
    scale = {"2εb": (b, low, high)}
    return [line, Fit(wilks.law, scale, wilks.residual, wilks.n_points), _power_fit(s, n)]


def _relative_fit(law: str, design: Array, n: Array, names: tuple[str, ...]) -> Fit:
    """Least squares weighted by the fit itself (so that residuals n/fit − 1 count alike), with t-intervals."""
    fitted = n
    for _ in range(REWEIGHTINGS):
        theta, half, _ = _least_squares(design / fitted[:, None], n / fitted)
        fitted = np.maximum(design @ theta, 1e-3 * n)
    parameters = {k: (v, v - h, v + h) for k, v, h in zip(names, theta.tolist(), half.tolist(), strict=True)}
    return Fit(law, parameters, float(np.sqrt(np.mean((n / (design @ theta) - 1) ** 2))), n.size)


def _power_fit(s: Array, n: Array) -> Fit:
    theta, half, fitted = _least_squares(np.column_stack([np.ones_like(s), np.log(s)]), np.log(n))
    power, width = float(theta[1]), float(half[1])
    residual = float(np.sqrt(np.mean((n / np.exp(fitted) - 1) ** 2)))
    return Fit("N* ∝ s^p", {"p": (power, power - width, power + width)}, residual, n.size)


def _least_squares(design: Array, values: Array) -> tuple[Array, Array, Array]:
    """Coefficients, half-widths of their 95 % intervals, and fitted values."""
    theta = np.linalg.lstsq(design, values, rcond=None)[0]
    fitted = design @ theta
    free = max(values.size - theta.size, 1)
    variance = ((values - fitted) ** 2).sum() / free
    spread = np.sqrt(variance * np.diag(np.linalg.inv(design.T @ design)))
    half_width = float(t.isf(LEVEL / 2, free)) * spread
    return theta.astype(float), half_width, fitted
