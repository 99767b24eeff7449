"""Optional compilation: `compiled` is numba's ``njit`` where numba is installed, and the identity elsewhere.

The code it decorates is numpy code that gives the same answers either way; numba removes the interpreter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Function = TypeVar("Function", bound=Callable)

try:
    import numba
except ImportError:
    COMPILED = False

    def compiled(function: Function) -> Function:
        """Return `function` itself: numba is not installed."""
        return function
else:
    COMPILED = True

    def compiled(function: Function) -> Function:
        """Return `function` compiled to machine code at its first call; the code is cached on disk."""
        return numba.njit(cache=True, nogil=True, error_model="numpy")(function)
