"""Tables of pairs with the types of columns that a stranger's may have."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pyarrow as pa

PAIRS = [
    {"query": f"q {n}", "document": f"d {n}", "negatives": [f"n {n}", "é"], "topic": f"t{n % 3}"} for n in range(20)
]


def tables() -> Iterator[pa.Table]:
    """The types of columns that a table may have."""
    plain = pa.Table.from_pylist(PAIRS)
    yield plain
    yield plain.set_column(0, "query", plain["query"].dictionary_encode())
    yield plain.set_column(0, "query", plain["query"].cast(pa.large_string()))
    views = pa.array([f"a long text that is not inlined, {n}" for n in range(20)], pa.string_view())
    yield plain.set_column(0, "query", views)
    yield plain.set_column(2, "negatives", pa.array([["a", "b"]] * 20, pa.list_(pa.string(), 2)))
    dates = pa.array([datetime(2020, 1, 1, tzinfo=UTC)] * 20, pa.timestamp("us", "UTC"))
    yield plain.set_column(0, "query", dates).set_column(1, "document", dates.cast(pa.date64()))
    yield plain.set_column(0, "query", pa.array([{"a": "b"}] * 20)).set_column(1, "document", pa.array([1.5] * 20))
