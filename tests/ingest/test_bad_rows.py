"""A bad row affects no other row: it becomes a reject with its file, row number and reason."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from batchwright.core.errors import InputError
from tests.ingest.running import ingest

JSONL = {"kind": "jsonl", "path": "t.jsonl", "domain": "d"}
CSV = {"kind": "csv", "path": "t.csv", "domain": "d"}


def test_lines_that_are_not_objects_are_rejected(workspace: Path) -> None:
    lines = [b'{"query": "q", "document": "d"}', b"{broken", b"", b"[1]", b'{"query": "\xff", "document": "d"}']
    lines += [b'{"query": "\\ud800", "document": "d"}', b'{"query": "q", "document": "d", "document": "e"}']
    Path("t.jsonl").write_bytes(b"\n".join(lines))
    outcome = ingest(JSONL)
    assert outcome.texts == {("q", "d")}
    assert outcome.reasons == [
        ("t.jsonl", 2, "not valid JSON"),
        ("t.jsonl", 4, "not a JSON object"),
        ("t.jsonl", 5, "query is not UTF-8"),
        ("t.jsonl", 6, "query is not UTF-8"),
        ("t.jsonl", 7, "a key is there twice"),
    ]
    broken = ["{broken", "[1]", r"\udcff", r"\ud800", lines[-1].decode()]
    assert [reject["text"] for reject in outcome.rejects] == broken


def test_a_line_that_is_nested_too_deeply_is_rejected(workspace: Path) -> None:
    Path("t.jsonl").write_text('{"query": "q", "document": "d"}\n' + "[" * 30_000 + "\n")
    assert ingest(JSONL).reasons == [("t.jsonl", 2, "not valid JSON")]


def test_malformed_lines_of_a_table_are_rejected(workspace: Path) -> None:
    Path("t.csv").write_bytes(b'query,document\nq,d\n"a"b,c\nshort\n"two\nlines",e\n1,2,3\n\xe9,f\n,g\n')
    outcome = ingest(CSV)
    assert outcome.texts == {("q", "d"), ("two\nlines", "e")}
    assert outcome.reasons == [
        ("t.csv", 3, "not valid CSV"),
        ("t.csv", 4, "more or fewer fields than the header"),
        ("t.csv", 7, "more or fewer fields than the header"),
        ("t.csv", 8, "query is not UTF-8"),
        ("t.csv", 9, "empty query"),
    ]


@pytest.mark.parametrize(("last", "fault"), [(",d", "more or fewer fields than the header"), ("d", "not valid CSV")])
def test_each_line_that_a_stray_quotation_mark_takes_is_rejected(workspace: Path, last: str, fault: str) -> None:
    rows = [f"q{number},d{number}" for number in range(100)]
    taken = ['q,"d', *rows[:50], f'q,"{last}']
    Path("t.csv").write_text("\n".join(["query,document", *taken, *rows[50:], ""]))
    outcome = ingest(CSV)
    assert len(outcome.texts) == 50
    several = f"{fault}, in a record of several lines, as one quotation mark too many makes it"
    assert outcome.reasons == [("t.csv", number, several) for number in range(2, 54)]
    with pytest.raises(InputError, match=rf"52 of 102 rows \(51\.0%\) are not pairs, .*{several} \(52\); for example"):
        ingest(CSV, max_reject_rate=0.5)


def test_names_of_columns_between_rows_are_rejected(workspace: Path) -> None:
    Path("t.csv").write_text('query,document\nq,d\nquery,document\n"query","document"\ndocument,query\n')
    outcome = ingest(CSV)
    assert outcome.texts == {("q", "d"), ("document", "query")}
    assert outcome.reasons == [("t.csv", number, "repeats the names of the columns") for number in (3, 4)]


def test_text_that_is_not_utf8_in_parquet_is_rejected(workspace: Path) -> None:
    latin = pa.array([b"q", b"\xe9", None, b"last"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"query": latin, "document": ["d"] * 4, "domain": ["d"] * 4}), "t.parquet")
    outcome = ingest({"kind": "parquet", "path": "t.parquet", "domain_column": "domain"})
    assert outcome.texts == {("q", "d"), ("last", "d")}
    assert outcome.reasons == [("t.parquet", 2, "query is not UTF-8"), ("t.parquet", 3, "no query")]


def test_duplicates_are_rejects_but_not_faults(workspace: Path) -> None:
    rows = [("q", "d"), ("q", "d "), ("\nq", "d"), ("q", "other")]
    write(rows)
    outcome = ingest(JSONL, max_reject_rate=0.0)
    assert outcome.texts == {("q", "d"), ("q", "other")}
    assert outcome.reasons == [("t.jsonl", 2, "duplicate"), ("t.jsonl", 3, "duplicate")]
    assert outcome.results["sources"]["0 t.jsonl"] == {"in": 4, "out": 2, "rejected": {"duplicate": 2}}


def test_too_many_faults_fail_the_stage_naming_source_share_reasons_and_an_example(workspace: Path) -> None:
    write([(f"q{number}", "d") for number in range(7)] + [("same", "same"), ("", "d"), ("", "d")])
    with pytest.raises(InputError) as raised:
        ingest(JSONL, max_reject_rate=0.2)
    message = str(raised.value)
    assert "t.jsonl: 3 of 10 rows (30.0%) are not pairs, more than ingest.max_reject_rate = 20.0%" in message
    assert "empty query (2), query equals document (1); for example t.jsonl, row 8: 'same'" in message
    assert len(ingest(JSONL, max_reject_rate=0.3).pairs) == 7


def test_sources_without_any_pair_are_refused(workspace: Path) -> None:
    write([("same", "same")])
    with pytest.raises(InputError, match=r"no row of 'ingest\.sources' is a pair"):
        ingest(JSONL, max_reject_rate=1.0)


def write(rows: list[tuple[str, str]]) -> None:
    objects = [{"query": query, "document": document} for query, document in rows]
    Path("t.jsonl").write_text("".join(json.dumps(values) + "\n" for values in objects))
