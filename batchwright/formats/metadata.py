"""What sources say about their pairs beside the texts: columns by name, as JSON in pairs and shards.

One text holds all of them, so that files of pairs and shards have the same columns whatever the sources name.
"""

import json
from collections.abc import Mapping, Sequence

import pyarrow as pa

NOTHING = "{}"
"""The metadata of a pair whose source names none."""


def write_metadata(values: Mapping[str, object]) -> str:
    """Return values by name as a JSON object of texts; what is missing is left out.

    Texts stay as they are; numbers, lists and objects become JSON.

    Raises:
        ValueError: a value is no text and has none; the message names the column.
    """
    texts = {name: text_of(f"'{name}'", value) for name, value in values.items() if value is not None}
    return json.dumps(texts, ensure_ascii=False) if texts else NOTHING


def text_of(what: str, value: object) -> str:
    """Return a value as text: numbers, lists and objects as JSON.

    Raises:
        ValueError: it is no text and has none; the message begins with ``what`` it is.
    """
    try:
        if isinstance(value, tuple):  # what Arrow has no text for
            raise TypeError
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{what} is not UTF-8") from None
    except (TypeError, ValueError, RecursionError):
        raise ValueError(f"{what} is not text") from None
    return text


def read_metadata(column: pa.Array | pa.ChunkedArray) -> list[dict[str, str]]:
    """Read the texts by name of each pair of a column ``metadata``."""
    return [json.loads(text) for text in column.to_pylist()]


def metadata_of(batch: pa.RecordBatch) -> list[dict[str, str]]:
    """Read the metadata of each pair of a training batch, which may lack the column."""
    return read_metadata(batch["metadata"]) if "metadata" in batch.schema.names else [{}] * batch.num_rows


def metadata_columns(column: pa.Array | pa.ChunkedArray, names: Sequence[str]) -> dict[str, list[str | None]]:
    """Turn a column ``metadata`` into one for each of ``names``, with None where a pair has no such text."""
    rows = read_metadata(column) if names else []
    return {name: [row.get(name) for row in rows] for name in names}
