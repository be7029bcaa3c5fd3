"""Pairs: one Parquet file per domain, sorted by unique id, read whole or in parts. Rejects: what became no pair."""

from batchwright.formats.pairs.files import (
    PAIRS_SCHEMA,
    REJECTS_SCHEMA,
    ROWS,
    Split,
    domain_of,
    domains,
    file_stem,
    group_sizes,
    pairs_file,
    pairs_size,
    read_columns,
    read_pairs,
    read_rejects,
    scan_pairs,
    scan_texts,
    write_table,
)
from batchwright.formats.pairs.parts import InMemory, PairsPart, Texts, pair_parts

__all__ = [
    "PAIRS_SCHEMA",
    "REJECTS_SCHEMA",
    "ROWS",
    "InMemory",
    "PairsPart",
    "Split",
    "Texts",
    "domain_of",
    "domains",
    "file_stem",
    "group_sizes",
    "pair_parts",
    "pairs_file",
    "pairs_size",
    "read_columns",
    "read_pairs",
    "read_rejects",
    "scan_pairs",
    "scan_texts",
    "write_table",
]
