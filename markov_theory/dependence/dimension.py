"""Arm 5. Embedding mixtures in d dimensions: what sparsity buys is d → s.

The law after the new token is softmax(W Eᵀα + b) with s real weights α on T random embeddings in R^d. On the support,
known or found, there are s degrees of freedom; the unconstrained embedding has rank(centred W) = min(d, J−1).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.stats import chi2

from markov_theory._checks import Array, IntArray
from markov_theory.dependence.locating import design, located, measured
from markov_theory.dependence.series import Measured, Setting
from markov_theory.divergences import kl_divergence
from markov_theory.embedding_instance import EmbeddingInstance, plant_embedding
from markov_theory.estimators import RowEstimator
from markov_theory.estimators.embedding import EmbeddingL0, EmbeddingOracle, EmbeddingTuning, laws_of_tokens

TOKENS, FEW_TOKENS, OUTCOMES, MIXED, RADIUS, EPSILON = 128, 6, 65, 4, 2.0, 1e-3
TOLERANCE = 1e-9
Law = Callable[[IntArray], Array]  # counts (R, J) → fitted laws (R, J)


@lru_cache(maxsize=4)
def planted(dim: int, n_tokens: int, seed: int, repeat: int) -> EmbeddingInstance:
    """Embeddings, head and truth of one repeat."""
    return plant_embedding(n_tokens, OUTCOMES, dim, MIXED, radius=RADIUS, seed=seed, truth=repeat)


def fitted_by(estimator: type[RowEstimator], instance: EmbeddingInstance) -> Law:
    """The estimator's law, with what it may know of the instance."""
    rows = laws_of_tokens(instance.embeddings, instance.weights, instance.bias)
    fit: Any = estimator.for_instance(instance, TOLERANCE)
    return lambda counts: np.asarray(fit.fit(rows, counts).law_)


def tuned(instance: EmbeddingInstance) -> Law:
    """Unconstrained tuning. Where the head reaches every law, the likeliest one is the empirical row itself."""
    if instance.dense_degrees_of_freedom == instance.n_outcomes - 1:
        return lambda counts: np.asarray(counts / counts.sum(axis=1, keepdims=True))
    return fitted_by(EmbeddingTuning, instance)


def _measure(instance: EmbeddingInstance, law: Law, df: int, setting: Setting, *names: str | int) -> Measured:
    def fails(n_samples: int, n_trials: int, generator: np.random.Generator) -> int:
        if not n_samples:
            return n_trials
        counts = generator.multinomial(n_samples, instance.target, size=n_trials)
        return int((~(kl_divergence(instance.target, law(counts)) <= EPSILON)).sum())

    wilks = float(chi2.isf(setting.delta, df))
    facts = {"two_epsilon": 2 * EPSILON, "wilks": 2 * EPSILON / wilks, "degrees_of_freedom": float(df)}
    return measured(located(fails, design(setting), setting.seed, instance.name, *names), facts)


def measure_known(dim: int, repeat: int, setting: Setting) -> Measured:
    """Maximum likelihood on the known support of 4 among 128 tokens."""
    instance = planted(dim, TOKENS, setting.seed, repeat)
    law = fitted_by(EmbeddingOracle, instance)
    return _measure(instance, law, instance.degrees_of_freedom, setting, "known", dim, repeat)


def measure_found(dim: int, repeat: int, setting: Setting) -> Measured:
    """Exact ℓ0 over all supports of 4 among 6 tokens."""
    instance = planted(dim, FEW_TOKENS, setting.seed, repeat)
    law = fitted_by(EmbeddingL0, instance)
    return _measure(instance, law, instance.degrees_of_freedom, setting, "found", dim, repeat)


def measure_tuned(dim: int, repeat: int, setting: Setting) -> Measured:
    """Unconstrained tuning of the whole embedding, the truth being that of `measure_known`."""
    instance = planted(dim, TOKENS, setting.seed, repeat)
    return _measure(instance, tuned(instance), instance.dense_degrees_of_freedom, setting, "tuned", dim, repeat)
