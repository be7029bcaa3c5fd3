"""Small valid inputs of every reader, for fuzzers to spoil."""

import bz2
import gzip
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, TypeAdapter

from batchwright.core.names import check_names
from batchwright.core.params import Base, load_params
from batchwright.formats.runs import Runs
from pipelines.embed.params import EmbedParams
from pipelines.ingest.candidates import sift
from pipelines.ingest.params import AnySource, IngestParams
from stages.cluster.params import ClusterParams
from stages.filter.judgements import read_judgements
from stages.filter.params import FilterParams
from stages.pack.params import PackParams
from stages.scoring.beir import beir
from stages.scoring.params import EvaluateParams
from tests.helpers import REPO

Reader = Callable[[Path], object]
PAIRS = [
    {"query": f"q {n}", "document": f"d {n}", "negatives": [f"n {n}", "é"], "topic": f"t{n % 3}"} for n in range(20)
]
LINES = "\n".join(map(json.dumps, PAIRS)) + "\n"
CSV = "query,document,topic\n" + "".join(f'"q {n}","d, {n}",t\n' for n in range(20))
GROUPS: dict[str, type[BaseModel]] = {
    "base": Base,
    "ingest": IngestParams,
    "embed": EmbedParams,
    "filter": FilterParams,
    "cluster": ClusterParams,
    "pack": PackParams,
    "runs": Runs,
    "evaluate": EvaluateParams,
}
_SOURCES: TypeAdapter[Any] = TypeAdapter(AnySource)


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


def source(kind: str, **settings: Any) -> Reader:
    """Read a file as ``ingest`` does, all its columns and rows."""

    def read(file: Path) -> object:
        entry = {"kind": kind, "path": str(file), "columns": {"negatives": ["negatives"]}, "domain_column": "topic"}
        made = _SOURCES.validate_python(entry | settings)
        return [sift(made.rows(part)) for part in made.parts()]

    return read


def beir_folder(file: Path) -> object:
    """Read a BEIR folder, one of whose files is ``file``."""
    return beir(file.parent.parent if file.parent.name == "qrels" else file.parent)


def params(file: Path) -> object:
    """Check the names, and read every group of parameters."""
    check_names(file)
    return [load_params(group, model, file) for group, model in GROUPS.items()]


def seeds(folder: Path) -> Iterator[tuple[str, Path, Reader]]:
    """Write valid inputs below ``folder``; yield what they are called, the file to spoil, and their reader."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (("jsonl", LINES.encode()), ("jsonl.gz", gzip.compress(LINES.encode(), mtime=0))):
        (folder / f"a.{name}").write_bytes(content)
        yield name, folder / f"a.{name}", source("jsonl")
    (folder / "a.csv.bz2").write_bytes(bz2.compress(CSV.encode()))
    (folder / "a.csv").write_text(CSV)
    for name in ("csv", "csv.bz2"):
        yield name, folder / f"a.{name}", source("csv", columns={})
    for number, table in enumerate(tables()):
        pq.write_table(table, folder / f"{number}.parquet")
        yield f"parquet {number}", folder / f"{number}.parquet", source("parquet")
        for how, new in (("file", pa.ipc.new_file), ("stream", pa.ipc.new_stream)):
            with new(folder / f"{number}-{how}.arrow", table.schema) as writer:
                writer.write_table(table)
            yield f"arrow {how} {number}", folder / f"{number}-{how}.arrow", source("arrow")
    judged = [{"query": f"q {n}", "document": f"d {n}", "label": n % 2} for n in range(20)]
    (folder / "judged.jsonl").write_text("\n".join(map(json.dumps, judged)))
    pq.write_table(pa.Table.from_pylist(judged), folder / "judged.parquet")
    for name in ("judged.jsonl", "judged.parquet"):
        yield name, folder / name, lambda file: read_judgements([file], 0.5)
    corpus = folder / "beir"
    (corpus / "qrels").mkdir(parents=True, exist_ok=True)
    ids = range(10)
    (corpus / "corpus.jsonl").write_text("".join(f'{{"_id": "{n}", "title": "t", "text": "d {n}"}}\n' for n in ids))
    (corpus / "queries.jsonl").write_text("".join(f'{{"_id": "{n}", "text": "q {n}"}}\n' for n in ids))
    (corpus / "qrels/test.tsv").write_text("q\td\ts\n" + "".join(f"{n}\t{n}\t1\n" for n in ids))
    for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
        yield f"beir {name}", corpus / name, beir_folder
    (folder / "params.yaml").write_text((REPO / "profiles/paper.yaml").read_text())
    yield "params.yaml", folder / "params.yaml", params
