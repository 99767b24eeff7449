"""How many samples does my new token need? Bounds, predictions and a corpus, with trials that confirm them."""

from markov_theory.plan.answer import Plan
from markov_theory.plan.planning import plan_samples
from markov_theory.plan.truths import Truth, nearest_mixture

__all__ = ["Plan", "Truth", "nearest_mixture", "plan_samples"]
