"""Keeps the first pair of each id. Buckets split the ids into ranges that workers process one by one."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipelines.ingest.candidates import REJECTED
from pipelines.ingest.normalise import printable

DUPLICATE = "duplicate"
_BUCKET_DIGITS = 2


def buckets(batch: pa.RecordBatch) -> list[tuple[str, pa.RecordBatch]]:
    """Split candidates by the leading hex digits of their ids, which name the bucket."""
    ordered = batch.sort_by("id")
    leading = pc.utf8_slice_codeunits(ordered["id"], 0, _BUCKET_DIGITS)
    runs = pc.run_end_encode(leading)
    starts = [0, *runs.run_ends.to_pylist()]
    names = runs.values.to_pylist()
    return [(name, ordered.slice(starts[i], starts[i + 1] - starts[i])) for i, name in enumerate(names)]


def deduplicate(candidates: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return the unique pairs, sorted by domain and id, and their duplicates as ``REJECTED``."""
    order = [("domain", "ascending"), ("id", "ascending"), ("part", "ascending")]
    ordered = candidates.sort_by([*order, ("source", "ascending"), ("row", "ascending")])
    repeated = _equals_previous(ordered["id"])
    duplicates = ordered.filter(pa.array(repeated))
    rejected = duplicates.append_column("reason", pa.repeat(DUPLICATE, len(duplicates)))
    shown = pa.array([printable(query) for query in duplicates["query"].to_pylist()], pa.large_string())
    return ordered.filter(pa.array(~repeated)), rejected.append_column("text", shown).select(REJECTED.names)


def _equals_previous(ids: pa.ChunkedArray) -> NDArray[np.bool_]:
    equal = np.zeros(len(ids), bool)
    if len(ids) > 1:
        equal[1:] = pc.equal(ids[1:], ids[:-1]).to_numpy()
    return equal
