"""Mapped pairs are the pairs, however many bytes of text they have."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from batchwright.formats.pairs import PAIRS_SCHEMA, pair_parts, pairs_file, read_pairs
from batchwright.formats.shards import SHARD_SCHEMA
from stages.pack.inputs import map_pairs
from tests.helpers import topic_pairs, write_pairs

GIVEN = pa.schema(list(SHARD_SCHEMA)[:5])


def test_mapped_pairs_are_those_of_the_split_in_any_order(workspace: Path) -> None:
    write_pairs("birds", topic_pairs(40))
    pairs = read_pairs(Path("data/pairs"), "birds", "train")
    rows = np.random.default_rng(0).integers(len(pairs), size=50)
    found = map_pairs(pair_parts(Path("data/pairs"), "birds", "train"))
    assert len(found) == len(pairs) > 0
    assert found.take(rows).cast(GIVEN).equals(pairs.select(GIVEN.names).take(rows))


@pytest.mark.slow
def test_texts_of_more_than_two_gib_are_packed(workspace: Path) -> None:
    """The offsets of Arrow's ``string`` end at 2 GiB."""
    file, count = pairs_file(Path("data/pairs"), "birds"), 34
    file.parent.mkdir(parents=True)
    long = "x" * (64 << 20)
    with pq.ParquetWriter(file, PAIRS_SCHEMA, compression="zstd") as writer:
        for row in range(count):
            given = [[f"{row:02d}"], [f"q{row}"], [f"{row} {long}"], ["birds"], ["train"], [["n", f"{row}"]]]
            writer.write_table(pa.table(given, schema=PAIRS_SCHEMA))
    found = map_pairs(pair_parts(Path("data/pairs"), "birds", "train"))
    assert found["document"].nbytes > 1 << 31
    last = found.take(np.array([count - 1, 0])).cast(GIVEN).to_pylist()
    assert [pair["document"][:4] for pair in last] == [f"{count - 1} x", "0 xx"]
    assert [pair["negatives"] for pair in last] == [["n", f"{count - 1}"], ["n", "0"]]
