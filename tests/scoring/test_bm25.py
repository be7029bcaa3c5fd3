"""The BM25 baseline."""

import numpy as np
import pytest

from batchwright.core.errors import InputError
from stages.scoring import bm25
from stages.scoring.bm25 import retrieve
from tests.helpers import topic_pairs


def test_a_document_ranks_first_for_its_own_words() -> None:
    documents = [document for _, document in topic_pairs(60)]
    indices, scores = retrieve(documents, documents, k=10)
    assert indices.shape == scores.shape == (60, 10)
    np.testing.assert_array_equal(indices[:, 0], np.arange(60))
    assert (np.diff(scores, axis=1) <= 0).all()


def test_no_more_documents_are_ranked_than_there_are() -> None:
    indices, _ = retrieve(["red fox"], ["grey wolf", "red fox"], k=100)
    assert indices.tolist() == [[1, 0]]


@pytest.mark.parametrize("query", ["unheard words", "", "!?"])
def test_a_query_without_a_known_word_still_gets_a_ranking(query: str) -> None:
    indices, scores = retrieve([query, "red"], ["grey wolf", "red fox", "red wolf"], k=2)
    assert indices.shape == (2, 2)
    assert not scores[0].any()


def test_documents_without_words_are_an_input_error():
    with pytest.raises(InputError, match="no words"):
        retrieve(["how to copy"], ["the", "of and", "?"], 10)


def test_words_match_by_their_stems() -> None:
    indices, scores = retrieve(["mining batches"], ["one batch was mined", "the weather today"], k=2)
    assert indices[0, 0] == 0 and scores[0].tolist()[1] == 0 < scores[0].tolist()[0]


def test_many_documents_show_how_far_it_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    documents = ["a red car", "a blue boat", "green trees"]
    quiet = retrieve(["blue boats"], documents, 2)
    assert not capsys.readouterr().err
    monkeypatch.setattr(bm25, "_MANY", 3)
    shown = retrieve(["blue boats"], documents, 2)
    assert "Retrieve" in capsys.readouterr().err
    for one, other in zip(quiet, shown, strict=True):
        np.testing.assert_array_equal(one, other)
