"""Scores in single precision never change a pursuit: near-ties, prepared atoms, products of pairs, and halves."""

import ast
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from markov_theory._compile import COMPILED
from markov_theory.randomness import named_generator
from markov_theory.solvers._atoms import PAIRS
from markov_theory.solvers._refits import DEPENDENT, extend
from markov_theory.solvers._scores import ALIKE, FEW, Directions, Place
from markov_theory.solvers.matching_pursuit import orthogonal_matching_pursuit, prepare_atoms
from tests.solvers.test_matching_pursuit import KINDS, pursue
from tests.solvers.test_matching_pursuit_degenerate import atoms_and_targets


def by_definition(atoms, target, k):
    """The support of k atoms, all in double precision: the largest |cosine|, then least squares."""
    unit = atoms / np.linalg.norm(atoms, axis=1, keepdims=True)
    support, residual = [], target
    for _ in range(k):
        support.append(int(np.abs(unit @ residual).argmax()))
        residual = target - np.linalg.lstsq(unit[support].T, target, rcond=None)[0] @ unit[support]
    return support


def near_ties(gap, seed):
    """Atoms in three groups of 50 whose cosines with a direction of their group differ by `gap`, and targets."""
    generator = named_generator(seed, "near ties")
    directions = np.linalg.qr(generator.standard_normal((100, 100)))[0]
    cosines = 0.9 - gap * generator.permutation(50)
    atoms = []
    for direction in directions[:3]:
        noise = generator.standard_normal((50, 97)) @ directions[3:]
        noise /= np.linalg.norm(noise, axis=1, keepdims=True)
        atoms.append(cosines[:, None] * direction + np.sqrt(1 - cosines**2)[:, None] * noise)
    atoms = np.concatenate(atoms)[generator.permutation(150)] * generator.uniform(0.1, 10, (150, 1))
    return atoms, generator.choice([-1, 1], (30, 3)) * np.array([3.0, 2.0, 1.0]) @ directions[:3]


def at(who, residuals):
    lengths = np.linalg.norm(residuals, axis=1)
    return Place(who, residuals / lengths[:, None], lengths, np.zeros((len(who), 0)))


def pairs(scorer, place):
    return set(zip(*(part.tolist() for part in scorer.candidates(place)), strict=True))


def same(first, second):
    assert first.support.tolist() == second.support.tolist()
    assert first.status.tolist() == second.status.tolist()
    assert first.classes == second.classes
    assert first.excluded.tolist() == second.excluded.tolist()
    np.testing.assert_allclose(first.values, second.values, rtol=1e-9, atol=1e-13 * np.abs(first.values).max())


@pytest.mark.parametrize("gap", [1e-5, 1e-7, 1e-9, 1e-11])
@pytest.mark.parametrize("gram", [False, True])
def test_atoms_that_differ_less_than_single_precision_are_told_apart(gap, gram):
    """Their cosines differ by much less than 1e-5, the rounding error of the screening products."""
    for seed in range(3):
        atoms, targets = near_ties(gap, seed)
        fit = orthogonal_matching_pursuit(prepare_atoms(atoms, gram=gram), targets, 3)
        assert fit.support.tolist() == [by_definition(atoms, target, 3) for target in targets]


