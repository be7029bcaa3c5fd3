"""TF-IDF and BM25 vectors: the weights, the reduction, and texts with few or no words."""

from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfTransformer

from batchwright.core.errors import InputError
from batchwright.core.files import read_json
from batchwright.formats.pairs import read_pairs
from batchwright.formats.vectors import VectorStore
from pipelines.embed.chunks import in_key_order
from pipelines.embed.lexical import embed, fit, fit_weights
from pipelines.embed.params import Bm25Params, TfidfParams
from tests.helpers import run_python, topic_pairs, tree, write_pairs, write_rows

PAIRS = Path("data/pairs")
KINDS = [TfidfParams(kind="tfidf", dimensions=32), Bm25Params(kind="bm25", dimensions=32)]
COUNTS = st.lists(st.lists(st.integers(0, 4), min_size=6, max_size=6), min_size=3, max_size=12).map(
    lambda rows: np.array(rows, dtype=np.float32) + np.eye(len(rows), 6, dtype=np.float32)
)


def made(params: TfidfParams | Bm25Params, name: str = "lexical") -> VectorStore:
    embed(PAIRS, params, Path("data/vectors") / name)
    return VectorStore.open(Path("data/vectors") / name)


def every_text(domain: str) -> list[str]:
    pairs = read_pairs(PAIRS, domain)
    every: list[str] = in_key_order([*pairs["query"].to_pylist(), *pairs["document"].to_pylist()])[0].to_pylist()
    return every


def bm25_scores(queries: NDArray[np.float32], documents: NDArray[np.float32]) -> NDArray[np.float32]:
    """The library's scores for queries in which no word is repeated."""
    ids = [[word for word, count in enumerate(row) for _ in range(int(count))] for row in documents]
    index = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
    index.index((ids, {str(word): word for word in range(documents.shape[1])}), show_progress=False)
    return np.stack([index.get_scores_from_ids([int(word) for word in np.flatnonzero(row)]) for row in queries])


@given(COUNTS)
@settings(max_examples=30, deadline=None)
def test_bm25_products_rank_documents_as_bm25_does(documents: NDArray[np.float32]) -> None:
    queries = (documents > 1).astype(np.float32)
    queries = queries[queries.any(axis=1)]
    weigh = fit_weights(Bm25Params(kind="bm25"), csr_array(queries), csr_array(documents))
    products = (weigh(csr_array(queries)) @ weigh(csr_array(documents)).T).toarray()
    expected = bm25_scores(queries, documents) if len(queries) else products
    # The factor is the query's own saturation, equal for all of its words.
    lengths = queries.sum(axis=1) / documents.sum(axis=1).mean()
    factors = 2.5**2 / (1 + 1.5 * (0.25 + 0.75 * lengths))
    np.testing.assert_allclose(products, expected * factors[:, None], rtol=1e-4, atol=1e-5)


@given(COUNTS)
@settings(max_examples=30, deadline=None)
def test_tfidf_equals_that_of_scikit_learn(documents: NDArray[np.float32]) -> None:
    queries = documents[:, ::-1].copy()
    weigh = fit_weights(TfidfParams(kind="tfidf"), csr_array(queries), csr_array(documents))
    both = csr_array(np.concatenate([queries, documents]))
    expected = TfidfTransformer(norm=None, sublinear_tf=True).fit_transform(both)
    np.testing.assert_allclose(weigh(both).toarray(), expected.toarray(), rtol=1e-5)


@pytest.mark.parametrize("params", KINDS, ids=lambda params: params.kind)
def test_with_enough_dimensions_cosines_equal_those_of_the_weights(params: TfidfParams | Bm25Params) -> None:
    documents = ["red fish", "blue fish fish", "old red bird", "new bird"]
    model = fit(["red or blue", "a bird"], documents, params)
    weights = model.weigh(csr_array(model.counter.transform(documents))).toarray()
    weights /= np.linalg.norm(weights, axis=1, keepdims=True)
    vectors = model.encode(documents).astype(np.float32)
    np.testing.assert_allclose(vectors @ vectors.T, weights @ weights.T, atol=2e-3)
    assert vectors.shape == (4, 32)
    assert not vectors[:, 7:].any(), "six texts and seven words have no more than six dimensions"


def test_parts_of_identifiers_are_words(workspace: Path) -> None:
    model = fit(["x"], ["def read_file(path): ..."], KINDS[0])
    assert sorted(model.counter.vocabulary_) == ["def", "file", "path", "read"]


@pytest.mark.parametrize("params", KINDS, ids=lambda params: params.kind)
def test_texts_without_spaces_are_read(params: TfidfParams | Bm25Params) -> None:
    queries = ["如何更换电池呢", "如何清洁屏幕呢", "如何查询发票呢"]
    documents = ["要更换电池,请按下1", "要清洁屏幕,请打开面板", "要查询发票,请等待指示灯"]
    model = fit(queries, documents, params)
    scores = model.encode(queries).astype(np.float32) @ model.encode(documents).astype(np.float32).T
    np.testing.assert_array_equal(scores.argmax(axis=1), [0, 1, 2])


