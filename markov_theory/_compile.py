"""Optional compilation: `compiled` is numba's ``njit`` where numba is installed, and the identity elsewhere.

The code it decorates is numpy code that gives the same answers either way; numba removes the interpreter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable)

try:
    import numba
except ImportError:
    COMPILED = False

    def compiled(function: Function) -> Function:
        """Return `function` itself: numba is not installed."""
        return function

    reordered = compiled

    def routine(module: str, name: str, arguments: str) -> Any:
        """Refuse: without a compiler a routine is called through scipy.  Raises NotImplementedError."""
        raise NotImplementedError(f"{name} of {module} needs numba")
else:
    from llvmlite import binding  # type: ignore
    from numba import types
    from numba.extending import get_cython_function_address

    COMPILED = True
    KINDS = {
        "c": types.CPointer(types.uint8),
        "i": types.CPointer(types.int32),
        "s": types.CPointer(types.float32),
        "d": types.CPointer(types.float64),
    }

    def compiled(function: Function) -> Function:
        """Return `function` compiled to machine code at its first call; the code is cached on disk."""
        return numba.njit(cache=True, nogil=True, error_model="numpy")(function)

    def reordered(function: Function) -> Function:
        """Return `function` compiled likewise, its sums taken in whatever order is fastest: several terms at a time."""
        order = {"reassoc", "contract", "nsz"}
        return numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=order)(function)

    def routine(module: str, name: str, arguments: str) -> Any:
        """Return a routine of BLAS or LAPACK that compiled code may call, by the name under which scipy carries it.

        Parameters
        ----------
        module, name : str
            For example ``"cython_blas"``, ``"dsyrk"``.
        arguments : str
            One letter each, all passed by address: c(haracter), i(nteger), s(ingle), d(ouble precision). numba is told
            the address by name, so that the code it compiles can still be cached.
        """
        symbol = f"markov_theory_{name}"
        binding.add_symbol(symbol, get_cython_function_address(f"scipy.linalg.{module}", name))
        return types.ExternalFunction(symbol, types.void(*(KINDS[letter] for letter in arguments)))
