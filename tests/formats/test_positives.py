"""Known positives, compared with a direct search through all rows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from batchwright.formats.negatives import KnownPositives, Negatives

CLASSES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=20)


def known_positives(classes: np.ndarray) -> KnownPositives:
    zeros = np.zeros(len(classes), np.float32)
    return KnownPositives(
        Negatives(
            scores=zeros,
            thresholds=zeros,
            query_class=classes[:, 0],
            document_class=classes[:, 1],
            dropped=zeros.astype(np.uint8),
            mined=np.empty((len(classes), 0), np.int32),
        )
    )


@given(CLASSES, st.data())
def test_known_positives_are_the_documents_paired_with_a_query_in_any_row(
    rows: list[tuple[int, int]], data: st.DataObject
) -> None:
    classes = np.array(rows, np.int32)
    chosen = classes[data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=8))]
    queries, documents = chosen[:, 0], chosen[:, 1]
    known = known_positives(classes)
    expected = [[(query, document) in rows for document in documents] for query in queries]
    assert known.among(queries, documents).tolist() == expected
    assert known.contains(queries[:, None], documents[None, :]).tolist() == expected


@given(CLASSES)
def test_each_document_of_a_query_is_counted_once(rows: list[tuple[int, int]]) -> None:
    classes = np.array(rows, np.int32)
    expected = [len({document for query, document in rows if query == of_row}) for of_row, _ in rows]
    assert known_positives(classes).count(classes[:, 0]).tolist() == expected


def test_a_domain_without_pairs_has_none() -> None:
    nothing = np.empty((0, 2), np.int32)
    assert known_positives(nothing).count(nothing[:, 0]).tolist() == []
