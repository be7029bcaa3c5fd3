"""What the stage takes of disk and memory."""

import math
from collections.abc import Sequence

from batchwright.by_domain import LARGE, at_once, of_pairs, pairs_of
from batchwright.core.paths import PAIRS, SHARDS
from batchwright.core.room import check_disk
from batchwright.core.runtime import scratch
from batchwright.formats.pairs import domains
from stages.pack.params import PackParams

_UNCOMPRESSED = 3
"""How many times larger texts are uncompressed, about."""
_A_CELL, _A_MASKED = 20, 1 / 8
"""Bytes of a cell of the batch that a process makes, and of those of its file's batches that are made."""


def check_packing(stage: str, params: PackParams, made: int) -> None:
    """Check disk for the rows of all epochs: their texts and masks, in the scratch folder, and compressed as shards.

    ``made`` bytes of them lie in the scratch folder of ``stage``.

    Raises:
        InputError: there is too little.
    """
    text = params.epochs * sum(file.stat().st_size for file in PAIRS.glob("*.parquet"))
    masks = params.epochs * pairs_of(*domains(PAIRS)) * params.batch_size // 8
    check_disk({scratch(stage): max(0, _UNCOMPRESSED * text + masks - made), SHARDS: text + masks}, "packing")


def memory_of(names: Sequence[str], params: PackParams, weight: float, processes: int) -> float:
    """Bytes that packing the domains ``names`` as one takes: their pairs, and the cells of batches in each process."""
    pairs = pairs_of(*names)
    whole = math.floor if params.small_domains == "drop" else math.ceil
    batches = math.ceil(params.epochs * weight * whole(pairs / params.batch_size))
    files = math.ceil(batches / params.batches_per_shard)
    makers = min(files, at_once(processes) if pairs >= LARGE else 1)
    a_cell = _A_CELL + _A_MASKED * min(batches, params.batches_per_shard)
    return of_pairs(*names) + makers * a_cell * params.batch_size**2
