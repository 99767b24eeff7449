"""Estimators and bounds of one's own, named ``module:Name`` on the command line, beside the built-in ones."""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

Base = TypeVar("Base")


def is_own(name: str) -> bool:
    """Whether a name is of the form ``module:Name``."""
    return ":" in name


def resolve(name: str, known: Mapping[str, type[Base]], base: type[Base], what: str) -> type[Base]:
    """Return the class that `name` means: a built-in one, or ``module:Name``, importable from the current folder.

    Parameters
    ----------
    name : str
    known : mapping of str to type
        Built-in classes.
    base : type
        What the class must be a subclass of.
    what : str
        In messages, for example ``"estimators"``.

    Raises
    ------
    ValueError, TypeError
        If there is no such class, or it is no subclass of `base`; the message is one line.
    """
    if not is_own(name):
        if name not in known:
            raise ValueError(f"{what} must be among {', '.join(known)}, or module:Name; got {name!r}")
        return known[name]
    module_name, _, attribute = name.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = getattr(importlib.import_module(module_name), attribute)
    except Exception as error:  # whatever somebody's module raises is said in one line
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise ValueError(f"{what}: {name!r} cannot be imported from {os.getcwd()} ({reason})") from None
    if not (isinstance(found, type) and issubclass(found, base)):
        raise TypeError(f"{what}: {name!r} must be a subclass of {base.__module__}.{base.__name__}")
    return found


def own_code(names: tuple[str, ...]) -> dict[str, str]:
    """First 16 hexadecimal digits of a SHA-256 of the sources of each ``module:Name`` among the names.

    Of a module in a package, all sources of the package count.
    """
    return {name: _fingerprint(name.partition(":")[0]) for name in names if is_own(name)}


def _fingerprint(module_name: str) -> str:
    file = getattr(sys.modules[module_name], "__file__", None)
    package = getattr(sys.modules[module_name.partition(".")[0]], "__path__", None)
    sources = [Path(file or "")]
    if package:
        sources = sorted(path for folder in package for path in Path(folder).rglob("*.py"))
    digest = hashlib.sha256()
    for path in sources:
        if path.is_file():
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]
