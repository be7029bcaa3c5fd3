"""The token index, and search in it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from batchwright.core.errors import InputError
from batchwright.formats.models import Prefix
from batchwright.retrievers import ModelInfo
from batchwright.retrievers.xtr.index import TokenIndex
from batchwright.retrievers.xtr.index_folder import Kind
from batchwright.retrievers.xtr.model import TokenVectors, encode_tokens, load_token_model, save_token_model
from batchwright.retrievers.xtr.rank import Imputation, search_tokens
from batchwright.retrievers.xtr.retriever import TokenRetriever
from tests.tiny_models import save_bert
from tests.train.toys import describe, retrieve
from trainers.common.passes import seed_start
from trainers.xtr.start import start_from

WIDTH = 128


def texts(count: int, seed: int, longest: int = 6, width: int = WIDTH) -> TokenVectors:
    """Texts of 1 to ``longest`` tokens; only the second text has none."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, longest + 1, count)
    lengths[1] = 0
    vectors = generator.normal(size=(lengths.sum(), width)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return TokenVectors(vectors, generator.integers(0, 20, lengths.sum()), lengths)


def mean_of_maxima(queries: TokenVectors, documents: TokenVectors) -> NDArray[np.float32]:
    """Exact scores ``(Q, N)``; a document without tokens scores -inf."""
    grid = queries.vectors @ documents.vectors.T
    columns = np.split(grid, np.cumsum(documents.lengths)[:-1], axis=1)
    maxima = np.stack([each.max(axis=1, initial=-np.inf) for each in columns], axis=1)
    parts = np.split(maxima, np.cumsum(queries.lengths)[:-1])
    return np.stack([each.mean(axis=0) if len(each) else np.full(len(columns), -np.inf) for each in parts])


def test_retrieving_all_tokens_is_exact_search(monkeypatch: pytest.MonkeyPatch) -> None:
    queries, documents = texts(9, 1), texts(30, 2)
    index = TokenIndex.build(documents.vectors, documents.lengths, "m")
    exact = mean_of_maxima(queries, documents)
    expected = np.argsort(-exact, axis=1, kind="stable")[:, :10]
    for at_once in (2**23, 200):
        monkeypatch.setattr("batchwright.retrievers.xtr.index._AT_ONCE", at_once)
        found, scores = search_tokens(index, queries, 10, tokens=10**6)
        rows = [row for row in range(9) if row != 1]
        assert np.array_equal(found[rows], expected[rows])
        assert np.allclose(scores[rows], np.take_along_axis(exact, expected, axis=1)[rows], atol=1e-5)
        assert found.shape == scores.shape == (9, 10)


@pytest.mark.parametrize("imputation", ["last", "none", "mean", "constant"])
def test_every_document_is_ranked_once_however_few_tokens_are_retrieved(imputation: Imputation) -> None:
    queries, documents = texts(5, 3), texts(12, 4)
    index = TokenIndex.build(documents.vectors, documents.lengths, "m")
    found, scores = search_tokens(index, queries, 50, tokens=2, imputation=imputation)
    assert found.shape == (5, 12)
    assert [sorted(row) for row in found.tolist()] == [list(range(12))] * 5
    assert (np.diff(scores, axis=1) <= 1e-6).all()


def test_an_index_can_be_saved_mapped_and_extended(tmp_path: Path) -> None:
    queries, first, second = texts(5, 5), texts(20, 6), texts(10, 7)
    TokenIndex.build(first.vectors, first.lengths, "m").save(tmp_path / "index")
    index = TokenIndex.open(tmp_path / "index", "m")
    index.add(second.vectors, second.lengths)
    index.save(tmp_path / "index")
    both = TokenVectors(*(np.concatenate(parts) for parts in zip(first, second, strict=True)))
    whole = search_tokens(TokenIndex.build(both.vectors, both.lengths, "m"), queries, 10, 15)
    opened = TokenIndex.open(tmp_path / "index", "m")
    assert (len(opened), opened.documents) == (len(both.vectors), 30)
    for found, expected in zip(search_tokens(opened, queries, 10, 15), whole, strict=True):
        assert np.array_equal(found, expected)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["index"]


def test_another_models_index_and_a_missing_one_are_refused(tmp_path: Path) -> None:
    documents = texts(20, 6)
    TokenIndex.build(documents.vectors, documents.lengths, "one").save(tmp_path / "index")
    with pytest.raises(InputError, match="built with a model of hash one, opened with one of hash other"):
        TokenIndex.open(tmp_path / "index", "other")
    with pytest.raises(InputError, match="nowhere: no index here"):
        TokenIndex.open(tmp_path / "nowhere", "one")


def other_owners(folder: Path) -> None:
    np.save(folder / "owners.npy", np.full_like(np.load(folder / "owners.npy"), 7777))


def same_size(folder: Path) -> None:
    file = folder / "index.faiss"
    file.write_bytes(bytes(file.stat().st_size))


def one_bit(folder: Path) -> None:
    file = folder / "index.faiss"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def other_fact(name: str, value: object) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        file = folder / "index.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {name: value}))

    return damage


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "owners.npy").write_bytes(b""), r"owners\.npy: changed since it was saved"),
        (other_owners, r"owners\.npy: changed since it was saved"),
        (lambda folder: (folder / "owners.npy").unlink(), r"owners\.npy: missing"),
        (lambda folder: (folder / "index.faiss").write_bytes(b"rubbish"), r"index\.faiss: changed since it was saved"),
        (same_size, r"index\.faiss: changed since it was saved"),
        (one_bit, r"index\.faiss: changed since it was saved"),
        (lambda folder: (folder / "index.faiss").unlink(), r"index\.faiss: missing"),
        (lambda folder: (folder / "index.json").write_text("{}"), r"index\.json: not a valid index description"),
        (lambda folder: (folder / "index.json").write_text("{"), r"index\.json: not a valid index description"),
        (lambda folder: (folder / "index.json").unlink(), "no index here"),
        (other_fact("documents", 19), r"index\.json: 'documents' does not fit the index"),
        (other_fact("documents", -1), r"index\.json: not a valid index description"),
        (other_fact("documents", 2**31), r"index\.json: not a valid index description"),
        (other_fact("tokens", 3), r"index\.json: 'tokens' does not fit the index"),
        (other_fact("deleted", [20]), r"index\.json: 'deleted' does not fit the index"),
        (other_fact("deleted", [3]), r"index: [0-9]+ vectors but [0-9]+ owners; build the index again"),
    ],
)
def test_a_damaged_index_is_refused(tmp_path: Path, damage: Callable[[Path], None], message: str) -> None:
    documents = texts(20, 6)
    TokenIndex.build(documents.vectors, documents.lengths, "m").save(tmp_path / "index")
    damage(tmp_path / "index")
    with pytest.raises(InputError, match=message):
        TokenIndex.open(tmp_path / "index", "m")


