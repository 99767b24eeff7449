"""Iterative hard thresholding through a softmax head, for a batch of problems."""

from __future__ import annotations

import numpy as np

from markov_theory._checks import Array

MAX_THRESHOLDINGS = 300


def hard_thresholding(scores: Array, bias: Array, F: Array, sparsity: int, radius: float) -> Array:
    """Iterative hard thresholding of R problems from α = 0, shape (R, T): gradient steps, each cut to s entries."""
    X, centred = scores, scores - scores.mean(axis=0)
    alpha = np.zeros((F.shape[0], X.shape[1]))
    step = np.full(F.shape[0], 4 / max(float((centred**2).mean(axis=0).max()), 1e-300))
    law, loss = _at(scores, bias, F, alpha)
    for _ in range(MAX_THRESHOLDINGS):
        slope = (law - F) @ X
        trial = _cut(alpha - step[:, None] * slope, sparsity, radius)
        trial_law, trial_loss = _at(scores, bias, F, trial)
        move = trial - alpha
        model = loss + (slope * move).sum(axis=1) + (move**2).sum(axis=1) / (2 * step)
        good = trial_loss <= model + 1e-14
        moved = np.abs(move).max(axis=1, initial=0.0) > 1e-9 * (1 + np.abs(alpha).max(axis=1, initial=0.0))
        if (good & ~moved).all():
            break
        alpha[good], law[good], loss[good] = trial[good], trial_law[good], trial_loss[good]
        step = np.where(good, 1.5 * step, 0.5 * step)
    return alpha


def _at(scores: Array, bias: Array, F: Array, alpha: Array) -> tuple[Array, Array]:
    logits = alpha @ scores.T + bias
    top = logits.max(axis=1, keepdims=True)
    odds = np.exp(logits - top)
    total = odds.sum(axis=1)
    return odds / total[:, None], np.log(total) + (F * (top - logits)).sum(axis=1)


def _cut(alpha: Array, sparsity: int, radius: float) -> Array:
    """Projection on the s-sparse vectors of the ball: the s largest entries, scaled into it."""
    kept = alpha.copy()
    if sparsity < alpha.shape[1]:
        small = np.argpartition(-np.abs(alpha), sparsity - 1, axis=1)[:, sparsity:]
        np.put_along_axis(kept, small, 0.0, axis=1)
    return np.asarray(kept * np.minimum(1.0, radius / np.maximum(np.linalg.norm(kept, axis=1), 1e-300))[:, None])
