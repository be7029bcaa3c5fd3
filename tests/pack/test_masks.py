"""Masks and hardness, checked against plain loops over texts and vectors."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchwright.core.files import read_json, read_tsv
from batchwright.formats.negatives import KnownPositives, Negatives, judged
from batchwright.formats.pairs import PAIRS_SCHEMA, read_pairs
from batchwright.formats.shards import REASONS, ShardSet, pack_mask, pack_reasons, read_reasons, unpack_mask
from batchwright.formats.vectors import PairVectors
from stages.filter import stage as judge
from stages.pack.domain import Domain, mask_of, masked_by, measure, reasons_of, rows_mostly_masked
from tests.helpers import planted_vectors, topic_pairs, write_params
from tests.pack.corpora import RunPack, prepare, with_duplicates

SHARDS = Path("data/shards")


def normalised(text: str) -> str:
    return " ".join(text.casefold().split())


def inner(left: list[float], right: list[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))


RULES: dict[str, Callable[[float], float]] = {
    "margin": lambda score: score - 0.125,
    "factor": lambda score: score - 0.25 * abs(score),
    "threshold": lambda score: 0.5,
}
VALUES = {"margin": 0.125, "factor": 0.25, "threshold": 0.5}


def brute_force(
    queries: list[str], documents: list[str], known: dict[str, set[str]], lowest: Callable[[float], float]
) -> np.ndarray:
    """Compute the mask by its definition; ``known`` maps each normalised query to its normalised documents."""
    left, right = planted_vectors(queries).tolist(), planted_vectors(documents).tolist()
    mask = np.zeros((len(queries), len(queries)), bool)
    for i, query in enumerate(queries):
        for j, document in enumerate(documents):
            known_positive = normalised(document) in known[normalised(query)]
            scores_like_one = inner(left[i], right[j]) >= lowest(inner(left[i], right[i]))
            mask[i, j] = i != j and (known_positive or scores_like_one)
    return mask


def known_positives(domain: str) -> dict[str, set[str]]:
    known: dict[str, set[str]] = {}
    for pair in read_pairs(Path("data/pairs"), domain, "train").to_pylist():
        known.setdefault(normalised(pair["query"]), set()).add(normalised(pair["document"]))
    return known


@pytest.mark.parametrize(
    ("policy", "rule"),
    [("contextual", "margin"), ("random", "margin"), ("contextual", "factor"), ("contextual", "threshold")],
)
def test_masks_equal_brute_force_bit_for_bit(corpus: Path, run_pack: RunPack, policy: str, rule: str) -> None:
    write_params(corpus, {"filter.margin": None, f"filter.{rule}": VALUES[rule]})
    judge.main()
    run_pack(policy)
    shards = ShardSet.open(SHARDS / policy)
    masked = by_identity = 0
    for number in range(len(shards)):
        batch = shards.batch(number).to_pydict()
        known = known_positives(batch["domain"][0])
        expected = brute_force(batch["query"], batch["document"], known, RULES[rule])
        np.testing.assert_array_equal(unpack_mask(batch["mask"], len(expected)), expected)
        masked += expected.sum()
        by_identity += sum(normalised(d) in known[normalised(q)] for q in batch["query"] for d in batch["document"])
    assert masked > 0
    assert by_identity > len(shards) * 8


def test_pairs_must_be_alike_as_well(corpus: Path, run_pack: RunPack) -> None:
    write_params(corpus, {"filter.likeness": 0.7})
    judge.main()
    run_pack("contextual")
    shards = ShardSet.open(SHARDS / "contextual")
    fewer = masked = 0
    for number in range(len(shards)):
        batch = shards.batch(number).to_pydict()
        known = known_positives(batch["domain"][0])
        by_score = brute_force(batch["query"], batch["document"], known, RULES["margin"])
        added = planted_vectors(batch["query"]).astype(float) + planted_vectors(batch["document"]).astype(float)
        added /= np.linalg.norm(added, axis=1, keepdims=True)
        certain = brute_force(batch["query"], batch["document"], known, lambda _: np.inf)
        expected = by_score & (certain | (added @ added.T >= 0.7))
        np.testing.assert_array_equal(unpack_mask(batch["mask"], len(expected)), expected)
        masked += expected.sum()
        fewer += by_score.sum() - expected.sum()
    assert masked > 0 < fewer


def test_judgements_overrule_the_surrogate_for_duplicates_too(corpus: Path, run_pack: RunPack) -> None:
    """Of all cells that no training pair decides, a third is judged, at random."""
    write_params(corpus, {"filter.judgements": ["raw/judgements/said.jsonl"]})
    generator = np.random.default_rng(2)
    said: dict[tuple[str, str], bool] = {}
    for domain in ("birds", "fish"):
        known = known_positives(domain)
        documents = sorted(set().union(*known.values()))
        cells = [(query, document) for query in known for document in documents if document not in known[query]]
        said |= {cell: bool(generator.integers(2)) for cell in cells if generator.random() < 0.3}
    rows = [{"query": q.upper(), "document": d, "label": int(label)} for (q, d), label in said.items()]
    Path("raw/judgements").mkdir(parents=True, exist_ok=True)
    Path("raw/judgements/said.jsonl").write_text("\n".join(map(json.dumps, rows)))
    judge.main()
    run_pack("random")
    shards = ShardSet.open(SHARDS / "random")
    changed = {True: 0, False: 0}
    answers = 0
    for number in range(len(shards)):
        batch = shards.batch(number).to_pydict()
        expected = brute_force(batch["query"], batch["document"], known_positives(batch["domain"][0]), RULES["margin"])
        for i, j in np.ndindex(expected.shape):
            verdict = said.get((normalised(batch["query"][i]), normalised(batch["document"][j])))
            answers += verdict is True
            if verdict is not None and verdict != expected[i, j]:
                expected[i, j] = verdict
                changed[verdict] += 1
        np.testing.assert_array_equal(unpack_mask(batch["mask"], len(expected)), expected)
    assert changed[True] > 50 < changed[False]
    shares = read_json(Path("results/pack/random.json"), made_by="pack")["masked_by"]
    assert shares["judged"] == pytest.approx(answers / len(shards) / (8 * 7), abs=1e-6)


def test_a_known_positive_is_masked_however_low_it_scores(workspace: Path, run_pack: RunPack) -> None:
    pairs = [("topic0 same question", f"topic{number} answer {number}") for number in range(8)]
    prepare(birds=pairs)
    run_pack("random")
    mask = unpack_mask(ShardSet.open(SHARDS / "random").batch(0)["mask"].to_pylist(), 8)
    np.testing.assert_array_equal(mask, ~np.eye(8, dtype=bool))


def test_near_duplicate_queries_share_their_documents(workspace: Path, run_pack: RunPack) -> None:
    """Each query's document is a known positive of the other query."""
    write_params(workspace, {"pack.batch_size": 2, "filter.margin": 0.0, "pack.epochs": 1})
    question = "topic0 how do the birds that live beside the lake find their way when they fly south before winter"
    prepare(birds=[(question, "topic1 one answer"), (f"{question}s", "topic2 another answer")])
    run_pack("random")
    mask = unpack_mask(ShardSet.open(SHARDS / "random").batch(0)["mask"].to_pylist(), 2)
    np.testing.assert_array_equal(mask, ~np.eye(2, dtype=bool))
    by_reason = ShardSet.open(SHARDS / "random").manifest.epochs[0].masked_by
    assert by_reason == {"known_positive": 1.0, "duplicate": 0.0, "judged": 0.0, "score": 0.0}


