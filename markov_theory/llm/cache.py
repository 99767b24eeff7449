"""Where converted models and tables are kept between runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

VARIABLE = "MARKOV_THEORY_CACHE"


def cache_folder(*parts: str) -> Path:
    """Return the folder for `parts` under the cache, made if need be.

    It is ``$MARKOV_THEORY_CACHE``, or the platform's own place: ``$XDG_CACHE_HOME/markov_theory``
    (``~/.cache/markov_theory``), ``~/Library/Caches/markov_theory`` or ``%LOCALAPPDATA%\\markov_theory``.

    Raises
    ------
    OSError
        If the folder cannot be made; the message names the variable that moves it.
    """
    folder = _root().joinpath(*parts)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise OSError(f"cannot make the cache folder {folder} ({reason}); set {VARIABLE} to another one") from None
    return folder


def _root() -> Path:
    if chosen := os.environ.get(VARIABLE):
        return Path(chosen).expanduser().absolute()
    if sys.platform == "darwin":
        base = "~/Library/Caches"
    elif sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "markov_theory"
