"""Test collections: held-out pairs and BEIR folders."""

from collections.abc import Callable
from pathlib import Path

import pytest

from batchwright.core.errors import InputError
from stages.scoring.collection import Collection, beir, held_out
from stages.scoring.params import HeldOutParams
from tests.helpers import topic_pairs, write_pairs, write_rows

PAIRS = Path("data/pairs")


@pytest.fixture
def corpus(workspace: Path) -> Path:
    """40 training and 12 held-out pairs in two domains; some documents belong to several pairs."""
    pairs = topic_pairs(30)
    rows = [(*pair, "train" if number >= 8 else "test") for number, pair in enumerate(pairs)]
    rows += [(pairs[0][0], "topic0 second answer", "test"), ("topic1 asks too", pairs[9][1], "test")]
    write_rows("birds", rows)
    fish = topic_pairs(20, seed=1)
    write_rows("fish", [(*pair, "train" if number >= 2 else "test") for number, pair in enumerate(fish)])
    write_rows("intents", [("topic0 elsewhere", pairs[1][1], "test")])
    return workspace


def collect(queries: int = 100, documents: int = 1000) -> Collection:
    return held_out(PAIRS, HeldOutParams(queries=queries, documents=documents))


def texts(collection: Collection) -> dict[str, set[str]]:
    """Map query texts to the texts of their relevant documents."""
    documents = {document.id: document.text for document in collection.documents}
    return {query.text: {documents[key] for key in collection.relevant[query.id]} for query in collection.queries}


def test_the_queries_are_exactly_the_held_out_ones_with_all_their_documents(corpus: Path) -> None:
    pairs, fish = topic_pairs(30), topic_pairs(20, seed=1)
    expected = {query: {document} for query, document in [*pairs[:8], *fish[:2]]}
    expected[pairs[0][0]].add("topic0 second answer")
    expected |= {"topic1 asks too": {pairs[9][1]}, "topic0 elsewhere": {pairs[1][1]}}
    collection = collect()
    assert texts(collection) == expected
    assert {grade for grades in collection.relevant.values() for grade in grades.values()} == {1}


def test_documents_of_both_splits_and_all_domains_are_searched_once_each(corpus: Path) -> None:
    found = [document.text for document in collect().documents]
    expected = {document for _, document in [*topic_pairs(30), *topic_pairs(20, seed=1)]} | {"topic0 second answer"}
    assert len(found) == len(set(found))
    assert set(found) == expected


def test_a_query_keeps_the_domain_that_decides_its_prefix(corpus: Path) -> None:
    domains = {query.text: query.domain for query in collect().queries}
    assert domains["topic0 elsewhere"] == "intents"
    assert domains["topic1 asks too"] == "birds"


def test_the_same_query_text_in_two_domains_is_two_queries(workspace: Path) -> None:
    write_rows("birds", [("who?", "a bird", "test")])
    write_rows("fish", [("who?", "a fish", "test")])
    collection = collect()
    assert sorted(query.domain for query in collection.queries) == ["birds", "fish"]
    assert all(len(grades) == 1 for grades in collection.relevant.values())


@pytest.mark.parametrize("documents", [1, 15, 30])
def test_the_collection_is_cut_to_size_but_relevant_documents_stay(corpus: Path, documents: int) -> None:
    collection = collect(queries=5, documents=documents)
    relevant = {key for grades in collection.relevant.values() for key in grades}
    assert len(collection.queries) == len(collection.relevant) == 5
    assert len(collection.documents) == max(documents, len(relevant))
    assert relevant <= {document.id for document in collection.documents}


def test_draws_are_reproducible_and_larger_draws_contain_smaller_ones(corpus: Path) -> None:
    assert collect(5, 20) == collect(5, 20)
    assert {query.id for query in collect(5).queries} <= {query.id for query in collect(7).queries}


def test_a_corpus_without_held_out_pairs_is_refused(workspace: Path) -> None:
    write_pairs("birds", topic_pairs(5))
    with pytest.raises(InputError, match=r"data/pairs: no held-out pairs to evaluate on; raise ingest\.held_out"):
        collect()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny-facts"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text('{"_id": "d1", "title": "T", "text": "a"}\n{"_id": "d2", "text": "b"}\n')
    (folder / "queries.jsonl").write_text(
        "".join(f'{{"_id": "q{number}", "text": "question {number}"}}\n' for number in (1, 2, 3))
    )
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t1\nq2\td2\t0\n")
    return folder


def test_a_beir_folder_gives_the_queries_that_have_a_relevant_document(folder: Path) -> None:
    collection = beir(folder)
    assert collection.name == "tiny-facts"
    assert [(query.id, query.text, query.domain) for query in collection.queries] == [
        ("q1", "question 1", "tiny-facts")
    ]
    assert [(document.id, document.text) for document in collection.documents] == [("d1", "T a"), ("d2", "b")]
    assert collection.relevant == {"q1": {"d1": 2, "d2": 1}}


def remove_judgments(folder: Path) -> None:
    (folder / "qrels" / "test.tsv").unlink()


def rename_queries(folder: Path) -> None:
    (folder / "queries.jsonl").write_text('{"_id": "other", "text": "a"}\n')


def empty_corpus(folder: Path) -> None:
    (folder / "corpus.jsonl").write_text("")


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (remove_judgments, r"qrels/test\.tsv: no such file; a BEIR folder holds"),
        (rename_queries, r"tiny-facts: no judged queries, or no documents"),
        (empty_corpus, r"tiny-facts: no judged queries, or no documents"),
    ],
)
def test_an_unusable_beir_folder_is_explained(folder: Path, harm: Callable[[Path], None], message: str) -> None:
    harm(folder)
    with pytest.raises(InputError, match=message):
        beir(folder)
