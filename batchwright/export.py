"""Export the pairs of shards, with hard negatives and a teacher's scores, as a plain file that other trainers read."""

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from batchwright.core.atomic import atomic_file
from batchwright.core.errors import InputError
from batchwright.core.fingerprint import content_id
from batchwright.core.terminal import bar
from batchwright.formats.metadata import metadata_columns
from batchwright.formats.shards import ShardSet, read_scores

FileFormat = Literal["pairs", "flagembedding", "tevatron"]


def export(
    shards: Path,
    output: Path,
    negatives: int | None = None,
    file_format: FileFormat = "pairs",
    *,
    metadata: bool = False,
) -> str:
    """Write ``output`` and return a summary, which counts the pairs left out because they have too few negatives.

    ``negatives`` is how many each pair must have. By default, ``pairs``, which has a column for each, takes as many as
    any pair has in a batch; the other formats have lists, and take all pairs with what they have there. A teacher's
    scores are written where the format has a place for them, null for a text that has none. With ``metadata``, columns
    of the sources come last; without it, the summary names them: trainers would take them for texts.

    Raises:
        InputError: the format has no such kind of file, or no pair has that many negatives.
    """
    kinds = (".parquet", ".jsonl") if file_format == "pairs" else (".jsonl",)
    if output.suffix not in kinds:
        raise InputError(f"{output}: the output must end in {' or '.join(kinds)}")
    shard_set = ShardSet.open(shards)
    rows = _scan(shard_set)
    most, manifest = int(rows.negatives.max(initial=0)), shard_set.manifest
    limit = manifest.parameters.get("hard_negatives")
    limited = most == limit and "mine" not in manifest.made_with
    wanted = most if negatives is None else negatives
    if not 0 <= wanted <= most:
        cure = f"lower --negatives, or raise pack.hard_negatives from {limit}" if limited else "lower --negatives"
        raise InputError(f"{shards}: no pair has {wanted} hard negatives, the most are {most}; {cure}")
    all_pairs = negatives is None and file_format != "pairs"
    chosen = rows.once & (all_pairs | (rows.negatives >= wanted))
    named = shard_set.metadata_names
    tables = (
        _with_metadata(LAYOUTS[file_format](table, wanted), table, named if metadata else [])
        for table in _tables(shard_set, chosen)
    )
    with atomic_file(output) as temporary:
        if output.suffix == ".parquet":
            _write_parquet(temporary, tables)
        else:
            _write_jsonl(temporary, tables)
    unscored = rows.scores < 1 + np.minimum(rows.negatives, wanted)
    told = {
        "with fewer left out (see --negatives)": rows.once & ~chosen,
        "have none, which need a train_group_size of 1 (see --negatives)": chosen & all_pairs & (rows.negatives == 0),
        "lack scores": chosen & unscored & (shard_set.scored and file_format != "tevatron"),
    }
    count = f"up to {wanted}" if all_pairs else str(wanted)
    notes = [f"{int(which.sum()):,} {what}" for what, which in told.items() if which.any()]
    if shard_set.scored and file_format == "tevatron":
        notes.append("the scores left out, for which Tevatron has no place")
    if limited:
        notes.append(f"those of each pair's first batch, since pack.hard_negatives is {limit}")
    if named and not metadata:
        notes.append(f"without {', '.join(named)} (see --metadata)")
    return "; ".join([f"{int(chosen.sum()):,} pairs with {count} hard negatives in {output}", *notes])


class _Rows(NamedTuple):
    """Of the rows of all batches: whether its pair occurs first there, and how many negatives and scores it has.

    Scores are counted up to the first that is missing.
    """

    once: NDArray[np.bool_]
    negatives: NDArray[np.int64]
    scores: NDArray[np.int64]


def _scan(shards: ShardSet) -> _Rows:
    ids, negatives, scores = [], [], []
    for number in range(len(shards)):
        batch = shards.batch(number)
        ids.append(np.array(batch["id"].to_pylist(), dtype=np.bytes_))
        negatives.append(batch["negatives"].value_lengths().to_numpy().astype(np.int64))
        scores.append(_scored(shards, number, batch) if shards.scored else np.zeros_like(negatives[-1]))
    once = np.zeros(shards.manifest.rows, dtype=np.bool_)
    once[np.unique(np.concatenate(ids), return_index=True)[1]] = True
    return _Rows(once, np.concatenate(negatives), np.concatenate(scores))


