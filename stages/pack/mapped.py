"""A domain's pairs for those who read them in any order."""

from collections.abc import Iterable
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from batchwright.core.spill import SpilledRows, SpilledTexts, spilled
from batchwright.formats.pairs import PairsPart

_TEXTS = ("id", "query", "document", "domain")


def map_pairs(parts: Iterable[PairsPart]) -> pa.Table:
    """Return the pairs of all parts, uncompressed and memory-mapped, with columns of large types.

    ``negatives`` comes last; ``split`` is left out.
    """
    columns, lists, lengths = {name: SpilledTexts() for name in _TEXTS}, SpilledTexts(), SpilledRows(np.int64)
    for batch in chain.from_iterable(part.read([*_TEXTS, "negatives"]) for part in parts):
        for name, texts in columns.items():
            texts.add(batch[name])
        lists.add(batch["negatives"].flatten())
        lengths.add(pc.list_value_length(batch["negatives"]).to_numpy())
    counts = lengths.array()
    ends = spilled(len(counts) + 1, np.int64)
    np.cumsum(counts, out=ends[1:])
    offsets = pa.Array.from_buffers(pa.int64(), len(ends), [None, pa.py_buffer(ends)])
    negatives = pa.LargeListArray.from_arrays(offsets, lists.array())
    return pa.table({**{name: texts.array() for name, texts in columns.items()}, "negatives": negatives})
