"""What the stage takes of disk."""

from batchwright.by_domain import LARGE, pairs_of, texts_of
from batchwright.core.paths import NEGATIVES, PAIRS
from batchwright.core.room import check_disk
from batchwright.core.runtime import scratch
from batchwright.formats.pairs import domains
from stages.filter.params import FilterParams

_A_PAIR, _A_MINED, _A_JUDGEMENT = 17, 4, 9
"""Bytes that ``Negatives.write`` writes."""
_FORMS, _SKETCHES, _A_RANK = 3, 400, 12
"""How often normal forms are on disk: of all parts, of all texts, and different ones. Bytes of a pair's sketches, and
of a document that is ranked for it."""


def check_filtering(params: FilterParams, judgements: int, made: int) -> None:
    """Check disk for the arrays of all domains, which are copied from the scratch folder, where ``made`` bytes lie.

    Raises:
        InputError: there is too little.
    """
    mined = _A_MINED * params.mine.count if params.mine else 0
    size = (_A_PAIR + mined) * pairs_of(*domains(PAIRS)) + _A_JUDGEMENT * judgements
    check_disk({scratch("filter"): max(0, size - made), NEGATIVES: size}, "filtering")


def spilled(params: FilterParams, domain: str) -> float:
    """Bytes that lie in the scratch folder while a domain is filtered.

    What a large domain's parts ranked is kept until it is done, with known positives: here, one a query.
    """
    pairs = pairs_of(domain)
    ranks = params.ranks + 1 if params.ranks and pairs >= LARGE else 0
    return _FORMS * texts_of(domain) + (_SKETCHES + _A_RANK * ranks) * pairs