def test_an_index_opened_unverified_can_be_verified_later(tmp_path: Path) -> None:
    documents = texts(20, 6)
    index = TokenIndex.build(documents.vectors, documents.lengths, "m")
    with pytest.raises(InputError, match="never saved"):
        index.verify()
    index.save(tmp_path / "index")
    opened = TokenIndex.open(tmp_path / "index", "m", verify=False)
    opened.verify()
    one_bit(tmp_path / "index")
    TokenIndex.open(tmp_path / "index", "m", verify=False)
    with pytest.raises(InputError, match=r"index\.faiss: changed since it was saved"):
        opened.verify()


@pytest.mark.parametrize("kind", ["exact", "compressed"])
def test_deleted_documents_are_as_if_they_had_never_been_added(tmp_path: Path, kind: Kind, quick: None) -> None:
    queries, documents, more = (texts(count, seed, width=16) for seed, count in enumerate((7, 300, 20)))
    index = TokenIndex.build(documents.vectors, documents.lengths, "m", kind)
    whole = {number for number in range(300) if number not in (0, 1, 7, 299)}
    index.delete([7, 0, 1, 299, 7])
    index.save(tmp_path / "index")
    index = TokenIndex.open(tmp_path / "index", "m")
    assert set(index.present.tolist()) == whole and index.documents == 300
    found, scores = search_tokens(index, queries, 1000, 10**6)
    assert [set(row) for row in found.tolist()] == [whole] * 7
    if kind == "exact":
        kept = np.isin(np.repeat(np.arange(300), documents.lengths), sorted(whole))
        lengths = documents.lengths[sorted(whole)]
        without = search_tokens(TokenIndex.build(documents.vectors[kept], lengths, "m"), queries, 1000, 10**6)
        assert np.array_equal(np.array(sorted(whole))[without[0]], found) and np.allclose(without[1], scores, atol=1e-6)
    index.add(more.vectors, more.lengths)
    index.delete([301])
    found, _ = search_tokens(index, queries, 1000, 10**6)
    assert set(found[0].tolist()) == whole | set(range(300, 320)) - {301}
    asked = TokenVectors(more.vectors[:1], np.zeros(1, np.int64), np.array([1]))
    assert search_tokens(index, asked, 1, 10)[0].tolist() == [[300]], "numbers go on after a deletion"
    with pytest.raises(InputError, match="no document 7: the index has 315 of numbers 0 to 319"):
        index.delete([7])


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_vectors_that_are_not_finite_are_refused(value: float) -> None:
    documents = texts(20, 6)
    broken = documents.vectors.copy()
    broken[3, 5] = value
    index = TokenIndex.build(documents.vectors, documents.lengths, "m")
    for action in (
        lambda: index.add(broken, documents.lengths),
        lambda: TokenIndex.build(broken, documents.lengths, "m"),
        lambda: search_tokens(index, documents._replace(vectors=broken), 10),
    ):
        with pytest.raises(InputError, match="vector 3 is not finite: 1 of"):
            action()
    assert index.documents == 20


