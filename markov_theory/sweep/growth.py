"""How N* grows along an axis: fits with intervals. The paper's claims: at most linear in s, and independent of T."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
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
EXACT = 1e-24  # mean square of relative residuals that are rounding
DECISIVE = 0.95  # a law with this weight is preferred to the others


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
    n_fitted : int
        Numbers that the law has free: parameters, and the level of a power.
    curve : callable
        N* at an array of values of the axis.
    words : str
        The law with its parameters, for a figure.
    verdict : str
        What the fit decides, if it decides anything.
    weight : float or None
        Akaike weight among the laws fitted to the same points; None where these are too few to compare.
    """

    law: str
    parameters: dict[str, tuple[float, float, float]]
    residual: float
    n_points: int
    n_fitted: int
    curve: Callable[[Array], Array] = field(compare=False, repr=False)
    words: str
    verdict: str = ""
    weight: float | None = None

    def told(self) -> dict[str, Any]:
        """As written to ``growth.json``."""
        told = {"law": self.law, "parameters": self.parameters, "residual": self.residual, "n_points": self.n_points}
        return told | {k: v for k, v in (("verdict", self.verdict), ("weight", self.weight)) if v not in ("", None)}


def growth_fits(cells: pd.DataFrame, axis: Axis, epsilon: float, delta: float) -> list[Fit]:
    """Fit laws of growth to the N* of one estimator along an axis, and compare them.

    Along s: ``a + b·s``, ``b·χ²_{s−1,1−δ}`` and ``N ∝ s^p``; s = 1 is left out (no degree of freedom: the one-to-one
    theory's), and so are cells that are not in the small-ε regime. Along every other axis x a power ``N ∝ x^p`` and
    ``a + b·log x``, x > 0; by cells of the small-ε regime alone if they have three values of x. Cells whose N* was not
    reached are left out. Residuals are relative, so every value weighs alike. Where the rows change along the axis the
    truths at one value share them, so that their geometric mean counts as one observation.

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
        freedom holds. The first fit along T, ``a + b·log T``, carries a verdict (see `vocabulary_verdict`). The weights
        compare the laws (see `comparison`).
    """
    reached = _reached(cells, axis)
    if axis.name == "s":
        used = reached[(reached.s > 1) & regime(reached)]
        x, n = used.s.to_numpy(float), used.n_star.to_numpy(float)
    else:
        x, n = _observations(_in_one_regime(reached, axis), axis)
    if np.unique(x).size < 3:
        return []
    power = _power_fit(x, n, axis.symbol)
    if axis.name == "s":
        fits = [_line_in_s(x, n), _wilks_law(x, n, epsilon, delta), power]
    elif axis.name == "tokens":
        line = _logarithm(x, n, axis.symbol)
        fits = [replace(line, verdict=vocabulary_verdict(line.parameters["a"][0], *line.parameters["b"][1:])), power]
    else:
        fits = [power, _logarithm(x, n, axis.symbol)]
    weights = _akaike_weights(fits, x, n)
    return [replace(fit, weight=weight) for fit, weight in zip(fits, weights, strict=True)]


def comparison(fits: Sequence[Fit]) -> str:
    """Say which of several laws fitted to the same points is preferred; ``""`` where they cannot be compared.

    By Akaike's weights, ``w ∝ e^{−AICc/2}`` of log N* with normal errors: the share of the evidence that a law has.
    One with a weight of at least 0.95 is preferred.
    """
    weights = [fit.weight for fit in fits]
    if len(fits) < 2 or None in weights:
        return ""
    best = max(fits, key=lambda fit: fit.weight or 0.0)
    told = ", ".join(f"{fit.law} {fit.weight:.2g}" for fit in fits)
    return f"{best.law if (best.weight or 0.0) >= DECISIVE else 'no law'} is preferred (Akaike weights: {told})"


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
    """Points of the best of the fits along the axis, to be drawn: columns of the axis, ``n``, ``law``.

    The best has the largest weight, or where the points are too few for weights, the smallest residual.
    """
    best = max(fits, key=lambda fit: (fit.weight or 0.0, -fit.residual))
    values = np.unique(cells[axis.name].to_numpy(float))
    values = values[values > (1 if axis.name == "s" else 0)]
    x = np.geomspace(values[0], values[-1], 33)
    return pd.DataFrame({axis.name: x, "n": best.curve(x), "law": best.words})


