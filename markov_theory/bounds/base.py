"""What a bound is: a statement with a number of samples, its origin, and the estimators that it speaks of.

A new bound is a subclass of `Bound` with one static method ``n_samples``, a pure function of numbers (and, for
the sharper ones, rows and a target law). Its keyword names *are* the inputs: `Bound.at` reads them off an
instance, so a bound never touches an estimator and an instance never knows a bound.
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal

Kind = Literal["upper", "lower", "prediction"]


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
        s-sparse mixtures), ``"simplex"`` (over all mixtures; read with s = T), ``"any"`` (lower bounds).
    statement, reason : str
        What holds, in symbols and units; why, in a sentence or two.
    """

    label: ClassVar[str]
    kind: ClassVar[Kind]
    origin: ClassVar[str]
    speaks_of: ClassVar[tuple[str, ...]]
    statement: ClassVar[str]
    reason: ClassVar[str]

    @staticmethod
    @abstractmethod
    def n_samples(**quantities: Any) -> float:
        """Return N (samples, rounded up), ``inf`` where the statement says nothing."""

    @classmethod
    def inputs(cls) -> tuple[str, ...]:
        """Names of the quantities that N depends on."""
        return tuple(inspect.signature(cls.n_samples).parameters)

    @classmethod
    def at(cls, instance: Any, **given: Any) -> float:
        """Return N at `instance`; `given` quantities (say ``epsilon``, ``delta``) take precedence.

        Raises
        ------
        TypeError
            If a quantity is neither given nor an attribute of the instance.
        """
        missing = [name for name in cls.inputs() if name not in given and not hasattr(instance, name)]
        if missing:
            raise TypeError(f"{cls.label} needs {', '.join(missing)}: neither given nor known to the instance")
        return cls.n_samples(
            **{name: given[name] if name in given else getattr(instance, name) for name in cls.inputs()}
        )


def round_up(n_samples: float) -> float:
    """Round N up to a whole number of samples; at least 0; ``inf`` stays."""
    return n_samples if math.isinf(n_samples) else float(max(0, math.ceil(n_samples)))
