"""What a file from a stranger may take of memory and disk."""

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from batchwright.core.errors import InputError
from pipelines.ingest.sources import arrays, files
from tests.faults.seeds import source


def test_a_line_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_CHARACTERS", 100)
    file = tmp_path / "a.jsonl"
    file.write_text('{"query": "q", "document": "d", "negatives": [], "topic": "t"}\n' + "x" * 101 + "\n")
    with pytest.raises(InputError, match=r"a.jsonl: line 2: the row is longer than 100 characters"):
        source("jsonl")(file)


def test_a_row_of_several_lines_has_the_same_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_CHARACTERS", 100)
    file = tmp_path / "a.csv"
    file.write_text("query,document,topic\nq,d,t\n" + '"' + "line\n" * 30 + '",d,t\n')
    with pytest.raises(InputError, match=r"a.csv: line 3: the row is longer than 100 characters"):
        source("csv", columns={})(file)
    file.write_text("query,document,topic\n" + '"one\ntwo",d,t\n' * 50)
    source("csv", columns={})(file)


def test_a_compressed_file_may_not_become_endless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.jsonl.gz"
    file.write_bytes(gzip.compress(b'{"query": "q", "document": "d", "negatives": [], "topic": "t"}\n' * 40_000))
    source("jsonl")(file)
    monkeypatch.setattr(files, "MOST_BYTES", 1 << 20)
    monkeypatch.setattr(files, "MOST_TIMES", 50)
    with pytest.raises(InputError, match=r"a.jsonl.gz: is more than 1,048,576 bytes when decompressed"):
        source("jsonl")(file)


def test_a_repeated_text_is_not_spread_out_without_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"query": ["x" * 1000] * 3000, "document": ["d"] * 3000, "topic": ["t"] * 3000})
    file = tmp_path / "a.parquet"
    pq.write_table(table, file)
    source("parquet", columns={})(file)
    monkeypatch.setattr(arrays, "_MOST_BYTES", 1_000_000)
    with pytest.raises(InputError, match=r"a.parquet: cannot be read \(3000 rows hold 3,000,000 bytes of text"):
        source("parquet", columns={})(file)
