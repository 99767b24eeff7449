"""The scikit-learn face of the solvers, and the baselines, by name."""

from markov_theory.estimators.base import RowEstimator
from markov_theory.estimators.baselines import SmoothedEmpirical, UniformMixture
from markov_theory.estimators.mixtures import OMP, ConstrainedKL, ExactL0, KLPursuit, NearestRow, Oracle
from markov_theory.estimators.selected import SelectedKLPursuit

ESTIMATORS: dict[str, type[RowEstimator]] = {
    estimator.name: estimator
    for estimator in (
        Oracle,
        ConstrainedKL,
        KLPursuit,
        SelectedKLPursuit,
        OMP,
        ExactL0,
        NearestRow,
        UniformMixture,
        SmoothedEmpirical,
    )
}

__all__ = [
    "ESTIMATORS",
    "OMP",
    "ConstrainedKL",
    "ExactL0",
    "KLPursuit",
    "NearestRow",
    "Oracle",
    "RowEstimator",
    "SelectedKLPursuit",
    "SmoothedEmpirical",
    "UniformMixture",
]
