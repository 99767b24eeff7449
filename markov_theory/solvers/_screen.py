"""Passes over many atoms and over scores of theirs.

The first four have a plain loop for the compiler and the same in numpy for when there is none.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from markov_theory._checks import Array, IntArray
from markov_theory._compile import COMPILED, compiled

Singles = NDArray[np.float32]
ENTRIES = 2**17  # of a block that stays in cache

if COMPILED:

    @compiled
    def normalise(values: NDArray[Any], norms: Array, single: Singles, halves: Singles) -> None:
        """Write the norms of rows (T, d), the rows of norm one, and the norms (2, T) of the halves of these."""
        half = values.shape[1] // 2
        for v in range(len(values)):
            row = values[v].astype(np.float64)
            norms[v] = math.sqrt(np.dot(row, row))
            inverse = 1 / norms[v]
            for j in range(row.size):
                single[v, j] = row[j] * inverse
            halves[0, v] = math.sqrt(np.dot(single[v, :half], single[v, :half]))
            halves[1, v] = math.sqrt(np.dot(single[v, half:], single[v, half:]))

    @compiled
    def add_products(
        table: Singles,
        who: IntArray,
        products: Singles,
        signed: bool,
        tops: Singles,
        rest: Singles,
        tails: Singles,
    ) -> None:
        """Add products (A, n) to rows `who` of the table.

        Raise the tops (A, n) to the scores, or their moduli if `signed`, plus what may come on top, rest·tails.
        """
        for i in range(who.size):
            row = table[who[i]]
            for j in range(products.shape[1]):
                row[j] += products[i, j]
                score = (abs(row[j]) if signed else row[j]) + rest[i] * tails[j]
                tops[i, j] = max(tops[i, j], score)

    @compiled
    def subtract_rows(start: Singles, weights: Array, rows: Singles, which: IntArray, out: Singles) -> None:
        """Write start − Σ_i weights[i]·rows[which[i]] to `out`."""
        for v in range(out.size):
            out[v] = start[v]
        for i in range(weights.size):
            weight, row = np.float32(weights[i]), rows[which[i]]
            for v in range(out.size):
                out[v] -= weight * row[v]

    @compiled
    def near_top(scores: Singles, margin: float, found: IntArray) -> tuple[float, int]:
        """Return the largest modulus of scores, and how many lie within a margin of it; write the first to `found`."""
        bits, top, most = scores.view(np.int32), np.zeros(1, dtype=np.int32), 0
        for v in range(bits.size):  # moduli are in the order of their bits, and maxima of integers are quick
            most = max(most, bits[v] & 0x7FFFFFFF)
        top[0] = most
        largest = top.view(np.float32)[0]
        cut, n = np.float32(largest - margin), 0
        for v in range(scores.size):
            if abs(scores[v]) >= cut:
                if n < found.size:
                    found[n] = v
                n += 1
        return largest, n

else:

    def normalise(values: NDArray[Any], norms: Array, single: Singles, halves: Singles) -> None:
        """Write the norms of rows (T, d), the rows of norm one, and the norms (2, T) of the halves of these."""
        half, n = values.shape[1] // 2, max(1, ENTRIES // values.shape[1])
        for block in (slice(v, v + n) for v in range(0, len(values), n)):
            rows = values[block].astype(float)
            with np.errstate(all="ignore"):
                norms[block] = np.sqrt(np.einsum("td,td->t", rows, rows))
                single[block] = rows / norms[block, None]
                halves[0, block] = np.linalg.norm(single[block, :half], axis=1)
                halves[1, block] = np.linalg.norm(single[block, half:], axis=1)

    def add_products(
        table: Singles,
        who: IntArray,
        products: Singles,
        signed: bool,
        tops: Singles,
        rest: Singles,
        tails: Singles,
    ) -> None:
        """Add products (A, n) to rows `who` of the table.

        Raise the tops (A, n) to the scores, or their moduli if `signed`, plus what may come on top, rest·tails.
        """
        n = products.shape[1]
        values = table[who, :n] + products
        table[who, :n] = values
        scores = (np.abs(values) if signed else values) + rest[:, None] * tails[:n]
        np.maximum(tops[:, :n], scores, out=tops[:, :n])

    def subtract_rows(start: Singles, weights: Array, rows: Singles, which: IntArray, out: Singles) -> None:
        """Write start − Σ_i weights[i]·rows[which[i]] to `out`."""
        out[:] = start - weights.astype(np.float32) @ rows[which[: weights.size]]

    def near_top(scores: Singles, margin: float, found: IntArray) -> tuple[float, int]:
        """Return the largest modulus of scores, and how many lie within a margin of it; write the first to `found`."""
        sizes = np.abs(scores)
        largest = sizes.max()
        near = np.flatnonzero(sizes >= np.float32(largest - margin))
        found[: near.size] = near[: found.size]
        return largest, near.size


@compiled
def cosines(values: NDArray[Any], norms: Array, what: IntArray, whose: IntArray, residuals: Array) -> Array:
    """Cosines of P pairs of an atom and a residual of norm one, in double precision and in a fixed order."""
    scores = np.zeros(what.size)
    for p in range(what.size):
        scores[p] = np.dot(values[what[p]] / norms[what[p]], residuals[whose[p]])
    return scores
