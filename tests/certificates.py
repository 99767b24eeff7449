"""Independent certificates of mixture fits: what an answer must satisfy, whoever computed it."""

from __future__ import annotations

import numpy as np


def mean_log_likelihood(transitions, counts, alpha):
    """Σ_j n̂_j log (Pᵀα)_j for each problem, nats per sample; −∞ if an observed outcome is impossible."""
    law = np.atleast_2d(alpha) @ transitions
    counts = np.atleast_2d(counts)
    frequency = counts / counts.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(frequency > 0, frequency * np.log(law), 0.0)
    return terms.sum(axis=1)


def jensen_gap(transitions, counts, alpha):
    """Log max_v Σ_j (n̂_j/q_j) p_v(j): no mixture gains more per sample over `alpha`."""
    law = np.atleast_2d(alpha) @ transitions
    counts = np.atleast_2d(counts)
    frequency = counts / counts.sum(axis=1, keepdims=True)
    ratio = np.divide(frequency, law, out=np.zeros_like(law), where=frequency > 0)
    return np.log((ratio @ transitions.T).max(axis=1))


def assert_weights(alpha):
    """Non-negative exactly, of sum 1 to 1e-12."""
    assert (alpha >= 0).all()
    assert np.abs(alpha.sum(axis=-1) - 1).max() <= 1e-12


def assert_maximum(transitions, counts, fit, tolerance=1e-9):
    """The fit's weights are weights, its gap is what it says, and within `tolerance`."""
    assert_weights(fit.alpha)
    gap = jensen_gap(transitions, counts, fit.alpha)
    assert (gap <= tolerance + 1e-12).all()
    assert (np.maximum(gap, 0) <= fit.gap + 1e-11).all()
    assert (fit.status == "optimal").all()
