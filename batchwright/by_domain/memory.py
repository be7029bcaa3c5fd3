"""How much memory the work on a domain takes at its peak."""

from collections.abc import Callable, Iterable

import pyarrow.parquet as pq

from batchwright.core.paths import PAIRS
from batchwright.core.room import check_memory
from batchwright.formats.pairs import pairs_file

BASE, A_PAIR, A_BYTE_OF_TEXT = 300e6, 1_500, 6
"""Bytes, such that ``python -m benchmarks.scale`` stays below."""


def check_domains(domains: Iterable[str], memory_of: Callable[[str], float]) -> None:
    """Check that there is memory for the largest of ``domains``, since they are done one after the other.

    Raises:
        InputError: there is too little.
    """
    needed = {domain: memory_of(domain) for domain in domains}
    for domain in sorted(needed, key=needed.__getitem__)[-1:]:
        check_memory(needed[domain], f"domain '{domain}'")


def of_pairs(*domains: str) -> float:
    """Bytes that the work on the pairs of ``domains``, which are done together, takes."""
    tables = [pq.read_metadata(pairs_file(PAIRS, domain)) for domain in domains]
    text = sum(table.row_group(group).total_byte_size for table in tables for group in range(table.num_row_groups))
    return float(BASE + A_PAIR * sum(table.num_rows for table in tables) + A_BYTE_OF_TEXT * text)
