"""Fits through a softmax head: certificates, a second opinion, degenerate heads, few weights on unknown supports."""

import itertools

import cvxpy
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from markov_theory.randomness import named_generator
from markov_theory.solvers._softmax import minimal_face
from markov_theory.solvers.softmax_head import embedding_mle, softmax_mixture_mle
from markov_theory.solvers.sparse_softmax_head import (
    softmax_best_subset,
    softmax_hard_thresholding,
    softmax_pursuit,
)

SPARSE = [softmax_best_subset, softmax_pursuit, softmax_hard_thresholding]


def head(seed, T, J, d):
    generator = named_generator(seed, "softmax head", T, J, d)
    E, W = generator.standard_normal((T, d)) / np.sqrt(d), generator.standard_normal((J, d))
    return E, W, 0.5 * generator.standard_normal(J)


def problem(seed, T, J, d, s, N, n_problems=5):
    E, W, b = head(seed, T, J, d)
    generator = named_generator(seed, "softmax counts", T, J, d, s, N)
    alpha = np.zeros(T)
    alpha[generator.choice(T, s, replace=False)] = generator.standard_normal(s)
    return E, W, b, generator.multinomial(N, law_of(W @ (alpha @ E) + b), size=n_problems)


def law_of(logits):
    return np.exp(logits - logsumexp(logits, axis=-1, keepdims=True))


def frequencies(counts):
    counts = np.atleast_2d(counts)
    return counts / counts.sum(axis=1, keepdims=True)


def loss(law, counts):
    """−Σ_j n̂_j log q_j, nats per sample."""
    F = frequencies(counts)
    with np.errstate(divide="ignore", invalid="ignore"):
        return -np.where(F > 0, F * np.log(law), 0.0).sum(axis=1)


def entropy_bound(scores, bias, counts, law, slack):
    """Lower bound on the loss over ‖θ‖ ≤ B by duality, for any law p: −F·b + H(p) + p·b − B‖Xᵀ(p − F)‖."""
    F = frequencies(counts)
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.where(law > 0, law * np.log(law), 0.0).sum(axis=1)
    pull = np.linalg.norm((law - F) @ scores, axis=1)
    return entropy + (law - F) @ bias - np.where(pull > 0, slack * pull, 0.0)


def reference(scores, bias, counts, radius=None):
    theta = cvxpy.Variable(scores.shape[1])
    logits = scores @ theta + bias
    limits = [] if radius is None else [cvxpy.norm(theta) <= radius]
    value = cvxpy.log_sum_exp(logits) - frequencies(counts)[0] @ logits
    return cvxpy.Problem(cvxpy.Minimize(value), limits).solve(solver="CLARABEL")


@pytest.mark.parametrize("radius", [0.01, 1.0, 3.0, 100.0])
@pytest.mark.parametrize(("T", "J", "d", "N"), [(10, 8, 4, 1000), (40, 60, 16, 300), (3, 5, 8, 20), (1, 2, 1, 1)])
def test_gap_in_a_ball_is_certified_by_the_dual(T, J, d, N, radius):
    """The dual of the fit is maximum entropy; its value at the fitted law is computed here from scratch."""
    E, W, b, counts = problem(0, T, J, d, 1, N)
    fit = softmax_mixture_mle(E, W, b, counts, radius=radius)
    assert (fit.status == "optimal").all()
    assert (np.linalg.norm(fit.solution, axis=1) <= radius).all()
    np.testing.assert_allclose(fit.law, law_of(fit.solution @ E @ W.T + b), atol=1e-12)
    gap = loss(fit.law, counts) - entropy_bound(W @ E.T, b, counts, fit.law, radius)
    assert (gap <= 1e-9 + 1e-11 * radius).all()


