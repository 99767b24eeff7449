"""A dictionary: the rows p_v, next-token laws of T old tokens over J outcomes, from which new laws are mixed."""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from markov_theory import divergences
from markov_theory._checks import Array, as_transitions


@dataclass(frozen=True, eq=False)
class Dictionary:
    """Rows of a transition matrix, with their names and the numbers that the theory speaks of.

    Parameters
    ----------
    transitions : array_like, shape (T, J)
        Row-stochastic; row v is the law of the next outcome after token v.
    tokens : sequence of str, optional
        Names of the T rows; ``"0"``, ``"1"``, ... by default.
    outcomes : sequence of str, optional
        Names of the J outcomes; likewise.
    origin : str
        Where the rows come from, for provenance.

    Raises
    ------
    ValueError, TypeError
        If `transitions` is not row-stochastic, or a list of names has the wrong length.

    Examples
    --------
    >>> coins = Dictionary([[.9, .1], [.5, .5]])
    >>> coins.n_tokens, coins.n_outcomes, round(coins.density_ratio, 6)
    (2, 2, 5.0)
    """

    transitions: Array
    tokens: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()
    origin: str = "given rows"
    notes: dict[str, float] = field(default_factory=dict)

    def __init__(
        self,
        transitions: ArrayLike,
        tokens: tuple[str, ...] | list[str] = (),
        outcomes: tuple[str, ...] | list[str] = (),
        origin: str = "given rows",
        notes: dict[str, float] | None = None,
    ) -> None:
        rows = as_transitions(transitions)
        rows.setflags(write=False)
        object.__setattr__(self, "transitions", rows)
        object.__setattr__(self, "tokens", _names(tokens, rows.shape[0], "tokens"))
        object.__setattr__(self, "outcomes", _names(outcomes, rows.shape[1], "outcomes"))
        object.__setattr__(self, "origin", origin)
        object.__setattr__(self, "notes", dict(notes or {}))

    @property
    def n_tokens(self) -> int:
        """T, the number of rows."""
        return self.transitions.shape[0]

    @property
    def n_outcomes(self) -> int:
        """J, the number of outcomes."""
        return self.transitions.shape[1]

    @cached_property
    def margin(self) -> float:
        """KL margin γ = min_{v≠v'} KL(p_v‖p_v') (nats); ∞ for one row."""
        return divergences.margin(self.transitions)

    @cached_property
    def density_ratio(self) -> float:
        """Density ratio c (see `divergences.density_ratio`)."""
        return divergences.density_ratio(self.transitions)

    @property
    def log_ratio(self) -> float:
        """L = log c (nats)."""
        return math.log(self.density_ratio)

    @cached_property
    def inverse_min_probability(self) -> float:
        """The other reading of c, 1/min probability over outcomes that some row can give: at least J."""
        live = self.transitions[:, self.transitions.max(axis=0) > 0]
        return math.inf if live.min() == 0 else float(1 / live.min())

    @cached_property
    def coherence(self) -> float:
        """Mutual coherence max_{v≠v'} cos(p_v, p_v') of the rows, in [0, 1]; 0 for one row."""
        atoms = self.transitions / np.linalg.norm(self.transitions, axis=1, keepdims=True)
        cosines = atoms @ atoms.T
        np.fill_diagonal(cosines, 0.0)
        return float(min(cosines.max(), 1.0))

    def describe(self) -> Iterator[tuple[str, str]]:
        """Yield (quantity, value) pairs that a person should see before using the dictionary."""
        yield "origin", self.origin
        yield "rows T", f"{self.n_tokens:,}"
        yield "outcomes J", f"{self.n_outcomes:,}"
        yield "margin γ (nats)", f"{self.margin:.4g}"
        yield "density ratio c", f"{self.density_ratio:.4g}"
        yield "1/min probability", f"{self.inverse_min_probability:.4g}"
        yield "coherence", f"{self.coherence:.4f}"
        for name, value in self.notes.items():
            yield name, f"{value:.4g}"

    def save(self, path: str | Path) -> None:
        """Write the dictionary to a compressed ``.npz`` file (no pickle inside); see `load`."""
        path = Path(path)
        if path.suffix != ".npz":
            raise ValueError(f"a dictionary is saved as .npz, got {path.name!r}")
        partial = path.with_suffix(f".{os.getpid()}.npz")
        np.savez_compressed(
            partial,
            transitions=self.transitions,
            tokens=np.array(self.tokens),
            outcomes=np.array(self.outcomes),
            origin=np.array(self.origin),
            note_names=np.array(list(self.notes), dtype=str),
            note_values=np.array(list(self.notes.values()), dtype=float),
        )
        partial.replace(path)

    @classmethod
    def load(cls, path: str | Path) -> Dictionary:
        """Read a dictionary from ``.npz`` (`transitions`, names optional) or ``.csv`` (a row a line, no header).

        Raises
        ------
        FileNotFoundError, ValueError
            If there is no such file, it holds no row-stochastic matrix, or its kind is unknown.
        """
        path = Path(path)
        if not path.is_file():
            raise FileNotFoundError(f"no dictionary file {path}")
        if path.suffix == ".npz":
            return cls._from_npz(path)
        if path.suffix == ".csv":
            try:
                rows = np.loadtxt(path, delimiter=",", ndmin=2)
            except ValueError as error:
                raise ValueError(f"{path}: not a table of numbers separated by commas ({error})") from None
            return cls(rows, origin=str(path.name))
        raise ValueError(f"a dictionary file ends in .npz or .csv, got {path.name!r}")

    @classmethod
    def _from_npz(cls, path: Path) -> Dictionary:
        try:
            with np.load(path, allow_pickle=False) as stored:
                arrays = dict(stored)
        except (zipfile.BadZipFile, ValueError, OSError, EOFError) as error:
            raise ValueError(f"{path}: not a readable .npz file ({error})") from None
        if "transitions" not in arrays:
            raise ValueError(f"{path}: no array 'transitions' (found: {', '.join(arrays) or 'none'})")
        names = {key: [str(name) for name in arrays[key]] for key in ("tokens", "outcomes") if key in arrays}
        notes = dict(
            zip(map(str, arrays.get("note_names", [])), map(float, arrays.get("note_values", [])), strict=True)
        )
        return cls(arrays["transitions"], **names, origin=str(arrays.get("origin", path.name)), notes=notes)


def _names(names: tuple[str, ...] | list[str], length: int, what: str) -> tuple[str, ...]:
    if not len(names):
        return tuple(str(i) for i in range(length))
    if len(names) != length:
        raise ValueError(f"{what} must have {length} names, got {len(names)}")
    return tuple(names)