def _observations(cells: pd.DataFrame, axis: Axis) -> tuple[Array, Array]:
    """Values of the axis and N*; one of each value where the rows change along the axis."""
    if not axis.shapes_rows:
        return cells[axis.name].to_numpy(float), cells.n_star.to_numpy(float)
    logs = cells.assign(log_n=np.log(cells.n_star.to_numpy(float))).groupby(axis.name)["log_n"].mean()
    return logs.index.to_numpy(float), np.exp(logs.to_numpy(float))


def _line_in_s(s: Array, n: Array) -> Fit:
    return _relative_fit("N* = a + b·s", lambda x: np.column_stack([np.ones_like(x), x]), s, n, "s")


def _logarithm(x: Array, n: Array, symbol: str) -> Fit:
    law = f"N* = a + b·log {symbol}"
    return _relative_fit(law, lambda v: np.column_stack([np.ones_like(v), np.log(v)]), x, n, f"log {symbol}")


def _wilks_law(s: Array, n: Array, epsilon: float, delta: float) -> Fit:
    fit = _relative_fit("N* = b·χ²(s−1, 1−δ)", lambda x: np.asarray(chi2.isf(delta, x - 1))[:, None], s, n, "")
    b, low, high = (2 * epsilon * value for value in fit.parameters["b"])
    return replace(fit, parameters={"2εb": (b, low, high)}, words=f"{b:.3g} × χ²(s−1, 1−δ)/2ε")


def _relative_fit(law: str, columns: Callable[[Array], Array], x: Array, n: Array, of: str) -> Fit:
    """Least squares weighted by the fit itself (so that residuals n/fit − 1 count alike), with t-intervals."""
    design, fitted = columns(x), n
    for _ in range(REWEIGHTINGS):
        theta, half, _ = _least_squares(design / fitted[:, None], n / fitted)
        fitted = np.maximum(design @ theta, 1e-3 * n)
    names = ("a", "b")[-theta.size :]
    parameters = {k: (v, v - h, v + h) for k, v, h in zip(names, theta.tolist(), half.tolist(), strict=True)}
    words = f"{theta[0]:.3g} {'−' if theta[-1] < 0 else '+'} {abs(theta[-1]):.3g} {of}"
    residual = float(np.sqrt(np.mean((n / (design @ theta) - 1) ** 2)))
    return Fit(law, parameters, residual, n.size, theta.size, lambda values: columns(values) @ theta, words)


def _power_fit(x: Array, n: Array, symbol: str) -> Fit:
    theta, half, fitted = _least_squares(np.column_stack([np.ones_like(x), np.log(x)]), np.log(n))
    level, power, width = float(np.exp(theta[0])), float(theta[1]), float(half[1])
    residual = float(np.sqrt(np.mean((n / np.exp(fitted) - 1) ** 2)))
    parameters = {"p": (power, power - width, power + width)}
    words = f"∝ {symbol}^{power:.2f}"
    return Fit(f"N* ∝ {symbol}^p", parameters, residual, n.size, 2, lambda values: level * values**power, words)


def _akaike_weights(fits: list[Fit], x: Array, n: Array) -> list[float] | list[None]:
    """``e^{−AICc/2}``, normalised: log N* has normal errors, whose variance is fitted too."""
    counts = np.array([fit.n_fitted + 1 for fit in fits])
    if n.size < counts.max() + 2:
        return [None] * len(fits)
    criterion = np.array([_log_mean_square(fit, x, n) for fit in fits]) * n.size
    criterion += 2 * counts * n.size / (n.size - counts - 1)
    weights = np.exp((criterion.min() - criterion) / 2)
    return (weights / weights.sum()).tolist()


def _log_mean_square(fit: Fit, x: Array, n: Array) -> float:
    """Logarithm of the mean square of log N* − log fit; ``inf`` where the law gives no samples or fewer."""
    fitted = fit.curve(x)
    if (fitted <= 0).any():
        return float("inf")
    return float(np.log(max(np.mean(np.log(n / fitted) ** 2), EXACT)))


def _least_squares(design: Array, values: Array) -> tuple[Array, Array, Array]:
    """Coefficients, half-widths of their 95 % intervals (infinite where they are not determined), and fitted values."""
    theta, _, rank, _ = np.linalg.lstsq(design, values, rcond=None)
    fitted = design @ theta
    free = max(values.size - theta.size, 1)
    variance = ((values - fitted) ** 2).sum() / free
    spread = np.sqrt(variance * (np.linalg.pinv(design) ** 2).sum(axis=1)) if rank == theta.size else np.inf
    half_width = np.full(theta.size, float(t.isf(LEVEL / 2, free)) * spread)
    return theta.astype(float), half_width, fitted
