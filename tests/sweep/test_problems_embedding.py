"""Sweeps over embedding mixtures: what is learned through the head, and which bounds speak of which estimator."""

import numpy as np
import pytest

from markov_theory.bounds import E1, E2, E3, E4
from markov_theory.embedding_instance import EmbeddingInstance, plant_embedding
from markov_theory.estimators.embedding import EmbeddingOracle, EmbeddingTuning, laws_of_tokens
from markov_theory.randomness import named_generator
from markov_theory.sweep.problems.embedding import EmbeddingTruth, nearby_laws
from markov_theory.sweep.setup import set_up
from markov_theory.sweep.trials import Trials


def draws(truth, n_samples, seed=0, n_trials=6):
    return list(truth.draw(n_samples, n_trials, named_generator(seed, "draws")))


def embedding(**options):
    planned = set_up({"dim": 5, "tokens": 8, "outcomes": 12, "s": 2, "epsilon": 1e-2, **options})
    return planned, planned.problem.truth(planned.specification.points[0], 0)


def test_an_embedding_mixture_is_learned_through_its_head():
    planned, truth = embedding()
    expected = plant_embedding(8, 12, 5, 2, radius=2.0)
    np.testing.assert_array_equal(truth.instance.target, expected.target)
    assert truth.name == "d=5/s=2/truth=0/tokens=8/outcomes=12"
    rows = np.exp(truth.instance.scores.T + truth.instance.bias)
    np.testing.assert_allclose(truth.dictionary.transitions, rows / rows.sum(axis=1, keepdims=True))
    for name, kind in (("embedding-oracle", EmbeddingOracle), ("embedding-tuning", EmbeddingTuning)):
        fitted = planned.specification.estimator(name).for_instance(truth.instance, 1e-9)
        assert type(fitted) is kind
        (counts,) = draws(truth, 10**9)
        assert (truth.loss(truth.instance, fitted.fit(truth.dictionary, counts).law_) < 1e-6).all()


def test_bounds_of_an_embedding_mixture_are_read_for_each_estimator():
    _, truth = embedding()
    planted = truth.instance
    assert truth.bound(E3, "embedding-oracle", 1e-2, 0.05) == E3.n_samples(2, 1e-2, 0.05)
    assert truth.bound(E3, "embedding-dense", 1e-2, 0.05) == E3.n_samples(5, 1e-2, 0.05)
    assert truth.bound(E4, "embedding-dense", 1e-2, 0.05) == E4.n_samples(planted.weights, planted.target, 1e-2, 0.05)
    assert truth.bound(E4, "none", 1e-2, 0.05) is None
    for bound in (E1, E2):
        assert truth.bound(bound, "embedding-l0", 1e-2, 0.05) == bound.at(planted, epsilon=1e-2, delta=0.05)
        assert truth.bound(bound, "none", 1e-2, 0.05) is None


def test_the_net_bounds_are_read_in_the_ball_of_the_laws_within_epsilon():
    _, truth = embedding(tokens=12, s=3)
    planted = truth.instance
    for guarantee, scores, rank in (
        ("embedding-oracle", planted.support_scores, 3), ("embedding-dense", planted.weights, 5),
    ):  # fmt: skip
        r, spread, radius = nearby_laws(scores, planted.target, 1e-2)
        assert r == rank
        for bound in (E1, E2):
            n_samples = truth.bound(bound, guarantee, 1e-2, 0.05)
            assert n_samples == bound.n_samples(rank, rank, spread, radius, 1e-2, 0.05)
            assert truth.bound(E4, guarantee, 1e-2, 0.05) <= n_samples < bound.at(planted, epsilon=1e-2, delta=0.05)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-2, 1.0])
@pytest.mark.parametrize("shape", [(2, 1), (5, 2), (40, 3), (6, 9)])
def test_no_law_within_epsilon_is_outside_its_ball(shape, epsilon):
    """On the ball's sphere KL is at least ε in every direction tried, and at most 60 times that."""
    generator = named_generator(0, "nearby laws", *shape)
    scores, bias = generator.normal(size=shape), generator.normal(size=shape[0])
    q = np.exp(bias) / np.exp(bias).sum()
    rank, spread, radius = nearby_laws(scores, q, epsilon)
    root = np.sqrt(q)
    U, singular, _ = np.linalg.svd(root[:, None] * (scores - q @ scores), full_matrices=False)
    phi = U[:, :rank] / root[:, None]
    assert (singular[rank:] < 1e-9).all()
    gaps = np.linalg.norm(phi[:, None] - phi[None], axis=2)
    assert spread == pytest.approx(gaps.max(), rel=1e-9)
    directions = generator.normal(size=(200, rank))
    directions = np.vstack(
        [directions, phi, -phi, phi[:, None].repeat(shape[0], 1).reshape(-1, rank) - np.tile(phi, (shape[0], 1))]
    )
    size = np.linalg.norm(directions, axis=1)
    directions = directions[size > 1e-9] / size[size > 1e-9, None]
    tilt = radius * directions @ phi.T
    divergence = np.log((q * np.exp(tilt)).sum(axis=1)) - tilt @ q  # φ has mean 0, up to rounding
    assert (divergence >= epsilon * (1 - 1e-6)).all()
    assert divergence.min() <= 60 * epsilon


def test_a_support_without_a_direction_needs_no_samples():
    head = {"embeddings": [[0.0], [1.0]], "weights": [[1.0], [-1.0]], "bias": [0.0, 0.3]}
    truth = EmbeddingTruth(EmbeddingInstance(**head, alpha=[1.0, 0.0], radius=2.0), laws_of_tokens(**head))
    for bound in (E1, E2):
        assert truth.bound(bound, "embedding-oracle", 1e-2, 0.05) == 0
        assert truth.bound(bound, "embedding-dense", 1e-2, 0.05) > 0


def test_a_sweep_of_dimensions_judges_every_bound_of_embeddings():
    planned = set_up({"dim": "4,8", "tokens": 16, "outcomes": 12, "s": 2, "truths": 1, "epsilon": 1e-2})
    spoken = set()
    for cell in planned.specification.cells():
        n_samples = planned.bounds.of(cell)
        assert set(planned.bounds.checks(cell)) == {n for label, n in n_samples.items() if label != "E3"}
        spoken |= set(n_samples)
    assert spoken == {"E1", "E2", "E3", "E4"}


@pytest.mark.parametrize("name", ["embedding-pursuit", "embedding-l0"])
def test_sparse_fits_through_the_head_find_a_clear_truth(name):
    planned, _ = embedding(tokens=5, s=1, estimators=name)
    batch = Trials(planned.specification).run(planned.specification.points[0], 0, name, 10**6, 0)
    assert (batch.kl < 1e-4).all()