@pytest.mark.parametrize("params", KINDS, ids=lambda params: params.kind)
def test_vectors_have_unit_length_and_texts_of_a_topic_are_close(
    workspace: Path, params: TfidfParams | Bm25Params
) -> None:
    pairs = topic_pairs(120)
    write_pairs("birds", pairs)
    found = made(params).of("birds")
    assert found.vectors.shape == (240, 32)
    np.testing.assert_allclose(np.linalg.norm(found.vectors.astype(np.float32), axis=1), 1, atol=2e-3)
    scores = found.of("query", [q for q, _ in pairs]) @ found.of("document", [d for _, d in pairs]).T
    topics = np.array([query.split()[0] for query, _ in pairs])
    same = topics[:, None] == topics
    assert scores[same].mean() > scores[~same].mean() + 0.1


def test_a_text_on_both_sides_has_one_vector(workspace: Path) -> None:
    write_rows("birds", [("red fish", "blue fish", "train"), ("blue fish", "old bird", "train")])
    found = made(KINDS[1]).of("birds")
    assert len(found.vectors) == 3
    np.testing.assert_array_equal(found.of("query", ["blue fish"]), found.of("document", ["blue fish"]))


@pytest.mark.parametrize("params", KINDS, ids=lambda params: params.kind)
def test_the_model_is_fitted_on_a_sample_of_both_sides(workspace: Path, params: TfidfParams | Bm25Params) -> None:
    write_pairs("birds", topic_pairs(40))
    pairs = read_pairs(PAIRS, "birds")
    queries, documents = (in_key_order(pairs[side].to_pylist())[0].to_pylist() for side in ("query", "document"))
    found = made(params.model_copy(update={"sample": 9})).of("birds")
    expected = fit(queries[:9], documents[:9], params).encode(every_text("birds"))
    np.testing.assert_array_equal(found.of("query", every_text("birds")), expected.astype(np.float32))


def test_a_text_without_known_words_has_the_zero_vector(workspace: Path) -> None:
    write_rows("birds", [("???", "red fish", "train"), ("unheard", "red bird", "train"), ("red", "...", "test")])
    found = made(KINDS[0]).of("birds")
    assert not found.of("query", ["???", "unheard"]).any()
    assert not found.of("document", ["..."]).any()
    np.testing.assert_allclose(np.linalg.norm(found.of("query", ["red"])), 1, atol=1e-3)


@pytest.mark.parametrize("params", KINDS, ids=lambda params: params.kind)
def test_one_word_in_one_pair_is_enough(workspace: Path, params: TfidfParams | Bm25Params) -> None:
    write_rows("birds", [("bird!", "bird", "train")])
    assert made(params).of("birds").of("query", ["bird!"])[0, 0] == 1


def test_a_domain_without_words_is_refused(workspace: Path) -> None:
    write_rows("signs", [("?", "...", "train")])
    with pytest.raises(InputError, match=r"'signs': no document contains a letter or a digit; .*use another kind"):
        embed(PAIRS, KINDS[1], Path("data/vectors/lexical"))


@pytest.mark.parametrize("params", KINDS, ids=lambda params: params.kind)
def test_other_domains_processes_and_thread_counts_do_not_change_the_vectors(
    workspace: Path, params: TfidfParams | Bm25Params
) -> None:
    write_pairs("birds", topic_pairs(150))
    made(params, "first")
    write_pairs("fish", topic_pairs(30, seed=1))
    code = f"""
from pathlib import Path
from pipelines.embed.lexical import embed
from pipelines.embed.params import *
embed(Path("data/pairs"), {params!r}, Path("data/vectors/second"))
"""
    ended = run_python("-c", code, cwd=workspace, PYTHONHASHSEED="7", OMP_NUM_THREADS="2")
    assert not ended.returncode, ended.stderr
    first, second = (tree(Path("data/vectors") / name) for name in ("first", "second"))
    assert {name: second[name] for name in first} == first


def test_different_parameters_have_different_hashes(workspace: Path) -> None:
    write_rows("birds", [("red fish", "blue fish", "train")])
    kinds: list[Any] = [*KINDS, Bm25Params(kind="bm25", dimensions=32, k1=1.2), TfidfParams(kind="tfidf", dimensions=8)]
    assert len({made(params).weights for params in kinds}) == 4
    described = read_json(Path("data/vectors/lexical/encoder.json"), made_by="embed")
    assert set(described) == {"kind", "dimensions", "sample", "prefixes", "weights"}


def test_only_a_new_domain_is_computed(workspace: Path) -> None:
    for number, domain in enumerate(("birds", "fish")):
        write_pairs(domain, topic_pairs(20, seed=number))
    total, new = embed(PAIRS, KINDS[0], Path("data/vectors/words"))
    assert new == total
    first = tree(Path("data/vectors/words"))
    write_pairs("mammals", topic_pairs(20, seed=2))
    total, new = embed(PAIRS, KINDS[0], Path("data/vectors/words"))
    assert new == len(every_text("mammals")) < total
    assert {name: tree(Path("data/vectors/words"))[name] for name in first} == first
