"""Masks and hardness against plain loops over texts and vectors."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.masks import unpack_mask
from formats.negatives import Negatives
from formats.pairs import read_pairs
from formats.results import read_tsv
from formats.shards import ShardSet
from stages.pack.hardness import measure
from stages.pack.masks import KnownPositives, false_negatives
from tests.helpers import planted_vectors, topic_pairs, write_params
from tests.pack.corpora import RunPack, prepare, with_duplicates

MARGIN = 0.125
SHARDS = Path("data/shards")


def normalised(text: str) -> str:
    return " ".join(text.casefold().split())


def inner(left: list[float], right: list[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))


def brute_force(queries: list[str], documents: list[str], known: dict[str, set[str]]) -> np.ndarray:
    """The mask by its definition; ``known`` are the normalised documents of each normalised query."""
    left, right = planted_vectors(queries).tolist(), planted_vectors(documents).tolist()
    mask = np.zeros((len(queries), len(queries)), bool)
    for i, query in enumerate(queries):
        for j, document in enumerate(documents):
            known_positive = normalised(document) in known[normalised(query)]
            scores_like_one = inner(left[i], right[j]) >= inner(left[i], right[i]) - MARGIN
            mask[i, j] = i != j and (known_positive or scores_like_one)
    return mask


def known_positives(domain: str) -> dict[str, set[str]]:
    known: dict[str, set[str]] = {}
    for pair in read_pairs(Path("data/pairs"), domain, "train").to_pylist():
        known.setdefault(normalised(pair["query"]), set()).add(normalised(pair["document"]))
    return known


@pytest.mark.parametrize("policy", ["contextual", "random"])
def test_masks_equal_brute_force_bit_for_bit(corpus: Path, run_pack: RunPack, policy: str) -> None:
    run_pack(policy)
    shards = ShardSet.open(SHARDS / policy)
    masked = by_identity = 0
    for number in range(len(shards)):
        batch = shards.batch(number).to_pydict()
        known = known_positives(batch["domain"][0])
        expected = brute_force(batch["query"], batch["document"], known)
        np.testing.assert_array_equal(unpack_mask(batch["mask"], len(expected)), expected)
        masked += expected.sum()
        by_identity += sum(normalised(d) in known[normalised(q)] for q in batch["query"] for d in batch["document"])
    assert masked > 0
    assert by_identity > len(shards) * 8


def test_a_known_positive_is_masked_however_low_it_scores(workspace: Path, run_pack: RunPack) -> None:
    pairs = [("topic0 same question", f"topic{number} answer {number}") for number in range(8)]
    prepare(birds=pairs)
    run_pack("random")
    mask = unpack_mask(ShardSet.open(SHARDS / "random").batch(0)["mask"].to_pylist(), 8)
    np.testing.assert_array_equal(mask, ~np.eye(8, dtype=bool))


def test_a_document_like_ones_own_is_masked_on_both_sides(workspace: Path, run_pack: RunPack) -> None:
    write_params(workspace, {"pack.batch_size": 2, "filter.margin": 0.0, "pack.epochs": 1})
    prepare(birds=[("topic0 one", "topic0 Same  answer"), ("topic1 two", "topic0 same answer")])
    run_pack("random")
    mask = unpack_mask(ShardSet.open(SHARDS / "random").batch(0)["mask"].to_pylist(), 2)
    np.testing.assert_array_equal(mask, ~np.eye(2, dtype=bool))


@given(st.integers(2, 20), st.integers(0, 2**32 - 1))
def test_the_diagonal_is_never_masked(batch: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    scores = generator.normal(size=(batch, batch)).astype(np.float32)
    known = generator.random((batch, batch)) < 0.5
    mask = false_negatives(scores, np.diag(scores) - np.float32(0.3), known)
    assert not mask.diagonal().any()
    for i in range(batch):
        for j in set(range(batch)) - {i}:
            assert mask[i, j] == (known[i, j] or scores[i, j] >= scores[i, i] - np.float32(0.3))


CLASSES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=20)


@given(CLASSES, st.data())
def test_known_positives_are_the_documents_beside_a_query_in_any_row(
    rows: list[tuple[int, int]], data: st.DataObject
) -> None:
    classes = np.array(rows, np.int32)
    zeros = np.zeros(len(rows), np.float32)
    known = KnownPositives(
        Negatives(scores=zeros, thresholds=zeros, query_class=classes[:, 0], document_class=classes[:, 1])
    )
    chosen = classes[data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=8))]
    expected = [[(query, document) in rows for document in chosen[:, 1]] for query in chosen[:, 0]]
    assert known.among(chosen[:, 0], chosen[:, 1]).tolist() == expected


@given(st.integers(2, 12), st.integers(0, 2**32 - 1))
def test_hardness_is_the_mean_over_negatives(batch: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    similarities = generator.normal(size=(batch, batch)).astype(np.float32)
    mask = generator.random((batch, batch)) < 0.5
    np.fill_diagonal(mask, False)
    every = [float(similarities[i, j]) for i in range(batch) for j in range(batch) if i != j]
    kept = [float(similarities[i, j]) for i in range(batch) for j in range(batch) if i != j and not mask[i, j]]
    measured = measure(similarities, mask)
    assert measured.hardness == pytest.approx(sum(every) / len(every))
    assert measured.unmasked_hardness == pytest.approx(sum(kept) / len(kept) if kept else 0.0)
    assert measured.masked_share == pytest.approx(1 - len(kept) / len(every))


def test_the_hardness_reported_is_that_of_the_texts_packed(corpus: Path, run_pack: RunPack) -> None:
    run_pack("contextual")
    shards = ShardSet.open(SHARDS / "contextual")
    table = read_tsv(Path("results/pack/contextual.tsv"), made_by="pack")
    assert len(table) == len(shards)
    for number, row in enumerate(table):
        batch = shards.batch(number).to_pydict()
        left, right = planted_vectors(batch["query"]).tolist(), planted_vectors(batch["document"]).tolist()
        every = [inner(left[i], right[j]) for i in range(8) for j in range(8) if i != j]
        assert float(row["hardness"]) == pytest.approx(sum(every) / len(every), rel=1e-5)
        assert (row["batch"], row["domain"]) == (str(number), batch["domain"][0])


def test_contextual_batches_are_harder_than_random_ones(workspace: Path, run_pack: RunPack) -> None:
    prepare(birds=with_duplicates(topic_pairs(200, topics=8)))
    for policy in ("contextual", "random"):
        run_pack(policy)
    ours, control = (ShardSet.open(SHARDS / policy).manifest.epochs[0] for policy in ("contextual", "random"))
    assert ours.hardness > control.hardness + 0.2
    assert ours.unmasked_hardness > control.unmasked_hardness
