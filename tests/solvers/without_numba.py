"""The package as it is where numba is not installed."""

from __future__ import annotations

import contextlib
import importlib
import sys
from types import ModuleType


@contextlib.contextmanager
def _numba_missing():
    """Let the package be imported anew as if numba were not installed; in the end all is as it was."""
    ours = [name for name in sys.modules if name.partition(".")[0] == "markov_theory"]
    saved = {name: sys.modules.pop(name) for name in [*ours, "numba"] if name in sys.modules}
    sys.modules["numba"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "markov_theory"]:
            del sys.modules[name]
        del sys.modules["numba"]
        sys.modules.update(saved)


def uncompiled(*names: str) -> list[ModuleType]:
    """Modules of the package whose functions are not compiled."""
    with _numba_missing():
        return [importlib.import_module(name) for name in names]
