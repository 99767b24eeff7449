"""Newton's method on the homogeneous form of constrained KL, on given rows, with a Hessian that is kept.

``max Σ_j f_j log (Pᵀα)_j`` over the simplex equals ``min_{z ≥ 0} −Σ_j f_j log (Pᵀz)_j + Σ_v z_v``, whose optimum
sums to one: the simplex constraint is gone. With r = f/q, q = Pᵀz, the gradient is 1 − P r and the Hessian
P diag(f/q²) Pᵀ. A Newton step is a non-negative quadratic programme. With S = Σ z, log(S·max_v (P r)_v) bounds what
is missing. A Hessian of many rows costs as much as several steps, and is made anew only when that saves more; in
single precision, as long as its factor is far from singular.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from markov_theory._checks import Array, IntArray
from markov_theory._compile import COMPILED, compiled
from markov_theory.solvers._blas import gram
from markov_theory.solvers._quadratic import DEPENDENT, nonnegative_quadratic
from markov_theory.solvers._rows import average, curvature, divide, extended, mix, price, take, weigh

__all__ = ["Model", "descend", "hessian", "modelled", "newton", "revised", "take", "worn"]

MAX_NEWTON = 200
PRODUCT = 8.0  # a matrix product is this many times faster than as many matrix-vector products
CHEAP = 0.5  # a Hessian that costs less than this many steps is always made anew
NEAR = 0.1  # larger gaps are far from the optimum: the law of `worn` is not asked to hold
FULL = 0.75  # a working set with a smaller share of positive weights is revised before its Hessian is made anew
ROUGH = 1e-5  # pivots, relative to the diagonal, down to which single precision will do
TINY = 1e-300

if COMPILED:

    @compiled
    def _towards(f: Array, q: Array, law: Array, change: Array) -> tuple[float, float, float]:
        """Change = law − q where f > 0, else 0; its least and largest share of q, and Σ f (change/q)²."""
        least, largest, curvature = 0.0, 0.0, 0.0
        for j in range(q.size):
            change[j] = law[j] - q[j] if f[j] > 0.0 else 0.0
            relative = change[j] / q[j]
            least, largest = min(least, relative), max(largest, relative)
            curvature += f[j] * relative * relative
        return least, largest, curvature

    @compiled
    def _log_gain(q: Array, change: Array, f: Array, size: float) -> float:
        """Σ f log(1 + size·change/q)."""
        gain = 0.0
        for j in range(q.size):
            if f[j] > 0.0:
                gain += f[j] * math.log1p(size * change[j] / q[j])
        return gain

else:

    def _towards(f: Array, q: Array, law: Array, change: Array) -> tuple[float, float, float]:
        """Change = law − q where f > 0, else 0; its least and largest share of q, and Σ f (change/q)²."""
        change[:] = np.where(f > 0.0, law - q, 0.0)
        relative = change / q
        return min(relative.min(), 0.0), max(relative.max(), 0.0), float(np.dot(f, relative**2))

    def _log_gain(q: Array, change: Array, f: Array, size: float) -> float:
        """Σ f log(1 + size·change/q)."""
        return float(np.dot(f, np.log1p(size * change / q)))


class Model(NamedTuple):
    """A working set and the likelihood's curvature on it, at some point.

    Attributes
    ----------
    rows : ndarray, shape (w,)
    weight : ndarray, shape (J,)
        √f/q at that point, or what stands for it.
    H : ndarray, shape (w, w)
        The Hessian there.
    U, order : ndarray, shapes (w, w) and (w,)
        Its factor on some of the rows (`nonnegative_quadratic`).
    """

    rows: IntArray
    weight: Array
    H: Array
    U: Array
    order: IntArray


@compiled
def hessian(A: Array, f: Array, q: Array) -> Array:
    """A diag(f/q²) Aᵀ."""
    return gram(A * weigh(f, q))


@compiled
def modelled(P: Array, rows: IntArray, weight: Array, single: bool) -> Model:
    """A model of the given rows, not factored."""
    H = curvature(P, rows, weight, single)
    return Model(rows, weight, H, np.empty(H.shape), np.empty(rows.size, dtype=np.int64))


@compiled
def revised(P: Array, model: Model, wanted: IntArray, n: int, single: bool) -> tuple[Model, int]:
    """The model of the wanted rows; what is known of them is kept, and so is the start of the factor of size n.

    Returns
    -------
    model, n
    """
    place = np.full(P.shape[0], -1)
    place[wanted] = 0
    kept = np.flatnonzero(place[model.rows] == 0)
    if kept.size == model.rows.size == wanted.size:
        return model, n
    place[model.rows] = -1
    rows = np.concatenate((model.rows[kept], wanted[place[wanted] == 0]))
    H = extended(P, rows, take(model.H, kept, kept), model.weight, single)
    U, order = np.empty(H.shape), np.empty(rows.size, dtype=np.int64)
    place[model.rows[kept]] = np.arange(kept.size)
    for k in range(n):
        order[k] = place[model.rows[model.order[k]]]
        if order[k] < 0:
            n = k
            break
    U[:n, :n] = model.U[:n, :n]
    return Model(rows, model.weight, H, U, order), n


@compiled
def newton(A: Array, f: Array, z: Array, tolerance: float) -> Array:
    """Minimise −Σ f log(Aᵀz) + Σ z over z ≥ 0 from a `z` with finite value, to a certified gap of `tolerance`.

    Parameters
    ----------
    A : ndarray, shape (w, J)
        Rows of the working set, restricted to outcomes with f > 0.
    f : ndarray, shape (J,)
        Positive frequencies, total 1.
    z : ndarray, shape (w,)
        Start; Aᵀz > 0.
    """
    z, q = z.copy(), np.dot(z, A)
    model = modelled(A, np.arange(z.size), weigh(f, q), False)
    descend(A, f, q, z, np.dot(A, f / q), model, 0, False, True, np.inf, tolerance, MAX_NEWTON, False)
    return z


@compiled
def worn(gap: float, before: float, aim: float, cost: float) -> bool:
    """Whether a new Hessian, which costs as much as `cost` steps, pays, given the last step from `before` to `gap`.

    A Hessian made at gap g leaves about √g of the gap at each of the steps to come, if it is kept; if it is not, the
    gap is squared.
    """
    if gap <= aim:
        return False
    if gap >= before or cost < CHEAP:
        return True
    near = min(gap, NEAR)
    goal = min(aim, near)
    kept = math.log(aim / gap) / math.log(max(gap / before, TINY))
    once = cost + 2.0 * math.log(goal / near) / math.log(near)
    always = (1.0 + cost) * math.log2(math.log(goal) / math.log(near))
    return kept > min(once, always)


@compiled
def descend(
    P: Array,
    f: Array,
    q: Array,
    z: Array,
    score: Array,
    model: Model,
    n: int,
    single: bool,
    fresh: bool,
    before: float,
    aim: float,
    n_steps: int,
    revisable: bool,
) -> tuple[int, bool, float]:
    """Take up to `n_steps` Newton steps of the weights z of the model's rows; q, score and the model move with it.

    Parameters
    ----------
    f, q : ndarray, shape (J,)
        Frequencies; law Pᵀz where they are positive, 1 elsewhere.
    score : ndarray, shape (w,)
        P r of the rows.
    n : int
        Size of the model's factor.
    single, fresh : bool
        Whether the Hessian is in single precision; whether it is that of this point.
    before : float
        Gap before the last step.
    revisable : bool
        Stop rather than make the Hessian of many rows without weight.

    Returns
    -------
    n, single, before
    """
    w, J = z.size, f.size
    ratio, law, b, y = np.empty(J), np.empty(J), np.empty(w), np.empty(w)
    cost = _renewal(w, (f > 0.0).sum()) / (2.0 * w * J + 3.0 * w * w)
    for step in range(n_steps):
        if step > 0:
            divide(f, q, ratio)
            price(P, model.rows, ratio, score)
        gap = z.sum() * score.max() - 1.0
        if gap <= aim:
            break
        if step > 0 and not fresh and worn(gap, before, aim, cost):
            if revisable and n < FULL * w:
                break
            model.weight[:] = weigh(f, q)
            model.H[:] = curvature(P, model.rows, model.weight, single)
            fresh, n = True, 0 * n
        before = gap
        n = _minimum(model, n, single, z, score, b, y, gap > NEAR)
        if n < 0:
            single = False
            model.H[:] = curvature(P, model.rows, model.weight, single)
            n = _minimum(model, 0 * n, single, z, score, b, y, gap > NEAR)
        if not _move(P, f, q, model.rows, z, score, y, law):
            if not fresh:
                before = 0.0  # try again with the Hessian of this point
                continue
            for i in range(w):
                y[i] = z[i] * score[i]  # one EM step: always an ascent of the likelihood
            if not _move(P, f, q, model.rows, z, score, y, law):
                break
        fresh = False
    return n, single, before


@compiled
def _renewal(w: int, n_outcomes: int) -> float:
    """What a Hessian of w rows and its factor cost, in multiplications at the pace of a matrix-vector product."""
    return w * n_outcomes * (1.0 + 0.5 * w / PRODUCT) + w**3 / (3.0 * PRODUCT)


@compiled
def _minimum(model: Model, n: int, single: bool, z: Array, score: Array, b: Array, y: Array, far: bool) -> int:
    """Set y to the minimum of the quadratic model at z; return the size of the factor, -1 if H is too rough for it.

    The rows first taken for positive are those with weight or a score above 1; far from the optimum, with both.
    """
    inside = np.empty(z.size, dtype=np.bool_)
    np.dot(model.H, z, b)
    for i in range(z.size):
        b[i] += score[i] - 1.0
        has_weight, violates = z[i] > 0.0, score[i] > 1.0
        inside[i] = has_weight and violates if far else has_weight or violates
        y[i] = z[i]
    return nonnegative_quadratic(model.H, b, inside, y, model.U, model.order, n, ROUGH if single else DEPENDENT)


@compiled
def _move(P: Array, f: Array, q: Array, rows: IntArray, z: Array, score: Array, y: Array, law: Array) -> bool:
    """Move z towards y, and q with it, as far as that lowers the objective; return whether it does."""
    slope, mass = 0.0, 0.0
    for i in range(z.size):
        slope += (1.0 - score[i]) * (y[i] - z[i])
        mass += y[i] - z[i]
    if not slope < 0.0:
        return False
    mix(P, rows, y, law)
    size = _line_search(f, q, law, mass, slope)
    if size == 0.0:
        return False
    average(z, y, size)
    average(q, law, size)
    for j in range(f.size):
        if f[j] == 0.0:
            q[j] = 1.0
    return True


@compiled
def _line_search(f: Array, q: Array, law: Array, mass: float, slope: float) -> float:
    """Backtrack from 1 until −Σ f log(q + t·(law − q)) + t·mass falls by a quarter of what the slope promises.

    Where no q_j changes by much, log(1 + x) ≥ x − x²/(2 − 2|x|) decides without logarithms.
    """
    change = np.empty(f.size)
    least, largest, curvature = _towards(f, q, law, change)
    span = max(-least, largest)
    size = 1.0 if least > -0.99 else -0.99 / least
    for _ in range(60):
        if size * span < 0.9 and 0.5 * size * curvature <= -0.75 * slope * (1.0 - size * span):
            return size
        if size * mass - _log_gain(q, change, f, size) <= 0.25 * size * slope:
            return size
        size *= 0.5
    return 0.0
