"""The batches of each domain, in files that a killed run goes on from, and the shards of all domains."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from batchwright.by_domain.domains import Metrics
from batchwright.by_domain.spread import Map, unless_beam
from batchwright.core.fingerprint import file_sha256
from batchwright.core.runtime import workers
from batchwright.core.terminal import bar
from batchwright.formats.negatives import EVERY_PAIR, NO_PAIR, Negatives
from batchwright.formats.shards import Shard, completed, format_with, shard_name, write_shard
from batchwright.formats.shards.batch import met_before
from batchwright.formats.shards.manifest import Format
from batchwright.formats.shards.shard_set import SCHEMAS
from stages.pack.inputs import Inputs, Source
from stages.pack.params import PackParams
from stages.pack.plan import Batch, choose_recipe, plan_domain, shares_of

Row = dict[str, Any]
Turns = NDArray[np.int32]


def make_batches(
    inputs: Inputs, policy: str, params: PackParams, seed: int, name: str, folder: Path, do_parts: Map
) -> Metrics:
    """Write all batches of a domain into ``folder``, as many to a file as to a shard.

    Returns:
        ``recipe`` if the domain has one, the measures of each batch as ``rows``, the number of different ``documents``
        to train on, the limit of ``likeness``, and for each epoch the share of a batch that comes from one cluster, how
        many pairs are ``left_over`` and how many times a pair was ``repeated``.
    """
    source = Source(inputs, name, unless_beam(do_parts))
    domain, draws = source.opened
    recipe = choose_recipe(name, domain, draws[0], params, seed) if policy == "contextual" else None
    batches = plan_domain(name, draws, policy, params, seed, recipe)
    measures = _write(source, folder, batches, params, do_parts)
    met = met_before(((batch.epoch, batch.rows) for batch in batches), len(domain.pairs))
    rows = [
        {"epoch": batch.epoch, "domain": name, **measured, "met_before": share}
        for batch, measured, share in zip(batches, measures, met, strict=True)
    ]
    kept = domain.negatives.kept
    counts = [_counts(batches, epoch, kept) for epoch in range(params.epochs)]
    return {
        "recipe": {"cluster_share": recipe.shares, "because": recipe.reason} if recipe else {},
        "rows": rows,
        "shares": shares_of(policy, params, recipe),
        "documents": len(np.unique(domain.negatives.document_class[kept])),
        "likeness": _limit(domain.negatives),
        "left_over": [left_over for left_over, _ in counts],
        "repeated": [repeated for _, repeated in counts],
    }


def _limit(negatives: Negatives) -> float | None:
    """Return how alike pairs must be to be masked by score, None if nothing or not only this decides."""
    limits = np.unique(negatives.likeness)
    return round(float(limits[0]), 6) if len(limits) == 1 and limits[0] not in (NO_PAIR, EVERY_PAIR) else None


def batch_file(folder: Path, place: int, batches_per_file: int) -> tuple[Path, int]:
    """Return the file that holds batch number ``place`` of a domain, and the batch's number in that file."""
    return folder / f"{place // batches_per_file:06d}.arrow", place % batches_per_file


def _write(source: Source, folder: Path, batches: Sequence[Batch], params: PackParams, do_parts: Map) -> list[Row]:
    """Write all files; return the measures of all batches."""
    per_file, most = params.batches_per_shard, params.hard_negatives
    turns = [None] * len(batches) if most is None else list(_turns(batches, len(source.opened[0].pairs)))
    to_write = list(zip(batches, turns, strict=True))
    files = {
        batch_file(folder, start, per_file)[0].resolve(): to_write[start : start + per_file]
        for start in range(0, len(batches), per_file)
    }
    _ = source.opened[0].relations  # takes time and memory: processes that are forked from now on share it
    write = partial(_write_file, source, most)
    left, rows = {file for file in files if file.exists()}, []  # by a run that was killed
    for file, (sha256, measures) in zip(files, do_parts(write, files.items()), strict=True):
        if not file.exists() or (file in left and file_sha256(file) != sha256):
            _, measures = write((file, files[file]))
        rows += measures
    return rows


