"""A row has the same limit in every kind of file, and the error names file and row."""

from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from batchwright.core import untrusted_arrow, untrusted_text
from batchwright.core.errors import InputError
from project.add.peek import peek
from stages.filter.judgements import read_judgements
from tests.faults.seeds import beir_folder, beir_pairs, seeds
from tests.faults.sources import rows, source

LONG = r"row 3: the row is longer than 100 characters; cut its texts"
PLAIN = {"columns": {}}


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of 101 characters are too long."""
    monkeypatch.setattr(untrusted_text, "MOST_CHARACTERS", 100)


def table(long: int, kind: pa.DataType | None = None) -> pa.Table:
    """Five rows; the third has ``long`` bytes, no text of which is longer than 60."""
    texts = pa.array(["q", "é", "q" * 60, "q", None], kind)
    documents = ["d", "d", "d" * (long - 61), "d", "d"]
    return pa.table({"query": texts, "document": documents, "topic": ["t"] * 5, "label": [1] * 5})


KINDS = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_of_parquet_and_arrow(tmp_path: Path, kind: pa.DataType) -> None:
    for long in (100, 101):
        pq.write_table(table(long, kind), tmp_path / f"{long}.parquet", row_group_size=2)
        with pa.ipc.new_file(tmp_path / f"{long}.arrow", table(long, kind).schema) as writer:
            writer.write_table(table(long, kind), max_chunksize=2)
    for name in ("parquet", "arrow"):
        source(name, **PLAIN)(tmp_path / f"100.{name}")
        with pytest.raises(InputError, match=rf"101.{name}: {LONG}"):
            source(name, **PLAIN)(tmp_path / f"101.{name}")


def test_negatives_count(tmp_path: Path) -> None:
    many = table(90).append_column("negatives", pa.array([["n"], [], ["n"] * 3, None, None]))
    pq.write_table(many, tmp_path / "a.parquet")
    with pytest.raises(InputError, match=rf"a.parquet: {LONG}"):
        source("parquet")(tmp_path / "a.parquet")


def test_a_row_of_a_folder_of_save_to_disk(tmp_path: Path) -> None:
    for long in (100, 101):
        datasets.Dataset(table(long)).save_to_disk(tmp_path / f"{long}")
        entry = {"kind": "huggingface", "name": str(tmp_path / f"{long}"), "domain_column": "topic"}
        if long == 100:
            rows(entry)
            continue
        with pytest.raises(InputError, match=rf"101/train: {LONG}"):
            rows(entry)
        with pytest.raises(InputError, match=rf"101/train: {LONG}"):
            peek({"kind": "huggingface", "name": entry["name"]})


def test_a_row_of_judgements(tmp_path: Path) -> None:
    pq.write_table(table(102).drop_columns("topic").slice(0, 4), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=rf"a.parquet: {LONG}"):
        read_judgements([tmp_path / "a.parquet"], None)
    row = '{"query": "q", "document": "d", "label": 1}\n'
    (tmp_path / "a.jsonl").write_text(row + row.replace("q", "q" * 101))
    (tmp_path / "a.csv").write_text('query,document,label\n"' + "line\n" * 30 + '",d,1\n')
    for name in ("a.jsonl", "a.csv"):
        with pytest.raises(InputError, match=rf"{name}: line 2: the row is longer than 100 characters; cut"):
            read_judgements([tmp_path / name], None)


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_a_line_of_a_beir_folder(tmp_path: Path, name: str) -> None:
    file = {name: file for name, file, _ in seeds(tmp_path)}[f"beir {name}"]
    good = file.read_text().splitlines(keepends=True)
    file.write_text("".join([*good[:2], good[2].replace("\n", " " * 101 + "\n"), *good[3:]]))
    for read in (beir_folder, beir_pairs):
        with pytest.raises(InputError, match=rf"{name}: line 3: the row is longer than 100 characters; cut its texts"):
            read(file)


def test_a_row_of_judgements_of_beir_that_never_ends(tmp_path: Path) -> None:
    file = {name: file for name, file, _ in seeds(tmp_path)}["beir qrels/test.tsv"]
    file.write_text('0\t0\t1\n1\t"1' + "\n" * 200)
    with pytest.raises(InputError, match=r"qrels/test.tsv: line 2: the row is longer than 100 characters"):
        beir_folder(file)


def test_add_reads_no_row_of_csv_without_end(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('query,document\n"' + "line\n" * 30)
    with pytest.raises(InputError, match=r"a.csv: line 2: the row is longer than 100 characters"):
        peek({"kind": "csv", "path": str(tmp_path / "a.csv")})


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_what_rows_hold_together_can_be_written_as_the_error_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Smaller row groups or record batches are read, though their texts are those of the one that is refused."""
    monkeypatch.setattr(untrusted_arrow, "MOST_BYTES", 10_000)
    texts = pa.array(["x" * 50] * 1000).dictionary_encode()
    whole = pa.table({"query": texts, "document": ["d"] * 1000, "topic": ["t"] * 1000, "label": [1] * 1000})

    def write(size: int) -> Path:
        file = tmp_path / f"{size}.{kind}"
        if kind == "parquet":
            pq.write_table(whole, file, row_group_size=size)
        else:
            with pa.ipc.new_file(file, whole.schema) as writer:
                writer.write_table(whole, max_chunksize=size)
        return file

    readers: list[Any] = [source(kind, **PLAIN)]
    if kind == "parquet":
        readers.append(lambda file: read_judgements([file], None))
    for read in readers:
        with pytest.raises(
            InputError, match=r"row 1 and those after it: 1000 .* smaller row groups or record batches$"
        ):
            read(write(1000))
        read(write(100))
