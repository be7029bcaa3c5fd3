"""Candidates (valid pairs that may still be duplicates) and rejects, both with their origin."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from batchwright.core.fingerprint import content_id, text_keys
from pipelines.ingest.normalise import Pair, RowError, excerpt, normalise
from pipelines.ingest.sources.base import Row

_ORIGIN = [pa.field("source", pa.large_string()), pa.field("row", pa.int64())]

CANDIDATES = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("query", pa.large_string()),
        pa.field("document", pa.large_string()),
        pa.field("domain", pa.string()),
        pa.field("negatives", pa.large_list(pa.large_string())),
        pa.field("query_hash", pa.uint64()),
        pa.field("document_hash", pa.uint64()),
        *_ORIGIN,
    ]
)

REJECTED = pa.schema([*_ORIGIN, pa.field("reason", pa.string()), pa.field("text", pa.large_string())])


def sift(rows: Iterable[Row]) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Sort raw rows into ``CANDIDATES`` and ``REJECTED``."""
    pairs: list[tuple[Pair, Row]] = []
    rejects: list[tuple[str, Row]] = []
    for row in rows:
        try:
            pairs.append((normalise(row), row))
        except RowError as error:
            rejects.append((str(error), row))
    good = {
        "id": [content_id(pair.domain, pair.query, pair.document) for pair, _ in pairs],
        "query": [pair.query for pair, _ in pairs],
        "document": [pair.document for pair, _ in pairs],
        "domain": [pair.domain for pair, _ in pairs],
        "negatives": [pair.negatives for pair, _ in pairs],
        "query_hash": _hashes([pair.query for pair, _ in pairs]),
        "document_hash": _hashes([pair.document for pair, _ in pairs]),
        **_origin([row for _, row in pairs]),
    }
    bad = {
        **_origin([row for _, row in rejects]),
        "reason": [reason for reason, _ in rejects],
        "text": [excerpt(row) for _, row in rejects],
    }
    return pa.RecordBatch.from_pydict(good, CANDIDATES), pa.RecordBatch.from_pydict(bad, REJECTED)


def _origin(rows: list[Row]) -> dict[str, object]:
    return {"source": [row.source for row in rows], "row": [row.number for row in rows]}


def _hashes(texts: list[str]) -> NDArray[np.uint64]:
    """64 bits of each text's key; the probability of any collision among a billion texts is about 3 %."""
    hashes: NDArray[np.uint64] = text_keys(texts).view("<u8")[::2]
    return hashes
