"""How much memory the work on a domain takes at its peak."""

from collections.abc import Callable, Iterable

import pyarrow.parquet as pq

from batchwright.core.paths import PAIRS
from batchwright.core.room import check_memory
from batchwright.formats.pairs import pairs_file

BASE, A_PAIR, A_RESIDENT_PAIR, RESIDENT = 300e6, 150, 4_000, 100_000
"""Bytes, such that ``python -m benchmarks.scale`` stays below: only of some pairs are vectors or words in memory."""


def check_domains(domains: Iterable[str], memory_of: Callable[[str], float]) -> None:
    """Check that there is memory for the largest of ``domains``, since they are done one after the other.

    Raises:
        InputError: there is too little.
    """
    needed = {domain: memory_of(domain) for domain in domains}
    for domain in sorted(needed, key=needed.__getitem__)[-1:]:
        check_memory(needed[domain], f"domain '{domain}'")


def pairs_of(*domains: str) -> int:
    """Number of the pairs of ``domains``, of all splits."""
    return sum(int(pq.read_metadata(pairs_file(PAIRS, domain)).num_rows) for domain in domains)


def of_pairs(*domains: str) -> float:
    """Bytes that the work on the pairs of ``domains``, which are done together, takes."""
    pairs = pairs_of(*domains)
    return float(BASE + A_PAIR * pairs + A_RESIDENT_PAIR * min(pairs, RESIDENT))
