"""Random dictionaries and counts that have broken solvers: duplicates, zeros, ties, huge ratios, tiny and huge N."""

from __future__ import annotations

import numpy as np

KINDS = 9


def adversarial_problem(generator, most_rows=80, most_outcomes=60, most_problems=6):
    """Rows (T, J) and counts (R, J), all observed outcomes possible."""
    T, J = (int(generator.integers(1, most + 1)) for most in (most_rows, most_outcomes))
    rows = _rows(generator, int(generator.integers(KINDS)), T, J)
    possible = rows.max(axis=0) > 0
    n_samples = int(10 ** generator.uniform(0, 10))
    kind = generator.integers(4)
    law = _laws(generator, 10 ** generator.uniform(-2, 1), T, 1)[0] @ rows
    counts = []
    for _ in range(int(generator.integers(1, most_problems + 1))):
        if kind == 1:  # a truth of its own
            law = _laws(generator, 0.05, T, 1)[0] @ rows
        elif kind == 2:  # misspecified
            law = _laws(generator, 0.3, J, 1)[0]
        elif kind == 3:  # drifting
            law = 0.9 * law + 0.1 * _laws(generator, 0.1, J, 1)[0]
        law = law * possible
        law = law / law.sum() if law.sum() > 0 else rows[0]
        counts.append(generator.multinomial(n_samples, law / law.sum()) * possible)
    return rows, np.array(counts)


def _rows(generator, kind, T, J):
    rows = _laws(generator, 10 ** generator.uniform(-2, 1), J, T)
    if kind == 1:  # duplicates
        rows = rows[generator.integers(0, T, size=T)]
    elif kind == 2:  # duplicates and near duplicates
        near = 1 + 1e-7 * generator.standard_normal(rows.shape) * (generator.random((T, 1)) < 0.5)
        rows = (rows * near)[generator.integers(0, T, size=T)]
    elif kind == 3:  # zeros
        rows = np.where(generator.random(rows.shape) < 0.5, 0, rows)
    elif kind == 4:  # peaked
        rows = rows ** generator.uniform(1, 8)
    elif kind == 5:  # an outcome that hardly happens
        rows[:, 0] *= 10.0 ** -generator.integers(9, 290)
    elif kind == 6:  # nearly flat
        rows = 1 + 10.0 ** -generator.integers(2, 8) * rows
    elif kind == 7:  # low rank
        rows = _laws(generator, 1.0, min(T, 3), T) @ rows[:3]
    elif kind == 8:  # ties
        rows = np.round(rows * 20)
    rows[rows.sum(axis=1) <= 0] = 1
    rows = rows / rows.sum(axis=1, keepdims=True)
    rows[rows < 1e-300] = 0
    return rows / rows.sum(axis=1, keepdims=True)


def _laws(generator, concentration, n_outcomes, size):
    laws = generator.dirichlet(np.full(n_outcomes, concentration), size=size)
    return np.where(np.isfinite(laws).all(axis=1, keepdims=True), laws, 1 / n_outcomes)
