"""Truncated collections: only what the first system finds is ranked."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from batchwright.core.errors import InputError
from stages.scoring.collection import Collection, Text, score_queries
from stages.scoring.read import truncate
from stages.scoring.retrieval import word_system

WORDS = ["red fox", "red wolf", "grey wolf", "blue whale", "grey whale"]
COLLECTION = Collection(
    name="animals",
    queries=[Text(id=key, text=key, domain="animals") for key in ("red", "whale", "wolf")],
    documents=[Text(id=f"d{number}", text=text, domain="animals") for number, text in enumerate(WORDS)],
    relevant={"red": {"d0": 1}, "whale": {"d4": 1}, "wolf": {"d3": 1}},
)


def found(collection: Collection, ranking: NDArray[np.int64]) -> list[set[str]]:
    return [{collection.documents[number].text for number in row if number >= 0} for row in ranking]


def test_each_query_ranks_what_the_first_system_finds_for_it_and_nothing_else() -> None:
    cut = truncate(COLLECTION, word_system(2))
    assert {document.text for document in cut.documents} == set(WORDS)
    ranked = word_system()(cut)
    assert found(cut, ranked) == [{"red fox", "red wolf"}, {"blue whale", "grey whale"}, {"red wolf", "grey wolf"}]
    assert score_queries(cut, ranked)["wolf"]["recall@100"] == 0  # relevant, but the first system did not find it


def test_documents_that_nobody_asks_for_are_left_out() -> None:
    cut = truncate(replace(COLLECTION, queries=COLLECTION.queries[1:2]), word_system(2))
    assert [document.text for document in cut.documents] == ["blue whale", "grey whale"]


def test_documents_without_a_word_of_the_query_are_not_found() -> None:
    asked = [*COLLECTION.queries, Text(id="zebra", text="zebra", domain="animals")]
    collection = replace(COLLECTION, queries=asked, relevant=COLLECTION.relevant | {"zebra": {"d0": 1}})
    cut = truncate(collection, word_system())
    assert [len(numbers) for numbers in cut.candidates or []] == [2, 2, 2, 0]
    assert found(cut, word_system()(cut)) == found(collection, word_system()(collection))
    scored = score_queries(collection, word_system()(collection))
    assert [scored[key]["recall@100"] for key in ("red", "whale", "wolf", "zebra")] == [1, 1, 0, 0]


def test_a_first_system_that_finds_nothing_is_an_input_error() -> None:
    collection = replace(COLLECTION, queries=[Text(id="red", text="zebra", domain="animals")])
    with pytest.raises(InputError, match=r"animals: evaluate\.rerank\.first finds no document for any query"):
        truncate(collection, word_system())