@pytest.mark.parametrize(("J", "d"), [(8, 4), (40, 16), (5, 1), (6, 9)])
def test_free_fits_satisfy_the_moment_equations(J, d):
    _, W, b = head(1, 1, J, d)
    counts = 1 + named_generator(1, "positive counts", J, d).poisson(5.0, size=(6, J))
    fit = embedding_mle(W, b, counts)
    assert (fit.status == "optimal").all()
    np.testing.assert_allclose(fit.law @ W, frequencies(counts) @ W, atol=1e-9)
    np.testing.assert_allclose(fit.law, law_of(fit.solution @ W.T + b), atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("radius", [None, 0.5, 20.0])
def test_cvxpy_gives_the_same_maximum(seed, radius):
    E, W, b, counts = problem(seed, 9, 12, 5, 3, 2000, n_problems=1)
    counts = counts + 1
    for fit, scores in [
        (softmax_mixture_mle(E, W, b, counts, radius=radius), W @ E.T),
        (softmax_mixture_mle(E, W, b, counts, radius=radius, support=[1, 4, 7]), W @ E[[1, 4, 7]].T),
        (embedding_mle(W, b, counts, radius=radius), W),
    ]:
        # A certified maximum is within 1e-9 of the best; the peer may differ by its own tolerance.
        assert loss(fit.law, counts)[0] == pytest.approx(reference(scores, b, counts, radius), abs=1e-6)


@given(st.integers(1, 60), st.integers(1, 60), st.floats(-3, 3), st.floats(0.2, 4))
def test_logistic_closed_form(first, second, bias, length):
    fit = embedding_mle([[length], [-length]], [bias, 0.0], [first, second])
    assert fit.law[0] == pytest.approx(np.array([first, second]) / (first + second), abs=1e-9)
    assert fit.solution[0, 0] == pytest.approx((np.log(first / second) - bias) / (2 * length), abs=1e-6)


def test_known_support_is_dense_tuning_when_the_embeddings_are_a_basis():
    E, W, b, counts = problem(2, 6, 30, 6, 6, 5000)
    weights, tuned = softmax_mixture_mle(E, W, b, counts), embedding_mle(W, b, counts)
    np.testing.assert_allclose(weights.solution @ E, tuned.solution, atol=1e-6)
    np.testing.assert_allclose(weights.law, tuned.law, atol=1e-9)


@given(st.integers(2, 4), st.integers(2, 5), st.data())
def test_every_small_problem_is_certified_or_has_no_maximiser(d, J, data):
    """Whole-number heads, so that ranks fall short and faces are exact; the law is optimal among the limit laws too."""
    entries = st.lists(st.integers(-2, 2), min_size=J * d, max_size=J * d)
    W = np.array(data.draw(entries), float).reshape(J, d)
    counts = np.array(data.draw(st.lists(st.integers(0, 4), min_size=J, max_size=J)))
    fit = embedding_mle(W, np.zeros(J), counts)
    if counts.sum() == 0:
        assert fit.status.tolist() == ["no data"]
        return
    assert fit.status[0] in ("optimal", "no maximiser")
    assert fit.gap[0] <= 1e-9
    np.testing.assert_allclose(fit.law @ W, frequencies(counts) @ W, atol=1e-7)  # moments match in the limit too
    assert (fit.status[0] == "no maximiser") == (fit.law[0] == 0).any() == np.isnan(fit.solution).all()
    far = embedding_mle(W, np.zeros(J), counts, radius=1e3)
    assert loss(far.law, counts) == pytest.approx(loss(fit.law, counts), abs=1e-6)


class TestNoMaximiser:
    def test_one_zero_count_with_full_rank(self):
        fit = embedding_mle(np.eye(4), np.zeros(4), [[9, 0, 1, 2], [9, 1, 1, 1]])
        assert fit.status.tolist() == ["no maximiser", "optimal"]
        np.testing.assert_allclose(fit.law[0], [0.75, 0, 1 / 12, 1 / 6], atol=1e-12)
        assert np.isnan(fit.solution[0]).all()

    def test_a_zero_count_inside_the_hull_does_no_harm(self):
        fit = embedding_mle([[-1.0], [0.0], [1.0]], np.zeros(3), [3, 0, 2])
        assert fit.status.tolist() == ["optimal"]
        assert embedding_mle([[-1.0], [0.0], [1.0]], np.zeros(3), [5, 0, 0]).status.tolist() == ["no maximiser"]

    def test_a_ball_restores_it(self):
        fit = embedding_mle(np.eye(2), np.zeros(2), [5, 0], radius=2.0)
        assert fit.status.tolist() == ["optimal"]
        np.testing.assert_allclose(fit.solution, [[2**0.5, -(2**0.5)]], atol=1e-7)

    @given(st.integers(1, 3), st.integers(2, 6), st.data())
    def test_the_face_is_the_smallest(self, d, J, data):
        entries = st.lists(st.integers(-2, 2), min_size=J * d, max_size=J * d)
        points = np.array(data.draw(entries), float).reshape(J, d)
        seen = np.array(data.draw(st.lists(st.booleans(), min_size=J, max_size=J)))
        seen[data.draw(st.integers(0, J - 1))] = True
        face = minimal_face(points, seen)
        assert face[seen].all()
        # An outcome is on the face if and only if it takes part in some mixture of the seen outcomes' centre.
        centre = points[seen].mean(axis=0)
        for k in np.flatnonzero(~seen):
            weight = cvxpy.Variable(J, nonneg=True)
            limits = [cvxpy.sum(weight) == 1, points.T @ weight == centre]
            most = cvxpy.Problem(cvxpy.Maximize(weight[int(k)]), limits).solve(solver="CLARABEL")
            assert face[k] == (most > 1e-5)


class TestEdges:
    def test_extreme_biases_and_counts(self):
        fit = embedding_mle([[1.0], [-1.0]], [800.0, 0.0], [[9, 1], [10**12, 1]])
        np.testing.assert_allclose(fit.law[:, 1], [0.1, 1e-12], rtol=1e-3)
        assert (fit.status == "optimal").all()

    def test_a_head_that_sees_nothing(self):
        fit = embedding_mle([[2.0, 1.0], [2.0, 1.0]], [0.0, 1.0], [9, 0], radius=3.0)
        assert (fit.status.tolist(), fit.solution.tolist(), fit.gap.tolist()) == (["optimal"], [[0.0, 0.0]], [0.0])

    def test_dependent_tokens_get_the_least_norm(self):
        fit = softmax_mixture_mle([[1.0], [1.0]], [[1.0], [-1.0]], [0.0, 0.0], [3, 1])
        np.testing.assert_allclose(fit.solution, [[np.log(3) / 4] * 2], atol=1e-9)

    @pytest.mark.parametrize("solver", SPARSE)
    def test_no_data_says_so(self, solver):
        fit = solver([[1.0], [2.0]], [[1.0], [-1.0]], [1.0, 1.0], [0, 0], 1)
        assert (fit.status.tolist(), fit.law.tolist(), fit.solution.tolist()) == (["no data"], [[0.5, 0.5]], [[0, 0]])
        fit = softmax_mixture_mle([[1.0], [2.0]], [[1.0], [-1.0]], [1.0, 1.0], [[0, 0], [3, 1]])
        assert fit.status.tolist() == ["no data", "optimal"]

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"weights": [[1.0, 2.0], [0.0, 1.0]]}, "embeddings must have 2 columns"),
            ({"weights": [1.0, 2.0]}, "weights must be a matrix"),
            ({"weights": [[np.nan], [0.0]]}, "weights must be finite"),
            ({"bias": [0.0]}, r"bias must have shape \(2,\)"),
            ({"counts": [1, 2, 3]}, r"counts must have shape \(2,\)"),
            ({"counts": [1, -2]}, "counts must be whole numbers >= 0"),
            ({"radius": 0.0}, "radius must be a finite number > 0"),
            ({"support": [0, 0]}, "support must hold distinct indices"),
            ({"support": [2]}, r"an index of the support must be in \[0, 1\]"),
            ({"tolerance": -1.0}, "tolerance must be"),
        ],
    )
    def test_wrong_input_is_refused(self, change, message):
        right = {"embeddings": [[1.0], [2.0]], "weights": [[1.0], [-1.0]], "bias": [0.0, 0.0], "counts": [1, 2]}
        with pytest.raises(ValueError, match=message):
            softmax_mixture_mle(**(right | change))

    def test_too_many_supports_are_refused(self):
        E, W, b = head(0, 64, 5, 4)
        with pytest.raises(ValueError, match="635,376 supports of size 4 among 64 tokens are too many"):
            softmax_best_subset(E, W, b, np.ones(5), 4)


