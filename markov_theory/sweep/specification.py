"""What a sweep is: everything that its numbers depend on, and nothing else."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

import numpy as np

from markov_theory._checks import open_unit, positive, whole
from markov_theory._compile import COMPILED
from markov_theory.dictionary import Dictionary
from markov_theory.estimators import ESTIMATORS
from markov_theory.sweep.grid import thinned
from markov_theory.sweep.sample_complexity import BATCH, Design

DISPLAY = ("screen.py", "results.py", "table.py", "growth.py", "arguments.py", "__main__.py")


@dataclass(frozen=True)
class Specification:
    """A sweep over the sparsity s.

    Attributes
    ----------
    sparsities : tuple of int
    estimators : tuple of str
        Names in `markov_theory.estimators.ESTIMATORS`.
    epsilon : float
        Accuracy, nats: a trial succeeds if KL(q‖q̂) <= ε.
    delta : float
        Admissible probability of failure.
    truths : int
        Planted truths at each s.
    trials : int
        Most trials at one N.
    seed : int
        Of truths and samples.
    dictionary : str
        SHA-256 of the rows, from `fingerprint`.
    """

    sparsities: tuple[int, ...]
    estimators: tuple[str, ...]
    epsilon: float
    delta: float
    truths: int
    trials: int
    seed: int
    dictionary: str

    def __post_init__(self) -> None:
        """Refuse what no sweep can run.  Raises ValueError or TypeError naming the value."""
        positive(self.epsilon, "epsilon")
        open_unit(self.delta, "delta")
        whole(self.truths, "truths", low=1)
        whole(self.trials, "trials", low=BATCH)
        if self.trials // BATCH * BATCH < self.design.least_trials:
            raise ValueError(
                f"trials must be at least {-(-self.design.least_trials // BATCH) * BATCH} (whole batches of {BATCH}) "
                f"to certify a failure probability of {self.delta:g}, got {self.trials}"
            )
        whole(self.seed, "seed")
        if not self.sparsities or not self.estimators:
            raise ValueError("a sweep needs at least one s and one estimator")
        for s in self.sparsities:
            whole(s, "s", low=1)
        for name in self.estimators:
            if name not in ESTIMATORS:
                raise ValueError(f"estimators must be among {', '.join(ESTIMATORS)}; got {name!r}")

    @property
    def design(self) -> Design:
        """How each N* is located."""
        return Design(delta=self.delta, max_trials=self.trials)

    @property
    def tolerance(self) -> float:
        """Certified gap asked of solvers (nats per sample): a millionth of ε moves KL(q‖q̂) by about 0.2 %."""
        return float(np.clip(1e-6 * self.epsilon, 1e-13, 1e-9))

    def cells(self) -> list[tuple[int, int, str]]:
        """(s, truth, estimator) of every N* to locate; some estimators on a thinned axis."""
        few = set(thinned(self.sparsities))
        return [
            (s, truth, name)
            for s in self.sparsities
            for truth in range(self.truths)
            for name in self.estimators
            if s in few or not ESTIMATORS[name].thinned
        ]

    def identity(self) -> dict[str, str]:
        """What must be equal for stored results to count: every field, and the code and versions that compute them."""
        fields = {name: json.dumps(value) for name, value in asdict(self).items()}
        versions = {f"version of {name}": version(name) for name in ("markov-theory", "numpy", "scipy", "scikit-learn")}
        return fields | versions | {"numba": str(COMPILED), "code": code_fingerprint()}

    def short_name(self) -> str:
        """Eight hexadecimal digits of the identity, for a folder's name."""
        return hashlib.sha256(json.dumps(self.identity(), sort_keys=True).encode()).hexdigest()[:8]


def fingerprint(dictionary: Dictionary) -> str:
    """SHA-256 of the rows (shape and bytes), hexadecimal."""
    digest = hashlib.sha256(repr(dictionary.transitions.shape).encode())
    digest.update(np.ascontiguousarray(dictionary.transitions).tobytes())
    return digest.hexdigest()


@cache
def code_fingerprint() -> str:
    """First 16 hexadecimal digits of a SHA-256 of the package's sources that numbers depend on."""
    digest = hashlib.sha256()
    root = Path(__file__).parents[1]
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] not in ("llm", "plots.py", "bounds", "verify") and path.name not in DISPLAY:
            digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]
