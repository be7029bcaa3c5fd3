"""What the stage takes of disk."""

from batchwright.by_domain import pairs_of
from batchwright.core.paths import PAIRS, SHARDS
from batchwright.core.room import check_disk
from batchwright.core.runtime import scratch
from batchwright.formats.pairs import domains
from stages.pack.params import PackParams

_UNCOMPRESSED = 3
"""How many times larger texts are uncompressed, about."""


def check_packing(stage: str, params: PackParams, made: int) -> None:
    """Check disk for the rows of all epochs: their texts and masks, in the scratch folder, and compressed as shards.

    ``made`` bytes of them lie in the scratch folder of ``stage``.

    Raises:
        InputError: there is too little.
    """
    text = params.epochs * sum(file.stat().st_size for file in PAIRS.glob("*.parquet"))
    masks = params.epochs * pairs_of(*domains(PAIRS)) * params.batch_size // 8
    check_disk({scratch(stage): max(0, _UNCOMPRESSED * text + masks - made), SHARDS: text + masks}, "packing")
