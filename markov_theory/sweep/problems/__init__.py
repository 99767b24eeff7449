"""Kinds of problem, by name."""

from markov_theory.sweep.problems.base import Problem, Truth
from markov_theory.sweep.problems.embedding import Embedding
from markov_theory.sweep.problems.misfit import Misfit
from markov_theory.sweep.problems.mixture import Mixture
from markov_theory.sweep.problems.new_tokens import NewTokens
from markov_theory.sweep.problems.order import HigherOrder

PROBLEMS: dict[str, type[Problem]] = {
    problem.name: problem for problem in (Mixture, Misfit, NewTokens, Embedding, HigherOrder)
}

__all__ = ["PROBLEMS", "Problem", "Truth"]
