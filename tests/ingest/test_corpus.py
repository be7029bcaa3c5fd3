"""``ingest.corpus``: documents without queries, by domain."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from batchwright.formats.pairs import read_pairs
from pipelines.ingest.params import IngestParams
from tests.helpers import tree
from tests.ingest.running import ingest
from tests.ingest.tables import write

PAIRS = [{"query": f"q{number}", "document": f"d{number}", "domain": "north"} for number in range(8)]
DOCUMENTS = [{"document": f"c{number} ", "domain": "north" if number % 3 else "south"} for number in range(30)]


@pytest.fixture
def pairs(workspace: Path) -> dict[str, Any]:
    return {**write("raw/pairs/pairs.jsonl", PAIRS), "domain_column": "domain"}


def corpus_of(domain: str) -> list[str]:
    return read_pairs(Path("data/corpus"), domain)["document"].to_pylist()


@pytest.mark.parametrize("file", ["documents.jsonl", "documents.parquet", "documents.csv", "documents.txt"])
def test_documents_are_read_by_domain_each_once(pairs: dict[str, Any], file: str, capsys) -> None:
    rows = [*DOCUMENTS, {"document": " c4", "domain": "north"}, {"document": "", "domain": "north"}]
    name = f"raw/pairs/{file}"
    if file.endswith(".txt"):
        Path(name).write_text("document,domain\n" + "".join(f"{r['document']},{r['domain']}\n" for r in rows))
    else:
        write(name, rows)
    without = ingest(pairs)
    outcome = ingest(pairs, corpus=[{"path": name, "domain_column": "domain"}])
    assert sorted(corpus_of("north")) == sorted(f"c{number}" for number in range(30) if number % 3)
    assert sorted(corpus_of("south")) == sorted(f"c{number}" for number in range(0, 30, 3))
    assert set(read_pairs(Path("data/corpus"), "north")["query"].to_pylist()) == {""}
    assert outcome.pairs == without.pairs
    assert sorted(reason for _, _, reason in outcome.reasons) == ["duplicate", "empty document"]
    account = outcome.results["corpus"]
    assert account["domains"] == {"north": 20, "south": 10}
    assert account["sources"] == {f"1 {name}": {"in": 32, "out": 30, "rejected": {"duplicate": 1, "empty document": 1}}}
    assert list(outcome.results["sources"]) == ["0 raw/pairs/pairs.jsonl"]
    assert "the corpus has documents of 'south', but no pair is of this domain" in capsys.readouterr().err


def test_only_the_column_of_documents_is_needed_and_a_beir_folder_gives_all_of_them(pairs: dict[str, Any]) -> None:
    folder = Path("raw/pairs/beir")
    folder.mkdir()
    records = [{"_id": "1", "title": "One", "text": "first"}, {"_id": "2", "title": "", "text": "second"}]
    (folder / "corpus.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    write("raw/pairs/manual.parquet", [{"text": "third", "query": 3}])
    ingest(
        pairs,
        corpus=[
            {"kind": "beir", "path": str(folder), "domain": "north"},
            {"path": "raw/pairs/manual.parquet", "columns": {"document": "text"}, "domain": "north"},
        ],
    )
    assert sorted(corpus_of("north")) == ["One first", "second", "third"]


def test_a_changed_corpus_leaves_pairs_and_other_domains_as_they_are(pairs: dict[str, Any]) -> None:
    own = {"path": "raw/pairs/documents.jsonl", "domain_column": "domain"}
    write(own["path"], DOCUMENTS)
    ingest(pairs, corpus=[own])
    before, south = tree(Path("data/pairs")), Path("data/corpus/south.parquet").read_bytes()
    write(own["path"], [*reversed(DOCUMENTS), {"document": "new", "domain": "north"}])
    ingest(pairs, corpus=[own])
    assert (tree(Path("data/pairs")), Path("data/corpus/south.parquet").read_bytes()) == (before, south)
    assert "new" in corpus_of("north")
    ingest(pairs)
    assert tree(Path("data/corpus")) == {}
    assert "corpus" not in json.loads(Path("results/ingest.json").read_text())


def test_what_is_no_corpus_is_refused(pairs: dict[str, Any]) -> None:
    for source in ({"packages": ["json"], "domain": "python"}, {"path": "a.csv"}):
        with pytest.raises(ValidationError):
            IngestParams.model_validate({"sources": [pairs], "corpus": [source]})
    with pytest.raises(ValidationError, match="at least 1 character"):
        IngestParams.model_validate({"sources": [{**pairs, "columns": {"query": ""}}]})
