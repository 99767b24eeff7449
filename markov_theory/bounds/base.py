"""What a bound is: a statement with a number of samples, its origin, and the estimators that it speaks of.

A new bound is a subclass of `Bound` with one static method ``n_samples``, a pure function of numbers (and,
for the sharper ones, rows and a target law). Its keyword names *are* the inputs: `Bound.at` reads them off an
instance, so a bound never touches an estimator and an instance never knows a bound.
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Literal

Kind = Literal["upper", "lower", "prediction"]
Event = Literal["kl", "hellinger", "row", "support", "excess", "exposure"]


class Bound(ABC):
    """A number of samples N with what it promises.

    Attributes
    ----------
    label : str
        Name of the statement in the theory, for example ``"S2"``.
    kind : {"upper", "lower", "prediction"}
        Upper: N samples suffice. Lower: fewer do not. Prediction: asymptotic, promises nothing.
    origin : {"paper", "derived"}
        Who stated it: the paper, or this project with explicit constants.
    speaks_of : tuple of str
        The estimator classes whose failure it bounds: ``"one-to-one"`` (maximum likelihood over single
        rows), ``"oracle"`` (maximum likelihood on the known support), ``"l0"`` (exact maximum likelihood over
        s-sparse mixtures), ``"simplex"`` (over all mixtures; read with s = T), ``"any"`` (lower bounds); for
        the embedding mixture ``"embedding-oracle"`` and ``"embedding-l0"``.
    event : {"kl", "hellinger", "row", "support", "excess", "exposure"}
        What success means. kl: every maximiser has KL(q‖q̂) ≤ ε (for a bound without ε, see its statement).
        hellinger: H²(q, q̂) ≤ ε. row: the one maximiser is the true row. support: every maximiser gives weight to
        every row that the truth mixes. excess: KL(q‖q̂) ≤ ε + that of the nearest law of the class. exposure: every
        new token is seen often enough. A bound says nothing of another event than its own.
    statement, reason : str
        What holds, in symbols and units; why, in a sentence or two.
    increasing, decreasing : tuple of str
        The scalar inputs in which N never falls, and never rises, with the other inputs held fixed.
        An input in neither has no monotonicity that the statement vouches for.
    """

    label: ClassVar[str]
    kind: ClassVar[Kind]
    origin: ClassVar[str]
    speaks_of: ClassVar[tuple[str, ...]]
    event: ClassVar[Event] = "kl"
    statement: ClassVar[str]
    reason: ClassVar[str]
    increasing: ClassVar[tuple[str, ...]] = ()
    decreasing: ClassVar[tuple[str, ...]] = ()

    @staticmethod
    @abstractmethod
    def n_samples(*args: Any, **quantities: Any) -> float:
        """Return N (samples, rounded up), ``inf`` where the statement says nothing."""

    @classmethod
    def inputs(cls) -> tuple[str, ...]:
        """Names of the quantities that N depends on."""
        return tuple(inspect.signature(cls.n_samples).parameters)

    @classmethod
    def at(cls, instance: Any, **given: Any) -> float:
        """Return N at `instance`; `given` quantities (say ``epsilon``, ``delta``) take precedence.

        An input with a default keeps it where neither knows better.

        Raises
        ------
        TypeError
            If a quantity without a default is neither given nor an attribute of the instance.
        """
        known = {name: getattr(instance, name) for name in cls.inputs() if hasattr(instance, name)}
        known |= {name: given[name] for name in cls.inputs() if name in given}
        parameters = inspect.signature(cls.n_samples).parameters.values()
        missing = [p.name for p in parameters if p.name not in known and p.default is p.empty]
        if missing:
            raise TypeError(f"{cls.label} needs {', '.join(missing)}: neither given nor known to the instance")
        return cls.n_samples(**known)


def round_up(n_samples: float) -> float:
    """Round N up to a whole number of samples; at least 0; ``inf`` stays."""
    return n_samples if math.isinf(n_samples) else float(max(0, math.ceil(n_samples)))


def round_down(n_samples: float) -> float:
    """Least whole number that a lower bound N leaves open: N rounded up, but not over its own rounding error.

    A lower bound that evaluates to 7.000000000000002 for a true 7 must not exclude 7.
    """
    return round_up(n_samples * (1 - 1e-12))


def least_integer(suffices: Callable[[int], bool], low: int = 0, guess: float = 1.0) -> float:
    """Least whole N ≥ `low` with ``suffices(N)``, a condition that stays true once it is true.

    Parameters
    ----------
    suffices : callable
        A whole number of samples to bool.
    low : int
        Where the search starts.
    guess : float
        Where the answer may lie; doubled until it suffices.

    Returns
    -------
    float
        Exact up to 2**53, rounded up to a double beyond it, ``inf`` if nothing up to 1e300 suffices.
    """
    if suffices(low):
        return float(low)
    failing, passing = low, max(low + 1, math.ceil(min(guess, 1e300)))
    while not suffices(passing):
        if passing > 10**300:
            return math.inf
        failing, passing = passing, 2 * passing
    while passing - failing > max(1, passing >> 52):
        middle = (failing + passing) // 2
        failing, passing = (failing, middle) if suffices(middle) else (middle, passing)
    result = float(passing)
    return result if result >= passing else math.nextafter(result, math.inf)
