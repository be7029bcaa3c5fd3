"""How alike pairs must be before their documents answer each other's queries."""

import math
import re
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pydantic import ValidationError

from batchwright.core.errors import InputError
from batchwright.formats import vectors as store
from batchwright.formats.negatives import NO_PAIR
from batchwright.formats.pairs import InMemory
from batchwright.formats.vectors import PairVectors
from stages.filter import rules
from stages.filter.params import FilterParams
from stages.filter.rules import Limit, TextsOf, likeness_limit, unread
from stages.filter.words import shared_words, texts_of_rows

WIDTH = 64


def unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return found


def pair_vectors(queries: NDArray[np.float64], documents: NDArray[np.float64]) -> PairVectors:
    rows = np.arange(2 * len(queries)).reshape(2, -1)
    return PairVectors(vectors=np.concatenate([unit(queries), unit(documents)]).astype(np.float16), rows=rows)


def domain(same_answer: bool, pairs: int = 600, topics: int = 30) -> tuple[PairVectors, NDArray[np.int64]]:
    """Pairs of topics. Either any document of a topic answers all its queries, or each answers one question in it.

    Then what a question is about, beside its topic, shows in its own document.
    """
    generator = np.random.default_rng(3)
    topic = generator.integers(topics, size=pairs)
    centre, question, *noise = (generator.normal(size=(size, WIDTH)) for size in (topics, pairs, pairs, pairs))
    queries, documents = (centre[topic] + 0.6 * each for each in noise)
    if not same_answer:
        queries, documents = centre[topic] + 0.6 * question, centre[topic] + 0.6 * question + 0.2 * noise[1]
    return pair_vectors(queries, documents), topic


def found_limit(
    vectors: PairVectors,
    classes: NDArray[np.int32] | None = None,
    doubtful: int = 0,
    unread: NDArray[np.bool_] | None = None,
    texts: TextsOf | None = None,
) -> Limit:
    """The limit if queries of one class are duplicates, and the first pairs are ``doubtful``."""
    every = np.arange(len(vectors), dtype=np.int32)
    queries = every if classes is None else classes
    return likeness_limit(vectors, queries, every, np.random.default_rng(0), every < doubtful, unread, texts)


def limit(vectors: PairVectors, classes: NDArray[np.int32] | None = None) -> np.float32:
    return found_limit(vectors, classes).likeness


def test_pairs_that_share_an_answer_are_told_from_others() -> None:
    vectors, topic = domain(same_answer=True)
    sums = vectors.sums(slice(None))
    found = sums @ sums.T >= limit(vectors)
    together = topic[:, None] == topic
    assert found[~together].mean() < 1e-3
    assert found[together].mean() > 0.3


def test_pairs_that_are_nearly_equal_reach_the_limit() -> None:
    generator = np.random.default_rng(5)
    twice = np.repeat(generator.normal(size=(150, WIDTH)), 2, axis=0)
    queries, documents = (twice + 0.05 * generator.normal(size=twice.shape) for _ in range(2))
    vectors = pair_vectors(queries, documents)
    sums = vectors.sums(slice(None))
    found = sums @ sums.T >= limit(vectors)
    assert found[np.arange(300), np.arange(300) ^ 1].mean() > 0.5
    assert np.count_nonzero(found) <= 600


def test_equal_vectors_are_no_evidence() -> None:
    vectors, _ = domain(same_answer=False)
    rows = vectors.rows.copy()
    rows[:, :60] = rows[:, :1]  # texts that are cut where they begin to differ
    assert limit(PairVectors(vectors=vectors.vectors, rows=rows)) == NO_PAIR


def test_pairs_on_one_topic_with_answers_of_their_own_are_not_alike() -> None:
    vectors, topic = domain(same_answer=False)
    sums = vectors.sums(slice(None))
    assert (sums @ sums.T)[topic[:, None] == topic].mean() > 0.6
    assert limit(vectors) == NO_PAIR


def test_duplicates_are_no_evidence() -> None:
    """Their documents can always be exchanged, and they are masked anyway."""
    vectors, topic = domain(same_answer=True)
    assert limit(vectors, topic.astype(np.int32)) == NO_PAIR


def test_a_handful_of_pairs_is_no_evidence() -> None:
    vectors, _ = domain(same_answer=True, pairs=20, topics=10)
    assert limit(vectors) == NO_PAIR
    assert limit(vectors.take(slice(0, 0))) == NO_PAIR


def test_the_limit_is_that_of_a_plain_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "ENOUGH", 3)
    vectors, _ = domain(same_answer=True, pairs=40, topics=8)
    queries, documents, sums = (each(slice(None)) for each in (vectors.queries, vectors.documents, vectors.sums))
    cells = []
    for i in range(40):
        for j in range(i):
            exchanged = queries[i] @ documents[j] + queries[j] @ documents[i]
            kept = queries[i] @ documents[i] + queries[j] @ documents[j]
            cells.append((float(sums[i] @ sums[j]), bool(exchanged >= kept)))
    cells.sort(reverse=True)
    shares = [sum(good for _, good in cells[: count + 1]) / (count + 1) for count in range(len(cells))]
    expected = min(cells[count][0] for count, share in enumerate(shares) if share >= 0.65 and count >= 2)
    assert limit(vectors) == pytest.approx(expected, abs=0.011)
    assert limit(vectors) >= expected - 1e-6


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 12), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_likeness_is_the_cosine_of_two_sums(pairs: int, others: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    vectors = pair_vectors(*generator.normal(size=(2, pairs, 8)))
    chosen = generator.integers(pairs, size=(pairs, others))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "_BLOCK_ROWS", 7)
        found = vectors.likeness(slice(None), chosen)
    added = vectors.queries(slice(None)) + vectors.documents(slice(None))
    for row, column in np.ndindex(chosen.shape):
        left, right = added[row], added[chosen[row, column]]
        cosine = left @ right / np.linalg.norm(left) / np.linalg.norm(right)
        assert found[row, column] == pytest.approx(cosine, abs=1e-3)


