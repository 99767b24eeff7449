"""How N* grows along an axis: fits with intervals. The paper's claims: at most linear in s, and independent of T."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import chi2, t

from markov_theory._checks import Array
from markov_theory.sweep.axes import Axis

LEVEL = 0.05
REWEIGHTINGS = 20
FREE = 0.05  # a slope within this share of the intercept, per e-fold, counts as none
T_FREE, LOG_T, FALLS, UNDECIDED = "T-free", "log T", "falls with T", "inconclusive"


@dataclass(frozen=True)
class Fit:
    """A fitted law of growth.

    Attributes
    ----------
    law : str
        In words.
    parameters : dict of str to (value, low, high)
        With 95 % intervals, from the scatter over points and truths.
    residual : float
        Root mean square of the relative residuals N*/fit − 1.
    n_points : int
    verdict : str
        What the fit decides, if it decides anything.
    """

    law: str
    parameters: dict[str, tuple[float, float, float]]
    residual: float
    n_points: int
    verdict: str = ""

    def told(self) -> dict[str, Any]:
        """As written to ``growth.json``."""
        return {key: value for key, value in asdict(self).items() if value != ""}


def growth_fits(cells: pd.DataFrame, axis: Axis, epsilon: float, delta: float) -> list[Fit]:
    """Fit laws of growth to the N* of one estimator along an axis.

    Along s: ``a + b·s``, ``b·χ²_{s−1,1−δ}`` and ``N ∝ s^p``; s = 1 is left out (no degree of freedom: the one-to-one
    theory's), and so are cells that are not in the small-ε regime. Along T: ``a + b·log T`` and a power; along every
    other axis x a power ``N ∝ x^p``, x > 0; by cells of the small-ε regime alone if they have three values of x. Cells
    whose N* was not reached are left out. Residuals are relative, so every value weighs alike. Where the rows change
    along the axis the truths at one value share them, so that their geometric mean counts as one observation.

    Parameters
    ----------
    cells : DataFrame
        Rows of one estimator and one curve, from `markov_theory.sweep.table.cell_table`.
    axis : Axis
        The column against which N* is fitted.
    epsilon, delta : float
        Of the curve; used along s.

    Returns
    -------
    list of Fit
        Empty if fewer than three values are left. ``2εb`` of the χ² law is 1 where Wilks' law with s − 1 degrees of
        freedom holds. The first fit along T carries a verdict (see `vocabulary_verdict`).
    """
    reached = _reached(cells, axis)
    if axis.name == "s":
        used = reached[(reached.s > 1) & regime(reached)]
        return _fits_in_s(used.s.to_numpy(float), used.n_star.to_numpy(float), epsilon, delta)
    used = _in_one_regime(reached, axis)
    if axis.shapes_rows:
        logs = used.assign(log_n=np.log(used.n_star.to_numpy(float))).groupby(axis.name)["log_n"].mean()
        x, n = logs.index.to_numpy(float), np.exp(logs.to_numpy(float))
    else:
        x, n = used[axis.name].to_numpy(float), used.n_star.to_numpy(float)
    if np.unique(x).size < 3:
        return []
    power = _power_fit(x, n, axis.symbol)
    if axis.name != "tokens":
        return [power]
    line = _relative_fit("N* = a + b·log T", np.column_stack([np.ones_like(x), np.log(x)]), n, ("a", "b"))
    verdict = vocabulary_verdict(line.parameters["a"][0], *line.parameters["b"][1:])
    return [Fit(line.law, line.parameters, line.residual, line.n_points, verdict), power]


def vocabulary_verdict(a: float, low: float, high: float) -> str:
    """Decide on N* = a + b·log T by the interval [low, high] of b.

    ``"T-free"`` if it lies within ±5 % of a, ``"log T"`` if all of it is above 0, ``"falls with T"`` if below; an
    interval that merely holds 0 is ``"inconclusive"``.

    Examples
    --------
    >>> vocabulary_verdict(100, -3, 4), vocabulary_verdict(100, 3, 9), vocabulary_verdict(100, -3, 9)
    ('T-free', 'log T', 'inconclusive')
    """
    if max(-low, high) <= FREE * a:
        return T_FREE
    if low > 0:
        return LOG_T
    return FALLS if high < 0 else UNDECIDED


def regime(cells: pd.DataFrame) -> pd.Series:
    """Which cells are in the small-ε regime; all of them where the kind of problem has no such regime."""
    if "small_epsilon" in cells:
        return cells["small_epsilon"].astype(bool)
    return pd.Series(True, index=cells.index)


def _reached(cells: pd.DataFrame, axis: Axis) -> pd.DataFrame:
    return cells[np.isfinite(cells.n_star) & (cells.n_star > 0) & (cells[axis.name] > 0)]


def _in_one_regime(cells: pd.DataFrame, axis: Axis) -> pd.DataFrame:
    small = cells[regime(cells)]
    return small if small[axis.name].nunique() >= 3 else cells


def fitted_curve(cells: pd.DataFrame, axis: Axis, fits: list[Fit]) -> pd.DataFrame:
    """Points of the fit with the smallest residual along the axis, to be drawn: columns of the axis, ``n``, ``law``."""
    best = min(fits, key=lambda fit: fit.residual)
    values = np.unique(cells[axis.name].to_numpy(float))
    x = np.geomspace(values[values > 0][0], values[-1], 33)
    value = {name: estimate for name, (estimate, _, _) in best.parameters.items()}
    if "p" in value:
        used = _in_one_regime(_reached(cells, axis), axis)
        level = np.log(used.n_star.to_numpy(float)) - value["p"] * np.log(used[axis.name].to_numpy(float))
        n, law = np.exp(level.mean()) * x ** value["p"], f"∝ {axis.symbol}^{value['p']:.2f}"
    else:
        n, law = value["a"] + value["b"] * np.log(x), f"{value['a']:.3g} + {value['b']:.3g} log T"
    return pd.DataFrame({axis.name: x, "n": n, "law": law})


def _fits_in_s(s: Array, n: Array, epsilon: float, delta: float) -> list[Fit]:
    if np.unique(s).size < 3:
        return []
    quantile = np.asarray(chi2.isf(delta, s - 1))
    line = _relative_fit("N* = a + b·s", np.column_stack([np.ones_like(s), s]), n, ("a", "b"))
    wilks = _relative_fit("N* = b·χ²(s−1, 1−δ)", quantile[:, None], n, ("b",))
    b, low, high = (2 * epsilon * value for value in wilks.parameters["b"])
    scale = {"2εb": (b, low, high)}
    return [line, Fit(wilks.law, scale, wilks.residual, wilks.n_points), _power_fit(s, n, "s")]


def _relative_fit(law: str, design: Array, n: Array, names: tuple[str, ...]) -> Fit:
    """Least squares weighted by the fit itself (so that residuals n/fit − 1 count alike), with t-intervals."""
    fitted = n
    for _ in range(REWEIGHTINGS):
        theta, half, _ = _least_squares(design / fitted[:, None], n / fitted)
        fitted = np.maximum(design @ theta, 1e-3 * n)
    parameters = {k: (v, v - h, v + h) for k, v, h in zip(names, theta.tolist(), half.tolist(), strict=True)}
    return Fit(law, parameters, float(np.sqrt(np.mean((n / (design @ theta) - 1) ** 2))), n.size)


def _power_fit(x: Array, n: Array, symbol: str) -> Fit:
    theta, half, fitted = _least_squares(np.column_stack([np.ones_like(x), np.log(x)]), np.log(n))
    power, width = float(theta[1]), float(half[1])
    residual = float(np.sqrt(np.mean((n / np.exp(fitted) - 1) ** 2)))
    return Fit(f"N* ∝ {symbol}^p", {"p": (power, power - width, power + width)}, residual, n.size)


def _least_squares(design: Array, values: Array) -> tuple[Array, Array, Array]:
    """Coefficients, half-widths of their 95 % intervals, and fitted values."""
    theta = np.linalg.lstsq(design, values, rcond=None)[0]
    fitted = design @ theta
    free = max(values.size - theta.size, 1)
    variance = ((values - fitted) ** 2).sum() / free
    spread = np.sqrt(variance * np.diag(np.linalg.inv(design.T @ design)))
    half_width = float(t.isf(LEVEL / 2, free)) * spread
    return theta.astype(float), half_width, fitted
