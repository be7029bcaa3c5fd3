"""Keeps the first pair of each id, with the hard negatives of all."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipelines.ingest.normalise import SHOWN, printable

DUPLICATE = "duplicate"


def deduplicate(candidates: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return the unique pairs of a domain, sorted by id, and their duplicates with the columns of rejects.

    Of equal pairs, that of the first ``part`` counts, and of the first source and row in it. It gets the hard negatives
    of the others, in the same order, each once.
    """
    order = pc.sort_indices(candidates, [(key, "ascending") for key in ("id", "part", "source", "row")]).to_numpy()
    repeated = _equals_previous(candidates["id"].take(pa.array(order)))
    duplicates = candidates.select(["source", "row", "part"]).take(pa.array(order[repeated]))
    asked = pc.utf8_slice_codeunits(candidates["query"], 0, SHOWN).take(pa.array(order[repeated]))
    shown = pa.array([printable(query) for query in asked.to_pylist()], pa.large_string())
    rejected = duplicates.append_column("reason", pa.repeat(DUPLICATE, len(duplicates))).append_column("text", shown)
    unique = candidates.take(pa.array(order[~repeated]))
    joined = _joined(candidates["negatives"].take(pa.array(order)), repeated)
    return unique.set_column(unique.schema.get_field_index("negatives"), "negatives", joined), rejected


def _joined(negatives: pa.ChunkedArray, repeated: NDArray[np.bool_]) -> pa.Array:
    """Join each list with those after it that are of the same pair."""
    lists: list[dict[str, None]] = []
    for again, own in zip(repeated.tolist(), negatives.to_pylist(), strict=True):
        if again:
            lists[-1].update(dict.fromkeys(own))
        else:
            lists.append(dict.fromkeys(own))
    return pa.array(map(list, lists), negatives.type)


def _equals_previous(ids: pa.ChunkedArray) -> NDArray[np.bool_]:
    equal = np.zeros(len(ids), bool)
    if len(ids) > 1:
        equal[1:] = pc.equal(ids[1:], ids[:-1]).to_numpy()
    return equal
