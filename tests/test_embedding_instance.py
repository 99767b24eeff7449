"""Planted embedding mixtures know their numbers: spreads by brute force, ratios between estimate and bound, ranks."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from markov_theory.embedding_instance import EmbeddingInstance, logit_spreads, plant_embedding
from markov_theory.randomness import named_generator


@given(st.integers(1, 9), st.integers(2, 7), st.integers(1, 6), st.integers(0, 30), st.data())
def test_planting_defaults(T, J, d, truth, data):
    s = data.draw(st.integers(1, T))
    planted = plant_embedding(T, J, d, s, radius=3.0, truth=truth)
    sizes = np.abs(planted.alpha[planted.support])
    assert (planted.n_tokens, planted.n_outcomes, planted.dim, planted.sparsity) == (T, J, d, s)
    assert np.linalg.norm(sizes) == pytest.approx(1.5)
    assert sizes.max() <= 2 * sizes.min() * (1 + 1e-12)
    logits = planted.weights @ (planted.alpha @ planted.embeddings) + planted.bias
    np.testing.assert_allclose(planted.target, np.exp(logits) / np.exp(logits).sum(), atol=1e-14)
    assert planted.degrees_of_freedom == min(s, d, J - 1)
    assert planted.dense_degrees_of_freedom == min(d, J - 1)
    assert not planted.ball_active


def test_truths_share_their_embeddings_and_differ():
    one, two, other = (plant_embedding(9, 5, 3, 2, radius=1.0, seed=k, truth=t) for k, t in [(0, 0), (0, 1), (1, 0)])
    assert (one.embeddings == two.embeddings).all()
    assert (one.weights == two.weights).all()
    assert not (one.weights == other.weights).all()
    assert len({x.alpha.tobytes() for x in (one, two, other)}) == 3


@given(st.integers(1, 5), st.integers(2, 5), st.integers(0, 1000))
def test_spreads_are_the_largest_over_supports_and_pairs(T, J, seed):
    scores = named_generator(seed, "spreads", T, J).standard_normal((J, T))
    spreads = logit_spreads(scores)
    for s in range(1, T + 1):
        by_hand = max(
            np.linalg.norm((scores[j] - scores[k])[list(S)])
            for j, k in itertools.combinations(range(J), 2)
            for S in itertools.combinations(range(T), s)
        )
        assert spreads[s - 1] == pytest.approx(by_hand)
    assert (np.diff(spreads) >= 0).all()
    assert (spreads <= np.sqrt(np.arange(1, T + 1)) * spreads[0] * (1 + 1e-12)).all()


@pytest.mark.parametrize("s", [1, 2, 4])
def test_the_ratio_lies_between_what_is_found_and_the_bound(s):
    planted = plant_embedding(8, 12, 5, s, radius=1.5)
    generator = named_generator(0, "sparse points", s)
    logs = []
    for _ in range(2000):
        alpha = np.zeros(8)
        step = generator.standard_normal(s)
        alpha[generator.choice(8, s, replace=False)] = 1.5 * step / np.linalg.norm(step)
        logits = planted.scores @ alpha + planted.bias
        logs.append(logits - np.log(np.exp(logits).sum()))
    sampled = np.ptp(logs, axis=0).max()
    assert sampled <= planted.reached_log_ratio + 1e-9 <= planted.log_ratio
    assert planted.density_ratio == pytest.approx(np.exp(planted.log_ratio))


def test_the_ratio_needs_its_factor_two():
    """The claim log c = D_W·B·σ_s, without the factor 2, is false: two laws of the ball are 3.9997 > 2 apart."""
    planted = EmbeddingInstance([[1.0]], [[1.0], [-1.0]], [-5.0, 5.0], [0.5], radius=1.0)
    widest, longest = 2.0, 1.0
    assert planted.logit_spread == widest * longest
    assert planted.reached_log_ratio == pytest.approx(3.9997, abs=5e-5)
    assert planted.reached_log_ratio > widest * longest * planted.radius
    assert planted.reached_log_ratio <= planted.log_ratio == 4.0


def test_the_spread_can_grow_like_the_root_of_s():
    """Orthonormal tokens that all push the same outcome: G_s = √s·G_1, so c(s) is exponential in √s."""
    scores = np.vstack([np.ones(16), np.zeros(16)])
    np.testing.assert_allclose(logit_spreads(scores), np.sqrt(np.arange(1, 17)))


class TestEdges:
    def test_ranks_that_fall_short(self):
        twins = EmbeddingInstance([[1.0, 0.0]] * 2, np.eye(3, 2), np.zeros(3), [1.0, 1.0], radius=2.0)
        assert (twins.sparsity, twins.degrees_of_freedom, twins.dense_degrees_of_freedom) == (2, 1, 2)
        blind = EmbeddingInstance([[1.0]], [[2.0], [2.0]], [0.0, 1.0], [1.0], radius=1.0)
        assert (blind.degrees_of_freedom, blind.log_ratio, blind.reached_log_ratio) == (0, 0.0, 0.0)
        assert not blind.ball_active

    def test_the_sphere(self):
        assert plant_embedding(6, 5, 4, 2, radius=2.0, fraction=1.0).ball_active
        # Twin tokens carry the same logits: half of one's weight on each has a smaller norm.
        lopsided = EmbeddingInstance([[1.0]] * 2, [[1.0], [-1.0]], [0.0, 0.0], [0.8, 0.6], radius=1.0)
        assert not lopsided.ball_active
        assert EmbeddingInstance([[1.0]] * 2, [[1.0], [-1.0]], [0.0, 0.0], [0.5**0.5] * 2, radius=1.0).ball_active

    def test_a_ratio_beyond_doubles(self):
        planted = EmbeddingInstance([[1000.0]], [[1.0], [-1.0]], [0.0, 0.0], [0.1], radius=1.0)
        assert planted.density_ratio == np.inf
        assert planted.log_ratio == 4000.0

    @pytest.mark.parametrize(
        ("alpha", "radius", "message"),
        [
            ([1.0], 2.0, r"alpha must have shape \(2,\), got \(1,\)"),
            ([0.0, 0.0], 1.0, "at least one weight that is not zero"),
            ([np.nan, 0.0], 1.0, "alpha must be finite"),
            ([3.0, 4.0], 4.9, "alpha must lie in the ball of radius 4.9, got norm 5"),
            ([1.0, 0.0], -1.0, "radius must be a finite number > 0"),
        ],
    )
    def test_wrong_truths_are_refused(self, alpha, radius, message):
        with pytest.raises(ValueError, match=message):
            EmbeddingInstance([[1.0], [2.0]], [[1.0], [-1.0]], [0.0, 0.0], alpha, radius)

    def test_wrong_plans_are_refused(self):
        with pytest.raises(ValueError, match=r"sparsity must be in \[1, 4\], got 5"):
            plant_embedding(4, 3, 2, 5, radius=1.0)
        with pytest.raises(ValueError, match="fraction must be at most 1"):
            plant_embedding(4, 3, 2, 1, radius=1.0, fraction=1.5)
