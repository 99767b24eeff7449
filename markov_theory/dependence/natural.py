"""Arm 3. Independent random rows at a fixed number of outcomes: as T grows, two of them come ever closer."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from scipy.special import softmax
from scipy.stats import norm

from markov_theory._checks import Array
from markov_theory.dependence.locating import design, located, measured
from markov_theory.dependence.series import Measured, Setting
from markov_theory.divergences import margin
from markov_theory.randomness import named_generator

OUTCOMES = 4
CANDIDATES = 8  # truths of which one is the worst
PILOT_TRIALS = 4096


def natural_rows(n_tokens: int, n_outcomes: int, seed: int, repeat: int) -> Array:
    """Softmax of independent standard normal logits, shape (T, J)."""
    generator = named_generator(seed, "natural rows", n_tokens, n_outcomes, repeat)
    return np.asarray(softmax(generator.standard_normal((n_tokens, n_outcomes)), axis=1))


def pair_level(delta: float) -> float:
    """N*·γ of two near rows alone: the log-likelihood ratio is nearly normal with mean γ and variance 2γ a sample.

    Examples
    --------
    >>> round(pair_level(0.05), 2)
    5.41
    """
    return 2 * float(norm.isf(delta)) ** 2


def lost(rows: Array, truth: int, n_samples: int, n_trials: int, generator: np.random.Generator) -> int:
    """In how many of the trials some other row is at least as likely as the truth."""
    value = generator.multinomial(n_samples, rows[truth], size=n_trials) @ np.log(rows).T
    own = value[:, truth].copy()
    value[:, truth] = -np.inf
    return int((value.max(axis=1) >= own).sum())


def worst_truth(rows: Array, setting: Setting, *names: str | int) -> int:
    """The truth that fails most often in trials of their own at N = `pair_level`/γ.

    Tried are those with the largest union bounds Σ ρ^N, ρ = Σ_j √(p_v(j)p_w(j)).
    """
    exponent = -np.log(np.minimum(np.sqrt(rows) @ np.sqrt(rows).T, 1 - 1e-15))
    np.fill_diagonal(exponent, np.inf)
    bounds = np.exp(math.log(setting.delta) * exponent / exponent.min()).sum(axis=1)
    tried = np.argsort(-bounds, kind="stable")[:CANDIDATES].tolist()
    n_samples = math.ceil(pair_level(setting.delta) / margin(rows))
    failed = [
        lost(rows, v, n_samples, PILOT_TRIALS, named_generator(setting.seed, *names, "pilot", i))
        for i, v in enumerate(tried)
    ]
    return int(tried[int(np.argmax(failed))])


def measure_rows(rows: Array, setting: Setting, *names: str | int) -> Measured:
    """Locate N*_last of the one-to-one maximum likelihood at the worst truth."""
    truth = worst_truth(rows, setting, *names)
    found = located(partial(lost, rows, truth), design(setting, 16384), setting.seed, *names)
    return measured(found, {"gamma": margin(rows)})


def measure(n_tokens: int, repeat: int, setting: Setting) -> Measured:
    """`measure_rows` of rows over four outcomes."""
    rows = natural_rows(n_tokens, OUTCOMES, setting.seed, repeat)
    return measure_rows(rows, setting, "natural", n_tokens, repeat)