def test_vectors_of_any_width_can_be_compressed(quick: None) -> None:
    documents = texts(300, 5, width=6)  # four dimensions a byte: two are filled up
    index = TokenIndex.build(documents.vectors, documents.lengths, "m", "compressed")
    queries = TokenVectors(
        documents.vectors[::40], np.zeros(1, np.int64), np.ones(len(documents.vectors[::40]), np.int64)
    )
    found, _ = search_tokens(index, queries, 10, 50)
    own = np.repeat(np.arange(300), documents.lengths)[::40]
    assert (found == own[:, None]).any(axis=1).mean() > 0.8


def test_an_opened_index_that_was_replaced_on_disk_must_be_opened_again(tmp_path: Path) -> None:
    documents, more = texts(20, 6), texts(10, 7)
    TokenIndex.build(documents.vectors, documents.lengths, "m").save(tmp_path / "index")
    first, second, third = (TokenIndex.open(tmp_path / "index", "m") for _ in range(3))
    second.add(more.vectors, more.lengths)
    first.add(more.vectors, more.lengths)
    first.save(tmp_path / "index")
    first.add(more.vectors, more.lengths)
    first.save(tmp_path / "index")
    with pytest.raises(InputError, match="index: replaced since it was opened; open it again and add the documents"):
        second.save(tmp_path / "index")
    with pytest.raises(InputError, match="replaced since it was opened"):
        third.add(more.vectors, more.lengths)
    assert third.documents == 20
    assert TokenIndex.open(tmp_path / "index", "m").documents == 40


def test_saving_an_index_replaces_nothing_but_an_index(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    documents = texts(20, 6)
    with pytest.raises(InputError, match="holds something other than an index"):
        TokenIndex.build(documents.vectors, documents.lengths, "m").save(tmp_path)
    with pytest.raises(InputError, match="safetensors: holds something other than an index"):
        TokenIndex.build(documents.vectors, documents.lengths, "m").save(str(tmp_path / "model.safetensors"))
    assert [file.name for file in tmp_path.iterdir()] == ["model.safetensors"]


def test_choices_that_do_not_exist_are_refused() -> None:
    queries, documents = texts(3, 1), texts(20, 6)
    index = TokenIndex.build(documents.vectors, documents.lengths, "m")
    with pytest.raises(InputError, match="imputation is 'LAST'; pass one of last, none, mean, constant"):
        search_tokens(index, queries, 5, imputation="LAST")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="kind is 'ivf'; pass one of exact, compressed"):
        TokenIndex.build(documents.vectors, documents.lengths, "m", "ivf")  # type: ignore[arg-type]
    assert search_tokens(index, queries, 5, np.int64(9))[0].shape == (3, 5)  # type: ignore[arg-type]


@pytest.mark.parametrize("numbers", [[0.5], ["0"], [True], None, {0}])
def test_numbers_that_are_not_whole_delete_nothing(numbers: Any) -> None:
    documents = texts(20, 6)
    index = TokenIndex.build(documents.vectors, documents.lengths, "m")
    with pytest.raises(InputError, match=r"documents is .*; pass a list of whole numbers"):
        index.delete(numbers)
    index.delete([])
    assert len(index.present) == 20


