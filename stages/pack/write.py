"""Write the batches of all domains, in training order, as shards."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa

from batchwright.core.bar import bar
from batchwright.core.runtime import workers
from batchwright.formats.shards import Shard, shard_name, write_shard
from stages.pack.batches import batch_file


def write_shards(
    files: Mapping[str, Path], order: Sequence[tuple[str, int]], per_shard: int, output: Path
) -> list[Shard]:
    """Write batches that ``make_batches`` made, in ``order``, into the folder ``output``, several shards at a time.

    ``files`` are the domains' folders; ``order`` are domains and places among their batches.
    """
    starts = range(0, len(order), per_shard)

    def write(start: int) -> Shard:
        batches = [_read(files[domain], place, per_shard) for domain, place in order[start : start + per_shard]]
        return write_shard(output / shard_name(start // per_shard, len(starts)), batches)

    with ThreadPoolExecutor(workers()) as pool:
        return list(bar(pool.map(write, starts), desc="shards", total=len(starts), unit="shard"))


def _read(folder: Path, place: int, per_file: int) -> pa.RecordBatch:
    file, number = batch_file(folder, place, per_file)
    with pa.memory_map(str(file)) as source:
        return pa.ipc.open_file(source).get_batch(number)
