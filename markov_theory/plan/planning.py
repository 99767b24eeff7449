"""How many samples: the numbers of the theory, the corpus that holds so many of each token, trials that confirm it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from markov_theory._checks import MAX_SAMPLES, IntArray, whole
from markov_theory._progress import Update
from markov_theory.bounds.sparse import S3
from markov_theory.dictionary import Dictionary
from markov_theory.plan.answer import Plan, Question
from markov_theory.plan.corpus import Corpus, Limit, is_alone, plan_corpus, predicted_positions
from markov_theory.plan.requirements import PURSUIT, admissible_gap, guarantees, recommend, requirements
from markov_theory.plan.simulation import DRAWS, Scenario, Simulation, simulate, simulated_limit, usual_trials
from markov_theory.plan.truths import Truth, Wanted, truths_of

LEAST_IN_TAIL = 10  # simulated values beyond a quantile, for it to be told


def plan_samples(
    dictionary: Dictionary,
    wanted: Wanted,
    epsilon: float = 1e-3,
    delta: float = 0.05,
    *,
    estimator: str = "exact-l0",
    new_tokens: int | None = None,
    exposure: str = "uniform",
    rate: float = 1.0,
    share: float = 0.5,
    n_truths: int = 3,
    simulation: bool = True,
    n_trials: int | None = None,
    n_samples: int | None = None,
    thorough: bool = False,
    seed: int = 0,
    on_progress: Update = lambda done, total=None, words=None: None,
) -> Plan:
    """Say how many samples of a new token, and how long a corpus, suffice for KL(q‖q̂) ≤ ε with probability ≥ 1 − δ.

    Parameters
    ----------
    dictionary : Dictionary
    wanted : int, Instance, Truth or sequence of those
        s: truths that mix so many rows are planted, and the one that asks for most counts. Or the truths themselves;
        for a law, see `nearest_mixture`.
    epsilon : float
        ε, nats. Where a law is no mixture of rows, of the excess over the KL that stays.
    delta : float
        δ: that *some* new token is not learned.
    estimator : {"exact-l0", "kl-pursuit", "constrained-kl", "oracle"}
    new_tokens : int, optional
        m: by default as many as truths are given, 1 for planted ones. Planted truths in turn, or a single given one,
        stand for m tokens.
    exposure : {"uniform", "zipf", "coupled"}
        How often each of them comes; see `Corpus`.
    rate : float
        Share of the positions of the corpus that are new tokens, in (0, 1].
    share : float
        Of δ, left to exposure where there is more than one token or a rate below 1.
    n_truths : int
        Planted truths.
    simulation : bool
        Whether to simulate.
    n_trials : int, optional
        Of each simulation; by default some hundreds, more for a small δ.
    n_samples : int, optional
        Positions to simulate as well: are so many enough?
    thorough : bool
        Also the statements that take minutes with this many rows.
    seed : int
        Of planted truths and trials.
    on_progress : callable
        Told what is being done, how much of it is done, and of how much if that is known.

    Raises
    ------
    ValueError, TypeError
        If anything asked for is out of range.

    Examples
    --------
    >>> from markov_theory.instance import Instance
    >>> rows = Dictionary([[.8, .1, .1], [.1, .8, .1], [.1, .1, .8]])
    >>> plan = plan_samples(rows, Instance(rows, [.5, .5, 0]), 1e-3, 0.05, simulation=False)
    >>> plan.recommendation.n_samples, plan.recommendation.label, plan.predicted
    (3692.0, 'S6u', 1921.0)
    """
    truths = truths_of(dictionary, wanted, n_truths, seed)
    planted = isinstance(wanted, int | np.integer)
    which = _tokens(len(truths), planted, new_tokens)
    asked = Question(epsilon, delta, estimator, which.size, exposure, rate, share, n_samples, seed, planted)
    if n_trials is not None:
        whole(n_trials, "n_trials", low=1)
    found = requirements(
        truths, estimator, epsilon, asked.token_delta, thorough=thorough,
        update=on_progress,
    )  # fmt: skip
    advice = recommend(found, truths, estimator, epsilon, asked.token_delta)
    needed = np.full(which.size, advice.n_samples) if planted else np.array(advice.each)[which]
    tokens = [truths[k] for k in which]
    corpus = plan_corpus(needed, [truth.instance for truth in tokens], exposure, rate, delta, share)
    limits = _limits(truths, asked, simulation)
    predicted, expected = _predictions(truths, limits, which, corpus, asked)
    parts = corpus.parts(advice.known_support)
    runs: tuple[Simulation, ...] = ()
    if simulation:
        scenarios = _scenarios(truths, tokens, corpus)
        trials = usual_trials(delta, scenarios) if n_trials is None else n_trials
        points = {"recommended": corpus.n_positions, "predicted": expected, "given": n_samples}
        runs = _simulations(points, scenarios, truths, asked, trials, on_progress)
    return Plan(
        question=asked,
        dictionary={
            "origin": dictionary.origin,
            "rows": dictionary.n_tokens,
            "outcomes": dictionary.n_outcomes,
            "margin": dictionary.margin,
            "density_ratio": dictionary.density_ratio,
        },
        truths=tuple(truth.describe(epsilon) for truth in truths),
        requirements=found,
        recommendation=advice,
        predicted=predicted,
        corpus=corpus,
        predicted_positions=expected,
        parts=parts,
        binding=_binding(corpus.n_positions, parts),
        simulations=runs,
    )


def _tokens(n_truths: int, planted: bool, new_tokens: int | None) -> IntArray:
    """The truth of each new token."""
    if new_tokens is None:
        return np.arange(1 if planted else n_truths)
    m = whole(new_tokens, "new_tokens", low=1)
    if not planted and n_truths not in (1, m):
        raise ValueError(f"new_tokens must be {n_truths}, the number of truths that are given, got {m}")
    return np.arange(m) % n_truths


def _limits(truths: Sequence[Truth], asked: Question, simulation: bool) -> list[Limit] | None:
    """The limit law at each truth; None if there is none, or only one that is to be simulated and must not be."""
    if asked.estimator != "constrained-kl":
        limits = [Limit.wilks(truth) for truth in truths]
        blind = asked.estimator != "oracle" and all(limit.is_zero for limit in limits)
        return None if blind else limits
    if not simulation or asked.token_delta * DRAWS < LEAST_IN_TAIL:
        return None
    return [simulated_limit(truth, asked.epsilon, asked.token_delta, asked.seed) for truth in truths]


def _predictions(
    truths: Sequence[Truth], limits: list[Limit] | None, which: IntArray, corpus: Corpus, asked: Question
) -> tuple[float | None, float | None]:
    """Samples of one token, at the worst truth, and positions of the corpus."""
    if limits is None:
        return None, None
    if asked.estimator == "constrained-kl":
        each = [limit.n_samples(asked.epsilon, asked.token_delta) for limit in limits]
    else:
        each = [S3.at(truth.instance, epsilon=asked.epsilon, delta=asked.token_delta) for truth in truths]
    if is_alone(which.size, asked.rate):
        return max(each), max(each)
    if which.size == 1:  # whichever truth it is
        laws, which = [limits[int(np.argmax(each))]], np.zeros(1, dtype=np.int64)
    else:
        laws = limits
    return max(each), predicted_positions(laws, which, corpus.rates, asked.epsilon, asked.delta)


def _scenarios(truths: Sequence[Truth], tokens: Sequence[Truth], corpus: Corpus) -> list[Scenario]:
    """One of all tokens together; of a single token, one for each truth that it may be."""
    if len(tokens) > 1:
        return [Scenario(f"all {len(tokens)} tokens", tuple(tokens), corpus.rates)]
    return [Scenario(truth.instance.name, (truth,), corpus.rates) for truth in truths]


def _simulations(
    points: dict[str, float | None],
    scenarios: Sequence[Scenario],
    truths: Sequence[Truth],
    asked: Question,
    n_trials: int,
    on_progress: Update,
) -> tuple[Simulation, ...]:
    gaps = [
        admissible_gap(truth.instance.density_ratio, asked.epsilon, truth.is_outside(asked.epsilon))
        for truth in truths
        if guarantees(asked.estimator, truth.instance.sparsity) == (PURSUIT,)
    ]
    wanted = {at: n for at, n in points.items() if n is not None}
    total, done = n_trials * len(scenarios) * sum(n <= MAX_SAMPLES for n in wanted.values()), 0
    runs = []
    for at, n in wanted.items():

        def update(trials: int, at: str = at) -> None:
            nonlocal done
            done += trials
            on_progress(done, total, f"trials at the {at} number")

        runs.append(
            simulate(
                at, n, scenarios, asked.estimator, asked.epsilon, asked.delta, n_trials,
                gap=min(gaps, default=math.inf), seed=asked.seed, update=update,
            )
        )  # fmt: skip
    return tuple(runs)


def _binding(n_positions: float, parts: dict[str, float]) -> str:
    if math.isinf(n_positions):
        return "unbounded"
    return max(parts, key=lambda name: parts[name]) if n_positions else "nothing"
