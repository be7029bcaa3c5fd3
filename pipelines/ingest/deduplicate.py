"""Keeps the first pair of each id."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipelines.ingest.normalise import printable

DUPLICATE = "duplicate"


def deduplicate(candidates: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return the unique pairs of a domain, sorted by id, and their duplicates with the columns of rejects.

    Of equal pairs, that of the first ``part`` counts, and of the first source and row in it.
    """
    ordered = candidates.sort_by([(key, "ascending") for key in ("id", "part", "source", "row")])
    repeated = _equals_previous(ordered["id"])
    duplicates = ordered.filter(pa.array(repeated))
    shown = pa.array([printable(query) for query in duplicates["query"].to_pylist()], pa.large_string())
    rejected = duplicates.select(["source", "row", "part"])
    rejected = rejected.append_column("reason", pa.repeat(DUPLICATE, len(duplicates))).append_column("text", shown)
    return ordered.filter(pa.array(~repeated)), rejected


def _equals_previous(ids: pa.ChunkedArray) -> NDArray[np.bool_]:
    equal = np.zeros(len(ids), bool)
    if len(ids) > 1:
        equal[1:] = pc.equal(ids[1:], ids[:-1]).to_numpy()
    return equal
