"""Every claim of the package at quick effort: it holds, and it was decisive somewhere."""

from __future__ import annotations

import math

import pytest

from markov_theory.bounds import BOUNDS
from markov_theory.verify.claims import Settings, select
from markov_theory.verify.registry import registry
from markov_theory.verify.statistical import settle
from markov_theory.verify.verdict import HOLDS, INCONCLUSIVE

CLAIMS = registry()
EXACT = [claim for claim in CLAIMS if not claim.label.endswith("@scale")]
AT_SCALE = [claim for claim in CLAIMS if claim.label.endswith("@scale")]


@pytest.mark.parametrize("claim", EXACT, ids=[claim.label for claim in EXACT])
def test_it_holds(claim):
    finding = claim.check(Settings())
    assert finding.verdict == HOLDS, finding
    assert math.isfinite(finding.value)
    assert finding.instance or claim.label == "forgetting"  # nothing to show where nothing is wrong
    assert not finding.slack < 1 - 1e-9
    if claim.label in BOUNDS and BOUNDS[claim.label].kind != "prediction":
        assert 1 - 1e-9 <= finding.slack < math.inf  # decisive: something is needed there


@pytest.mark.statistical
def test_bounds_at_scale_are_not_refuted():
    """A true bound is violated with probability at most 1e-6, over all of them together (Holm)."""
    findings = settle([claim.check(Settings()) for claim in AT_SCALE], level=1e-6)
    assert {finding.verdict for finding in findings} <= {HOLDS, INCONCLUSIVE}
    assert sum(finding.p_value is not None for finding in findings) >= 8
    assert all(0 < finding.slack < math.inf for finding in findings)


def test_every_bound_is_a_claim():
    labels = [claim.label for claim in CLAIMS]
    assert len(set(labels)) == len(labels)
    assert set(BOUNDS) <= set(labels)
    assert all(claim.origin in ("paper", "derived") and claim.statement for claim in CLAIMS)


def test_patterns():
    assert [claim.label for claim in select(CLAIMS, "S6, kappa")] == ["S6", "kappa"]
    assert {"O1", "O5"} <= {claim.label for claim in select(CLAIMS, "O?")}
    assert select(CLAIMS, None) == CLAIMS
    with pytest.raises(ValueError, match="no claim matches 'X9'"):
        select(CLAIMS, "S6,X9")
