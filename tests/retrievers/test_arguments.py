"""What cannot be meant is refused, by all models alike: a text for a list of texts, and counts below 1."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from batchwright.core.errors import InputError
from batchwright.core.normal_form import normal_forms
from batchwright.retrievers import Retriever, load_retriever
from batchwright.retrievers.common import dense
from stages.fetch import write_static_model
from tests.cde.encoders import encoder
from tests.train.toys import describe, toy_batch, toy_job, toy_rows, write_toy_model, write_toy_shards
from trainers.variants import VARIANTS, build_learner

TEXTS = ["w1 w2", "w3", "w4 w5"]
LETTERS = r"is one text, 'w1', where a list of texts is meant; pass \[text\]"


@pytest.fixture(scope="module", params=[*VARIANTS, "static"])
def retriever(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Retriever:
    folder = tmp_path_factory.mktemp("model")
    start = write_toy_model(folder / "start")
    if request.param == "static":
        write_static_model(start, 8, 16, 0, folder / "model")
        return load_retriever(describe(folder / "model"))
    shards = write_toy_shards(folder / "shards", [toy_batch(toy_rows(8))])
    build_learner(toy_job(folder, start, shards, request.param)).save(folder / "model")
    return load_retriever(describe(folder / "model", variant=request.param))


def test_a_text_where_a_list_is_meant_is_refused(retriever: Retriever) -> None:
    index = retriever.index(TEXTS)
    refused: dict[str, Callable[[], Any]] = {
        "documents": lambda: retriever.index("w1"),
        "queries": lambda: index.search("w1", 1),
        "domains": lambda: index.search(TEXTS, 1, "w1"),
    }
    if hasattr(retriever, "encode_queries"):
        refused["queries "] = lambda: retriever.encode_queries("w1")
    if hasattr(retriever, "encode_documents"):
        refused["documents "] = lambda: retriever.encode_documents("w1")
        refused["documents  "] = lambda: index.add("w1")  # type: ignore[attr-defined]
    if hasattr(retriever, "encode"):
        refused["texts"] = lambda: retriever.encode("w1", None, index.contexts, "query")  # type: ignore[attr-defined]
    for name, call in refused.items():
        with pytest.raises(InputError, match=f"{name.strip()} {LETTERS}"):
            call()
    with pytest.raises(InputError, match=re.escape("queries[1] is None, which is no text; leave it out")):
        index.search(["w1", None], 1)  # type: ignore[list-item]
    with pytest.raises(InputError, match="3 documents, but 2 domains; pass one for each"):
        retriever.index(TEXTS, ["a", "b"])
    with pytest.raises(InputError, match=r"queries\[1\] holds '.ud800' at place 3, half a surrogate pair"):
        index.search(["w1", "w2 \ud800"], 1)
    for texts in ({"w1"}, {"w1": "w2"}, iter(TEXTS), None, np.array("w1"), np.array([TEXTS])):
        with pytest.raises(InputError, match=r"documents is .*, where a list of texts is meant; pass a list"):
            retriever.index(texts)  # type: ignore[arg-type]


def test_no_documents_are_an_index_in_which_nothing_is_found(retriever: Retriever) -> None:
    assert [part.shape for part in retriever.index([]).search(["w1"], 3)] == [(1, 0), (1, 0)]
    assert retriever.score(["w1"], [[]]).shape == (0,)


def test_documents_to_score_are_a_list_for_each_query(retriever: Retriever) -> None:
    assert retriever.score(TEXTS, [["w1", "w2"], ["w3"], ["w4"]]).shape == (4,)
    with pytest.raises(InputError, match=r"documents\[0\] is one text, 'w1 w2', where a list of texts is meant"):
        retriever.score(["w1"], ["w1 w2"])
    with pytest.raises(InputError, match="documents has 1 lists for 3 queries; pass one for each"):
        retriever.score(TEXTS, [["w1"]])
    with pytest.raises(InputError, match="queries is one text, 'w1'"):
        retriever.score("w1", [["w1"], ["w2"]])


@pytest.mark.parametrize("dimension", [0, -1, 1.5, 9_999])
def test_an_index_is_cut_to_a_dimension_that_it_has(retriever: Retriever, dimension: Any) -> None:
    index = retriever.index(TEXTS)
    if not hasattr(index, "cut"):
        pytest.skip("has a vector for each token")
    with pytest.raises(InputError, match=f"dimension is {dimension}; (pass a whole number of|vectors have)"):
        index.cut(dimension)


@pytest.mark.parametrize("k", [0, -1, 1.5, None, True])
def test_a_k_that_finds_nothing_is_refused(retriever: Retriever, k: Any) -> None:
    with pytest.raises(InputError, match=f"k is {k}; pass a whole number of at least 1"):
        retriever.index(TEXTS).search(["w1"], k)


def test_whole_numbers_of_numpy_and_a_k_beyond_all_documents_are_fine(retriever: Retriever) -> None:
    assert retriever.index(TEXTS).search(["w1"], np.int64(5))[0].shape == (1, 3)  # type: ignore[arg-type]


def test_functions_for_lists_refuse_a_text() -> None:
    with pytest.raises(ValueError, match="the corpus is one text; pass a list of documents"):
        encoder(documents=3).fit_context("w1")
    for call in (normal_forms, lambda text: dense.encode(None, text)):  # type: ignore[arg-type]
        with pytest.raises(InputError, match=f"texts {LETTERS}"):
            call("w1")
