"""Does it work? Trials at a number of samples: how often the accuracy is missed, and what that says about δ."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2
from threadpoolctl import threadpool_limits

from markov_theory._checks import MAX_SAMPLES, Array, IntArray
from markov_theory.divergences import kl_divergence
from markov_theory.estimators import ESTIMATORS
from markov_theory.estimators.base import RowEstimator, tolerance_for
from markov_theory.plan.corpus import Limit
from markov_theory.plan.truths import Truth
from markov_theory.randomness import named_generator
from markov_theory.sampling import sample_counts
from markov_theory.solvers.result import FEASIBLE, INACCURATE
from markov_theory.success import failure_bounds, failures

CONFIRMED, REFUTED, UNDECIDED, NOT_SIMULATED = "confirmed", "refuted", "undecided", "not simulated"
BATCH = 32
LEVEL = 0.05  # probability that an interval of a simulation, over all its scenarios, misses
LEAST_TRIALS, MOST_TRIALS = 96, 512
WORK = 2**25  # rows times outcomes times fits of a scenario: seconds
DRAWS = 1024
Update = Callable[[int], None]


@dataclass(frozen=True, eq=False)
class Scenario:
    """What one trial learns: new tokens with their laws, from one corpus; it fails if one of them misses ε.

    Attributes
    ----------
    name : str
        Keys the randomness.
    truths : tuple of Truth
        One for each new token.
    rates : ndarray, shape (m,)
        Probability that a position is each of them.
    """

    name: str
    truths: tuple[Truth, ...]
    rates: Array

    def draw(self, n_positions: int, n_trials: int, generator: np.random.Generator) -> Iterator[IntArray]:
        """Counts (R, J) of each token in turn."""
        if self.rates.tolist() == [1.0]:
            yield sample_counts(self.truths[0].law, n_positions, n_trials, generator)
            return
        law = np.append(self.rates, max(0.0, 1 - self.rates.sum()))
        occurrences = generator.multinomial(n_positions, law, size=n_trials)
        for u, truth in enumerate(self.truths):
            yield generator.multinomial(occurrences[:, u], truth.law).astype(np.int64)


@dataclass(frozen=True)
class Outcome:
    """The trials of one scenario.

    Attributes
    ----------
    scenario : str
    failures, trials : int
    low, high : float
        Clopper–Pearson interval of the failure probability; all intervals of a simulation hold at once with
        probability ≥ 0.95.
    uncertified : int
        Fits without the certificate that the bounds suppose.
    """

    scenario: str
    failures: int
    trials: int
    low: float
    high: float
    uncertified: int


@dataclass(frozen=True)
class Simulation:
    """Trials at one number of positions.

    Attributes
    ----------
    at : str
        ``"recommended"``, ``"predicted"`` or ``"given"``.
    n_positions : float
    verdict : str
        On "failure ≤ δ": ``"confirmed"`` if every interval lies at or below δ, ``"refuted"`` if one lies above it,
        else ``"undecided"``; ``"not simulated"``.
    reason : str
        Why it was not simulated, or why it is undecided.
    outcomes : tuple of Outcome
    """

    at: str
    n_positions: float
    verdict: str
    reason: str
    outcomes: tuple[Outcome, ...] = ()


def usual_trials(delta: float, scenarios: Sequence[Scenario]) -> int:
    """Trials by default: some hundreds, fewer of large problems, up to 8 times more to confirm δ if none fails.

    Parameters
    ----------
    delta : float
    scenarios : sequence of Scenario
    """
    first = scenarios[0].truths[0].instance
    fit = first.n_tokens * first.n_outcomes * max(len(scenario.truths) for scenario in scenarios)
    usual = min(MOST_TRIALS, max(LEAST_TRIALS, WORK // fit))
    return max(usual, min(trials_needed(delta, len(scenarios)), 8 * usual))


def trials_needed(delta: float, n_scenarios: int) -> int:
    """Trials that confirm "failure ≤ δ" of each scenario if none of them fails.

    Examples
    --------
    >>> trials_needed(0.05, 1)
    72
    """
    return math.ceil(math.log(LEVEL / (2 * n_scenarios)) / math.log1p(-delta))


def simulate(
    at: str,
    n_positions: float,
    scenarios: Sequence[Scenario],
    estimator: str,
    epsilon: float,
    delta: float,
    n_trials: int,
    *,
    gap: float = math.inf,
    seed: int = 0,
    update: Update = lambda trials: None,
) -> Simulation:
    """Run trials of each scenario at n positions and judge "failure ≤ δ".

    Parameters
    ----------
    at : str
        What n is, for the reader.
    gap : float
        Nats a sample: fits with a larger certified gap count as uncertified.
    update : callable
        Called with the trials of each finished batch.
    """
    if not n_positions <= MAX_SAMPLES:
        beyond = "there is no finite number" if math.isinf(n_positions) else "more than 2^53 samples cannot be drawn"
        return Simulation(at, n_positions, NOT_SIMULATED, beyond)
    outcomes = []
    for scenario in scenarios:
        failed = uncertified = 0
        with threadpool_limits(1):
            for low in range(0, n_trials, BATCH):
                size = min(BATCH, n_trials - low)
                generator = named_generator(seed, "plan", scenario.name, int(n_positions), low)
                missed, fits = _batch(scenario, int(n_positions), size, estimator, epsilon, gap, generator)
                failed, uncertified = failed + missed, uncertified + fits
                update(size)
        interval = failure_bounds(failed, n_trials, LEVEL / (2 * len(scenarios)))
        outcomes.append(Outcome(scenario.name, failed, n_trials, *interval, uncertified))
    return Simulation(at, n_positions, *_judge(outcomes, delta, n_trials), tuple(outcomes))


def simulated_limit(truth: Truth, epsilon: float, delta: float, seed: int = 0) -> Limit:
    """The law of 2N·KL for maximum likelihood over *all* mixtures, from 1,024 fits at an N where it has about set in.

    On a face of the hull it is no χ²: rows that are not mixed get weight by chance (chi-bar-square).
    """
    most = min(truth.instance.n_tokens, truth.instance.n_outcomes) - 1
    if most == 0:
        return Limit(0)
    n_samples = min(MAX_SAMPLES, math.ceil(chi2.isf(delta, most) / (2 * epsilon)))
    generator = named_generator(seed, "plan", "limit", truth.instance.name, n_samples)
    excess = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for _ in range(DRAWS // BATCH):
            counts = sample_counts(truth.law, n_samples, BATCH, generator)
            fitted = _estimator("constrained-kl", truth, epsilon).fit(truth.instance.dictionary, counts)
            excess.append(kl_divergence(truth.law, fitted.law_) - truth.unavoidable("simplex", epsilon))
    return Limit(most, np.sort(2 * n_samples * np.maximum(np.concatenate(excess), 0.0)))


def _estimator(name: str, truth: Truth, epsilon: float) -> RowEstimator:
    return ESTIMATORS[name].for_instance(truth.instance, tolerance_for(epsilon))


def _batch(
    scenario: Scenario,
    n_positions: int,
    n_trials: int,
    estimator: str,
    epsilon: float,
    gap: float,
    generator: np.random.Generator,
) -> tuple[int, int]:
    """Trials that failed, and fits without their certificate."""
    loss, uncertified = np.full(n_trials, -np.inf), 0
    for truth, counts in zip(scenario.truths, scenario.draw(n_positions, n_trials, generator), strict=True):
        model = _estimator(estimator, truth, epsilon)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # counted
            model.fit(truth.instance.dictionary, counts)
        excess = kl_divergence(truth.law, model.law_) - truth.unavoidable(model.bound_class, epsilon)
        loss = np.maximum(loss, excess)  # a KL that is not a number stays one: it counts as a failure
        exact = model.bound_class != "none"
        missed = np.isin(model.status_, (INACCURATE, FEASIBLE)) if exact else model.gap_ > gap
        uncertified += 0 if exact and model.bound_class == "one-to-one" else int(missed.sum())
    return failures(loss, epsilon), uncertified


def _judge(outcomes: Sequence[Outcome], delta: float, n_trials: int) -> tuple[str, str]:
    if any(outcome.low > delta for outcome in outcomes):
        return REFUTED, ""
    if all(outcome.high <= delta for outcome in outcomes):
        return CONFIRMED, ""
    needed = trials_needed(delta, len(outcomes))
    if n_trials < needed:
        return UNDECIDED, f"even without a failure it takes {needed:,} trials to confirm {delta:g}"
    return UNDECIDED, "δ lies inside an interval"
