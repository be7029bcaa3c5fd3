"""Collections of held-out pairs."""

from pathlib import Path

import pytest

from batchwright.core.errors import InputError
from stages.scoring.collection import Collection, HeldOutParams, held_out
from stages.scoring.retrieval import word_system
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
    return held_out(PAIRS, HeldOutParams(queries=queries, documents=documents, training_documents=True))


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


def test_documents_of_training_pairs_are_left_out_if_they_should_be(corpus: Path) -> None:
    """A held-out document that training pairs have, too, counts as theirs, unless it answers a held-out query."""
    pairs = topic_pairs(9)
    rows = [(*pair, "test" if number < 3 else "dev") for number, pair in enumerate(pairs)]
    rows += [(f"topic0 {number}", f"topic0 trained {number}", "train") for number in range(40)]
    write_rows("birds", [*rows, ("topic1 again", pairs[8][1], "train"), ("topic1 too", pairs[0][1], "train")])
    for domain in ("fish", "intents"):
        write_rows(domain, [])
    unseen = [document for _, document in pairs[:8]]
    for count in (2, 3, 5, 8, 60):
        params = HeldOutParams(queries=100, documents=count)
        found = {document.text for document in held_out(PAIRS, params).documents}
        assert set(unseen[:3]) <= found <= set(unseen)
        assert len(found) == min(max(count, 3), 8)
        assert len(collect(documents=count).documents) == min(max(count, 3), 49)


def test_a_query_keeps_the_domain_that_decides_its_prefix(corpus: Path) -> None:
    domains = {query.text: query.domain for query in collect().queries}
    assert domains["topic0 elsewhere"] == "intents"
    assert domains["topic1 asks too"] == "birds"


def test_a_query_in_two_domains_is_two_queries_with_the_answers_of_both(workspace: Path) -> None:
    write_rows("birds", [("who?", "a bird", "test"), ("why", "so", "test")])
    write_rows("fish", [("Who", "a fish", "test")])
    collection = collect()
    assert sorted((query.text, query.domain) for query in collection.queries) == [
        ("Who", "fish"),
        ("who?", "birds"),
        ("why", "birds"),
    ]
    assert texts(collection) == {"who?": {"a bird", "a fish"}, "Who": {"a bird", "a fish"}, "why": {"so"}}


def test_a_query_does_not_find_its_own_text(workspace: Path) -> None:
    write_rows("questions", [("who is it", "who are you", "test"), ("what is it", "who is it", "train")])
    write_rows("more", [("Who is it?", "who is it", "test"), ("so", "it is so", "train")])
    collection = collect()
    ranked = dict(zip([query.text for query in collection.queries], word_system()(collection).tolist(), strict=True))
    found = {query: {collection.documents[each].text for each in row if each >= 0} for query, row in ranked.items()}
    assert "who is it" in found["Who is it?"] and "who is it" not in found["who is it"]
    assert texts(collection) == {"who is it": {"who are you"}, "Who is it?": {"who is it", "who are you"}}


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


@pytest.mark.parametrize(("queries", "documents"), [(3, 4), (5, 20), (100, 1000)])
def test_pairs_are_read_in_blocks_which_change_nothing(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, queries: int, documents: int
) -> None:
    whole = collect(queries, documents)
    monkeypatch.setattr("batchwright.formats.pairs.ROWS", 3)
    assert collect(queries, documents) == whole


def test_a_corpus_without_held_out_pairs_is_refused(workspace: Path) -> None:
    write_pairs("birds", topic_pairs(5))
    with pytest.raises(InputError, match=r"data/pairs: no held-out pairs to evaluate on; raise ingest\.held_out"):
        collect()


def test_dev_queries_are_a_collection_of_their_own_against_documents_of_all_splits(workspace: Path) -> None:
    pairs = topic_pairs(12)
    splits = ["dev", "dev", "test", *["train"] * 9]
    write_rows("birds", [(*pair, split) for pair, split in zip(pairs, splits, strict=True)])
    params = HeldOutParams(queries=10, documents=100)
    dev, test = held_out(PAIRS, params, "dev"), held_out(PAIRS, params)
    assert dev.name == "dev" and {query.text for query in dev.queries} == {query for query, _ in pairs[:2]}
    assert not {query.id for query in dev.queries} & {query.id for query in test.queries}
    assert dev.documents == test.documents


def test_pairs_without_a_dev_split_are_refused(corpus: Path) -> None:
    with pytest.raises(InputError, match=r"no held-out pairs to evaluate on; raise ingest\.dev"):
        held_out(PAIRS, HeldOutParams(queries=1, documents=1), "dev")
