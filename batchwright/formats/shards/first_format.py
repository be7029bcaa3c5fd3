"""Shards of format 1, read as those of format 2: they kept masks, but neither hardness, clusters nor reasons."""

import numpy as np
import pyarrow as pa

from batchwright.formats.shards.masks import NAMES, UNKNOWN, unpack_mask

UNKNOWN_CLUSTER = -1


def completed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a training batch of format 1 with the columns of ``schema``, that of format 2.

    What format 1 did not keep is NaN, ``UNKNOWN_CLUSTER``, or the reason ``UNKNOWN``.
    """
    size = batch.num_rows
    mask = unpack_mask(batch["mask"].to_pylist(), size)
    negatives = mask & ~np.eye(size, dtype=bool)
    columns = [
        pa.array([bytes([NAMES.index(UNKNOWN)]) * count for count in mask.sum(axis=1).tolist()], pa.binary()),
        pa.array(np.full(size, np.nan, np.float32)),
        pa.array((negatives.sum(axis=1) / max(size - 1, 1)).astype(np.float32)),
        pa.array(np.full(size, UNKNOWN_CLUSTER, np.int32)),
    ]
    return pa.RecordBatch.from_arrays([*batch.columns, *columns], schema=schema)
