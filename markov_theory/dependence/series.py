"""What an arm consists of: measurements of N* along T or d, and claims on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from markov_theory._checks import Array, IntArray, open_unit, whole
from markov_theory.dependence.decision import Rule

Effort = Literal["quick", "default", "full"]
EFFORTS: tuple[Effort, ...] = get_args(Effort)
BLOCK = 128  # values of N that are looked at together


@dataclass(frozen=True)
class Setting:
    """How hard to try.

    Attributes
    ----------
    effort : {"quick", "default", "full"}
    seed : int
        Of everything random.
    delta : float
        Admissible probability of failure δ.
    """

    effort: Effort = "default"
    seed: int = 0
    delta: float = 0.05

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        if self.effort not in EFFORTS:
            raise ValueError(f"effort must be one of {', '.join(EFFORTS)}, got {self.effort!r}")
        whole(self.seed, "seed")
        open_unit(self.delta, "delta")


@dataclass(frozen=True)
class Measured:
    """N*_last at one x: the least N from which failure stays at most δ.

    Attributes
    ----------
    n_star : float
        Estimate; of an exact measurement that is not resolved to the integer, a number in [low, high].
    low, high : float
        N* lies between them: always where it is exact, with the probability of `Design.level` where it is located.
    n_trials : int
        0: nothing was sampled.
    facts : dict of str to float
        Other numbers at this x. Those that a claim multiplies N* by are among them.
    """

    n_star: float
    low: float
    high: float
    n_trials: int = 0
    facts: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Measure:
    """One way to N* along an axis.

    Attributes
    ----------
    key : str
    obtained : str
        How, in words.
    grids : mapping from effort to tuple of int
        x; those of a smaller effort are among those of a larger one.
    repeats : mapping from effort to int
        Independent repetitions at each x.
    run : callable
        ``run(x, repeat, setting)``, a pure function.
    """

    key: str
    obtained: str
    grids: Mapping[Effort, tuple[int, ...]]
    repeats: Mapping[Effort, int]
    run: Callable[[int, int, Setting], Measured]


@dataclass(frozen=True)
class Claim:
    """A prediction.

    Attributes
    ----------
    label : str
        Begins with the arm's number.
    statement : str
        The prediction in words.
    measure : str
        Key of the measurement that it speaks of.
    quantity : str
        What is fitted, for example ``"N*·γ"``.
    scale : str
        The fact by which N* is multiplied; ``""``: by nothing.
    rule : Rule
        When it holds.
    rival : Rule
        A statement that must be refuted by the same numbers, or they had no power to refute anything.
    legend : str
        In the figure; ``""``: it is not drawn.
    reference : callable, optional
        The predicted value at x, drawn beside the measured ones.
    against : callable, optional
        The number that takes the place of x in the fit.
    """

    label: str
    statement: str
    measure: str
    quantity: str
    scale: str
    rule: Rule
    rival: Rule
    legend: str = ""
    reference: Callable[[float], float] | None = None
    against: Callable[[float], float] | None = None


@dataclass(frozen=True)
class Arm:
    """A family of problems along one axis, with its claims.

    Attributes
    ----------
    number : int
    title : str
    symbol : {"T", "d"}
        What varies.
    measures : tuple of Measure
    claims : tuple of Claim
    quantity : str
        Of the figure's vertical axis.
    log : bool
        Whether that is logarithmic.
    """

    number: int
    title: str
    symbol: str
    measures: tuple[Measure, ...]
    claims: tuple[Claim, ...]
    quantity: str
    log: bool = False


def doublings(low: int, high: int) -> tuple[int, ...]:
    """``low``, 2·low, 4·low, … up to `high`.

    Examples
    --------
    >>> doublings(4, 40)
    (4, 8, 16, 32)
    """
    return tuple(low << k for k in range(high.bit_length()) if low << k <= high)


def grids(low: int, quick: int, default: int, full: int) -> dict[Effort, tuple[int, ...]]:
    """Doublings from `low` up to what each effort goes to."""
    return {"quick": doublings(low, quick), "default": doublings(low, default), "full": doublings(low, full)}


def least_from_where(failures: Callable[[IntArray], Array], top: int, delta: float) -> int:
    """Least N from which failure is at most δ, given that it is at every N ≥ `top`: scanned downwards from there.

    Parameters
    ----------
    failures : callable
        Failure probabilities at consecutive N ≥ 0.
    top : int
    delta : float

    Examples
    --------
    >>> least_from_where(lambda n: 1 / (1 + n), 1000, 0.05)
    19
    """
    while top > 0:
        block = np.arange(max(0, top - BLOCK), top)
        failing = np.flatnonzero(failures(block) > delta)
        if failing.size:
            return int(block[failing[-1]]) + 1
        top = int(block[0])
    return 0
