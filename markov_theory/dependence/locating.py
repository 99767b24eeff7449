"""Locating N* with trials drawn here and now: `markov_theory.sweep.sample_complexity.locate`, driven in one process."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from markov_theory.dependence.series import Measured, Setting
from markov_theory.randomness import named_generator
from markov_theory.sweep.sample_complexity import BATCH, Design, Located, locate

Fails = Callable[[int, int, np.random.Generator], int]  # N, number of trials, generator → how many of them fail
MOST_AT_ONCE = 2048


def design(setting: Setting, max_trials: int = 4096) -> Design:
    """How N* is located: its interval is wrong with probability at most 5 %; so many trials at one N at most."""
    return Design(setting.delta, max_trials=4 * max_trials if setting.effort == "full" else max_trials)


def located(fails: Fails, plan: Design, seed: int, *names: str | int) -> Located:
    """Run a search to its end; its trials are keyed by `names`, N and their number, so that they can be repeated.

    Parameters
    ----------
    fails : callable
        Draws trials at one N and returns how many fail.
    plan : Design
    seed : int
    names : str or int
        What the trials are of.
    """
    search = locate(plan)
    outcomes: list[tuple[int, int]] = []
    try:
        requests = next(search)
        while True:
            outcomes = []
            for request in requests:
                n_trials, first = BATCH * len(request.batches), request.batches.start
                failed = sum(
                    fails(request.n_samples, size, named_generator(seed, *names, request.n_samples, first, i))
                    for i, size in enumerate(_parts(n_trials))
                )
                outcomes.append((n_trials, failed))
            requests = search.send(outcomes)
    except StopIteration as end:
        found: Located = end.value
        return found


def measured(found: Located, facts: Mapping[str, float]) -> Measured:
    """What was located, as a measurement."""
    n_trials = sum(trials for _, trials, _ in found.curve)
    return Measured(found.n_star, found.low, found.high, n_trials, dict(facts))


def _parts(n_trials: int) -> list[int]:
    full, rest = divmod(n_trials, MOST_AT_ONCE)
    return [MOST_AT_ONCE] * full + ([rest] if rest else [])
