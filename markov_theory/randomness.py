"""Randomness by name: a generator is a pure function of a seed and of what it is for.

So a result does not depend on the order of evaluation, on the number of workers, or on resumption.
"""

from __future__ import annotations

import hashlib
import operator

import numpy as np

from markov_theory import _checks


def named_generator(seed: int, *names: str | int) -> np.random.Generator:
    """Return the generator that belongs to `names` under `seed`.

    Parameters
    ----------
    seed : int
        Entropy, >= 0.
    names : str or int
        What the numbers are for, for example ``("counts", "s=4/truth=0", 1000, 3)``.

    Returns
    -------
    numpy.random.Generator
        Independent streams for different names (`numpy.random.SeedSequence` with a hashed spawn key).

    Examples
    --------
    >>> a, b = named_generator(0, "counts", 1), named_generator(0, "counts", 1)
    >>> bool(a.random() == b.random())
    True
    """
    seed = _checks.whole(seed, "seed")
    plain = tuple(name if isinstance(name, str) else operator.index(name) for name in names)
    digest = hashlib.sha256(repr(plain).encode()).digest()
    words = np.frombuffer(digest[:16], dtype="<u4")
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=tuple(int(w) for w in words)))
