"""A plan: what was asked, and the whole answer, which can be written as JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass, is_dataclass
from typing import Any

import numpy as np

from markov_theory._checks import MAX_SAMPLES, open_unit, positive, whole
from markov_theory.corpus import EXPOSURES
from markov_theory.plan.corpus import Corpus, learning_delta
from markov_theory.plan.requirements import ESTIMATOR_NAMES, Recommendation, Requirement
from markov_theory.plan.simulation import Simulation

QUANTITIES = {  # what may be infinite, by its key
    *("n_samples", "each", "known_support", "for_every_truth", "predicted", "predicted_positions", "n_positions"),
    *("samples_per_token", "uniform", "zipf", "coupled", "accuracy", "support", "exposure"),
    *("margin", "density_ratio", "support_margin"),
}


@dataclass(frozen=True)
class Question:
    """What was asked; see `plan_samples`.

    Attributes
    ----------
    epsilon, delta : float
    estimator : str
    new_tokens : int
    exposure : str
    rate, share : float
    given_positions : int or None
    seed : int
    planted : bool
        Whether the truths were planted, so that the worst of them stands for every token.
    """

    epsilon: float
    delta: float
    estimator: str
    new_tokens: int
    exposure: str
    rate: float
    share: float
    given_positions: int | None
    seed: int
    planted: bool

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        positive(self.epsilon, "epsilon")
        for name in ("delta", "share") if self.rate == 1 else ("delta", "share", "rate"):
            open_unit(getattr(self, name), name)
        for name, names in (("estimator", ESTIMATOR_NAMES), ("exposure", EXPOSURES)):
            if getattr(self, name) not in names:
                raise ValueError(f"{name} must be one of {', '.join(names)}, got {getattr(self, name)!r}")
        if self.given_positions is not None:
            whole(self.given_positions, "n_samples", low=1, high=MAX_SAMPLES)

    @property
    def token_delta(self) -> float:
        """Failure probability left to the learning of each token."""
        return learning_delta(self.new_tokens, self.rate, self.delta, self.share)


@dataclass(frozen=True)
class Plan:
    """An answer to "how many samples do I need?".

    Attributes
    ----------
    question : Question
    dictionary : dict
        What the rows are.
    truths : tuple of dict
        What is to be learned (see `Truth.describe`).
    requirements : tuple of Requirement
        Every applicable statement, at the failure probability that is left to one token.
    recommendation : Recommendation
        Of samples of one token.
    predicted : float or None
        Samples of one token by the limit law; None where there is none.
    corpus : Corpus
    predicted_positions : float or None
        Length of the corpus by the limit law.
    parts : dict of str to float
        The occurrences of new tokens that are spent on ``"accuracy"``, on finding the ``"support"``, on ``"exposure"``.
    binding : str
        The largest of these parts; ``"nothing"`` if no sample is needed, ``"unbounded"`` if no number is vouched for.
    simulations : tuple of Simulation
    """

    question: Question
    dictionary: dict[str, Any]
    truths: tuple[dict[str, Any], ...]
    requirements: tuple[Requirement, ...]
    recommendation: Recommendation
    predicted: float | None
    corpus: Corpus
    predicted_positions: float | None
    parts: dict[str, float]
    binding: str
    simulations: tuple[Simulation, ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything, in JSON's own types.

        A number that may be infinite is ``{"value": number or None, "infinite": bool}``; None is what does not apply.
        """
        return dict(_plain(vars(self)))

    def simulation(self, at: str) -> Simulation | None:
        """The trials ``"recommended"``, ``"predicted"`` or ``"given"``."""
        return next((run for run in self.simulations if run.at == at), None)


def _plain(value: Any, key: str = "") -> Any:
    """A value in JSON's own types."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {name: _plain(part, name) for name, part in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(part, key) for part in value]
    if is_dataclass(value):
        return _plain(vars(value) | getattr(value, "derived", {}))
    if isinstance(value, float) and key in QUANTITIES:
        return {"value": value if math.isfinite(value) else None, "infinite": math.isinf(value)}
    return value
