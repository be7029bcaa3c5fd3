"""Generated pairs of one domain with vectors, written as the sources and vectors of a project."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

WIDTH = 384
PAIRS_A_TOPIC, TOPICS_A_FIELD = 100, 50
WORDS, LETTERS = 50_000, 6
QUERY_SHARE = 0.15
BLOCK = 20_000
SEED = 17


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
                found = common + 0.9 * _units(rng, count)
                found /= np.linalg.norm(found, axis=1, keepdims=True)
                flat = pa.array(found.astype(np.float16).ravel())
                vectors.write_table(pa.table([side, pa.FixedSizeListArray.from_arrays(flat, WIDTH)], schema=schemas[1]))


def _texts(rng: np.random.Generator, words: pa.Array, count: int, length: int) -> pa.Array:
    """Texts of ``length`` words, of which a few are frequent."""
    drawn = (WORDS * rng.random(count * length) ** 3).astype(np.int32)
    lists = pa.ListArray.from_arrays(np.arange(count + 1, dtype=np.int32) * length, words.take(pa.array(drawn)))
    return pc.binary_join(lists, " ")


def _units(rng: np.random.Generator, count: int) -> NDArray[np.float32]:
    found: NDArray[np.float32] = rng.standard_normal((count, WIDTH), dtype=np.float32)
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    return found