def _turns(batches: Sequence[Batch], pairs: int) -> Iterator[Turns]:
    """Yield for each batch how many times its pairs were in batches before."""
    seen = np.zeros(pairs, np.int32)
    for batch in batches:
        yield seen[batch.rows]
        np.add.at(seen, batch.rows, 1)


def _write_file(
    source: Source, most: int | None, part: tuple[Path, Sequence[tuple[Batch, Turns | None]]]
) -> tuple[str, list[Row]]:
    """Write a file of batches with no more than ``most`` hard negatives of each pair; None: with all.

    Returns:
        The file's SHA-256, and the measures of the batches.
    """
    file, batches = part
    domain, draws = source.opened
    # A batch's products are small: threads of theirs would mostly wait for each other.
    with _pools().limit(limits=1):
        packed = [domain.batch(batch.rows, draws[batch.draw].assignment[batch.rows]) for batch, _ in batches]
    made = [
        record_batch if most is None or turns is None else taking_turns(record_batch, turns, most)
        for (record_batch, _), (_, turns) in zip(packed, batches, strict=True)
    ]
    shard = write_shard(file, made, compressed=False)  # it is read again soon
    return shard.sha256, [measures for _, measures in packed]


def taking_turns(batch: pa.RecordBatch, turns: Turns, most: int) -> pa.RecordBatch:
    """Return a batch with no more than ``most`` hard negatives of each pair, and their scores.

    Each time a pair comes, it has the next ones; ``turns`` ``(B,)`` count how often it came before.
    """
    lengths = batch["negatives"].value_lengths().to_pylist()
    if max(lengths) <= most:
        return batch
    chosen = [
        [(turn * most + place) % length for place in range(most)] if length > most else list(range(length))
        for turn, length in zip(turns.tolist(), lengths, strict=True)
    ]
    for name, before in (("negatives", 0), ("scores", 1)):  # the first score is that of the pair's own document
        if (place := batch.schema.get_field_index(name)) >= 0:
            rows = zip(batch[name].to_pylist(), chosen, strict=True)
            lists = [
                own[:before] + [own[before + number] for number in numbers] if own else [] for own, numbers in rows
            ]
            field = batch.schema.field(place)
            batch = batch.set_column(place, field, pa.array(lists, field.type))
    return batch


@cache
def _pools() -> ThreadpoolController:
    """The thread pools of this process; finding them takes longer than a small domain does."""
    return ThreadpoolController()


def _counts(batches: Sequence[Batch], epoch: int, kept: NDArray[np.bool_]) -> tuple[int, int]:
    """Return how many pairs that were ``kept`` are in no batch of an epoch, and how often one is there once more."""
    packed, total = np.zeros(len(kept), np.bool_), 0
    for batch in batches:
        if batch.epoch == epoch:
            packed[batch.rows] = True
            total += len(batch.rows)
    return int(np.count_nonzero(kept & ~packed)), total - int(np.count_nonzero(packed))


def write_shards(
    files: Mapping[str, Path], order: Sequence[tuple[str, int]], per_shard: int, output: Path
) -> tuple[list[Shard], Format]:
    """Write batches that ``make_batches`` made, in ``order``, into the folder ``output``, several shards at a time.

    ``files`` are the domains' folders; ``order`` are domains and places among their batches. Return the shards, and
    their format, which has all columns of all domains.
    """
    domains = dict.fromkeys(domain for domain, _ in order)
    fitting = format_with(name for domain in domains for name in _read(files[domain], 0, per_shard).schema.names)
    starts = range(0, len(order), per_shard)

    def write(start: int) -> Shard:
        batches = [_read(files[domain], place, per_shard) for domain, place in order[start : start + per_shard]]
        batches = [completed(batch, SCHEMAS[fitting]) for batch in batches]
        return write_shard(output / shard_name(start // per_shard, len(starts)), batches)

    with ThreadPoolExecutor(workers()) as pool:
        shards = list(bar(pool.map(write, starts), desc="shards", total=len(starts), unit="shard"))
    return shards, fitting


def _read(folder: Path, place: int, per_file: int) -> pa.RecordBatch:
    file, number = batch_file(folder, place, per_file)
    with pa.memory_map(str(file)) as source:
        return pa.ipc.open_file(source).get_batch(number)
