"""The BM25 baseline."""

from typing import cast, get_args

import bm25s
import numpy as np
import pytest
import Stemmer

from batchwright.core.errors import InputError
from batchwright.core.params import Language
from batchwright.retrievers import Ranking
from batchwright.retrievers.common import words as bm25
from batchwright.retrievers.common.words import WordIndex
from tests.helpers import topic_pairs


def rank_by_words(queries: list[str], documents: list[str], k: int) -> Ranking:
    return WordIndex(documents).search(queries, k)


def test_a_document_ranks_first_for_its_own_words() -> None:
    documents = [document for _, document in topic_pairs(60)]
    indices, scores = rank_by_words(documents, documents, k=10)
    assert indices.shape == scores.shape == (60, 10)
    np.testing.assert_array_equal(indices[:, 0], np.arange(60))
    assert (np.diff(scores, axis=1) <= 0).all()


def test_no_more_documents_are_ranked_than_there_are() -> None:
    indices, _ = rank_by_words(["red fox"], ["grey wolf", "red fox"], k=100)
    assert indices.shape == (1, 2)


@pytest.mark.parametrize("query", ["unheard words", "", "!?"])
def test_documents_without_a_word_of_the_query_are_not_ranked(query: str) -> None:
    indices, scores = rank_by_words([query, "red"], ["grey wolf", "red fox", "blue fox"], k=2)
    assert indices.tolist() == [[-1, -1], [1, -1]]
    assert (scores > 0).tolist() == [[False, False], [True, False]]


def test_equal_scores_are_ordered_by_number() -> None:
    indices, _ = rank_by_words(["red"], ["red red fox", *["red fox", "grey wolf"] * 100, "red red fox"], k=60)
    assert indices.tolist() == [[0, 201, *range(1, 117, 2)]]


def test_what_is_no_list_of_texts_or_no_number_is_refused() -> None:
    for call, message in (
        (lambda: WordIndex("red fox"), "documents is one text, 'red fox'"),
        (lambda: rank_by_words("red", ["red fox"], 1), "queries is one text, 'red'"),  # type: ignore[arg-type]
        (lambda: rank_by_words(["red"], ["red fox"], 0), "k is 0; pass a whole number of at least 1"),
    ):
        with pytest.raises(InputError, match=message):
            call()


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 10, 500])
def test_rankings_equal_those_of_sorting_all_scores_of_the_formula(k: int) -> None:
    rng = np.random.default_rng(k)
    lists = [[f"w{word}" for word in rng.zipf(1.5, rng.integers(1, 20)) % 40] for _ in range(400)]
    asked = [[f"w{word}" for word in rng.integers(0, 45, 3)] for _ in range(50)]
    indices, scores = rank_by_words([" ".join(words) for words in asked], [" ".join(words) for words in lists], k)
    for own, ranked, given in zip(asked, indices.tolist(), scores, strict=True):
        every = [formula(own, words, lists) for words in lists]
        best = sorted((n for n, score in enumerate(every) if score), key=lambda n: (-every[n], n))[:k]
        assert ranked == best + [-1] * (min(k, 400) - len(best))
        np.testing.assert_allclose(given[: len(best)], [every[n] for n in best], rtol=1e-5)


def formula(query: list[str], document: list[str], documents: list[list[str]]) -> np.float32:
    length = len(document) / np.mean([len(each) for each in documents])
    total = np.float32(0)  # as there, so that equal sums are equal
    for word in query:
        found, count = sum(word in each for each in documents), document.count(word)
        idf = np.log(1 + (len(documents) - found + 0.5) / (found + 0.5))
        total += np.float32(idf * count / (count + bm25.K1 * (1 - bm25.B + bm25.B * length)))
    return total


def test_documents_without_words_are_an_input_error():
    with pytest.raises(InputError, match="no words"):
        rank_by_words(["how to copy"], ["the", "of and", "?"], 10)


@pytest.mark.parametrize("query", ["电池怎么换", "バッテリーの交換", "แบตเตอรี่"])
def test_texts_without_spaces_are_found(query: str) -> None:
    documents = ["要更换电池,请按下开关", "バッテリーを交換する", "เปลี่ยนแบตเตอรี่ใหม่", "red fox"]
    indices, _ = rank_by_words([query], documents, k=1)
    assert indices[0, 0] == ["电池怎么换", "バッテリーの交換", "แบตเตอรี่"].index(query)


def test_words_match_by_their_stems() -> None:
    indices, scores = rank_by_words(["mining batches"], ["one batch was mined", "the weather today"], k=2)
    assert indices.tolist() == [[0, -1]] and scores[0, 0] > 0


@pytest.mark.parametrize(
    ("language", "found"),
    [
        ("german", [["ein Haus"], []]),
        ("english", [[], ["und wo steht ein Auto?"]]),
        (None, [[], ["und wo steht ein Auto?"]]),
    ],
)
def test_stems_and_stop_words_are_those_of_the_language(language: Language | None, found: list[list[str]]) -> None:
    documents = ["ein Haus", "und wo steht ein Auto?"]
    indices, _ = WordIndex(documents, language).search(["Häuser", "und"], 2)
    assert [[documents[place] for place in row if place >= 0] for row in indices.tolist()] == found


def test_without_a_language_words_are_whole() -> None:
    documents = ["the mined batch", "mining the batches"]
    indices, _ = WordIndex(documents, None).search(["batches", "the"], 2)
    assert indices.tolist() == [[1, -1], [0, 1]]


def test_all_stems_and_stop_words_that_there_are_can_be_had() -> None:
    stemmed = {name for name in Stemmer.algorithms() if not name.endswith("porter")}
    assert set(get_args(Language)) == stemmed
    stopped = {name for name in stemmed if hasattr(bm25s.stopwords, f"STOPWORDS_{name.upper()}")} | {"english"}
    assert set(bm25.WITH_STOP_WORDS) == stopped
    for name in stemmed:
        assert WordIndex(["wort"], cast(Language, name)).search(["wort"], 1)[0].tolist() == [[0]]


def test_many_documents_show_how_far_it_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    documents = ["a red car", "a blue boat", "green trees"]
    quiet = rank_by_words(["blue boats"], documents, 2)
    assert not capsys.readouterr().err
    monkeypatch.setattr(bm25, "PROGRESS_FROM", 3)
    shown = rank_by_words(["blue boats"], documents, 2)
    assert "Stem" in capsys.readouterr().err
    for one, other in zip(quiet, shown, strict=True):
        np.testing.assert_array_equal(one, other)
