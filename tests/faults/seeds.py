"""Small valid inputs of every reader, for fuzzers to spoil."""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.embed.rows import count_rows, read_rows
from stages.filter.judgements import read_judgements
from stages.scoring.read import beir
from tests.faults.parameters import parameter_seeds
from tests.faults.sources import Seed, rows, source_seeds


def seeds(folder: Path) -> Iterator[Seed]:
    """Write valid inputs below ``folder``; yield what they are called, the file to spoil, and their reader."""
    folder.mkdir(parents=True, exist_ok=True)
    yield from source_seeds(folder)
    yield from _judgements(folder)
    yield from _vectors(folder)
    yield from _beir(folder)
    yield from parameter_seeds(folder)


def _judgements(folder: Path) -> Iterator[Seed]:
    judged = [{"query": f"q {n}", "document": f"d {n}", "label": n % 2} for n in range(20)]
    (folder / "judged.jsonl").write_text("\n".join(map(json.dumps, judged)))
    for name, delimiter in (("csv", ","), ("tsv", "\t")):
        records = [list(judged[0]), *(row.values() for row in judged)]
        (folder / f"judged.{name}").write_text("\n".join(delimiter.join(map(str, record)) for record in records))
    pq.write_table(pa.Table.from_pylist(judged), folder / "judged.parquet")
    for name in ("jsonl", "csv", "tsv", "parquet"):
        yield f"judged.{name}", folder / f"judged.{name}", lambda file: read_judgements([file], 0.5)


def _vectors(folder: Path) -> Iterator[Seed]:
    text = pa.array([f"text {n}" for n in range(20)])
    kinds = (pa.list_(pa.float32()), pa.large_list(pa.float64()), pa.list_(pa.float16(), 3))
    for number, kind in enumerate(kinds):
        file = folder / f"vectors {number}.parquet"
        vectors = pa.array([[0.5, 0.25, n] for n in range(20)], pa.list_(pa.float64())).cast(kind)
        pq.write_table(pa.table({"text": text, "vector": vectors}), file)
        yield file.stem, file, given_vectors


def given_vectors(file: Path) -> object:
    """Read vectors as ``embed`` does."""
    return count_rows([str(file)]), list(read_rows([str(file)]))


def _beir(folder: Path) -> Iterator[Seed]:
    corpus = folder / "beir"
    (corpus / "qrels").mkdir(parents=True, exist_ok=True)
    ids = range(10)
    (corpus / "corpus.jsonl").write_text("".join(f'{{"_id": "{n}", "title": "t", "text": "d {n}"}}\n' for n in ids))
    (corpus / "queries.jsonl").write_text("".join(f'{{"_id": "{n}", "text": "q {n}"}}\n' for n in ids))
    (corpus / "qrels/test.tsv").write_text("q\td\ts\n" + "".join(f"{n}\t{n}\t1\n" for n in ids))
    for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
        yield f"beir {name}", corpus / name, beir_folder
        yield f"beir pairs {name}", corpus / name, beir_pairs


def beir_folder(file: Path) -> object:
    """Read a BEIR folder, one of whose files is ``file``."""
    return beir(_folder(file))


def beir_pairs(file: Path) -> object:
    """Read a BEIR folder, one of whose files is ``file``, as a source of pairs."""
    return rows({"kind": "beir", "path": str(_folder(file)), "domain": "d", "split": "test"})


def _folder(file: Path) -> Path:
    return file.parents[1] if file.parent.name == "qrels" else file.parent
