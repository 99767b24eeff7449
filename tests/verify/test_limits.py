"""Limit laws on three outcomes, against mixtures of chi-squared laws where those are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import chi2

from markov_theory.verify.limits import limit_point, limit_tail
from markov_theory.verify.mixtures import mixture_failure

CENTRE = np.full(3, 1 / 3)
PLANE = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2], [6]])  # at the uniform law √q is a multiple of (1, 1, 1)


def around(degrees, radius=0.2):
    angles = np.radians(degrees)
    return CENTRE + radius * np.column_stack([np.cos(angles), np.sin(angles)]) @ PLANE


def from_centre(degrees, radius):
    return np.vstack([CENTRE, around(degrees, radius)])


def mixture_point(weights):
    """95 % point of Σ_k w_k χ²_k, k = 0, 1, 2."""
    return brentq(lambda x: sum(w * chi2.sf(x, k) for k, w in enumerate(weights) if k) - 0.05, 1e-9, 30)


@pytest.mark.parametrize(
    ("degrees", "weights", "sparsity", "law"),
    [
        ((0, 180), (0.5, 0.5), 2, (0, 1, 0)),
        ((10, 190, 90), (0.5, 0.5, 0), 3, (0, 0.5, 0.5)),
        ((0, 120, 240), (1 / 3, 1 / 3, 1 / 3), 3, (0, 0, 1)),
    ],
)
def test_a_segment_an_edge_and_the_inside(degrees, weights, sparsity, law):
    assert limit_point(around(degrees), weights, sparsity, 0.05) == pytest.approx(mixture_point(law), abs=2e-3)


@pytest.mark.parametrize("opening", [60, 90, 120])
def test_a_vertex_has_weights_by_its_angle(opening):
    rows = np.vstack([CENTRE, around((5, 5 + opening))])
    share = opening / 360
    expected = mixture_point((0.5 - share, 0.5, share))
    assert limit_point(rows, (1, 0, 0), 3, 0.05) == pytest.approx(expected, abs=3e-3)


def test_two_crossing_segments_at_a_right_angle_are_a_maximum():
    point = limit_point(around((0, 180, 90, 270)), (0.5, 0.5, 0, 0), 2, 0.05)
    assert (1 - chi2.sf(point, 1)) ** 2 == pytest.approx(0.95, abs=1e-4)  # independent coordinates
    assert point == pytest.approx(5.002, abs=2e-3)


@pytest.mark.parametrize(("n_rays", "expected"), [(2, 3.84), (3, 4.53), (6, 5.49)])
def test_rays_from_one_row(n_rays, expected):
    rows = np.vstack([CENTRE, around(360 * np.arange(n_rays) / n_rays)])
    assert limit_point(rows, np.eye(n_rays + 1)[0], 2, 0.05) == pytest.approx(expected, abs=1e-2)


TURNED = np.array([45, 225, 135, 315])
HEXAGON = 60 * np.arange(6)


MIXED = {
    "segment": (lambda turn: around(turn + np.array([0, 180]), 0.3), (0.5, 0.5), 2),
    "crossing": (lambda turn: around(turn + TURNED, 0.3), (0.5, 0.5, 0, 0), 2),
    "edge": (lambda turn: around(turn + TURNED[:3], 0.3), (0.5, 0.5, 0), 3),
    "vertex": (lambda turn: from_centre(turn + np.array([45, 135]), 0.3), (1, 0, 0), 3),
    "2 rays": (lambda turn: from_centre(turn + np.array([0, 180]), 0.3), (1, 0, 0), 2),
    "inside": (lambda turn: around(turn + HEXAGON[::2], 0.3), (1 / 3, 1 / 3, 1 / 3), 3),
}


@pytest.mark.parametrize("turn", [0, 20, 45])
@pytest.mark.parametrize("name", MIXED)
def test_exact_failure_follows_the_limit_law(name, turn):
    """P(2N·KL > x) at N = 500 is above and below δ = .05 at x = 0.3 below and above the limit's 95 % point.

    Counts make a lattice, so that exact points move with the angle of the rows; those of one and two degrees of freedom
    are 2.1 apart.
    """
    rows, alpha, sparsity = MIXED[name]
    point, N = limit_point(rows(turn), alpha, sparsity, 0.05), 500
    below, above = (mixture_failure(rows(turn), alpha, sparsity, N, (point + by) / (2 * N)) for by in (-0.3, 0.3))
    assert below.low > 0.05
    assert above.high <= 0.05


def test_at_few_samples_the_limit_is_not_reached():
    """Two segments that cross: the sides of their square are still near enough to be chosen."""
    rows = around(TURNED, 0.3)
    point = limit_point(rows, (0.5, 0.5, 0, 0), 2, 0.05)
    assert mixture_failure(rows, (0.5, 0.5, 0, 0), 2, 50, (point + 1) / 100).low > 0.05


def test_a_support_that_cannot_mix_the_truth_does_not_count():
    rows = np.vstack([around((0, 180)), around((70, 110))])  # the last two rows' segment misses the centre
    assert limit_point(rows, (0.5, 0.5, 0, 0), 2, 0.05) == pytest.approx(chi2.isf(0.05, 1), abs=2e-3)


def test_one_row_alone_is_known():
    assert limit_point(CENTRE[None, :], (1.0,), 1, 0.05) == 0
    assert limit_tail(CENTRE[None, :], (1.0,), 1, 0.0) == 0


def test_wrong_input_is_refused():
    with pytest.raises(ValueError, match="three outcomes"):
        limit_point([[0.5, 0.5]], (1.0,), 1, 0.05)
