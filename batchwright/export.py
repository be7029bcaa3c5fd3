"""Export the pairs of shards with their hard negatives as one plain file."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from batchwright.core.atomic import atomic_file
from batchwright.core.errors import InputError
from batchwright.core.terminal import bar
from batchwright.formats.metadata import metadata_columns
from batchwright.formats.shards import ShardSet


def export(shards: Path, output: Path, negatives: int | None = None, *, metadata: bool = False) -> str:
    """Write ``output`` and return a summary, which counts the pairs left out because they have too few negatives.

    ``negatives`` is how many each pair must have; by default, as many as any pair has. With ``metadata``, columns of
    the sources come last; without it, the summary names them, since trainers would take them for texts to train on.

    Raises:
        InputError: the output is of no known kind, or no pair has that many negatives.
    """
    if output.suffix not in (".parquet", ".jsonl"):
        raise InputError(f"{output}: the output must end in .parquet or .jsonl")
    shard_set = ShardSet.open(shards)
    once, counts = _scan(shard_set)
    most = int(counts.max(initial=0))
    wanted = most if negatives is None else negatives
    if not 0 <= wanted <= most:
        raise InputError(f"{shards}: no pair has {wanted} hard negatives, the most are {most}; lower --negatives")
    chosen = once & (counts >= wanted)
    named = shard_set.metadata_names
    tables = _tables(shard_set, chosen, wanted, named if metadata else [])
    with atomic_file(output) as temporary:
        if output.suffix == ".parquet":
            _write_parquet(temporary, tables)
        else:
            _write_jsonl(temporary, tables)
    pairs, left_out = int(chosen.sum()), int((once & ~chosen).sum())
    summary = f"{pairs:,} pairs with {wanted} hard negatives in {output}"
    summary += f"; {left_out:,} with fewer left out (see --negatives)" if left_out else ""
    return f"{summary}; without {', '.join(named)} (see --metadata)" if named and not metadata else summary


def _scan(shards: ShardSet) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return, for the rows of all batches, whether its pair occurs first there and how many negatives it has."""
    ids, counts = [], []
    for number in range(len(shards)):
        batch = shards.batch(number)
        ids.append(np.array(batch["id"].to_pylist(), dtype=np.bytes_))
        counts.append(batch["negatives"].value_lengths().to_numpy())
    once = np.zeros(shards.manifest.rows, dtype=np.bool_)
    once[np.unique(np.concatenate(ids), return_index=True)[1]] = True
    return once, np.concatenate(counts).astype(np.int64)


def _tables(shards: ShardSet, chosen: NDArray[np.bool_], negatives: int, metadata: Sequence[str]) -> Iterator[pa.Table]:
    """Yield the chosen rows, a shard at a time."""
    size, first = shards.manifest.batch_size, 0
    for shard in bar(shards.manifest.shards, desc="export", unit="shard"):
        numbers = range(first, first + shard.batches)
        rows = pa.Table.from_batches([shards.batch(number) for number in numbers])
        rows = rows.filter(pa.array(chosen[numbers.start * size : numbers.stop * size]))
        listed = rows["negatives"].to_pylist()
        columns = {"anchor": rows["query"], "positive": rows["document"]}
        for place in range(negatives):
            columns[f"negative_{place + 1}"] = pa.array([texts[place] for texts in listed], type=pa.string())
        for name, texts in (metadata_columns(rows["metadata"], metadata) if metadata else {}).items():
            columns[name] = pa.array(texts, type=pa.string())
        yield pa.table(columns)
        first = numbers.stop


def _write_parquet(file: Path, tables: Iterator[pa.Table]) -> None:
    first = next(tables)
    with pq.ParquetWriter(file, first.schema, compression="zstd") as writer:
        writer.write_table(first)
        for table in tables:
            writer.write_table(table)


def _write_jsonl(file: Path, tables: Iterator[pa.Table]) -> None:
    with file.open("w", encoding="utf-8") as handle:
        for table in tables:
            handle.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in table.to_pylist())
