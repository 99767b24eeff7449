"""All claims in one list: every registered bound, the predictions, the other statements, and bounds at scale."""

from __future__ import annotations

from collections.abc import Iterable

from markov_theory.bounds import BOUNDS
from markov_theory.bounds.base import Bound
from markov_theory.verify import predictions, statements, statistical
from markov_theory.verify.claims import Claim, claim_of


def registry(own: Iterable[type[Bound]] = ()) -> list[Claim]:
    """All that the package claims, or what bounds of one's own claim.

    Parameters
    ----------
    own : iterable of Bound types
        Each becomes the claims that a bound makes: exact at small instances, sampled at larger ones.

    Returns
    -------
    list of Claim

    Examples
    --------
    >>> [claim.label for claim in registry() if claim.label.startswith("S6^1")]
    ['S6^1', 'S6^1@scale']
    """
    bounds = list(own)
    if bounds:
        return [claim for bound in bounds for claim in claims_of(bound)]
    made = [claim_of(bound) for bound in BOUNDS.values() if bound.kind != "prediction"]
    return [*made, *predictions.CLAIMS, *statements.CLAIMS, *statistical.claims()]


def claims_of(bound: type[Bound]) -> list[Claim]:
    """What one bound claims: of itself at small instances, and at scale where it speaks of an estimator that is run."""
    if bound.kind == "prediction":
        return [predictions.claim_of_prediction(bound)]
    return [claim_of(bound), *([statistical.claim_at_scale(bound)] if statistical.speaks_at_scale(bound) else [])]
