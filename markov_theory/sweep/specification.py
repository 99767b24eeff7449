"""What a sweep is: everything that its numbers depend on, and nothing else."""

from __future__ import annotations

import hashlib
import itertools
import json
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from markov_theory._checks import whole
from markov_theory._compile import COMPILED
from markov_theory.dictionary import Dictionary
from markov_theory.estimators import RowEstimator
from markov_theory.estimators.base import tolerance_for
from markov_theory.sweep import extension
from markov_theory.sweep.axes import AXES, MOST_TRUTHS, Axis, Point, Value, range_text
from markov_theory.sweep.grid import thinned
from markov_theory.sweep.problems import PROBLEMS, Problem
from markov_theory.sweep.sample_complexity import BATCH, Design

DISPLAY = (
    "screen.py", "results.py", "table.py", "growth.py", "arguments.py", "setup.py", "specfile.py", "__main__.py",
    "_command.py", "_progress.py",
)  # fmt: skip
ELSEWHERE = ("llm", "plots.py", "provenance.py", "bounds", "verify", "plan", "report", "dependence", "recovery")
MOST_REACH = 64
Cell = tuple[Point, int, str]


@dataclass(frozen=True)
class Specification:
    """A sweep over one or two axes of a kind of problem.

    Attributes
    ----------
    kind : str
        Name in `markov_theory.sweep.problems.PROBLEMS`.
    grid : tuple of (axis, values)
        Increasing values of every axis of the kind, in the order of `AXES`; at most two axes with several.
    options : tuple of (name, value)
        The kind's own options, all of them.
    rows : str
        SHA-256 of given rows, from `fingerprint`; ``""`` for made ones.
    estimators : tuple of str
        Names of built-in estimators, or ``module:Name``.
    truths : int
        Planted truths at each point.
    trials : int
        Most trials at one N.
    reach : float
        Every N of the fine grid is decided up to so many times the upper end of an interval (see `Design`); 1: none.
    seed : int
        Of dictionaries, truths and samples.
    """

    kind: str
    grid: tuple[tuple[str, tuple[Value, ...]], ...]
    options: tuple[tuple[str, Any], ...]
    rows: str
    estimators: tuple[str, ...]
    truths: int
    trials: int
    seed: int
    reach: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what no sweep can run.  Raises ValueError or TypeError naming the value."""
        for name, values in self.grid:
            for value in values:
                if not (name == "gamma" and value is None):
                    AXES[name].admit(value, name)
        whole(self.truths, "truths", low=1, high=MOST_TRUTHS)
        whole(self.trials, "trials", low=BATCH)
        whole(self.seed, "seed")
        if not 1 <= self.reach <= MOST_REACH:
            raise ValueError(f"reach must be in [1, {MOST_REACH}], got {self.reach:g}")
        if len(self.swept) > 2:
            raise ValueError(
                f"at most two axes may be ranges, got {', '.join(AXES[name].flag for name in self.swept)}: "
                "give the others one value, or make several sweeps"
            )
        if not self.estimators or not all(values for _, values in self.grid):
            raise ValueError("a sweep needs at least one value of every axis and one estimator")
        for point in self.points:
            least = self.design(point).least_trials
            if self.trials // BATCH * BATCH < least:
                raise ValueError(
                    f"trials must be at least {-(-least // BATCH) * BATCH} (whole batches of {BATCH}) "
                    f"to certify a failure probability of {point['delta']:g}, got {self.trials}"
                )
        for name in self.estimators:
            self.estimator(name)

    @property
    def swept(self) -> dict[str, tuple[Value, ...]]:
        """The axes with several values."""
        return {name: values for name, values in self.grid if len(values) > 1}

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axis that results are shown against, then, if there is one, that with a curve a value.

        Of two swept axes the one with more values comes first (of equally long ones, the first in `AXES`).
        """
        swept = sorted(self.swept, key=lambda name: -len(self.swept[name]))
        return tuple(AXES[name] for name in swept or [PROBLEMS[self.kind].main])

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """Every point: curve after curve, increasing along each."""
        order = [axis.name for axis in reversed(self.axes)]
        names = [*[name for name, _ in self.grid if name not in order], *order]
        values = dict(self.grid)
        return tuple(
            Point.of(dict(zip(names, combination, strict=True)))
            for combination in itertools.product(*(values[name] for name in names))
        )

    def estimator(self, name: str) -> type[RowEstimator]:
        """The class of an estimator of the sweep.  Raises ValueError or TypeError if there is none."""
        return extension.resolve(name, PROBLEMS[self.kind].estimators, RowEstimator, "estimators")

    def problem(self, given: Dictionary | None = None) -> Problem:
        """The sweep's problem; `given` are the rows that `rows` is the fingerprint of."""
        return PROBLEMS[self.kind](self.seed, dict(self.options), given)

    def design(self, point: Point) -> Design:
        """How N* is located at a point."""
        return Design(delta=point["delta"], max_trials=self.trials, reach=self.reach)

    def tolerance(self, point: Point) -> float:
        """Certified gap asked of solvers (nats per sample)."""
        return tolerance_for(point["epsilon"])

    def cells(self) -> list[Cell]:
        """(point, truth, estimator) of every N* to locate; some estimators on thinned axes."""
        few = {name: set(thinned([v for v in values if v is not None])) for name, values in self.swept.items()}
        slow = {name: self.estimator(name).thinned for name in self.estimators}
        return [
            (point, truth, name)
            for point in self.points
            for truth in range(self.truths)
            for name in self.estimators
            if not slow[name] or all(point[axis] in kept for axis, kept in few.items())
        ]

    def identity(self) -> dict[str, str]:
        """What must be equal for stored results to count: settings, and the code and versions that compute them."""
        settings = {
            "kind": self.kind,
            "rows": self.rows,
            **dict(self.options),
            "trials": self.trials,
            "reach": self.reach,
            "seed": self.seed,
        }
        versions = {f"version of {name}": version(name) for name in ("markov-theory", "numpy", "scipy", "scikit-learn")}
        return (
            {name: json.dumps(value) for name, value in settings.items()}
            | versions
            | {"numba": str(COMPILED), "code": code_fingerprint()}
        )

    def extent(self) -> dict[str, tuple[str, ...]]:
        """What a larger sweep may add to: the values of each axis, estimators and truths, as text."""
        axes = {name: tuple(range_text((value,)) for value in values) for name, values in self.grid}
        return axes | {"estimators": self.estimators, "truths": tuple(str(i) for i in range(self.truths))}

    def own_code(self) -> dict[str, str]:
        """Fingerprints of the modules of estimators that are not built in."""
        return {f"code of {name}": code for name, code in extension.own_code(self.estimators).items()}

    def short_name(self) -> str:
        """Eight hexadecimal digits of all of this, for a folder's name."""
        told = [self.identity(), self.extent(), self.own_code()]
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:8]


def fingerprint(dictionary: Dictionary) -> str:
    """SHA-256 of the rows (shape and bytes), hexadecimal."""
    digest = hashlib.sha256(repr(dictionary.transitions.shape).encode())
    digest.update(np.ascontiguousarray(dictionary.transitions).tobytes())
    return digest.hexdigest()


@cache
def code_fingerprint() -> str:
    """First 16 hexadecimal digits of a SHA-256 of the package's sources that numbers depend on."""
    digest = hashlib.sha256()
    root = Path(__file__).parents[1]
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] not in ELSEWHERE and path.name not in DISPLAY:
            digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]
