"""Arrays on disk (vectors, clusters, negatives): errors name the file and row."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from batchwright.core.errors import InputError
from batchwright.core.fingerprint import text_keys
from batchwright.formats.clusters import Clusters
from batchwright.formats.models import Prefix, Prefixes
from batchwright.formats.negatives import DOUBTFUL, INCONSISTENT, KEPT, Negatives
from batchwright.formats.vectors import DomainVectors, Provenance, VectorStore, write_domain_vectors, write_encoder

TEXTS = [f"text {number}" for number in range(50)]
VECTORS = np.arange(200, dtype=np.float16).reshape(50, 4)


def store(folder: Path, keys: NDArray[np.void] | None = None, prefixes: Prefixes | None = None) -> Path:
    write_domain_vectors(folder / "tiny" / "a domain", text_keys(TEXTS) if keys is None else keys, VECTORS)
    write_encoder(folder / "tiny", {"weights": "abc", "prefixes": (prefixes or Prefixes()).model_dump()})
    return folder / "tiny" / "a domain"


def opened(folder: Path) -> DomainVectors:
    return VectorStore.open(folder / "tiny").of("a domain")


def test_each_text_finds_its_vector_in_any_order_of_writing_and_reading(tmp_path: Path) -> None:
    store(tmp_path)
    asked = TEXTS[::-3] + TEXTS[:2]
    found = opened(tmp_path).of("query", asked)
    np.testing.assert_array_equal(found, VECTORS[[TEXTS.index(text) for text in asked]].astype(np.float32))
    assert found.dtype == np.float32


def test_keys_that_end_in_zero_bytes_are_distinguished(tmp_path: Path) -> None:
    raw = [bytes([first, *[0] * 14, last]) for first in range(5) for last in range(10)]
    write_domain_vectors(tmp_path, np.frombuffer(b"".join(raw[::-1]), dtype="V16"), VECTORS)
    assert [key.tobytes() for key in np.load(tmp_path / "keys.npy")] == raw
    np.testing.assert_array_equal(np.load(tmp_path / "vectors.npy"), VECTORS[::-1])


def test_the_prefix_of_a_side_is_part_of_the_encoded_text(tmp_path: Path) -> None:
    prefixes = Prefixes(default=Prefix(document="search_document: "))
    store(tmp_path, text_keys(["search_document: " + text for text in TEXTS]), prefixes)
    np.testing.assert_array_equal(opened(tmp_path).of("document", TEXTS), VECTORS)
    with pytest.raises(InputError, match="no vector for the query 'text 0'; run the stage 'embed' again"):
        opened(tmp_path).of("query", TEXTS)


def test_a_text_without_a_vector_is_named(tmp_path: Path) -> None:
    store(tmp_path)
    with pytest.raises(InputError, match=r"a domain.*no vector for the document 'unheard of'"):
        opened(tmp_path).of("document", [TEXTS[0], "unheard of"])


def test_no_texts_have_no_vectors(tmp_path: Path) -> None:
    store(tmp_path)
    assert opened(tmp_path).of("query", []).shape == (0, 4)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_vector_that_is_not_finite_is_reported_with_file_and_row(tmp_path: Path, value: float) -> None:
    file = store(tmp_path) / "vectors.npy"
    broken = np.load(file)
    broken[37, 2] = value
    np.save(file, broken)
    with pytest.raises(InputError, match=r"vectors\.npy: row 37 is not finite"):
        opened(tmp_path)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (VECTORS.astype(np.float32), r"vectors\.npy: expected float16 of shape \(None, None\), found float32"),
        (VECTORS.ravel(), r"vectors\.npy: expected .* found float16 of shape \(200,\)"),
        (VECTORS[:-1], r"keys\.npy: expected .* of shape \(49,\), found .* of shape \(50,\)"),
    ],
)
def test_vectors_of_the_wrong_shape_or_dtype_are_reported(
    tmp_path: Path, vectors: NDArray[np.generic], message: str
) -> None:
    np.save(store(tmp_path) / "vectors.npy", vectors)
    with pytest.raises(InputError, match=message):
        opened(tmp_path)


@pytest.mark.parametrize("kept", [0, 5, 60, 300])
def test_a_truncated_array_is_reported(tmp_path: Path, kept: int) -> None:
    file = store(tmp_path) / "vectors.npy"
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(InputError, match=r"vectors\.npy: damaged"):
        opened(tmp_path)


def test_pickled_objects_are_not_loaded(tmp_path: Path) -> None:
    np.save(store(tmp_path) / "vectors.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=r"vectors\.npy"):
        opened(tmp_path)


def test_the_error_for_missing_vectors_names_the_stage_or_the_existing_vectors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="run the stage 'embed' first"):
        VectorStore.open(tmp_path / "nowhere" / "tiny")
    store(tmp_path)
    with pytest.raises(InputError, match=r"no vectors of that name; available: tiny"):
        VectorStore.open(tmp_path / "tyni")
    with pytest.raises(InputError, match=r"other/vectors\.npy: no such file; run the stage 'embed' first"):
        VectorStore.open(tmp_path / "tiny").of("other")


def test_clusters_are_read_back_with_their_sizes(tmp_path: Path) -> None:
    centroids = np.ones((3, 2, 4), dtype=np.float32)
    Clusters(assignment=np.array([2, 0, 2], dtype=np.int32), centroids=centroids).write(tmp_path, "a/b", 0)
    clusters = Clusters.read(tmp_path, "a/b", 0, pairs=3)
    assert clusters.sizes.tolist() == [1, 0, 2]
    np.testing.assert_array_equal(clusters.centroids, centroids)


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ([0, 1], r"assignment\.npy: expected int32 of shape \(3,\)"),
        ([0, 1, 3], r"assignment\.npy: refers to a cluster outside the 3 that exist; run the stage 'cluster' again"),
        ([0, -2, 1], "a cluster outside the 3 that exist"),
    ],
)
def test_clusters_that_do_not_fit_the_pairs_are_refused(tmp_path: Path, assignment: list[int], message: str) -> None:
    Clusters(assignment=np.array(assignment), centroids=np.ones((3, 2, 4), np.float32)).write(tmp_path, "a", 0)
    with pytest.raises(InputError, match=message):
        Clusters.read(tmp_path, "a", 0, pairs=3)


def negatives_of_three(mined: list[list[int]]) -> Negatives:
    scores, classes = np.ones(3, np.float32), np.arange(3, dtype=np.int32)
    return Negatives(
        scores=scores,
        thresholds=scores,
        query_class=classes,
        document_class=classes,
        dropped=np.array([KEPT, DOUBTFUL, INCONSISTENT], np.uint8),
        mined=np.array(mined, np.int32).reshape(3, -1),
    )


def test_negatives_are_read_back_and_stale_ones_are_refused(tmp_path: Path) -> None:
    negatives_of_three([[1, -1], [2, 0], [-1, -1]]).write(tmp_path, "a")
    read = Negatives.read(tmp_path, "a", pairs=3)
    assert read.document_class.tolist() == [0, 1, 2]
    assert read.dropped.tolist() == [KEPT, DOUBTFUL, INCONSISTENT]
    assert read.kept.tolist() == [True, False, False]
    assert read.mined.tolist() == [[1, -1], [2, 0], [-1, -1]]
    with pytest.raises(
        InputError, match=r"mined\.npy: expected int32 of shape \(4, None\).*run the stage 'filter' again"
    ):
        Negatives.read(tmp_path, "a", pairs=4)


@pytest.mark.parametrize("row", [3, -2])
def test_mined_negatives_outside_the_pairs_are_refused(tmp_path: Path, row: int) -> None:
    negatives_of_three([[1], [row], [-1]]).write(tmp_path, "a")
    message = r"mined\.npy: refers to a row outside the 3 training pairs; run the stage 'filter' again"
    with pytest.raises(InputError, match=message):
        Negatives.read(tmp_path, "a", pairs=3)


def test_provenance_is_read_back(tmp_path: Path) -> None:
    source = Provenance(vectors="tiny", weights="abc", pairs="def")
    source.write(tmp_path)
    assert Provenance.read(tmp_path, made_by="cluster") == source
    with pytest.raises(InputError, match="run the stage 'cluster' first"):
        Provenance.read(tmp_path / "none", made_by="cluster")
