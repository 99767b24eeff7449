"""What measured N* say about a stated dependence: a fit with an interval, a rule, and a verdict that can be "violated".

Values y(x), which are N* or N* in units of the claim, are fitted by ``y = a + b·log x`` and by ``y ∝ x^p``, the
geometric mean over repeats at one x counting as one observation. *Free* of x means a change of at most 5 % of a per
e-fold of x: it is confirmed by an interval of b inside ±5 % of a, refuted by one outside it. *Growth* is confirmed by
an interval above 0, and refuted by one below or by freedom. An interval that does neither is inconclusive.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import t

from markov_theory._checks import Array
from markov_theory.sweep.axes import AXES
from markov_theory.sweep.growth import FREE, LEVEL, growth_fits
from markov_theory.verify.verdict import HOLDS, INCONCLUSIVE, VIOLATED

Interval = tuple[float, float, float]  # estimate, low, high
Law = Literal["log", "power"]


@dataclass(frozen=True, eq=False)
class Observations:
    """Values y at x, each known to lie in [low, high].

    Parameters
    ----------
    x, value, low, high : array_like, shape (n,)
        x > 0; a value that was not reached is ∞.
    """

    x: Array
    value: Array
    low: Array
    high: Array

    def __init__(self, x: ArrayLike, value: ArrayLike, low: ArrayLike, high: ArrayLike) -> None:
        for name, values in (("x", x), ("value", value), ("low", low), ("high", high)):
            object.__setattr__(self, name, np.asarray(values, dtype=np.float64))
        if not (self.x > 0).all() or len({a.shape for a in (self.x, self.value, self.low, self.high)}) > 1:
            raise ValueError(f"x must be > 0 and as many as the values, got {self.x.tolist()}")

    @property
    def reached(self) -> bool:
        """Whether every value is known and positive."""
        return bool((np.isfinite(self.value) & (self.value > 0)).all())


@dataclass(frozen=True)
class Growth:
    """How values grow with x: each number with its 95 % interval.

    Attributes
    ----------
    a, b : (value, low, high)
        Of ``y = a + b·log x``; b is the change per e-fold of x.
    p : (value, low, high)
        Of ``y ∝ x^p``.
    mean : (value, low, high)
        Geometric mean over x.
    residual : float
        Root mean square of the relative residuals of the line.
    n_points : int
        Values of x.
    middle : float
        Their geometric mean, where the power law has the mean value.
    """

    a: Interval
    b: Interval
    p: Interval
    mean: Interval
    residual: float
    n_points: int
    middle: float

    @classmethod
    def of(cls, data: Observations) -> Growth | None:
        """Fit; None with fewer than three values of x, or where a value was not reached.

        Examples
        --------
        >>> x = [8, 16, 32, 64]
        >>> fit = Growth.of(Observations(x, 10 + 2 * np.log(x), [0] * 4, [99] * 4))
        >>> [round(number[0], 6) for number in (fit.a, fit.b)]
        [10.0, 2.0]
        """
        if not data.reached:
            return None
        cells = pd.DataFrame({"tokens": data.x, "n_star": data.value})
        fits = growth_fits(cells, AXES["tokens"], math.nan, math.nan)
        if not fits:
            return None
        line, power = fits
        logs = np.log(data.value)
        at = np.unique(data.x)
        means = np.array([logs[data.x == x].mean() for x in at])
        half = float(t.isf(LEVEL / 2, means.size - 1)) * float(means.std(ddof=1)) / math.sqrt(means.size)
        log_mean = float(means.mean())
        mean = (math.exp(log_mean), math.exp(log_mean - half), math.exp(log_mean + half))
        a, b = line.parameters["a"], line.parameters["b"]
        middle = math.exp(float(np.log(at).mean()))
        return cls(a, b, power.parameters["p"], mean, line.residual, line.n_points, middle)

    def at(self, x: Array, law: Law) -> Array:
        """The fitted value at x."""
        if law == "log":
            return self.a[0] + self.b[0] * np.log(x)
        return np.asarray(self.mean[0] * (x / self.middle) ** self.p[0])

    def interval(self, law: Law) -> tuple[float, float]:
        """Interval of b, or of p."""
        return self.b[1:] if law == "log" else self.p[1:]

    def band(self, law: Law) -> float:
        """The largest |b|, or |p|, that counts as none."""
        return FREE * max(self.a[0], 0.0) if law == "log" else FREE


class Rule(ABC):
    """What must be true of the values for a prediction to hold.

    Attributes
    ----------
    law : {"log", "power"}
        The fit that decides.
    """

    law: Law = "log"

    @abstractmethod
    def words(self, symbol: str) -> str:
        """The rule in words, x being called `symbol`."""

    @abstractmethod
    def judge(self, data: Observations) -> str:
        """``"holds"``, ``"violated"`` or ``"inconclusive"``."""


@dataclass(frozen=True)
class Free(Rule):
    """No change with x beyond ±5 % per e-fold and, if a level is stated, a mean value within a share of it.

    Attributes
    ----------
    level : float, optional
        Stated value.
    within : float
        Share.
    law : {"log", "power"}
    """

    level: float | None = None
    within: float = 0.1
    law: Law = "log"

    def words(self, symbol: str) -> str:
        """See `Rule`."""
        level = "" if self.level is None else f", mean within {self.within:.0%} of {self.level:.3g}"
        return f"{symbol}-free: |{'b' if self.law == 'log' else 'p'}| <= 5 % per e-fold{level}"

    def judge(self, data: Observations) -> str:
        """See `Rule`.

        Examples
        --------
        >>> x, y = [8, 16, 32, 64], [100, 101, 100, 99]
        >>> Free().judge(Observations(x, y, y, y)), Free(level=50).judge(Observations(x, y, y, y))
        ('holds', 'violated')
        """
        fit = Growth.of(data)
        if fit is None:
            return INCONCLUSIVE
        verdicts = [_inside(fit.interval(self.law), -fit.band(self.law), fit.band(self.law))]
        if self.level is not None:
            verdicts.append(_inside(fit.mean[1:], self.level * (1 - self.within), self.level * (1 + self.within)))
        return VIOLATED if VIOLATED in verdicts else INCONCLUSIVE if INCONCLUSIVE in verdicts else HOLDS


@dataclass(frozen=True)
class Grows(Rule):
    """Growth with x: an interval of b (or p) above 0 and, if limits are stated, inside them; and no freedom.

    Attributes
    ----------
    least, most : float
        Of b, in the values' units per e-fold of x; or of p.
    law : {"log", "power"}
    """

    least: float = 0.0
    most: float = math.inf
    law: Law = "log"

    def words(self, symbol: str) -> str:
        """See `Rule`."""
        number = "b" if self.law == "log" else "p"
        limited = self.least > 0 or self.most < math.inf
        limits = f" and in [{self.least:.3g}, {self.most:.3g}]" if limited else ""
        return f"grows with {symbol}: {number} > 0{limits} per e-fold"

    def judge(self, data: Observations) -> str:
        """See `Rule`.

        Examples
        --------
        >>> x = np.array([8, 16, 32, 64])
        >>> grown, flat = 10 + 2 * np.log(x), np.full(4, 10.0)
        >>> Grows().judge(Observations(x, grown, grown, grown)), Grows().judge(Observations(x, flat, flat, flat))
        ('holds', 'violated')
        """
        fit = Growth.of(data)
        if fit is None:
            return INCONCLUSIVE
        low, high = fit.interval(self.law)
        if high <= 0 or max(-low, high) <= fit.band(self.law):
            return VIOLATED
        limits = _inside((low, high), self.least, self.most)
        return limits if limits == VIOLATED or low > 0 else INCONCLUSIVE


@dataclass(frozen=True)
class Flat(Rule):
    """The same whole number at every x, each being known exactly."""

    def words(self, symbol: str) -> str:
        """See `Rule`."""
        return f"the same whole number at every {symbol}"

    def judge(self, data: Observations) -> str:
        """See `Rule`.

        Examples
        --------
        >>> [Flat().judge(Observations([2, 4], [7, y], [7, y], [7, y])) for y in (7, 8)]
        ['holds', 'violated']
        """
        if data.low.max() > data.high.min():
            return VIOLATED
        return HOLDS if np.unique(np.concatenate([data.low, data.high])).size == 1 else INCONCLUSIVE


def _inside(interval: tuple[float, float], low: float, high: float) -> str:
    """Whether an interval lies inside limits, outside, or across one."""
    if interval[1] < low or interval[0] > high:
        return VIOLATED
    return HOLDS if low <= interval[0] and interval[1] <= high else INCONCLUSIVE
