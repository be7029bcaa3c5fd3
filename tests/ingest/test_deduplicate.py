"""The first of equal pairs in a domain is kept, the split depends on the query alone, and no row is lost."""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchwright.core.fingerprint import content_id
from pipelines.ingest.domain import deduplicate
from pipelines.ingest.read import REJECTED, sift
from pipelines.ingest.sources.base import Row
from pipelines.ingest.splits import dev, held_out

values = st.sampled_from(["a", "b", "c", " a ", "", None])
raw_rows = st.lists(st.tuples(values, values, st.sampled_from(["x", "y"])), max_size=30)


def rows_of(raw: list[tuple[str | None, str | None, str]]) -> list[Row]:
    return [Row("file", number, *values) for number, values in enumerate(raw, start=1)]


def oracle(raw: list[tuple[str | None, str | None, str]]) -> dict[str, int]:
    """First row number of each id, in id order."""
    first: dict[str, int] = {}
    for row in rows_of(raw):
        query, document = (str(value or "").strip() for value in (row.query, row.document))
        if query and document and query != document:
            first.setdefault(content_id(str(row.domain), query, document), row.number)
    return dict(sorted(first.items()))


def of_part(number: int, rows: list[Row]) -> pa.RecordBatch:
    candidates, _ = sift(rows)
    return candidates.append_column("part", pa.array([number] * len(candidates), pa.int32()))


@settings(deadline=None)
@given(raw_rows, st.integers(1, 30))
def test_the_first_of_equal_pairs_is_kept_and_every_row_is_accounted_for(
    raw: list[tuple[str | None, str | None, str]], cut: int
) -> None:
    rows = rows_of(raw)
    candidates = pa.Table.from_batches([of_part(1, rows[cut:]), of_part(0, rows[:cut])])
    unique, duplicates = deduplicate(candidates)
    assert dict(zip(unique["id"].to_pylist(), unique["row"].to_pylist(), strict=True)) == oracle(raw)
    assert unique["id"].to_pylist() == list(oracle(raw))
    numbers = [*unique["row"].to_pylist(), *duplicates["row"].to_pylist()]
    numbers += sift(rows)[1]["row"].to_pylist()
    assert sorted(numbers) == list(range(1, len(raw) + 1))
    assert duplicates.select(REJECTED.names).schema == REJECTED
    assert duplicates["part"].type == pa.int32()
    assert set(duplicates["reason"].to_pylist()) <= {"duplicate"}


def test_part_and_row_determine_the_first_pair_whatever_the_order_of_arrival() -> None:
    rows = [Row("file", number, "q", "d", "x") for number in (7, 2)]
    late, early = of_part(1, rows), of_part(0, [Row("file", 9, "q", "d", "x")])
    unique, duplicates = deduplicate(pa.Table.from_batches([late, early]))
    assert unique["row"].to_pylist() == [9]
    assert duplicates["row"].to_pylist() == [2, 7]


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("qr"), st.lists(st.sampled_from("klmn"), max_size=3))), st.integers(0, 9))
def test_the_first_of_equal_pairs_gets_the_negatives_of_all_in_order_and_each_once(
    raw: list[tuple[str, list[str]]], cut: int
) -> None:
    rows = [Row("file", n, query, "d", "x", list(negatives)) for n, (query, negatives) in enumerate(raw)]
    unique, _ = deduplicate(pa.Table.from_batches([of_part(1, rows[cut:]), of_part(0, rows[:cut][::-1])]))
    expected: dict[str, dict[str, None]] = {}
    for query, negatives in raw:
        expected.setdefault(query, {}).update(dict.fromkeys(negatives))
    assert {pair["query"]: pair["negatives"] for pair in unique.to_pylist()} == {
        query: list(joined) for query, joined in expected.items()
    }


@settings(deadline=None)
@given(st.lists(st.text("abc", min_size=1, max_size=3), min_size=1))
def test_a_query_is_in_the_same_split_in_every_domain(queries: list[str]) -> None:
    rows = [Row("file", 1, query, f"document {domain}", domain) for query in queries for domain in ("x", "y")]
    pairs, _ = sift(rows)
    is_test = held_out(pairs["query_hash"].to_numpy(), 0.5)
    sides = dict(zip(pairs["query"].to_pylist(), is_test, strict=True))
    assert [sides[query] for query in pairs["query"].to_pylist()] == list(is_test)


@pytest.mark.parametrize("other", ["HOW do I reset it", "how  do I reset it?", "How do I reset it!"])
def test_a_query_is_in_the_same_split_however_it_is_written(other: str) -> None:
    pairs, _ = sift(
        [Row("file", 1, query, "a document", "x") for query in ("how do I reset it", other, "how do I set it")]
    )
    first, second, third = pairs["query_hash"].to_pylist()
    assert first == second != third


def test_the_held_out_share_is_as_requested_and_larger_shares_include_smaller_ones() -> None:
    hashes = np.random.default_rng(0).integers(0, 2**64, 20_000, dtype=np.uint64)
    shares = [0.0, 0.05, 0.3, 0.999]
    sides = [held_out(hashes, share) for share in shares]
    np.testing.assert_allclose([side.mean() for side in sides], shares, atol=0.01)
    assert all((larger >= smaller).all() for smaller, larger in itertools.pairwise(sides))


def test_dev_queries_are_others_than_the_held_out_ones_and_stay_when_these_grow() -> None:
    hashes = np.random.default_rng(1).integers(0, 2**64, 20_000, dtype=np.uint64)
    watched = dev(hashes, 0.1)
    assert watched.mean() == pytest.approx(0.1, abs=0.01)
    assert not (watched & held_out(hashes, 0.89)).any()
    assert (dev(hashes, 0.2) >= watched).all()
    assert not dev(hashes, 0.0).any()
