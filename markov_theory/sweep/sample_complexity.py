"""Sample complexity by measurement: where the probability of failure comes down to δ, and stays there.

Failure is not monotone in N, so nothing is bisected. A coarse geometric grid is climbed from N = 0
until two neighbouring points are *certified* to fail with probability at most δ; then points of a fine grid
(factor 2^(1/16)) about the estimate, between the last certified failure and the first of those, get the trials
that decide. A point is certified by Clopper-Pearson bounds whose error probabilities, over all points and all looks,
add up to the stated level.

What is certified is certified at the points tried. Between them failure may come back; on request every point of the
fine grid above the interval is tried as well, up to a multiple of it.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from functools import lru_cache

from markov_theory.success import decreasing_fit, failure_bounds

BATCH = 32
STEPS_PER_OCTAVE = 16
MAX_POINTS = 64
MAX_CHECKS = 4
CLIMB_TRIALS = 512
WITHIN = 1.2  # an interval of N* is settled within this factor of its middle ...
AIM = 1.16  # ... so points about this far from the estimate are decided


@dataclass(frozen=True)
class Design:
    """How N* is located.

    Attributes
    ----------
    delta : float
        Admissible probability of failure.
    max_trials : int
        Most trials at one N.
    max_samples : int
        Largest N that the search climbs to.
    checks : tuple of int
        Further N to decide, say the bounds to be judged; at most four.
    level : float
        Probability that the interval of N* (on the grid points evaluated) is wrong.
    reach : float
        Every point of the fine grid is decided from the interval's upper end up to so many times that end; 1: none.
    """

    delta: float
    max_trials: int = 16384
    max_samples: int = 2**40
    checks: tuple[int, ...] = ()
    level: float = 0.05
    reach: float = 1.0

    @property
    def max_points(self) -> int:
        """Most N that the search tries, the checks apart; those within reach may have to be tried a second time."""
        return MAX_POINTS + 2 * math.ceil(STEPS_PER_OCTAVE * math.log2(max(self.reach, 1)))

    @property
    def look_level(self) -> float:
        """Error probability of one bound: `level` over the most points and the looks that each can have."""
        looks = max(1, math.ceil(math.log2(max(self.max_trials / BATCH, 1))) + 1)
        return self.level / ((self.max_points + MAX_CHECKS) * looks)

    @property
    def least_trials(self) -> int:
        """Trials without a failure that certify one point; with fewer allowed, nothing can ever be certified."""
        return math.ceil(math.log(self.look_level) / math.log1p(-self.delta))


@dataclass(frozen=True)
class Request:
    """Run the trials of the given batches (each of `BATCH` trials) at N."""

    n_samples: int
    batches: range


@dataclass(frozen=True)
class Located:
    """N*_last on the points tried: failure is certified above δ at `low`, at most δ at every one from `high` on.

    Attributes
    ----------
    n_star : float
        Estimate (samples), interpolated between grid points; ``inf`` if N up to the largest tried does not do.
    low, high : float
        N* lies in (low, high] unless an event of probability `Design.level` happened; low = -1: even N = 0 may do.
        Then N*_last exceeds low, and N*_first does not exceed high, whatever was not tried.
    settled : bool
        Whether the interval is within ±20 % (``high <= 1.2² low``) or between neighbouring whole numbers, and every
        point within reach was tried.
    curve : tuple of (N, trials, failures)
    """

    n_star: float
    low: float
    high: float
    settled: bool
    curve: tuple[tuple[int, int, int], ...]

    def was_tried(self, n_samples: float) -> bool:
        """Whether trials were run at this N."""
        return any(n == n_samples for n, _, _ in self.curve)


class FailureCurve:
    """Trials and failures at each N, and what they certify."""

    def __init__(self, design: Design) -> None:
        self.design = design
        self.points: dict[int, tuple[int, int]] = {}

    def add(self, n_samples: int, n_trials: int, n_failures: int) -> None:
        """Add an outcome."""
        trials, failures = self.points.get(n_samples, (0, 0))
        self.points[n_samples] = (trials + n_trials, failures + n_failures)

    def decision(self, n_samples: int) -> str:
        """``"fails"`` or ``"passes"`` where certified, else ``"open"``."""
        trials, failures = self.points[n_samples]
        lower, upper = _bounds(failures, trials, self.design.look_level)
        if lower > self.design.delta:
            return "fails"
        return "passes" if upper <= self.design.delta else "open"

    def more(self, n_samples: int) -> Request | None:
        """Ask for as many trials again as the point has; None at the limit."""
        done = self.points.get(n_samples, (0, 0))[0] // BATCH
        most = max(1, self.design.max_trials // BATCH)
        return Request(n_samples, range(done, min(max(2 * done, 1), most))) if done < most else None

    def bracket(self) -> tuple[float, float]:
        """Largest certified failure, and the least point from which every point passes."""
        failing = [n for n in self.points if self.decision(n) == "fails"]
        high = math.inf
        for n in sorted(self.points, reverse=True):
            if self.decision(n) != "passes":
                break
            high = float(n)
        return float(max(failing, default=-1)), high

    def estimate(self) -> float:
        """Where the decreasing fit to the failure rates crosses δ, log-linear between points; ``inf`` if nowhere."""
        n = sorted(self.points)
        rates = [self.points[k][1] / self.points[k][0] for k in n]
        fit = decreasing_fit(rates, [self.points[k][0] for k in n])
        delta = self.design.delta
        first = next((i for i, rate in enumerate(fit) if rate <= delta), None)
        if first is None:
            return math.inf
        if first == 0 or n[first - 1] == 0:
            return float(n[first])
        share = (fit[first - 1] - delta) / (fit[first - 1] - fit[first])
        return float(math.ceil(n[first - 1] * (n[first] / n[first - 1]) ** share))


_bounds = lru_cache(maxsize=100_000)(failure_bounds)


def locate(design: Design) -> Generator[list[Request], list[tuple[int, int]], Located]:
    """Search for N*: yields requests, is sent (trials, failures) for each, returns what it found.

    The search is a pure function of the outcomes, so it can be interrupted and replayed from a store.
    """
    curve = FailureCurve(design)
    yield from _climb(curve, 0)
    yield from _refine(curve)
    for n in design.checks[:MAX_CHECKS]:
        yield from _decide(curve, n)
    low, high = curve.bracket()
    n_star = min(max(curve.estimate(), low + 1), high) if high < math.inf else math.inf
    points = tuple((n, *curve.points[n]) for n in sorted(curve.points))
    return Located(n_star, low, high, _settled(curve) and not _untried_above(curve), points)


def _ask(curve: FailureCurve, points: list[int]) -> Generator[list[Request], list[tuple[int, int]], None]:
    requests = [request for n in points if (request := curve.more(n))]
    if requests:
        outcomes = yield requests
        for request, (trials, failures) in zip(requests, outcomes, strict=True):
            curve.add(request.n_samples, trials, failures)


def _decide(curve: FailureCurve, n: int) -> Generator[list[Request], list[tuple[int, int]], None]:
    """Run trials at one N until it is certified to fail or to pass, or the limit is reached."""
    while (n not in curve.points or curve.decision(n) == "open") and curve.more(n):
        yield from _ask(curve, [n])


def _climb(curve: FailureCurve, start: int) -> Generator[list[Request], list[tuple[int, int]], None]:
    """Raise N, from 0 as 0, 1, 4, 16, ..., until two neighbours are certified to pass, or the largest N is reached.

    N grows fourfold while failure is certified, twofold from the first point on where it is not.
    """
    n, passed = start, 0
    while passed < 2 and n <= curve.design.max_samples and len(curve.points) < curve.design.max_points:
        yield from _ask(curve, [n])
        while curve.decision(n) == "open" and curve.more(n) and _undecided_is_promising(curve, n):
            yield from _ask(curve, [n])
        passed = passed + 1 if curve.decision(n) == "passes" else 0
        n = max(1, (4 if curve.decision(n) == "fails" else 2) * n)


def _refine(curve: FailureCurve) -> Generator[list[Request], list[tuple[int, int]], None]:
    """Decide the interval, then what is within reach above it; what is found there may move it, or end above it all."""
    while True:
        if targets := _targets(curve):
            yield from _ask(curve, targets)
        elif beyond := _beyond(curve):
            yield from _climb(curve, beyond)
        elif (above := _untried_above(curve)) and _worth_asking(curve, above[0]):
            yield from _decide(curve, above[0])
        else:
            return


def _beyond(curve: FailureCurve) -> int | None:
    """Where to climb on if what was tried within reach ends with a point that does not pass; else None."""
    design, top = curve.design, max(curve.points)
    start = max(1, 2 * top)
    more = design.reach > 1 and start <= design.max_samples and len(curve.points) < design.max_points
    return start if more and curve.decision(top) != "passes" else None


def _undecided_is_promising(curve: FailureCurve, n: int) -> bool:
    """Whether a few more trials may certify a pass: a point near the crossing is left for the refinement."""
    trials, failures = curve.points[n]
    return trials < max(CLIMB_TRIALS, 2 * curve.design.least_trials) and failures <= 0.5 * curve.design.delta * trials


def _settled(curve: FailureCurve) -> bool:
    low, high = curve.bracket()
    if high == math.inf:
        return False
    return high <= WITHIN**2 * low or high - low <= 1


def _targets(curve: FailureCurve) -> list[int]:
    """Points that decide the interval: the nearest open ones about a factor `AIM` below and above the estimate.

    A doubtful point far above the estimate is decided too: N* is the last crossing, not the first.
    """
    low, high = curve.bracket()
    if high == math.inf or _settled(curve):
        return []
    n_star = min(max(curve.estimate(), low + 1), high)
    above = [n for n in curve.points if n_star * AIM < n < high and _worth_asking(curve, n)]
    if low < n_star / WITHIN:
        above += _first_open(curve, n_star / AIM, -1)
    if high > n_star * WITHIN:
        above += _first_open(curve, n_star * AIM, +1)
    if not above and high - low > 1 and n_star < 1 / (1 - 1 / AIM):
        above += _first_open(curve, low + 1, +1)
    return sorted(set(above))


def _first_open(curve: FailureCurve, start: float, direction: int) -> list[int]:
    """The first point of the fine grid from `start`, inside the bracket, that more trials may decide."""
    low, high = curve.bracket()
    exponent = round(STEPS_PER_OCTAVE * math.log2(max(start, 1)))
    while low < (n := _fine(exponent)) < high and exponent >= 0:
        if _worth_asking(curve, n):
            return [n]
        exponent += direction
    return []


def _fine(exponent: int) -> int:
    """A point of the fine grid."""
    return round(2 ** (exponent / STEPS_PER_OCTAVE))


def _untried_above(curve: FailureCurve) -> list[int]:
    """Points of the fine grid within reach of the interval that are yet to be tried."""
    _, high = curve.bracket()
    if high == math.inf or curve.design.reach <= 1:
        return []
    first, last = (STEPS_PER_OCTAVE * math.log2(max(n, 1)) for n in (high, curve.design.reach * high))
    within = (_fine(exponent) for exponent in range(math.floor(first), math.ceil(last)))
    return [n for n in dict.fromkeys(within) if n > high and n not in curve.points]


def _worth_asking(curve: FailureCurve, n_samples: int) -> bool:
    if n_samples not in curve.points:
        return len(curve.points) < curve.design.max_points - 2  # two may be added at once
    return curve.decision(n_samples) == "open" and curve.more(n_samples) is not None
