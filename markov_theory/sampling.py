"""Observed transitions out of the new token: independent draws from its law, tallied."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from markov_theory._checks import MAX_SAMPLES, IntArray, as_laws, whole


def sample_counts(target: ArrayLike, n_samples: int, n_trials: int, generator: np.random.Generator) -> IntArray:
    """Draw R tables of counts, each of N independent transitions with law q.

    Parameters
    ----------
    target : array_like, shape (J,)
        q.
    n_samples : int
        N in [0, 2**53].
    n_trials : int
        R >= 0.
    generator : numpy.random.Generator
        See `markov_theory.randomness.named_generator`.

    Returns
    -------
    ndarray of int64, shape (R, J)
        Each row sums to N.

    Raises
    ------
    ValueError, TypeError
        If `target` is not a law, or a number is not whole or out of range.

    Examples
    --------
    >>> import numpy as np
    >>> sample_counts(np.float32([.6, .4, 0]), 5, 1, np.random.default_rng(0)).sum().item()
    5
    """
    law = as_laws(target, "target")
    if law.ndim != 1:
        raise ValueError(f"target must be one law, got shape {law.shape}")
    n = whole(n_samples, "n_samples", high=MAX_SAMPLES)
    return generator.multinomial(n, law, size=whole(n_trials, "n_trials")).astype(np.int64)
