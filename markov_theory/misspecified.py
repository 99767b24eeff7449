"""Truths that are no mixture of rows: what no estimator can repair, apart from what more data do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from markov_theory._checks import Array, IntArray, as_laws, as_transitions, whole
from markov_theory.dictionary import Dictionary
from markov_theory.divergences import density_ratio, kl_divergence
from markov_theory.instance import Instance
from markov_theory.randomness import named_generator
from markov_theory.solvers._newton import solve_batch
from markov_theory.solvers.best_subset import best_subset
from markov_theory.solvers.relaxation import information_projection
from markov_theory.solvers.simplex_mle import FIRST_ROWS

OUTSIDE = 1e-9  # nats: a certified distance from the hull that rounding cannot make
TOLERANCE = 1e-13
N_DRAWS = 50
GRID = 2**50


@dataclass(frozen=True, eq=False)
class Projection:
    """The mixture that is closest to a law q: ``argmin_α KL(q‖Pᵀα)``.

    Attributes
    ----------
    alpha : ndarray, shape (T,)
        Weights.
    law : ndarray, shape (J,)
        Pᵀα, what maximum likelihood over these mixtures tends to as N grows.
    divergence : float
        KL(q‖law) (nats).
    gap : float
        Certified: no mixture of the class is closer than ``divergence − gap`` (nats).
    """

    alpha: Array
    law: Array
    divergence: float
    gap: float

    @property
    def support(self) -> IntArray:
        """Rows with positive weight."""
        return np.flatnonzero(self.alpha)


@dataclass(frozen=True, eq=False)
class MisspecifiedInstance:
    """A truth ``q = (1−τ)·Pᵀα* + τ·r`` with r outside the hull of the rows.

    That r is outside does not put q outside: where the hull has all J − 1 dimensions, a small τ may leave q inside
    (`approximation_error` 0). Estimators over mixtures tend to the information projection of q, not to q and not to
    Pᵀα*; KL(q‖q̂) is the approximation error, which no data reduce, plus the excess risk.

    Parameters
    ----------
    dictionary : Dictionary
    alpha : array_like, shape (T,)
        α*, in the simplex.
    stray : array_like, shape (J,)
        r, on outcomes that some row can give.
    tau : float
        τ in (0, 1].
    name : str
        Identifies the truth; randomness is keyed by it.

    Raises
    ------
    ValueError
        If r is not certified to lie outside the hull (KL > 1e-9 nats) or has an outcome that no row can give, a shape
        does not fit, or τ is out of range.

    Examples
    --------
    >>> rows = Dictionary([[.2, .8], [.6, .4]])
    >>> truth = MisspecifiedInstance(rows, [0, 1], [1, 0], 0.5)
    >>> truth.target.round(3).tolist(), truth.projection.law.round(3).tolist(), round(truth.approximation_error, 4)
    ([0.8, 0.2], [0.6, 0.4], 0.0915)
    """

    dictionary: Dictionary
    alpha: Array
    stray: Array
    tau: float
    name: str

    def __init__(
        self, dictionary: Dictionary, alpha: ArrayLike, stray: ArrayLike, tau: float, name: str = "misspecified"
    ) -> None:
        weights, law = as_laws(alpha, "alpha"), as_laws(stray, "stray")
        if weights.shape != (dictionary.n_tokens,) or law.shape != (dictionary.n_outcomes,):
            raise ValueError(
                f"alpha and stray must have shapes ({dictionary.n_tokens},) and ({dictionary.n_outcomes},), "
                f"got {weights.shape} and {law.shape}"
            )
        if not 0 < tau <= 1:
            raise ValueError(f"tau must lie in (0, 1], got {tau!r}")
        distance = information_projection(dictionary.transitions, law)
        if math.isinf(distance):
            raise ValueError("stray has an outcome that no row can give: every mixture is infinitely far")
        if distance <= OUTSIDE:
            raise ValueError(f"stray must lie outside the hull of the rows, got {distance:.2g} nats from it")
        for name_, value in (("alpha", weights), ("stray", law)):
            value.setflags(write=False)
            object.__setattr__(self, name_, value)
        object.__setattr__(self, "dictionary", dictionary)
        object.__setattr__(self, "tau", float(tau))
        object.__setattr__(self, "name", name)

    @property
    def transitions(self) -> Array:
        """P, shape (T, J)."""
        return self.dictionary.transitions

    @property
    def n_tokens(self) -> int:
        """T."""
        return self.dictionary.n_tokens

    @property
    def n_outcomes(self) -> int:
        """J."""
        return self.dictionary.n_outcomes

    @property
    def density_ratio(self) -> float:
        """The density ratio c of the dictionary: of its mixtures, whatever the truth."""
        return self.dictionary.density_ratio

    @property
    def log_ratio(self) -> float:
        """L = log c (nats)."""
        return self.dictionary.log_ratio

    @property
    def sparsity(self) -> int:
        """‖α*‖₀."""
        return int(np.count_nonzero(self.alpha))

    @property
    def stray_distance(self) -> float:
        """Certified lower bound on min KL(r‖mixture) (nats), positive."""
        return information_projection(self.transitions, self.stray)

    @cached_property
    def target(self) -> Array:
        """q, shape (J,)."""
        return (1 - self.tau) * (self.alpha @ self.transitions) + self.tau * self.stray

    @cached_property
    def projection(self) -> Projection:
        """The information projection of q on all mixtures."""
        return project(self.transitions, self.target)

    @property
    def approximation_error(self) -> float:
        """Smallest KL(q‖mixture) (nats), to `Projection.gap`."""
        return self.projection.divergence

    @property
    def is_outside(self) -> bool:
        """Whether q itself is certified to be no mixture of the rows."""
        return information_projection(self.transitions, self.target) > OUTSIDE

    def sparse_projection(self, sparsity: int) -> Projection:
        """The information projection on mixtures of at most s rows; its gap is large if the search was cut short."""
        return project_sparse(self.transitions, self.target, sparsity)

    def excess_risk(self, laws: ArrayLike, projection: Projection | None = None) -> Array:
        """``KL(q‖q̂) − KL(q‖projection)`` (nats) of laws (..., J): the estimation error; negative outside the class.

        Parameters
        ----------
        laws : array_like, shape (..., J)
        projection : Projection, optional
            On the estimator's class; on all mixtures by default.
        """
        return kl_divergence(self.target, laws) - (projection or self.projection).divergence


def project(transitions: ArrayLike, target: ArrayLike) -> Projection:
    """Information projection of q on all mixtures of rows, certified: ``gap = log max_v Σ_j (q_j/q*_j) p_v(j)``.

    Raises
    ------
    ValueError
        If q has an outcome that no row can give, so that every mixture is infinitely far.

    Examples
    --------
    >>> project([[.2, .8], [.6, .4]], [.8, .2]).alpha.tolist()
    [0.0, 1.0]
    """
    P, q = _problem(transitions, target)
    alpha, gap, _ = solve_batch(P, q[None], TOLERANCE, min(FIRST_ROWS, P.shape[0]))
    return _projection(P, q, alpha[0], float(gap[0]))


def project_sparse(transitions: ArrayLike, target: ArrayLike, sparsity: int) -> Projection:
    """Information projection of q on mixtures of at most s rows, by exact subset search; its set is not convex.

    Notes
    -----
    The search takes whole counts, so q is rounded to multiples of 2^−50; the gap includes what that may cost.
    """
    P, q = _problem(transitions, target)
    counts = np.where(q > 0, np.maximum(np.rint(q * GRID), 1), 0)
    fit = best_subset(P, counts, sparsity)
    moved = float(np.abs(counts / counts.sum() - q).sum())
    slack = moved * math.log(density_ratio(P)) if moved else 0.0
    return _projection(P, q, fit.alpha[0], float(fit.gap[0]) + slack)


def misspecify(instance: Instance, tau: float, *, seed: int = 0, draw: int = 0) -> MisspecifiedInstance:
    """Move a planted truth towards a law outside the hull of the rows: ``q = (1−τ)·Pᵀα* + τ·r``.

    Parameters
    ----------
    instance : Instance
        α* and the rows.
    tau : float
        τ in (0, 1].
    seed, draw : int
        Entropy of r, and which one.

    Returns
    -------
    MisspecifiedInstance
        r is Dirichlet(1) on the outcomes that some row can give, the first of 50 draws that is certified to lie outside
        the hull, or else such an outcome for sure.

    Raises
    ------
    ValueError
        If every law on these outcomes is a mixture of the rows.
    """
    P = instance.transitions
    live = np.flatnonzero(P.any(axis=0))
    generator = named_generator(seed, "misspecify", instance.name, whole(draw, "draw"))
    drawn = generator.dirichlet(np.ones(live.size), size=N_DRAWS)
    for law in np.vstack([drawn, np.eye(live.size)[generator.permutation(live.size)]]):
        stray = np.zeros(P.shape[1])
        stray[live] = law
        if information_projection(P, stray) > OUTSIDE:
            name = f"{instance.name}/tau={tau:g}/draw={draw}"
            return MisspecifiedInstance(instance.dictionary, instance.alpha, stray, tau, name)
    raise ValueError("every law on the outcomes of the rows is a mixture of them: nothing lies outside the hull")


def _problem(transitions: ArrayLike, target: ArrayLike) -> tuple[Array, Array]:
    P, q = as_transitions(transitions), as_laws(target, "target")
    if q.shape != (P.shape[1],):
        raise ValueError(f"target must have shape ({P.shape[1]},), got {q.shape}")
    if ((q > 0) & ~P.any(axis=0)).any():
        raise ValueError("target has an outcome that no row can give: every mixture is infinitely far")
    return P, q


def _projection(P: Array, q: Array, alpha: Array, gap: float) -> Projection:
    law = alpha @ P
    return Projection(alpha, law, float(kl_divergence(q, law)), max(0.0, gap))