def _scored(shards: ShardSet, number: int, batch: pa.RecordBatch) -> NDArray[np.int64]:
    """Return how many of each row's texts have a score, up to the first that has none."""
    try:
        table = read_scores(batch, sys.maxsize)
    except ValueError as error:
        raise InputError(f"{shards.folder}: batch {number} is damaged ({error}); run the stage 'teach' again") from None
    counts: NDArray[np.int64] = np.isfinite(table).cumprod(axis=1).sum(axis=1)
    return counts


def _tables(shards: ShardSet, chosen: NDArray[np.bool_]) -> Iterator[pa.Table]:
    """Yield the chosen rows, a shard at a time."""
    size, first = shards.manifest.batch_size, 0
    for shard in bar(shards.manifest.shards, desc="export", unit="shard"):
        numbers = range(first, first + shard.batches)
        rows = pa.Table.from_batches([shards.batch(number) for number in numbers])
        yield rows.filter(pa.array(chosen[numbers.start * size : numbers.stop * size]))
        first = numbers.stop


def _pairs(rows: pa.Table, negatives: int) -> pa.Table:
    columns = {"anchor": rows["query"], "positive": rows["document"]}
    listed, scores = _negatives(rows, negatives), _scores(rows, negatives)
    for place in range(negatives):
        columns[f"negative_{place + 1}"] = pa.array([texts[place] for texts in listed], type=pa.string())
    return pa.table(columns | ({} if scores is None else {"scores": pa.array(scores, pa.list_(pa.float64()))}))


def _flagembedding(rows: pa.Table, negatives: int) -> pa.Table:
    scores = _scores(rows, negatives)
    apart = {} if scores is None else {"pos_scores": [of[:1] for of in scores], "neg_scores": [of[1:] for of in scores]}
    documents = [[document] for document in rows["document"].to_pylist()]
    return pa.table({"query": rows["query"], "pos": documents, "neg": _negatives(rows, negatives), **apart})


def _tevatron(rows: pa.Table, negatives: int) -> pa.Table:
    queries, documents = rows["query"].to_pylist(), rows["document"].to_pylist()
    sides = {"positive_passages": [[text] for text in documents], "negative_passages": _negatives(rows, negatives)}
    passages = {name: [list(map(_passage, texts)) for texts in side] for name, side in sides.items()}
    return pa.table({"query_id": list(map(content_id, queries)), "query": queries, **passages})


LAYOUTS: Mapping[FileFormat, Callable[[pa.Table, int], pa.Table]] = {
    "pairs": _pairs,
    "flagembedding": _flagembedding,
    "tevatron": _tevatron,
}
"""How rows of shards, with so many of their negatives at most, are laid out in a file."""


def _with_metadata(laid_out: pa.Table, rows: pa.Table, names: Sequence[str]) -> pa.Table:
    for name, texts in (metadata_columns(rows["metadata"], names) if names else {}).items():
        laid_out = laid_out.append_column(name, pa.array(texts, pa.string()))
    return laid_out


def _passage(text: str) -> dict[str, str]:
    return {"docid": content_id(text), "title": "", "text": text}


def _negatives(rows: pa.Table, most: int) -> list[list[str]]:
    return [texts[:most] for texts in rows["negatives"].to_pylist()]


def _scores(rows: pa.Table, negatives: int) -> list[list[float | None]] | None:
    """Each row's scores of its document and its negatives, in the fewest digits that are the same float32."""
    if "scores" not in rows.column_names:
        return None
    found = []
    for texts, scores in zip(_negatives(rows, negatives), rows["scores"].to_pylist(), strict=True):
        own = scores or [math.nan] * (1 + len(texts))
        found.append([None if math.isnan(each) else float(str(np.float32(each))) for each in own[: 1 + len(texts)]])
    return found


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
