"""The protocol of what is learned in a cell. A new kind of problem is one subclass of `Problem`, with its `Truth`.

A *problem* knows its axes, the estimators and bounds that go with it, and how to plant a *truth* at a point. A truth
is one or several instances to be learned together; it draws counts for each, scores a fitted law, and evaluates
bounds. All randomness goes by name: a truth is a pure function of the sweep's seed, of its point and of its number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from markov_theory._checks import Array, IntArray
from markov_theory.bounds.base import Bound
from markov_theory.dictionary import Dictionary
from markov_theory.estimators import RowEstimator
from markov_theory.sweep.axes import Point, Value

CACHE_BYTES = 1 << 28  # of dictionaries that a process keeps, twice over: by shape, and with their truths


class Truth(ABC):
    """One planted truth: the instances to be learned in it, and what success means.

    Attributes
    ----------
    name : str
        Keys the randomness of its samples.
    dictionary : Dictionary
        What estimators are fitted with.
    instances : tuple
        What `RowEstimator.for_instance` and `Bound.at` read; one for each law to be learned.
    """

    name: str
    dictionary: Dictionary
    instances: tuple[Any, ...]

    @abstractmethod
    def draw(self, n_samples: int, n_trials: int, generator: np.random.Generator) -> Iterator[IntArray]:
        """Counts (R, J) of each instance in turn, in trials of N samples altogether."""

    @abstractmethod
    def loss(self, instance: Any, law: Array) -> Array:
        """What must be at most ε, for fitted laws (R, J): shape (R,), nats."""

    @abstractmethod
    def bound(self, bound: type[Bound], guarantee: str, epsilon: float, delta: float) -> float | None:
        """N of a bound for estimators of the class `guarantee`; None where it does not speak of this truth."""

    def guarantee(self, estimator: RowEstimator) -> str:
        """The class of estimators whose bounds speak of this one here; ``"none"``: none do."""
        return estimator.bound_class

    def facts(self, epsilon: float) -> dict[str, float | bool | str]:
        """Further columns of the table; ``small_epsilon`` among them says whether ε is below the asymptotics' limit."""
        return {}

    def verdicts(self) -> dict[str, str]:
        """Verdicts, by label, on statements that no sample decides: checked exactly at this truth."""
        return {}


class Problem(ABC):
    """One kind of problem.

    Parameters
    ----------
    seed : int
        Of dictionaries, truths and samples.
    options : mapping
        The kind's own options (`options` with their defaults).
    given : Dictionary, optional
        Rows from a file or a model, in place of made ones.

    Attributes
    ----------
    name : str
        In specifications.
    words : str
        For the help: what is learned, and when a trial succeeds.
    loss : str
        For figures: what must be at most ε.
    selected_by : tuple of str
        Axes that ask for this kind on the command line.
    main : str
        The axis that a sweep without a range is shown against.
    axes : dict
        Default value of every axis of the kind.
    options : dict
        Default value of every further option.
    estimators : mapping of str to type
        Built-in estimators that can learn it.
    default_estimators, default_bounds : tuple of str
    takes_rows : bool
        Whether rows can come from a file or a model.
    kept_truths : int
        Truths kept by a process at most.
    """

    name: ClassVar[str]
    words: ClassVar[str]
    loss: ClassVar[str] = "KL(q‖q̂)"
    selected_by: ClassVar[tuple[str, ...]] = ()
    main: ClassVar[str]
    axes: ClassVar[dict[str, Value]]
    options: ClassVar[dict[str, Any]] = {}
    estimators: ClassVar[Mapping[str, type[RowEstimator]]]
    default_estimators: ClassVar[tuple[str, ...]] = ()
    default_bounds: ClassVar[tuple[str, ...]] = ()
    takes_rows: ClassVar[bool] = False
    kept_truths: ClassVar[int] = 512

    def __init__(self, seed: int, options: Mapping[str, Any], given: Dictionary | None = None) -> None:
        self.seed, self.chosen, self.given = seed, {**self.options, **options}, given
        self._truths = Kept(self._truth, lambda truth: truth.dictionary, self.kept_truths)

    def truth(self, point: Point, index: int) -> Truth:
        """Truth number `index` of a point; it does not depend on ε and δ."""
        return self._truths(point.without("epsilon", "delta"), index)

    @abstractmethod
    def _truth(self, point: Point, index: int) -> Truth:
        """Plant truth number `index` of a point, which is without ε and δ."""

    @abstractmethod
    def rows(self, point: Point) -> Dictionary:
        """The dictionary at a point, for the reader: where it comes from, margin, ratio."""

    def check(self, point: Point) -> None:
        """Raise ValueError if the point has no such problem."""
        rows = self.rows(point).n_tokens
        if point["s"] > rows:
            raise ValueError(f"--s must lie in [1, {rows}] (the dictionary's rows), got {point['s']}")


Result = TypeVar("Result")


class Kept(Generic[Result]):
    """A function that keeps its last results, as long as their dictionaries fit into `CACHE_BYTES`.

    Parameters
    ----------
    make : callable
    rows : callable
        The dictionary that a result holds on to.
    most : int
        Number of results kept at most.
    """

    def __init__(self, make: Callable[..., Result], rows: Callable[[Result], Dictionary], most: int) -> None:
        self._make, self._rows, self._most = make, rows, most
        self._kept: dict[tuple[Any, ...], Result] = {}

    def __call__(self, *arguments: Any) -> Result:
        """The result for these arguments."""
        if arguments in self._kept:
            self._kept[arguments] = self._kept.pop(arguments)  # the most recent one comes last
            return self._kept[arguments]
        made = self._kept[arguments] = self._make(*arguments)
        while len(self._kept) > 1 and (len(self._kept) > self._most or self._bytes() > CACHE_BYTES):
            del self._kept[next(iter(self._kept))]
        return made

    def _bytes(self) -> int:
        held = {id(rows): rows for rows in map(self._rows, self._kept.values())}
        return sum(rows.transitions.nbytes for rows in held.values())
