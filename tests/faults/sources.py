"""Small valid sources of pairs, of every kind, as ``ingest`` reads them and as ``batchwright add`` looks at them."""

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import TypeAdapter

from pipelines.ingest.params import AnySource
from pipelines.ingest.read import sift
from pipelines.ingest.sources import huggingface
from project.add.columns import guess_columns
from project.add.kinds import guess_kind
from project.add.peek import peek
from tests.faults.tables import PAIRS, tables

Reader = Callable[[Path], object]
Seed = tuple[str, Path, Reader]
"""What an input is called, the file to spoil, and its reader."""
LINES = "\n".join(map(json.dumps, PAIRS)) + "\n"
CSV = "query,document,topic\n" + "".join(f'"q {n}","d, {n}",t\n' for n in range(20))
FUNCTIONS = "".join(
    f'def function_{n}(a):\n    """Return number {n} of all."""\n    b = a + {n}\n    return b\n\n\n' for n in range(5)
)
datasets.disable_progress_bars()
_SOURCES: TypeAdapter[Any] = TypeAdapter(AnySource)


def rows(entry: dict[str, Any]) -> object:
    """Read all rows of an entry of ``ingest.sources``."""
    source = _SOURCES.validate_python(entry)
    return [sift(source.rows(part)) for part in source.parts()]


def source(kind: str, **settings: Any) -> Reader:
    """Read a file as ``ingest`` does, all its columns and rows."""
    entry = {
        "kind": kind,
        "columns": {"negatives": ["negatives"], "metadata": ["topic"], "group": "topic"},
        "domain_column": "topic",
        **settings,
    }
    return lambda file: rows({**entry, "path": str(file)})


def look(path: Path) -> object:
    """Look at a file or folder as ``batchwright add`` does."""
    return guess_columns(peek(guess_kind(path)), {"query": "query", "document": "document"}, str(path))


def saved(read: Reader) -> Reader:
    """Read the folder of ``save_to_disk`` that a file is in; what was read last is not remembered."""

    def anew(file: Path) -> object:
        huggingface._load.cache_clear()
        return read(file.parents[1] if file.parent.name == "train" else file.parent)

    return anew


def package(file: Path) -> object:
    """Read the package that a file is the only one of."""
    sys.path.insert(0, str(file.parents[1]))
    importlib.invalidate_caches()
    try:
        return rows({"kind": "docstrings", "packages": [file.parent.name]})
    finally:
        sys.path.remove(str(file.parents[1]))


def source_seeds(folder: Path) -> Iterator[Seed]:
    """Write sources below ``folder``."""
    for name, file, read in (*_texts(folder), *_tables(folder)):
        yield name, file, read
        yield f"add {name}", file, look
    split = datasets.Dataset(pa.Table.from_pylist(PAIRS))
    datasets.DatasetDict({"train": split}).save_to_disk(folder / "saved")
    for file in sorted((folder / "saved").rglob("*.*")):
        read = saved(lambda path: rows({"kind": "huggingface", "name": str(path), "domain_column": "topic"}))
        yield f"saved {file.name}", file, read
        yield f"add saved {file.name}", file, saved(look)
    (folder / "spoiled_package").mkdir(exist_ok=True)
    (folder / "spoiled_package/__init__.py").write_text(FUNCTIONS)
    yield "docstrings", folder / "spoiled_package/__init__.py", package


def _texts(folder: Path) -> Iterator[Seed]:
    for name in ("jsonl", "jsonl.gz", "jsonl.zst", "jsonl.lz4", "csv", "csv.bz2", "tsv"):
        kind = "jsonl" if name.startswith("jsonl") else "csv"
        content = {"jsonl": LINES, "csv": CSV, "tsv": CSV.replace(",", "\t")}[name.partition(".")[0]]
        with pa.output_stream(folder / f"a.{name}", compression="detect") as stream:
            stream.write(content.encode())
        yield (
            name,
            folder / f"a.{name}",
            source(kind, **({"columns": {"metadata": ["topic"]}} if kind == "csv" else {})),
        )


def _tables(folder: Path) -> Iterator[Seed]:
    for number, table in enumerate(tables()):
        pq.write_table(table, folder / f"{number}.parquet")
        yield f"parquet {number}", folder / f"{number}.parquet", source("parquet")
        for how, new in (("file", pa.ipc.new_file), ("stream", pa.ipc.new_stream)):
            with new(folder / f"{number}-{how}.arrow", table.schema) as writer:
                writer.write_table(table)
            yield f"arrow {how} {number}", folder / f"{number}-{how}.arrow", source("arrow")
