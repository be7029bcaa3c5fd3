"""Writes the same small table in every file format."""

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

ROWS = [
    {"ask": f"question {number}", "answer": f"answer\n    number {number}", "wrong": f"wrong {number}", "area": area}
    for number in range(12)
    for area in ("north", "south")
]
COLUMNS = {"query": "ask", "document": "answer", "negatives": ["wrong"]}


def write(file: str, rows: list[dict[str, Any]] = ROWS) -> dict[str, Any]:
    """Write ``rows`` in the format of the file's suffix and return its entry for ``ingest.sources``."""
    path = Path(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    kind = path.name.split(".")[1]
    if kind in ("parquet", "arrow", "arrows"):
        _write_arrow(path, kind, pa.Table.from_pylist(rows))
    else:
        write_bytes(file, (_jsonl(rows) if kind == "jsonl" else _csv(rows, kind)).encode())
    return {"kind": {"tsv": "csv", "arrows": "arrow"}.get(kind, kind), "path": file}


def write_bytes(file: str, content: bytes) -> None:
    """Write a file, compressed if its name says so."""
    compress = {".gz": gzip.compress, ".zst": zstandard.compress}.get(Path(file).suffix, bytes)
    Path(file).write_bytes(compress(content))


def _jsonl(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def _csv(rows: list[dict[str, Any]], kind: str) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]), delimiter="\t" if kind == "tsv" else ",")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _write_arrow(path: Path, kind: str, table: pa.Table) -> None:
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=5)
        return
    opened = pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream
    with opened(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=5)