def test_a_query_and_a_document_that_cancel_out_are_like_nothing() -> None:
    vectors = PairVectors(vectors=np.array([[1, 0], [-1, 0]], np.float16), rows=np.array([[0], [1]]))
    assert vectors.sums(slice(None)).tolist() == [[0, 0]]


def test_where_documents_are_worded_as_their_queries_words_say_which_pairs_share_an_answer() -> None:
    vectors, topic = domain(same_answer=False)

    def found(words: Callable[[int], str]) -> rules.Limit:
        def texts(rows: NDArray[np.int64]) -> tuple[list[str], list[str]]:
            return [f"what of {words(row)}?" for row in rows], [f"{words(row)} it is" for row in rows]

        return found_limit(vectors, texts=texts)

    by_topic, by_pair = found(lambda row: f"topic {topic[row]}"), found(lambda row: f"pair {row}")
    sums = vectors.sums(slice(None))
    masked = np.triu(sums @ sums.T >= by_topic.likeness, 1)
    assert (topic[:, None] == topic)[masked].mean() > 0.7
    assert (by_topic.because, by_pair.likeness) == ("", NO_PAIR)
    assert by_pair.because.endswith("by words, 0% of the 200 pairs most alike can be exchanged, not 80%")


def test_rare_words_that_a_query_shares_with_its_document_count_more() -> None:
    shares = shared_words(
        ["Which ORE has iron?", "which ore has tin?", "none"], ["iron ore has it", "tin ore has it", "has it all"]
    )
    rare, twice, always = (round(64 * (1 + np.log(3 / documents))) for documents in (1, 2, 3))
    other = (twice + always) / (rare + twice + always)
    np.testing.assert_allclose(
        shares, [[1, other, always / (rare + twice + always)], [other, 1, always / (rare + twice + always)], [0, 0, 0]]
    )


def test_texts_are_read_by_row_across_parts() -> None:
    parts = [
        InMemory([pa.record_batch({"query": list("ab"), "document": list("AB")})]),
        InMemory([pa.record_batch({"query": list("cde"), "document": list("CDE")})]),
    ]
    assert texts_of_rows(parts, np.array([1, 2, 4])) == (["b", "c", "e"], ["B", "C", "E"])


def test_likeness_may_differ_by_domain() -> None:
    params = FilterParams.model_validate({"vectors": "v", "likeness": {"a": 0.5, "default": 0.8}})
    assert [params.likeness_of(domain) for domain in "ab"] == [0.5, 0.8]
    params = FilterParams.model_validate({"vectors": "v", "margin": 0.1, "likeness": {"a": None}})
    assert [params.likeness_of(domain) for domain in "ab"] == [None, "auto"]
    with pytest.raises(ValidationError, match="give one of margin, factor and threshold, or likeness"):
        FilterParams.model_validate({"vectors": "v", "likeness": {"a": None}})  # this would mask all negatives
    with pytest.raises(InputError, match=r"filter\.likeness: unknown domain 'a'.*the domains are b, c"):
        params.check_domains(["c", "b"])


@pytest.mark.parametrize("value", ["often", [0.5], {"a": "often"}])
def test_likeness_is_auto_or_a_number(value: object) -> None:
    with pytest.raises(ValidationError, match="likeness"):
        FilterParams.model_validate({"vectors": "v", "likeness": value})


def test_a_limit_that_many_random_pairs_reach_is_none() -> None:
    """Two topics, in which any document answers any query: half of the pairs are as alike."""
    vectors, _ = domain(same_answer=True, topics=2)
    found = found_limit(vectors)
    assert found.likeness == NO_PAIR
    assert "of random pairs are as alike" in found.because


def test_pairs_whose_vectors_are_zero_are_no_evidence() -> None:
    vectors, _ = domain(same_answer=False)
    blank = np.arange(len(vectors)) < 540
    vectors.vectors[: np.count_nonzero(blank)] = 0
    np.testing.assert_array_equal(unread(vectors, vectors.scores()), blank)
    assert found_limit(vectors).blind  # they can always be exchanged
    found = found_limit(vectors, unread=blank)
    assert (found.likeness, found.blind) == (NO_PAIR, False)
    assert re.fullmatch(r"\d+% of the 50 pairs most alike can be exchanged, not 65%", found.because)


def test_where_too_many_pairs_are_doubtful_there_is_no_limit() -> None:
    vectors, _ = domain(same_answer=True)
    least = math.ceil(rules.MOSTLY * len(vectors))
    assert found_limit(vectors, doubtful=least - 1).likeness < NO_PAIR
    found = found_limit(vectors, doubtful=least)
    assert (found.likeness, found.blind) == (NO_PAIR, True)
    assert found.because == f"the own documents of {least:,} of {len(vectors):,} pairs score no higher than others"
