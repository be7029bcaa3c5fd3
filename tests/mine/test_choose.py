"""Hard negatives are the best-ranked documents that are not positives of the query."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from batchwright.formats.negatives import Negatives
from batchwright.formats.vectors import PairVectors
from stages.mine.documents import Known, joined
from stages.mine.stage import choose_negatives
from stages.negatives.choice import Choice


def case(seed: int, pairs: int) -> tuple[PairVectors, Negatives]:
    generator = np.random.default_rng(seed)
    vectors = generator.integers(-3, 4, (2 * pairs, 5)).astype(np.float16)
    rows = np.arange(2 * pairs).reshape(2, pairs)
    negatives = Negatives(
        scores=np.zeros(pairs, np.float32),
        thresholds=generator.integers(-5, 30, pairs).astype(np.float32),
        query_class=generator.integers(0, 3, pairs).astype(np.int32),
        document_class=generator.integers(0, 6, pairs).astype(np.int32),
        dropped=np.zeros(pairs, np.uint8),
        mined=np.empty((pairs, 0), np.int32),
    )
    classes = np.stack([negatives.query_class, negatives.document_class], axis=1)
    cells = np.stack([*np.ndindex(3, 6)])[generator.random(18) < 0.3].astype(np.int32)
    cells = cells[~(cells[:, None] == classes).all(axis=2).any(axis=1)]
    judged = replace(negatives, judged=cells, relevant=generator.random(len(cells)) < 0.5)
    return PairVectors(vectors=vectors, rows=rows), judged


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 5))
def test_the_choice_is_that_of_a_loop_over_the_ranking(seed: int, pairs: int, count: int) -> None:
    vectors, negatives = case(seed, pairs)
    generator = np.random.default_rng(seed)
    depth = int(generator.integers(1, pairs + 1))
    ranked = np.stack([generator.permutation(pairs)[:depth] for _ in range(pairs)]).astype(np.int32)
    scores = np.zeros(ranked.shape, np.float32)
    known = Known(classes=negatives.document_class, negatives=negatives)
    found = choose_negatives([(scores, ranked)], vectors, known, Choice(count=count, depth=count + pairs))
    assert found.shape == (pairs, count)
    for query in range(pairs):
        own = negatives.query_class[query]
        positives = negatives.document_class[negatives.query_class == own]
        said = {
            document: relevant
            for (asked, document), relevant in zip(negatives.judged.tolist(), negatives.relevant, strict=True)
            if asked == own
        }
        expected = []
        for row in ranked[query]:
            score = vectors.queries(np.array([query]))[0] @ vectors.documents(np.array([row]))[0]
            document = negatives.document_class[row]
            if document not in positives and not said.get(document, score >= negatives.thresholds[query]):
                expected.append(row)
        assert [row for row in found[query] if row >= 0] == expected[:count]
        assert sorted(found[query] < 0) == list(found[query] < 0)  # gaps are at the end


def test_duplicates_among_pairs_remain_so_beside_a_corpus() -> None:
    _, negatives = case(0, 3)
    pairs = np.array([0, 0, 1], np.int32)
    judged = np.array([[2, 0], [2, 1]], np.int32)
    negatives = replace(negatives, document_class=pairs, judged=judged, relevant=np.array([True, False]))
    known = joined(np.array([0, 1, 2, 1, 3], np.int32), negatives)  # near texts that a corpus divides
    same = known.classes[:, None] == known.classes
    assert same.tolist() == (np.array([0, 0, 1, 0, 2])[:, None] == [0, 0, 1, 0, 2]).tolist()
    assert known.negatives.document_class.tolist() == known.classes[:3].tolist()
    assert known.negatives.judged.tolist() == [[2, known.classes[0]], [2, known.classes[2]]]
    assert known.different.tolist() == [0, 2, 4]
