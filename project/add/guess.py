"""Guess what a file or a folder of pairs is: its kind, and which columns hold query, document and hard negatives."""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from batchwright.core.errors import InputError
from batchwright.core.untrusted_arrow import open_parquet, values_of
from pipelines.files import find_files, open_text, readable
from pipelines.ingest.sources import KINDS, PACKED, kind_of
from pipelines.ingest.sources.columnar import open_ipc
from pipelines.ingest.sources.csv import delimiter_of, first_records
from pipelines.ingest.sources.huggingface import SAVED, HuggingFaceSource
from pipelines.ingest.sources.jsonl import read_objects

Entry = dict[str, Any]
"""An entry of ``ingest.sources``."""

Table = dict[str, list[object]]
"""The first values of each column."""

PEEKED = 200
"""Rows that are looked at."""


QUERIES = ("query", "question", "anchor", "title", "claim", "prompt", "instruction", "utterance", "sentence1", "q")
DOCUMENTS = (
    "document",
    "answer",
    "positive",
    "passage",
    "text",
    "body",
    "content",
    "response",
    "code",
    "sentence2",
    "d",
)
OTHERS = ("id", "domain", "group", "split", "source", "url", "date")
"""What the names of other columns end with."""
_LONGER = 1.5
"""If the first of two columns has texts this many times as long as the second, it holds the documents."""


def guess_kind(path: Path) -> Entry:
    """Return ``kind`` and ``path`` of a source, as ``params.yaml`` has them.

    Raises:
        InputError: there is nothing of a known kind.
    """
    if path.is_file():
        return {"kind": _kind(path), "path": str(path)}
    if not path.is_dir():
        raise InputError(f"{path}: no such file or folder")
    if (path / "corpus.jsonl").is_file() and (path / "queries.jsonl").is_file():
        splits = sorted(file.stem for file in (path / "qrels").glob("*.tsv"))
        if not splits:
            raise InputError(f"{path}/qrels: no judgements (*.tsv) in this BEIR folder")
        return {"kind": "beir", "path": str(path), "split": "train" if "train" in splits else splits[0]}
    if any((path / name).is_file() for name in SAVED):
        return {"kind": "huggingface", "name": str(path)}
    endings = Counter(_ending(file) for file in path.iterdir() if _known(file))
    if not endings:
        raise InputError(f"{path}: holds no file of a known kind ({', '.join(KINDS)})")
    ending = endings.most_common(1)[0][0]
    first = min(file for file in path.iterdir() if _known(file) and _ending(file) == ending)
    return {"kind": _kind(first), "path": f"{path}/*{ending}"}


def not_read(path: Path, entry: Entry) -> list[str]:
    """The names of files of other kinds in a folder, which its entry leaves out."""
    if not path.is_dir() or "*" not in entry.get("path", ""):
        return []
    read = {file.name for file in path.glob(Path(entry["path"]).name)}
    return sorted(file.name for file in path.iterdir() if _known(file) and file.name not in read)


def _known(file: Path) -> bool:
    return file.is_file() and (file.suffix in PACKED or file.suffix.lower() in KINDS)


def _ending(file: Path) -> str:
    return "".join(file.suffixes[-2:]) if file.suffix in PACKED else file.suffix


def _kind(file: Path) -> str:
    kind = kind_of(str(file))
    if kind is None:
        raise InputError(f"{file}: unknown kind of file; rename it to one of {', '.join(KINDS)}")
    return kind


def guess_columns(table: Mapping[str, Sequence[object]], named: Entry, name: str) -> Entry:
    """Return the columns of query, document and hard negatives, of which some may be ``named``.

    They are recognised by their names; if one is not, it is the only other column of texts, and if neither is, the
    query is the first one, unless its texts are much longer.

    Raises:
        InputError: it is not clear which columns they are.
    """
    texts = {
        column: _mean_length(values)
        for column, values in table.items()
        if _are_texts(values) and not column.lower().endswith(OTHERS)
    }
    columns = {
        side: named.get(side) or next((column for known in names for column in texts if column.lower() == known), None)
        for side, names in (("query", QUERIES), ("document", DOCUMENTS))
    }
    missing = [side for side, column in columns.items() if column is None]
    others = [column for column in texts if column not in columns.values()]
    if len(others) == 2 and texts[others[0]] > _LONGER * texts[others[1]]:
        others.reverse()
    if missing and len(others) != len(missing):
        raise InputError(
            f"{name}: it is not clear which columns hold query and document; say --query and --document, out of: "
            f"{', '.join(table) or 'none'}"
        )
    columns |= dict(zip(missing, others, strict=False))
    negatives = named.get("negatives") or [column for column in table if column.lower().startswith("negative")]
    return columns | ({"negatives": negatives} if negatives else {})


def _are_texts(values: Sequence[object]) -> bool:
    filled = [value for value in values if value not in (None, "")]
    return all(isinstance(value, str) for value in filled) and not all(str(value).isdecimal() for value in filled)


def _mean_length(values: Sequence[object]) -> float:
    return sum(len(value) for value in values if isinstance(value, str)) / max(len(values), 1)


def peek(entry: Entry) -> Table:
    """Return the first values of each column of the source's first file.

    Raises:
        InputError: there is no such file, or it cannot be read.
    """
    if entry["kind"] == "huggingface":
        source = HuggingFaceSource(**entry, domain="-")
        return _values(source.label, source.batches(source.load().column_names, 0, PEEKED))
    file = find_files(entry["path"])[0]
    if entry["kind"] == "jsonl":
        return _objects(file)
    if entry["kind"] == "csv":
        header, *records = first_records(file, entry.get("delimiter") or delimiter_of(file), PEEKED) or [[]]
        return {column: list(values) for column, values in zip(header, zip(*records, strict=False), strict=False)}
    return _values(file, _parquet(file) if entry["kind"] == "parquet" else _arrow(file))


def _values(name: str, batches: Iterator[pa.RecordBatch]) -> Table:
    with readable(name):
        batch = next(batches, None)
        return (
            {}
            if batch is None
            else dict(zip(batch.schema.names, values_of(name, batch.slice(0, PEEKED), 1), strict=True))
        )


def _objects(file: str) -> Table:
    table: Table = {}
    with open_text(file) as text:
        for _, values in itertools.islice(read_objects(file, text), PEEKED):
            if isinstance(values, dict):
                for column, value in values.items():
                    table.setdefault(column, []).append(value)
            elif str(values.query).startswith("["):
                raise InputError(f"{file}: is a JSON array; write one object a line: jq -c '.[]' {file} > pairs.jsonl")
    return table


def _arrow(file: str) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(file) as source:
        yield from open_ipc(file, source)[1]


def _parquet(file: str) -> Iterator[pa.RecordBatch]:
    with open_parquet(file) as handle:
        yield from handle.iter_batches(PEEKED)
