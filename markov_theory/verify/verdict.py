"""Verdicts: what a measurement says about a statement. A tool that can only say "holds" verifies nothing."""

from __future__ import annotations

import math

HOLDS, VIOLATED, INCONCLUSIVE, SILENT, FAILED = "holds", "violated", "inconclusive", "says nothing", "error"


def upper_bound_verdict(bound: float, low: float, high: float, tried: bool = True) -> str:
    """Judge "N samples suffice for every N >= bound" by an interval of N*.

    Parameters
    ----------
    bound : float
        Samples.
    low : float
        Largest N at which failure is certified to exceed δ (-1: none).
    high : float
        Least N from which failure is certified to be at most δ wherever it was measured.
    tried : bool
        Whether it was measured at the bound itself; success below a bound does not prove success at it.

    Returns
    -------
    str
        ``"violated"`` if failure is certified at or above the bound, ``"holds"`` if success is certified at the
        bound and wherever it was measured beyond, ``"says nothing"`` for an infinite bound, else
        ``"inconclusive"``.

    Examples
    --------
    >>> upper_bound_verdict(100, 40, 60), upper_bound_verdict(30, 40, 60), upper_bound_verdict(50, 40, 60)
    ('holds', 'violated', 'inconclusive')
    """
    if math.isinf(bound):
        return SILENT
    if low >= bound:
        return VIOLATED
    return HOLDS if tried and high <= bound else INCONCLUSIVE
