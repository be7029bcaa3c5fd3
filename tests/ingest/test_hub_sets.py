"""The sets of the papers' profiles, read from stand-ins: as on the hub, in splits, configurations and columns."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from pipelines.ingest.params import IngestParams
from pipelines.ingest.sources.base import Row
from tests.profiles import composed

TEXT, TEXTS, SCORES = pa.string(), pa.list_(pa.string()), pa.list_(pa.float32())
COLUMNS = {
    "jxm/nomic_embed_unsupervised": {"query": TEXT, "document": TEXT, "dataset": TEXT, "shard": pa.int64()},
    "cfli/bge-full-data": {
        "query": TEXT, "pos": TEXTS, "neg": TEXTS, "category": TEXT, "type": TEXT, "prompt": TEXT,
        "pos_scores": SCORES, "neg_scores": SCORES,
    },
    "sentence-transformers/msmarco-bm25": {"query": TEXT, "positive": TEXT, "negative": TEXT},
    "wikimedia/wikipedia": {"id": TEXT, "url": TEXT, "title": TEXT, "text": TEXT},
    "bookcorpus/bookcorpus": {"text": TEXT},
}  # fmt: skip
"""Of each set on the hub."""
CONVERTED = {"bookcorpus/bookcorpus": "plain_text/train/0000.parquet"}
"""What the hub converted has no card that names its files."""
VALUES = {
    TEXT: ["first {}", "second {}"],
    TEXTS: [["first {} a", "first {} b"], ["second {}"]],
    SCORES: [[0.5, 0.25], [0.125]],
    pa.int64(): [1, 2],
}


def stand_in(source: dict[str, Any], **columns: list[str]) -> None:
    """Lay a set of two rows where a local folder stands for the hub's; ``columns`` are given, others made up."""
    name, split = source["name"], source.get("split", "train")
    types = COLUMNS[name]
    made = {column: yaml.safe_load(str(VALUES[kind]).replace("{}", column)) for column, kind in types.items()}
    folder = Path(name)
    file = folder / CONVERTED.get(name, f"{source.get('config', 'data')}/{split}-00000-of-00001.parquet")
    file.parent.mkdir(parents=True)
    pq.write_table(pa.table(made | columns, pa.schema(types)), file)
    if name not in CONVERTED:
        files = [{"split": split, "path": f"{file.parent.name}/{split}-*"}]
        card = {"configs": [{"config_name": source.get("config", "default"), "data_files": files}]}
        (folder / "README.md").write_text(f"---\n{yaml.safe_dump(card)}---\n")


def read(source: dict[str, Any]) -> list[Row]:
    [opened] = IngestParams.model_validate({"sources": [source]}).sources
    [part] = opened.parts()
    return list(opened.rows(part))


def test_phase_one_of_cde_reads_each_sets_name(workspace: Path) -> None:
    [source] = composed("cde_unsupervised")["ingest"]["sources"]
    sets = list(composed("cde_unsupervised")["start_models"]["nomic_bert"]["prefixes"]["domains"])
    stand_in(source, dataset=[sets[0], sets[-1]])
    found = read(source)
    assert [(row.query, row.document, row.domain) for row in found] == [
        ("first query", "first document", sets[0]),
        ("second query", "second document", sets[-1]),
    ]


def test_phase_two_of_cde_reads_a_split_a_set_with_hard_negatives(workspace: Path) -> None:
    sources = composed("cde_supervised")["ingest"]["sources"]
    alike = {**sources[0], "split": "", "domain": ""}
    assert all({**source, "split": "", "domain": ""} == alike for source in sources)
    assert [source["split"] for source in sources] == [source["domain"] for source in sources]
    stand_in(sources[-1])
    found = [(row.query, row.document, row.negatives, row.domain, row.scores) for row in read(sources[-1])]
    assert found == [
        ("first query", "first pos a", ["first neg a", "first neg b"], "twenty_news_groups", ()),
        ("first query", "first pos b", ["first neg a", "first neg b"], "twenty_news_groups", ()),
        ("second query", "second pos", ["second neg"], "twenty_news_groups", ()),
    ]


@pytest.mark.parametrize("name", ["seed_encoder", "seed_encoder_documents", "xtr"])
def test_ms_marco_is_read_with_its_negatives(workspace: Path, name: str) -> None:
    source = composed(name)["ingest"]["sources"][0]
    stand_in(source)
    row = read(source)[0]
    assert (row.query, row.document, row.negatives) == ("first query", "first positive", ["first negative"])


def test_natural_questions_are_read_with_each_passage_and_bm25s_negatives(workspace: Path) -> None:
    ingest = composed("seed_encoder_nq")["ingest"]
    passages = [{"docid": str(number), "title": f"Title {number}", "text": f"text {number}"} for number in range(4)]
    row = {"query_id": "1", "query": "question", "answers": ["text"]}
    row |= {"positive_passages": passages[:2], "negative_passages": passages[2:]}
    file = Path(ingest["sources"][0]["path"])
    file.parent.mkdir(parents=True)
    file.write_bytes(gzip.compress(json.dumps(row).encode()))
    found = [(row.query, row.document, row.negatives) for row in read(ingest["sources"][0])]
    negatives = ["Title 2 text 2", "Title 3 text 3"]
    assert found == [("question", f"Title {number} text {number}", negatives) for number in (0, 1)]


def test_ms_marcos_documents_are_read_from_a_folder_with_judgements_as_trec_has_them(workspace: Path) -> None:
    ingest = composed("seed_encoder_documents")["ingest"]
    source = ingest["sources"][1]
    folder = Path(source["path"])
    (folder / "qrels").mkdir(parents=True)
    documents = [{"_id": f"D{number}", "text": f"https://{number} title body"} for number in (1, 2)]
    (folder / "corpus.jsonl").write_text("".join(f"{json.dumps(document)}\n" for document in documents))
    (folder / "queries.jsonl").write_text('{"_id": "3", "text": "question"}\n')
    (folder / "qrels/train.tsv").write_text("3\t0\tD2\t1\n")
    [row] = read(source)
    assert (row.query, row.document) == ("question", "https://2 title body")
    [corpus] = IngestParams.model_validate(ingest).corpus
    [part] = corpus.as_corpus().parts()
    found = [(row.document, row.domain) for row in corpus.as_corpus().rows(part)]
    assert found == [(document["text"], row.domain) for document in documents]


def test_pre_training_reads_the_text_of_wikipedia_and_of_books(workspace: Path) -> None:
    pretrain = composed("seed_encoder")["pretrain"]
    assert pretrain["bert"] == {**pretrain["seed_encoder"], "decoder": None}
    for source in pretrain["seed_encoder"]["texts"]:
        stand_in(source)
        assert [row.document for row in read(source)] == ["first text", "second text"]
