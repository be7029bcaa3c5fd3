"""Vectors provided by the user."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from batchwright.core.errors import InputError
from batchwright.core.files import read_json
from batchwright.formats.vectors import VectorStore
from pipelines.embed import rows
from pipelines.embed.file import embed
from pipelines.embed.params import FileParams
from tests.helpers import tree, write_rows

PAIRS = Path("data/pairs")
OUTPUT = Path("data/vectors/mine")
TEXTS = ["red fish", "blue fish", "old bird", "new bird", "blue whale"]
VECTORS = np.random.default_rng(0).normal(size=(5, 3))
UNIT = VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)


@pytest.fixture
def corpus(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two domains that share a text, read two rows at a time."""
    monkeypatch.setattr(rows, "_ROWS", 2)
    write_rows("fish", [("red fish", "blue fish", "train"), ("blue fish", "blue whale", "test")])
    write_rows("birds", [("old bird", "new bird", "train"), ("new bird", "blue fish", "train")])
    return workspace


def bring(file: str, texts: list[Any], vectors: Any, kind: pa.DataType | None = None) -> None:
    column = pa.array(vectors, type=kind or pa.list_(pa.float64()))
    pq.write_table(pa.table({"text": pa.array(texts, pa.string()), "vector": column}), file, row_group_size=3)


def take(path: str = "mine*.parquet") -> VectorStore:
    embed(PAIRS, FileParams(kind="file", path=path), OUTPUT)
    return VectorStore.open(OUTPUT)


def refusal(path: str = "mine*.parquet") -> str:
    with pytest.raises(InputError) as raised:
        take(path)
    return str(raised.value)


@pytest.mark.parametrize("values", [pa.float16(), pa.float32(), pa.float64()])
@pytest.mark.parametrize("lists", [pa.list_, pa.large_list, lambda value: pa.list_(value, 3)])
def test_each_text_gets_its_vector_at_unit_length(corpus: Path, values: pa.DataType, lists: Any) -> None:
    numbers = [list(row.astype(np.float16) if pa.types.is_float16(values) else row) for row in VECTORS]
    bring("mine1.parquet", [*TEXTS[3:], "not asked for"], [*numbers[3:], [9.0, 9.0, 9.0]], lists(values))
    bring("mine2.parquet", TEXTS[:3], numbers[:3], lists(values))
    store = take()
    np.testing.assert_allclose(store.of("fish").of("query", TEXTS[:2]), UNIT[:2], atol=2e-3)
    np.testing.assert_allclose(store.of("fish").of("document", TEXTS[4:]), UNIT[4:], atol=2e-3)
    np.testing.assert_allclose(store.of("birds").of("document", TEXTS[1:4]), UNIT[1:4], atol=2e-3)
    assert len(store.of("birds").vectors) == 3


def test_a_zero_vector_stays_zero(corpus: Path) -> None:
    bring("mine.parquet", TEXTS, [*VECTORS[:4], [0.0, 0.0, 0.0]])
    assert not take().of("fish").of("document", ["blue whale"]).any()


def test_the_hash_depends_on_content_and_not_on_file_names(corpus: Path) -> None:
    bring("mine.parquet", TEXTS, list(VECTORS))
    first = take().weights
    Path("mine.parquet").rename("mine-moved.parquet")
    assert take().weights == first
    bring("mine-moved.parquet", TEXTS, list(VECTORS + 1))
    assert take().weights != first
    assert read_json(OUTPUT / "encoder.json", made_by="embed")["path"] == "mine*.parquet"


def test_rows_may_come_in_any_order_and_more_than_once(corpus: Path) -> None:
    bring("mine.parquet", TEXTS, list(VECTORS))
    take()
    first = tree(OUTPUT / "fish") | tree(OUTPUT / "birds")
    order = [4, 2, 0, 0, 1, 2, 3]
    bring("mine.parquet", [TEXTS[row] for row in order], [VECTORS[row] * 2 + 1e-6 for row in order])
    take()
    assert (tree(OUTPUT / "fish") | tree(OUTPUT / "birds")).keys() == first.keys()
    np.testing.assert_allclose(VectorStore.open(OUTPUT).of("fish").of("query", TEXTS[:2]), UNIT[:2], atol=2e-3)


def test_a_text_without_a_vector_is_reported(corpus: Path) -> None:
    bring("mine.parquet", TEXTS[:4], list(VECTORS[:4]))
    assert refusal() == (
        "mine*.parquet: no vector for 1 of 3 texts of domain 'fish', such as 'blue whale'; "
        "provide one for every query and document, exactly as written in data/pairs"
    )


@pytest.mark.parametrize(
    ("text", "vector", "message"),
    [
        ("blue whale", [1.0, 2.0], "row 5: the vector must have 3 numbers, as in the first row"),
        ("blue whale", [], "row 5: no vector"),
        ("blue whale", None, "row 5: no vector"),
        ("blue whale", [1.0, float("nan"), 2.0], "row 5: a number is NaN, infinite, missing or too large"),
        ("blue whale", [1.0, float("-inf"), 2.0], "row 5: a number is NaN"),
        ("blue whale", [1.0, None, 2.0], "row 5: a number is NaN"),
        ("blue whale", [1e300, 0.0, 0.0], "row 5: a number is NaN"),
        (None, [1.0, 2.0, 3.0], "row 5: no text"),
        ("red fish", [1.0, 2.0, 3.0], "row 5: differs from an earlier row's vector for the text 'red fish'"),
    ],
)
def test_a_bad_row_is_reported(corpus: Path, text: str | None, vector: list[float] | None, message: str) -> None:
    bring("mine.parquet", [*TEXTS[:4], text], [*[list(row) for row in VECTORS[:4]], vector])
    assert refusal().startswith(f"mine.parquet: {message}")


def test_a_file_with_vectors_of_another_width_is_reported(corpus: Path) -> None:
    bring("mine1.parquet", TEXTS[:4], list(VECTORS[:4]))
    bring("mine2.parquet", TEXTS[4:], [[1.0, 2.0]])
    assert refusal().startswith("mine2.parquet: row 1: the vector must have 3 numbers")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"texts": ["a"], "vector": [[1.0]]}, "must have one column 'text'; columns found: texts, vector"),
        ({"text": [1], "vector": [[1.0]]}, "column 'text' must hold strings, found int64"),
        ({"text": ["a"], "vector": [1.0]}, "column 'vector' must hold lists of floats, found double"),
        ({"text": ["a"], "vector": [["1"]]}, "column 'vector' must hold lists of floats, found list<"),
    ],
)
def test_a_table_with_wrong_columns_is_reported(corpus: Path, columns: dict[str, Any], message: str) -> None:
    pq.write_table(pa.table(columns), "mine.parquet")
    assert refusal().startswith(f"mine.parquet: {message}")


def test_a_missing_and_a_damaged_file_are_reported(corpus: Path) -> None:
    assert refusal("none*.parquet").startswith("none*.parquet: no file matches this pattern")
    Path("mine.parquet").write_bytes(b"PAR1 no more PAR1")
    assert refusal().startswith("mine.parquet: cannot be read")