def test_vectors_that_do_not_fit_are_refused() -> None:
    documents = texts(20, 6)
    index = TokenIndex.build(documents.vectors, documents.lengths, "m")
    with pytest.raises(InputError, match="vectors, but lengths sum to 1"):
        index.add(documents.vectors, np.array([1]))
    with pytest.raises(InputError, match="this index needs 128 dimensions"):
        index.add(documents.vectors[:, :5], documents.lengths)
    with pytest.raises(InputError, match="this index needs 128 dimensions"):
        search_tokens(index, documents._replace(vectors=documents.vectors[:, :5]), 10)
    assert (len(index), index.documents) == (len(documents.vectors), 20)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compress small indexes, in a moment."""
    monkeypatch.setattr("batchwright.retrievers.xtr.index._ROTATIONS", 1)
    monkeypatch.setattr("batchwright.retrievers.xtr.index._LEARNED_FROM", 900)


def test_a_compressed_index_finds_nearly_the_same_as_an_exact_one_and_can_be_mapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick: None
) -> None:
    monkeypatch.setattr("batchwright.retrievers.xtr.index._DIMENSIONS", 2)
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(100, 8))[generator.integers(0, 100, 3000)]
    vectors = (vectors + 0.4 * generator.normal(size=vectors.shape)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    lengths = np.full(300, 10)
    TokenIndex.build(vectors, lengths, "m", "compressed").save(tmp_path / "index")
    assert (tmp_path / "index" / "index.faiss").stat().st_size < vectors.nbytes / 2
    opened = TokenIndex.open(tmp_path / "index", "m")
    queries = TokenVectors(vectors[::60], np.zeros(50, np.int64), np.full(10, 5))
    found, _ = search_tokens(opened, queries, 10, 50)
    exact, _ = search_tokens(TokenIndex.build(vectors, lengths, "m"), queries, 10, 50)
    assert np.mean([len(set(a) & set(b)) for a, b in zip(found.tolist(), exact.tolist(), strict=True)]) > 5
    opened.add(vectors[:10], lengths[:1])
    assert (len(opened), opened.documents) == (3010, 301)
    with pytest.raises(InputError, match="only 500 tokens: a compressed index needs at least 900; build an exact one"):
        TokenIndex.build(vectors[:500], lengths[:50], "m", "compressed")


def test_an_index_on_disk_finds_what_the_same_one_in_memory_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick: None
) -> None:
    monkeypatch.setattr("batchwright.retrievers.xtr.spilling.PART", 100)
    queries, documents, more = (texts(count, seed, width=16) for seed, count in enumerate((7, 300, 20)))
    memory = TokenIndex.build(documents.vectors, documents.lengths, "m", "compressed")
    disk = TokenIndex.spilling(documents.vectors, len(documents.vectors), "m", tmp_path)
    disk.add(documents.vectors, documents.lengths)
    for index in (disk, memory):
        index.add(more.vectors, more.lengths)
    assert (len(disk), disk.documents) == (len(memory), 320)
    for tokens in (5, 10**6):
        for found, expected in zip(*(search_tokens(each, queries, 50, tokens) for each in (disk, memory)), strict=True):
            assert np.array_equal(found, expected)
    assert len(list(tmp_path.glob("part-*"))) > 5
    disk.add(queries.vectors, queries.lengths)
    asked = TokenVectors(queries.vectors[:1], np.zeros(1, np.int64), np.array([1]))
    assert search_tokens(disk, asked, 1, 10)[0].tolist() == [[320]], "documents may follow a search"
    for change in (lambda: disk.delete([3]), lambda: disk.save(tmp_path / "index")):
        with pytest.raises(InputError, match="an index on disk can neither be saved nor delete"):
            change()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("xtr")
    seed_start(0)
    plain = ModelInfo(variant="biencoder", max_length=16)
    save_token_model(start_from(save_bert(folder / "made"), plain, "cpu"), folder / "model", Prefix())
    return describe(folder / "model")


def test_too_few_documents_are_not_compressed(model: Path, tmp_path: Path) -> None:
    retriever = TokenRetriever(model, ModelInfo.read(model))
    for documents in ([], ["one two", "three"]):
        with pytest.raises(InputError, match=r"only \d+ tokens: a compressed index needs at least 9984"):
            retriever.index_on_disk(documents, tmp_path)


def test_a_trained_model_ranks_by_the_similarities_of_its_vectors(model: Path) -> None:
    queries, documents = ["one two", "three", "four one"], ["one two three", "", "three four", "topic1"]
    encoder = load_token_model(model, 16)
    sides = encode_tokens(encoder, queries, "query"), encode_tokens(encoder, documents, "document")
    exact = mean_of_maxima(*sides)
    found, scores = retrieve(model, queries, documents, 3, 16)
    assert np.allclose(scores, -np.sort(-exact, axis=1)[:, :3], atol=1e-5)
    assert np.allclose(np.take_along_axis(exact, found, axis=1), scores, atol=1e-5)
    theirs = encoder.similarity(encoder.encode(queries), encoder.encode(documents)).numpy()
    assert np.allclose(exact[:, [0, 2, 3]], theirs[:, [0, 2, 3]], atol=1e-5)  # one document has no tokens


def test_queries_longer_than_the_limit_are_cut(model: Path) -> None:
    long, documents = "one two three four five six seven", ["one two", "six seven", "three four"]
    scores = [retrieve(model, [query], documents, 3, 6)[1] for query in (long, "one two three four")]
    assert np.array_equal(*scores)
    assert encode_tokens(load_token_model(model, 6), [long], "query").lengths.tolist() == [4]  # and CLS and SEP