def biased_problems():
    """Two atoms and two targets that prefer one each by less than 1e-7; sums of equal terms err by much more."""
    generator = named_generator(0, "biased rounding")
    for _ in range(30):
        d = int(generator.integers(3000, 12_000))
        atoms = np.ones((2, d))
        atoms[1, d // int(generator.integers(2, 10)) :] = 0
        atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
        yield atoms, atoms.sum(axis=0) + 1e-7 * atoms


@pytest.mark.parametrize("gram", [False, True])
def test_rounding_errors_that_add_up_do_not_mislead(gram):
    for atoms, targets in biased_problems():
        fit = orthogonal_matching_pursuit(prepare_atoms(atoms, gram=gram), targets, 1)
        assert fit.support.tolist() == [[0], [1]]


def test_rounding_errors_of_earlier_products_are_remembered():
    """Residuals hardly move: the errors are those of the first product."""
    for atoms, targets in biased_problems():
        scorer = Directions(prepare_atoms(atoms), True, 2)
        for step in range(2):
            residuals = targets + 1e-6 * step * atoms.sum(axis=0)
            place = at(np.arange(2), residuals)
            assert {(0, 0), (1, 1)} <= pairs(scorer, place)


@pytest.mark.parametrize("gram", [False, True])
@pytest.mark.parametrize("scale", [1e-130, 1.0, 1e130])
def test_supports_follow_the_definition_down_to_small_residuals(scale, gram):
    """Sparse sums of eight incoherent atoms with weights 1, 1/8, 1/64, ..., 5e-7: the last residuals are tiny."""
    generator = named_generator(0, "small residuals")
    atoms = generator.standard_normal((1500, 200))
    weights = 8.0 ** -np.arange(8) * generator.choice([-1, 1], (20, 8))
    chosen = np.array([generator.choice(1500, 8, replace=False) for _ in range(20)])
    targets = np.einsum("rk,rkd->rd", weights, atoms[chosen])
    fit = orthogonal_matching_pursuit(prepare_atoms(atoms, gram=gram), scale * targets, 8)
    assert fit.support.tolist() == [by_definition(atoms, target, 8) for target in targets]


@given(atoms_and_targets(), st.integers(1, 5), st.sampled_from(KINDS), st.booleans())
def test_prepared_atoms_give_what_their_array_gives(problem, k, weights, gram):
    atoms, targets = problem
    prepared = prepare_atoms(atoms, gram=gram)
    for _ in range(2):
        same(pursue(prepared, targets, k, weights=weights), pursue(atoms, targets, k, weights=weights))


@pytest.mark.parametrize("tolerance", [0.0, 1.0])
def test_a_batch_of_which_the_products_of_pairs_pay_equals_its_targets_one_by_one(tolerance):
    generator = named_generator(0, "pairs pay")
    atoms = generator.standard_normal((120, 40))
    atoms[7] = -3 * atoms[90]
    targets = generator.standard_normal((60, 40))
    targets[:10] += 5 * atoms[90]
    prepared = prepare_atoms(atoms)
    batch = orthogonal_matching_pursuit(prepared, targets, 6, tolerance=tolerance * np.linalg.norm(targets[0]) / 2)
    assert "gram" in vars(prepared)
    assert [classes[0] for classes in batch.classes[:10]] == [(7, 90)] * 10
    for i, target in enumerate(targets):
        alone = orthogonal_matching_pursuit(atoms, target, 6, tolerance=tolerance * np.linalg.norm(targets[0]) / 2)
        assert alone.support.tolist() == [batch.support[i].tolist()]
        assert (alone.status[0], alone.classes[0]) == (batch.status[i], batch.classes[i])
        np.testing.assert_allclose(alone.values[0], batch.values[i], rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("kind", ["incoherent", "spiky", "correlated", "copies"])
def test_candidates_hold_the_best_atom_whatever_residuals_do(kind, signed):
    """Residuals move by little or much, in all coordinates or in few, and shrink by ten orders of magnitude."""
    generator = named_generator(0, "candidates", kind)
    atoms = generator.standard_normal((3000, 48))
    if kind == "spiky":
        atoms = atoms**5
    if kind == "correlated":
        atoms += 5 * generator.standard_normal(48)
    if kind == "copies":
        atoms = np.tile(atoms[:10], (300, 1))
    unit = atoms / np.linalg.norm(atoms, axis=1, keepdims=True)
    scorer, residuals = Directions(prepare_atoms(atoms), signed, 20), generator.standard_normal((20, 48))
    enough = 0
    for step in range(25):
        if step % 5 == 4:
            residuals = residuals * generator.choice([1e-2, 1.0], (20, 1))
        moved = 10.0 ** generator.uniform(-4, 0, (20, 1)) * np.linalg.norm(residuals, axis=1, keepdims=True)
        where = slice(None) if step % 3 else slice(24 * (step % 2), 24 * (step % 2) + 24)
        residuals[:, where] += moved * generator.standard_normal((20, 48))[:, where] / 7
        who = generator.permutation(20)[:15] if step else np.arange(20)
        scorer.halving = step > 0 or None
        place = at(who, residuals[who])
        found = pairs(scorer, place)
        scores = unit @ place.residuals.T
        scores = np.abs(scores) if signed else scores
        for i in range(len(who)):
            assert {(i, v) for v in np.flatnonzero(scores[:, i] >= scores[:, i].max() - ALIKE / 2).tolist()} <= found
        assert kind == "copies" or len(found) <= FEW * len(who)
        enough += step > 0 and scorer.halving
    assert kind == "copies" or enough >= 3


@pytest.mark.parametrize("sparse", [True, False])
def test_halves_of_the_coordinates_are_enough_for_sparse_sums_of_incoherent_atoms_and_else_given_up(
    sparse, monkeypatch
):
    products, original = {True: 0, False: 0}, Directions._few

    def counted(self, place, index, whole):
        products[whole] += index.size
        return original(self, place, index, whole)

    monkeypatch.setattr(Directions, "_few", counted)
    generator = named_generator(0, "halves")
    atoms = generator.standard_normal((2000, 400))
    targets = generator.standard_normal((40, 400))
    if sparse:
        targets = np.array([atoms[generator.choice(2000, 6, replace=False)].sum(axis=0) for _ in targets])
    fit = orthogonal_matching_pursuit(atoms, targets, 6)
    assert fit.support.tolist() == [by_definition(atoms, target, 6) for target in targets]
    assert products[False] == (5 * 40 if sparse else 40)
    assert (products[True] <= 60) == sparse


def test_factors_stay_orthogonal_where_atoms_nearly_depend_on_those_chosen():
    generator = named_generator(0, "nearly dependent")
    atoms = generator.standard_normal(30) + 1e-5 * generator.standard_normal((6, 30))
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    Q, U, b, target = np.zeros((6, 30)), np.zeros((6, 6)), np.zeros(6), generator.standard_normal(30)
    residual = target.copy()
    for size, atom in enumerate(atoms):
        assert DEPENDENT < extend(Q, U, b, residual, size, atom.copy()) <= 1
    np.testing.assert_allclose(Q @ Q.T, np.eye(6), atol=1e-14)
    np.testing.assert_allclose(U.T @ Q, atoms, atol=1e-14)
    np.testing.assert_allclose(b, Q @ target, atol=1e-13)
    np.testing.assert_allclose(residual, target - b @ Q, atol=1e-13)


def test_products_of_pairs_are_refused_for_a_vocabulary():
    atoms = np.ones((int(PAIRS**0.5) + 1, 1))
    with pytest.raises(ValueError, match="gram must be False for more than 8192 atoms, got 8193"):
        prepare_atoms(atoms, gram=True)
    assert not prepare_atoms(atoms).pairs_pay(10**9)


@pytest.mark.parametrize(
    ("atoms", "message"),
    [
        (np.eye(2)[0], r"atoms must be a \(T, d\) matrix"),
        (np.zeros((2, 2)), "at least one that is finite and not zero"),
    ],
)
def test_atoms_that_cannot_be_prepared_are_refused(atoms, message):
    with pytest.raises(ValueError, match=message):
        prepare_atoms(atoms)


WITHOUT_NUMBA = """
    import sys
    sys.modules["numba"] = None
    import numpy as np
    from markov_theory._compile import COMPILED
    from markov_theory.solvers.matching_pursuit import orthogonal_matching_pursuit, prepare_atoms
    from tests.solvers.test_matching_pursuit_scores import without_numba_problems

    assert not COMPILED
    for atoms, targets, gram, weights in without_numba_problems():
        fit = orthogonal_matching_pursuit(prepare_atoms(atoms, gram=gram), targets, 5, weights=weights)
        print((fit.support.tolist(), fit.classes, fit.status.tolist(), fit.values.tolist()))
"""


def without_numba_problems():
    generator = named_generator(0, "pursuit without numba")
    atoms = generator.standard_normal((1500, 30)) * generator.uniform(0.1, 10, (1500, 1))
    atoms[[4, 5]] = 2 * atoms[[3, 9]]
    atoms[6], atoms[8, 3], atoms[10] = 0.0, np.nan, 1e-120 * atoms[10]
    targets = generator.standard_normal((12, 5)) @ atoms[[3, 9, 20, 30, 40]] + generator.standard_normal((12, 30))
    yield atoms, targets, False, "real"
    yield atoms, targets, True, "real"
    yield atoms.astype(np.float32), targets, True, "real"
    yield atoms, targets, False, "non-negative"


@pytest.mark.skipif(not COMPILED, reason="numba is not installed")
def test_pursuits_without_numba_are_the_same():
    run = [sys.executable, "-c", textwrap.dedent(WITHOUT_NUMBA)]
    lines = subprocess.run(run, check=True, capture_output=True, text=True).stdout.splitlines()
    for (atoms, targets, gram, weights), line in zip(without_numba_problems(), lines, strict=True):
        fit = orthogonal_matching_pursuit(prepare_atoms(atoms, gram=gram), targets, 5, weights=weights)
        support, classes, status, values = ast.literal_eval(line)
        assert (fit.support.tolist(), fit.classes, fit.status.tolist()) == (support, classes, status)
        np.testing.assert_allclose(fit.values, values, rtol=1e-9, atol=1e-13 * np.abs(values).max())
