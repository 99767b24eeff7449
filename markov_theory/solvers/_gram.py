"""Pursuits by products of pairs of atoms: scores follow from those of the target without a pass over the atoms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from markov_theory._checks import Array, IntArray
from markov_theory._compile import compiled
from markov_theory.solvers._atoms import UNIT_ROUNDOFF, PreparedAtoms, Singles
from markov_theory.solvers._refits import DEPENDENT, extend
from markov_theory.solvers._scores import ALIKE
from markov_theory.solvers._screen import cosines, near_top, subtract_rows
from markov_theory.solvers._triangular import solve_upper

CLOSE = 16  # atoms that are compared in double precision


def follow(
    atoms: PreparedAtoms,
    targets: Array,
    lengths: Array,
    stops: Array,
    factors: tuple[Array, Array, Array],
    residuals: Array,
    support: IntArray,
    sizes: IntArray,
) -> None:
    """Pursue R targets, each as far as its choices are beyond doubt: no atom is as good to rounding, none alike.

    Targets have the given lengths, and end where a residual's falls to its stop; the arrays that follow are those of
    a pursuit at its start, and are brought up to date.
    """
    unit = targets / np.where(lengths > 0, lengths, 1.0)[:, None]
    start = unit.astype(np.float32) @ atoms.single.T
    error = atoms.error + (support.shape[1] + 6) * UNIT_ROUNDOFF * 1.01
    _follow(atoms.values, atoms.norms, atoms.gram, start, lengths, stops, error, *factors, residuals, support, sizes)


@compiled
def _follow(
    values: NDArray[Any],
    norms: Array,
    gram: Singles,
    start: Singles,
    lengths: Array,
    stops: Array,
    error: float,
    Q: Array,
    U: Array,
    b: Array,
    residuals: Array,
    support: IntArray,
    sizes: IntArray,
) -> None:
    (R, T), k = start.shape, support.shape[1]
    scores, found = np.zeros(T, dtype=np.float32), np.zeros(CLOSE, dtype=np.int64)
    for t in range(R):
        for n in range(k):
            length = math.sqrt(np.dot(residuals[t], residuals[t]))
            if length <= stops[t]:
                break
            weights = b[t, :n] / lengths[t]
            solve_upper(U[t], n, weights)
            subtract_rows(start[t], weights, gram, support[t], scores)
            zero = ALIKE * length / lengths[t]
            margin = 2 * error * (1 + np.abs(weights).sum()) + zero
            top, close = near_top(scores, margin, found)
            if top <= 2 * margin or close > CLOSE:
                break
            best = 0
            if close > 1:
                exact = np.abs(cosines(values, norms, found[:close], np.full(close, t), residuals)) / lengths[t]
                best = exact.argmax()
                if (exact >= exact[best] - zero).sum() > 1:
                    break
            atom = found[best]
            new = values[atom] / norms[atom]
            if extend(Q[t], U[t], b[t], residuals[t], n, new) <= DEPENDENT:
                break
            support[t, n] = atom
            sizes[t] = n + 1
