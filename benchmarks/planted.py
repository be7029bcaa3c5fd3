"""Generated data for benchmarks and tests: pairs with vectors, as the sources of a project; and shards of batches."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from batchwright.formats.shards import (
    REASONS,
    SHARD_SCHEMA,
    EpochSummary,
    Manifest,
    pack_mask,
    pack_reasons,
    shard_name,
    write_shard,
)
from batchwright.formats.shards.shard_set import SCHEMAS

WIDTH = 384
PAIRS_A_TOPIC, TOPICS_A_FIELD = 100, 50
WORDS, LETTERS = 50_000, 6
QUERY_SHARE = 0.15
BLOCK = 20_000
SEED = 17
_NO_MEASURES: dict[str, Any] = {"hardness": 0.0, "unmasked_hardness": 0.0, "masked_share": 0.0, "masked_by": {}}


def plant_pairs(folder: Path, pairs: int, characters: int, seed: int = SEED) -> None:
    """Write ``pairs.parquet`` and ``vectors.parquet`` into ``folder``: pairs in topics, topics in fields, and noise.

    A pair has about ``characters`` characters. No two texts are the same, nor nearly.
    """
    rng = np.random.default_rng(seed)
    words = pa.array(["".join(letters) for letters in rng.choice(list("abcdefghij"), size=(WORDS, LETTERS)).tolist()])
    topics = max(1, pairs // PAIRS_A_TOPIC)
    fields = _units(rng, max(1, topics // TOPICS_A_FIELD))
    centres = fields[rng.integers(len(fields), size=topics)] + 0.8 * _units(rng, topics)
    words_a_pair = characters / (LETTERS + 1)
    lengths = {"query": round(QUERY_SHARE * words_a_pair), "document": round((1 - QUERY_SHARE) * words_a_pair)}
    vector = pa.list_(pa.float16(), WIDTH)
    schemas = pa.schema(dict.fromkeys(lengths, pa.string())), pa.schema({"text": pa.string(), "vector": vector})
    with (
        pq.ParquetWriter(folder / "pairs.parquet", schemas[0]) as texts,
        pq.ParquetWriter(folder / "vectors.parquet", schemas[1]) as vectors,
    ):
        for start in range(0, pairs, BLOCK):
            count = min(BLOCK, pairs - start)
            common = centres[rng.integers(topics, size=count)] + 0.8 * _units(rng, count)
            sides = [_texts(rng, words, count, length) for length in lengths.values()]
            texts.write_table(pa.table(sides, schema=schemas[0]))
            for side in sides:
                points = common + 0.9 * _units(rng, count)
                points /= np.linalg.norm(points, axis=1, keepdims=True)
                flat = pa.array(points.astype(np.float16).ravel())
                vectors.write_table(pa.table([side, pa.FixedSizeListArray.from_arrays(flat, WIDTH)], schema=schemas[1]))


def _texts(rng: np.random.Generator, words: pa.Array, count: int, length: int) -> pa.Array:
    """Texts of ``length`` words, of which a few are frequent."""
    drawn = (WORDS * rng.random(count * length) ** 3).astype(np.int32)
    lists = pa.ListArray.from_arrays(np.arange(count + 1, dtype=np.int32) * length, words.take(pa.array(drawn)))
    return pc.binary_join(lists, " ")


def _units(rng: np.random.Generator, count: int) -> NDArray[np.float32]:
    points: NDArray[np.float32] = rng.standard_normal((count, WIDTH), dtype=np.float32)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return points


def make_batch(rows: Sequence[dict[str, Any]]) -> pa.RecordBatch:
    """Return a batch of some pairs, in which the first rows mask their neighbour, for each reason in turn."""
    size = len(rows)
    mask = np.zeros((size, size), bool)
    first = np.arange(min(len(REASONS), size - 1))
    mask[first, first + 1] = True
    reasons = pack_reasons(first.astype(np.uint8), mask)
    shares = (mask.sum(axis=1) / (size - 1)).tolist()
    masked_rows = [
        row | {"mask": bits, "reasons": why, "hardness": number / size, "masked_share": share}
        for number, (row, bits, why, share) in enumerate(zip(rows, pack_mask(mask), reasons, shares, strict=True))
    ]
    return pa.RecordBatch.from_pylist(masked_rows, schema=SHARD_SCHEMA)


def write_batches(folder: Path, batches: Sequence[pa.RecordBatch], epochs: int, shards: int = 1) -> None:
    """Write batches of one size, evenly to ``epochs`` and ``shards``, and a manifest without measures."""
    folder.mkdir(parents=True, exist_ok=True)
    each, size, most = len(batches) // epochs, len(batches[0]), -(-len(batches) // shards)
    parts = [batches[start : start + most] for start in range(0, len(batches), most)]
    summaries = [
        EpochSummary(first_batch=epoch * each, batches=each, left_over={}, repeated=0, met_before=0.0, **_NO_MEASURES)
        for epoch in range(epochs)
    ]
    Manifest(
        format=next(number for number, schema in SCHEMAS.items() if batches[0].schema == schema),
        policy="contextual",
        batch_size=size,
        rows=len(batches) * size,
        batches=len(batches),
        seed=SEED,
        documents={name: len(texts) for name, texts in _documents(batches).items()},
        cluster_shares={name: [0.5 * (epoch % 2) for epoch in range(epochs)] for name in _documents(batches)},
        parameters={},
        models={},
        epochs=summaries,
        shards=[write_shard(folder / shard_name(number, len(parts)), part) for number, part in enumerate(parts)],
    ).write(folder)


def _documents(batches: Sequence[pa.RecordBatch]) -> dict[str, set[str]]:
    """The different documents of each domain."""
    documents: dict[str, set[str]] = {}
    for batch in batches:
        for domain, document in zip(batch["domain"].to_pylist(), batch["document"].to_pylist(), strict=True):
            documents.setdefault(domain, set()).add(document)
    return documents