class TestSparse:
    @pytest.mark.parametrize("radius", [None, 1.0])
    @pytest.mark.parametrize("s", [1, 2])
    def test_gaps_bound_the_distance_to_the_exact_answer(self, s, radius):
        E, W, b, counts = problem(3, 7, 10, 5, s, 3000, n_problems=3)
        counts = counts + 1
        by_hand = [
            loss(softmax_mixture_mle(E, W, b, counts, support=S, radius=radius).law, counts)
            for S in itertools.combinations(range(7), s)
        ]
        best = np.min(by_hand, axis=0)
        for solver in SPARSE:
            fit = solver(E, W, b, counts, s, radius=radius)
            reached = loss(fit.law, counts)
            assert (fit.support_sizes <= s).all()
            assert (reached >= best - 1e-12).all()
            assert (reached - best <= fit.gap + 1e-9).all()
            np.testing.assert_allclose(fit.law, law_of(fit.solution @ E @ W.T + b), atol=1e-9)
            if radius is not None:
                assert (np.linalg.norm(fit.solution, axis=1) <= radius).all()
        assert (softmax_best_subset(E, W, b, counts, s, radius=radius).status == "optimal").all()

    @pytest.mark.parametrize("seed", range(4))
    def test_pursuit_finds_a_well_separated_truth(self, seed):
        E, W, b = head(seed, 10, 24, 10)
        alpha = np.zeros(10)
        alpha[[2, 5, 7]] = [1.5, -1.0, 1.0]
        counts = np.round(1e6 * law_of(W @ (alpha @ E) + b))
        exact, pursued = (solver(E, W, b, counts, 3) for solver in SPARSE[:2])
        assert np.flatnonzero(exact.solution[0]).tolist() == [2, 5, 7]
        np.testing.assert_allclose(pursued.solution, exact.solution, atol=1e-6)
        np.testing.assert_allclose(exact.solution[0], alpha, atol=1e-2)

    def test_pursuit_needs_no_greed_to_be_right(self):
        """Tokens 0 and 1 explain the data exactly; token 2 alone is the best single one, so greed starts wrong."""
        W = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
        E = np.array([[1.0, 0.6], [0.0, 1.0], [0.9, 1.2]])
        counts = np.round(1e5 * law_of(W @ np.array([1.0, 1.6])))
        assert np.flatnonzero(softmax_pursuit(E, W, np.zeros(3), counts, 1).solution[0]).tolist() == [2]
        for solver in SPARSE[:2]:
            assert solver(E, W, np.zeros(3), counts, 2).gap[0] <= 1e-9

    @pytest.mark.parametrize("solver", SPARSE)
    def test_all_tokens_are_the_dense_problem(self, solver):
        E, W, b, counts = problem(4, 4, 9, 4, 4, 400, n_problems=2)
        counts = counts + 1
        for radius in (None, 0.7):
            dense = softmax_mixture_mle(E, W, b, counts, radius=radius)
            fit = solver(E, W, b, counts, 9, radius=radius)
            np.testing.assert_allclose(loss(fit.law, counts), loss(dense.law, counts), atol=1e-9)
            assert (fit.status == "optimal").all()

    @pytest.mark.parametrize("solver", SPARSE)
    def test_no_maximiser_is_said(self, solver):
        fit = solver([[1.0], [0.5]], [[1.0], [-1.0]], [0.0, 0.0], [4, 0], 1)
        assert fit.status.tolist() == ["no maximiser"]
        assert fit.law.tolist() == [[1.0, 0.0]]
        fit = solver([[1.0], [0.5]], [[1.0], [-1.0]], [0.0, 0.0], [4, 0], 1, radius=2.0)
        assert fit.status.tolist() == ["optimal"]
        np.testing.assert_allclose(fit.solution, [[2.0, 0.0]], atol=1e-8)
