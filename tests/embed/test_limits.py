"""What a file of given vectors may take of the memory."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from batchwright.core import untrusted_text
from batchwright.core.errors import InputError
from pipelines import files
from pipelines.embed import rows
from pipelines.embed.rows import read_rows

ROWS, LONG = 1000, 100_000


def write(file: Path, texts: list[str], **settings: object) -> str:
    vectors = pa.array(np.ones((len(texts), 2)).tolist(), pa.list_(pa.float32()))
    pq.write_table(pa.table({"text": texts, "vector": vectors}), file, compression="zstd", **settings)
    return str(file)


def batches(file: str) -> list[int]:
    return [len(rows.texts) for rows in read_rows([file])]


@pytest.mark.parametrize(
    "settings",
    [
        {"data_page_version": "1.0"},
        {"data_page_version": "2.0"},
        {"row_group_size": 300},
        {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}},
    ],
)
def test_a_text_that_is_there_once_is_repeated_for_few_rows_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, object]
) -> None:
    monkeypatch.setattr(rows, "_BYTES", 20 * LONG)
    file = write(tmp_path / "a.parquet", ["x" * LONG] * ROWS, **settings)
    read = batches(file)
    assert sum(read) == ROWS
    assert 5 <= max(read) <= 20


def test_rows_with_texts_of_their_own_are_read_as_many_as_ever(tmp_path: Path) -> None:
    texts = [f"{number}" + "x" * 1000 for number in range(3 * ROWS)]
    for use_dictionary in (True, False):
        read = batches(write(tmp_path / "a.parquet", texts, use_dictionary=use_dictionary))
        assert max(read) >= 100


def test_a_dictionary_that_the_footer_does_not_tell_of_is_found(tmp_path: Path) -> None:
    file = write(tmp_path / "a.parquet", ["x" * LONG] * ROWS)
    told = pq.read_metadata(file).row_group(0).column(0)
    older = SimpleNamespace(
        encodings=told.encodings, has_dictionary_page=False, data_page_offset=told.dictionary_page_offset
    )
    assert LONG <= rows._longest(file, older) < LONG + 10


def test_a_header_of_another_kind_counts_as_the_whole_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_DICTIONARY", b"another")
    monkeypatch.setattr(rows, "_BYTES", 20 * LONG)
    assert max(batches(write(tmp_path / "a.parquet", ["x" * LONG] * ROWS))) <= 20


def test_a_file_may_not_become_endless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a dictionary, or by pages that are compressed well, which are not even read."""
    message = r"a.parquet: texts take more than [\d,]+ bytes, 250 times its size; remove rows that repeat"
    monkeypatch.setattr(files, "MOST_BYTES", 10_000_000)
    for use_dictionary in (True, False):
        file = write(tmp_path / "a.parquet", ["x" * LONG] * ROWS, use_dictionary=use_dictionary)
        with pytest.raises(InputError, match=message):
            list(read_rows([file]))
    with pytest.raises(InputError, match=message):
        rows.rows_at_once(file, pq.ParquetFile(file))


def test_a_text_has_the_limit_of_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(untrusted_text, "MOST_CHARACTERS", 100)
    texts = ["x" * 100] * 600
    assert sum(batches(write(tmp_path / "a.parquet", texts))) == 600
    file = write(tmp_path / "a.parquet", [*texts, "x" * 101])
    with pytest.raises(InputError, match=r"a.parquet: row 601: the row is longer than 100 characters; cut its texts"):
        list(read_rows([file]))
