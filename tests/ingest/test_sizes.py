"""What compressed files become is estimated before they are read."""

import bz2
import gzip
import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from pipelines.ingest import pipeline
from pipelines.ingest.sources.arrow import ArrowSource
from pipelines.ingest.sources.base import Source
from pipelines.ingest.sources.jsonl import JsonlSource
from pipelines.ingest.sources.parquet import ParquetSource
from tests.ingest.running import ingest

NUMBERS = random.Random(0)
ROWS = [
    {"query": f"question {n}", "document": " ".join(f"word{NUMBERS.randrange(3000)}" for _ in range(60))}
    for n in range(20_000)
]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
COMPRESS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "zst": zstandard.compress,
    "lz4": lambda content: pa.Codec("lz4").compress(content, asbytes=True),
}


@pytest.fixture(params=[*COMPRESS, "parquet", "arrow", "arrows"])
def source(request: pytest.FixtureRequest, workspace: Path) -> Source:
    """The rows in a compressed file."""
    file, kind = f"a.{request.param}", request.param
    if kind in COMPRESS:
        Path(file).write_bytes(COMPRESS[kind](LINES))
        return JsonlSource(kind="jsonl", path=file, domain="a")
    table = pa.Table.from_pylist(ROWS)
    if kind == "parquet":
        pq.write_table(table, file, compression="zstd")
        return ParquetSource(kind="parquet", path=file, domain="a")
    new = pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream
    with new(file, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return ArrowSource(kind="arrow", path=file, domain="a")


def test_what_a_compressed_file_becomes_is_told_by_its_beginning_or_footer(source: Source) -> None:
    [file] = source.files()
    texts = sum(len(text) for row in ROWS for text in row.values())
    assert Path(file).stat().st_size < 0.5 * texts
    assert 0.9 * texts < source.size_of(file) < 1.3 * texts


def test_columns_that_are_not_read_do_not_count(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    pictures = [random.Random(number).randbytes(2000) for number in range(1000)]
    pq.write_table(pa.Table.from_pylist(ROWS[:1000]).append_column("picture", pa.array(pictures)), file)
    source = ParquetSource(kind="parquet", path=str(file), domain="a")
    texts = sum(len(text) for row in ROWS[:1000] for text in row.values())
    assert 0.9 * texts < source.size_of(str(file)) < 1.3 * texts


def test_the_stage_asks_for_what_compressed_files_become(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.gz").write_bytes(gzip.compress(LINES[: len(LINES) // 20]))
    asked: dict[Path, float] = {}
    monkeypatch.setattr(pipeline, "check_disk", lambda needed, what: asked.update(needed))
    monkeypatch.setattr("stages.ingest.stage.RAW_PAIRS", Path())
    ingest({"kind": "jsonl", "path": "a.gz", "domain": "a"})
    made = sum(file.stat().st_size for folder in (".scratch", "data") for file in Path(folder).rglob("*.*"))
    assert made < sum(asked.values()) < 2 * made


def test_a_bomb_is_bounded_and_a_damaged_file_counts_as_plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, file = JsonlSource(kind="jsonl", path="a", domain="a"), tmp_path / "a.gz"
    file.write_bytes(gzip.compress(b"0" * (32 << 20)))
    monkeypatch.setattr("pipelines.files.MOST_BYTES", 1 << 20)
    assert source.size_of(str(file)) <= 250 * file.stat().st_size
    file.write_bytes(b"no gzip")
    assert source.size_of(str(file)) == 7
    arrow = ArrowSource(kind="arrow", path="a", domain="a")
    file.write_bytes(b"ARROW1 and no more")
    assert arrow.size_of(str(file)) == 18
