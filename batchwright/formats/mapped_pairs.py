"""A domain's pairs for those who read them in any order."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from batchwright.core.spill import spilled, spilled_texts
from batchwright.formats.pairs import Split, count_pairs, scan_pairs

_TEXTS = ("id", "query", "document", "domain")


def map_pairs(folder: Path, domain: str, split: Split) -> pa.Table:
    """Return the pairs that ``scan_pairs`` yields, uncompressed and memory-mapped, with columns of large types.

    ``negatives`` comes last; ``split`` is left out.

    Raises:
        InputError: the file is missing, damaged, unsorted or has other columns.
    """

    def scan(column: str) -> Iterator[pa.Array]:
        return (batch[column] for batch in scan_pairs(folder, domain, split, [column]))

    columns = {name: spilled_texts(scan(name)) for name in _TEXTS}
    ends = spilled(count_pairs(folder, domain, split) + 1, np.int64)
    done = 0
    for lists in scan("negatives"):
        ends[done + 1 : done + 1 + len(lists)] = ends[done] + np.cumsum(pc.list_value_length(lists))
        done += len(lists)
    offsets = pa.Array.from_buffers(pa.int64(), len(ends), [None, pa.py_buffer(ends)])
    negatives = pa.LargeListArray.from_arrays(offsets, spilled_texts(lists.flatten() for lists in scan("negatives")))
    return pa.table({**columns, "negatives": negatives})