def test_duplicate_documents_are_masked_for_both_queries(workspace: Path, run_pack: RunPack) -> None:
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
    mask = mask_of(scores >= np.diag(scores)[:, None] - np.float32(0.3), known)
    assert not mask.diagonal().any()
    for i in range(batch):
        for j in set(range(batch)) - {i}:
            assert mask[i, j] == (known[i, j] or scores[i, j] >= scores[i, i] - np.float32(0.3))


@given(st.integers(2, 20), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_each_masked_cell_counts_for_one_reason(batch: int, texts: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    queries, documents = generator.integers(texts, size=(2, 3 * batch)).astype(np.int32)
    zeros = np.zeros(3 * batch, np.float32)
    rows = set(zip(queries.tolist(), documents.tolist(), strict=True))
    others = [cell for cell in np.ndindex(texts, texts) if cell not in rows and generator.random() < 0.3]
    negatives = Negatives(
        scores=zeros,
        thresholds=zeros,
        query_class=queries,
        document_class=documents,
        dropped=zeros.astype(np.uint8),
        mined=np.empty((3 * batch, 0), np.int32),
        judged=np.array(others, np.int32).reshape(-1, 2),
        relevant=np.ones(len(others), bool),
    )
    known, relevant = (
        each.among(queries[:batch], documents[:batch])
        for each in (KnownPositives(negatives), judged(negatives, relevant=True))
    )
    scores = generator.normal(size=(batch, batch)).astype(np.float32)
    mask = mask_of(scores >= np.float32(0.5), known)
    cells: list[list[str | None]] = [[None] * batch for _ in range(batch)]
    for i, j in ((i, j) for i in range(batch) for j in range(batch) if i != j):
        if documents[j] == documents[i]:
            cells[i][j] = "duplicate"
        elif (int(queries[i]), int(documents[j])) in rows:
            cells[i][j] = "known_positive"
        elif (int(queries[i]), int(documents[j])) in others:
            cells[i][j] = "judged"
        elif scores[i, j] >= 0.5:
            cells[i][j] = "score"
    reasons = reasons_of(mask, known, relevant, documents[:batch])
    stored = pa.record_batch({"mask": pack_mask(mask), "reasons": pack_reasons(reasons, mask)})
    assert [[None if code < 0 else REASONS[code] for code in row] for row in read_reasons(stored).tolist()] == cells
    shares = masked_by(reasons, batch)
    counts = {reason: sum(row.count(reason) for row in cells) for reason in REASONS}
    assert {reason: round(share * batch * (batch - 1)) for reason, share in shares.items()} == counts
    assert sum(shares.values()) == pytest.approx(measure(scores, mask).masked_share)


@given(st.integers(2, 12), st.integers(0, 2**32 - 1))
def test_rows_count_as_mostly_masked_above_a_half_of_their_negatives(batch: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    mask = generator.random((batch, batch)) < generator.random()
    np.fill_diagonal(mask, False)
    assert rows_mostly_masked(mask) == sum(sum(row) / (batch - 1) > 0.5 for row in mask.tolist())


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


def test_the_reported_hardness_is_that_of_the_packed_texts(corpus: Path, run_pack: RunPack) -> None:
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


def test_each_row_has_its_hardness_its_masked_share_and_its_cluster(workspace: Path, run_pack: RunPack) -> None:
    write_params(workspace, {"cluster.cluster_size": 8, "cluster.draws": 2})
    prepare(birds=with_duplicates(topic_pairs(50)), fish=topic_pairs(45, seed=1))
    run_pack("contextual")
    shards = ShardSet.open(SHARDS / "contextual")
    some = 0
    for epoch, summary in enumerate(shards.manifest.epochs):
        for number in range(summary.first_batch, summary.first_batch + summary.batches):
            batch = shards.batch(number).to_pydict()
            pairs = read_pairs(Path("data/pairs"), domain := batch["domain"][0], "train")["id"].to_pylist()
            assignment = np.load(f"data/clusters/{domain}/{epoch}/assignment.npy")
            assert batch["cluster"] == [assignment[pairs.index(name)] for name in batch["id"]]
            left, right = planted_vectors(batch["query"]).tolist(), planted_vectors(batch["document"]).tolist()
            mask = unpack_mask(batch["mask"], 8)
            for i, row in enumerate(mask):
                kept = [inner(left[i], right[j]) for j in range(8) if i != j and not row[j]]
                assert batch["hardness"][i] == pytest.approx(sum(kept) / len(kept) if kept else 0, abs=1e-4)
                assert batch["masked_share"][i] == pytest.approx(row.sum() / 7)
                some += 0 < row.sum() < 7
    assert some > 10


def test_the_masked_share_is_reported_by_reason_for_batches_epochs_and_domains(corpus: Path, run_pack: RunPack) -> None:
    write_params(corpus, {"pack.cluster_share": [0.0, 1.0]})  # duplicates meet in random batches only
    run_pack("contextual")
    table = read_tsv(Path("results/pack/contextual.tsv"), made_by="pack")
    summary = read_json(Path("results/pack/contextual.json"), made_by="pack")
    epochs = ShardSet.open(SHARDS / "contextual").manifest.epochs
    for row in table:
        assert sum(float(row[f"masked_{reason}"]) for reason in REASONS) == pytest.approx(
            float(row["masked_share"]), abs=1e-5
        )
    for reason in REASONS:
        for number, epoch in enumerate(epochs):
            of_epoch = [float(row[f"masked_{reason}"]) for row in table if row["epoch"] == str(number)]
            assert epoch.masked_by[reason] == pytest.approx(sum(of_epoch) / len(of_epoch), abs=1e-5)
        for domain in ("birds", "fish"):
            of_domain = [float(row[f"masked_{reason}"]) for row in table if row["domain"] == domain]
            found = summary["domains"][domain]
            assert found["batches"] == len(of_domain)
            assert found["masked_by"][reason] == pytest.approx(sum(of_domain) / len(of_domain), abs=1e-5)
    by_reason = summary["domains"]["birds"]["masked_by"]
    assert all(by_reason[reason] > 0 for reason in REASONS if reason != "judged")
    assert summary["domains"]["fish"]["masked_by"]["duplicate"] == 0


def test_mined_negatives_follow_those_of_the_source(workspace: Path, run_pack: RunPack) -> None:
    write_params(workspace, {"filter.mine": {"count": 3, "depth": 10}})
    prepare(birds=topic_pairs(40))
    run_pack("contextual")
    pairs = read_pairs(Path("data/pairs"), "birds", "train")
    negatives = Negatives.read(Path("data/negatives"), "birds", len(pairs))
    documents, places = pairs["document"].to_pylist(), {name: row for row, name in enumerate(pairs["id"].to_pylist())}
    shards = ShardSet.open(SHARDS / "contextual")
    for number in range(len(shards)):
        batch = shards.batch(number).to_pydict()
        for name, hard in zip(batch["id"], batch["negatives"], strict=True):
            assert hard == [documents[row] for row in negatives.mined[places[name]] if row >= 0]
    assert any(negatives.mined.ravel() >= 0)


def rows_of_a_domain(count: int, **columns: object) -> pa.Table:
    rows = [
        {"id": str(row), "query": "q", "document": f"d{row}", "domain": "birds", "split": "train", "negatives": []}
        for row in range(count)
    ]
    return pa.Table.from_pylist([row | columns for row in rows], schema=PAIRS_SCHEMA)


def test_a_document_whose_vector_is_zero_is_never_masked_by_score() -> None:
    """Its own pair is unread, too; a query that scores .05 would mask it by a margin of .1."""
    vectors = np.eye(4, dtype=np.float16)[[0, 1, 2, 3, 0, 0, 2, 2]]
    vectors[4, 0], vectors[6] = 0.05, 0
    pairs = PairVectors(vectors=vectors, rows=np.arange(8).reshape(2, 4))
    classes, scores = np.arange(4, dtype=np.int32), pairs.scores()
    negatives = Negatives(
        scores=scores,
        thresholds=scores - np.float32(0.1),
        query_class=classes,
        document_class=classes,
        dropped=np.zeros(4, np.uint8),
        mined=np.empty((4, 0), np.int32),
    )
    domain = Domain(
        pairs=rows_of_a_domain(4).drop_columns("split"), negatives=negatives, vectors=pairs, surrogate=pairs
    )
    batch, _ = domain.batch(np.arange(4), classes)
    assert unpack_mask(batch["mask"], 4)[0].tolist() == [False, True, False, True]


def test_a_mined_negative_that_the_source_has_too_appears_once() -> None:
    table = rows_of_a_domain(4, negatives=["d2", "x"])
    classes, zeros = np.arange(4, dtype=np.int32), np.zeros(4, np.float32)
    negatives = Negatives(
        scores=zeros,
        thresholds=zeros,
        query_class=classes,
        document_class=classes,
        dropped=zeros.astype(np.uint8),
        mined=np.array([[2, 3], [3, -1], [-1, -1], [0, 2]], np.int32),
    )
    vectors = PairVectors(vectors=np.ones((8, 2), np.float16), rows=np.arange(8).reshape(2, 4))
    domain = Domain(pairs=table.drop_columns("split"), negatives=negatives, vectors=vectors, surrogate=vectors)
    batch, _ = domain.batch(np.array([3, 0, 2, 1]), np.arange(4, dtype=np.int32))
    assert batch["negatives"].to_pylist() == [["d2", "x", "d0"], ["d2", "x", "d3"], ["d2", "x"], ["d2", "x", "d3"]]


def test_contextual_batches_are_harder_than_random_ones(workspace: Path, run_pack: RunPack) -> None:
    prepare(birds=with_duplicates(topic_pairs(200, topics=8)))
    for policy in ("contextual", "random"):
        run_pack(policy)
    ours, control = (ShardSet.open(SHARDS / policy).manifest.epochs[0] for policy in ("contextual", "random"))
    assert ours.hardness > control.hardness + 0.2
    assert ours.unmasked_hardness > control.unmasked_hardness
