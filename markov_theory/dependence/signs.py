"""Arm 4, located part: mixtures of random rows p_v = (1 + η·σ_v)/J, σ_v random signs of sum 0, and exact ℓ0 itself.

The supports are searched by branch and bound with a certificate (`markov_theory.solvers.best_subset`); the rows are
nearly orthogonal about the uniform law.
"""

from __future__ import annotations

import numpy as np

from markov_theory._checks import Array
from markov_theory.dependence.locating import design, located, measured
from markov_theory.dependence.series import Measured, Setting
from markov_theory.dictionary import Dictionary
from markov_theory.divergences import kl_divergence
from markov_theory.estimators import ExactL0
from markov_theory.randomness import named_generator

DEPTH, OUTCOMES, EPSILON, MIXED = 0.8, 256, 1e-3, 3
TOLERANCE = 1e-9  # nats a sample: moves KL(q‖q̂) by about 0.2 % of ε


def sign_rows(n_tokens: int, n_outcomes: int, depth: float, seed: int, *names: str | int) -> Array:
    """Rows (1 + η·σ_v)/J, half of the signs of each being +, shape (T, J)."""
    generator = named_generator(seed, "sign rows", n_tokens, n_outcomes, *names)
    order = generator.random((n_tokens, n_outcomes)).argsort(axis=1)
    signs = np.where(order < n_outcomes // 2, 1.0, -1.0)
    return np.asarray((1 + depth * signs) / n_outcomes)


def measure_l0(rows: Array, law: Array, sparsity: int, epsilon: float, setting: Setting, *names: str | int) -> Measured:
    """Locate N*_last of exact ℓ0 over s-sparse mixtures of the rows, the truth being one of them.

    A fit that was stopped without its certificate counts as a failure.
    """
    dictionary, estimator = Dictionary(rows), ExactL0(sparsity, TOLERANCE)

    def fails(n_samples: int, n_trials: int, generator: np.random.Generator) -> int:
        counts = generator.multinomial(n_samples, law, size=n_trials)
        fit = estimator.fit(dictionary, counts)
        close = (kl_divergence(law, fit.law_) <= epsilon) & (fit.gap_ <= TOLERANCE)
        return n_trials - int(close.sum()) if n_samples else n_trials

    return measured(located(fails, design(setting), setting.seed, *names), {"two_epsilon": 2 * epsilon})


def measure_own_size(n_tokens: int, repeat: int, setting: Setting) -> Measured:
    """The truth is the mean of three rows, s = 3."""
    rows = sign_rows(n_tokens, OUTCOMES, DEPTH, setting.seed, "own size", repeat)
    names = ("own size", n_tokens, repeat)
    return measure_l0(rows, rows[:MIXED].mean(axis=0), MIXED, EPSILON, setting, *names)


def measure_one_more(n_tokens: int, repeat: int, setting: Setting) -> Measured:
    """The truth is one row, the uniform law; T − 1 rows are spare, s = 2."""
    rows = sign_rows(n_tokens, OUTCOMES, DEPTH, setting.seed, "one more", repeat)
    rows[0] = 1 / OUTCOMES
    return measure_l0(rows, rows[0], 2, EPSILON, setting, "one more", n_tokens, repeat)
