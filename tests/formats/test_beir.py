"""BEIR folders: errors name the file and line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from batchwright.core.errors import InputError
from batchwright.formats.beir import BeirFolder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text(
        '{"_id": "d1", "title": "Title", "text": "body"}\n{"_id": "d2", "text": "only body"}\n'
        '{"_id": 3, "title": null, "text": "número", "metadata": {}}\n'
    )
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "what?"}\n')
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\t3\t0\nq1\td2\t-1\n")
    return tmp_path


def test_a_folder_is_read_with_titles_before_texts(folder: Path) -> None:
    source = BeirFolder(folder)
    assert list(source.documents()) == [("d1", "Title body"), ("d2", "only body"), ("3", "número")]
    assert list(source.queries()) == [("q1", "what?")]
    assert list(source.judgments()) == [("q1", "d1", 2), ("q1", "3", 0), ("q1", "d2", -1)]


@pytest.mark.parametrize("header", ["score", "query-id corpus-id score", "query-id\tscore"])
def test_a_header_may_have_other_columns(folder: Path, header: str) -> None:
    (folder / "qrels" / "test.tsv").write_text(f"{header}\nq1\td1\t1\n")
    assert list(BeirFolder(folder).judgments()) == [("q1", "d1", 1)]


def test_judgments_need_no_header(folder: Path) -> None:
    (folder / "qrels" / "test.tsv").write_text("q1\td1\t1\n")
    assert list(BeirFolder(folder).judgments()) == [("q1", "d1", 1)]


@pytest.mark.parametrize(
    "header",
    [
        ("corpus-id", "query-id", "score"),
        ("query-id", "score", "corpus-id"),
        ("doc_id", "qid", "relevance"),
        ("score", "corpus-id", "query-id"),
    ],
)
def test_columns_in_another_order_are_refused(folder: Path, header: tuple[str, ...]) -> None:
    (folder / "qrels" / "test.tsv").write_text("\t".join(header) + "\n1\t2\t3\n")
    with pytest.raises(InputError, match="put them in the order query id, document id, relevance"):
        list(BeirFolder(folder).judgments())


@pytest.mark.parametrize("header", [("qid", "0", "docid", "rel"), ("question_id", "passage_id", "label"), tuple("qds")])
def test_names_of_columns_may_be_others(folder: Path, header: tuple[str, ...]) -> None:
    row = ["q1", *["0"] * (len(header) - 3), "d1", "1"]
    (folder / "qrels" / "test.tsv").write_text("\t".join(header) + "\n" + "\t".join(row) + "\n")
    assert list(BeirFolder(folder).judgments()) == [("q1", "d1", 1)]


def test_judgments_may_have_decimals_and_a_fourth_column_as_in_trec(folder: Path) -> None:
    (folder / "qrels" / "test.tsv").write_text("q1\t0\td1\t0.5\nq1\tQ0\td2\t2\n")
    assert list(BeirFolder(folder).judgments()) == [("q1", "d1", 0.5), ("q1", "d2", 2)]


def test_a_document_may_have_no_more_than_a_title(folder: Path) -> None:
    records = ['{"_id": "d1", "title": "Only"}', '{"_id": "d2", "title": "Empty", "text": ""}']
    records += ['{"_id": "d3", "title": "Null", "text": null}', '{"_id": "d4", "text": ""}']
    (folder / "corpus.jsonl").write_text("\n".join(records) + "\n")
    assert [text for _, text in BeirFolder(folder).documents()] == ["Only", "Empty", "Null", ""]


@pytest.mark.parametrize("blank", ["\n", "\r\n", " \n\n"])
def test_blank_lines_are_skipped_and_a_byte_order_mark_is_not_text(folder: Path, blank: str) -> None:
    expected = [list(read(BeirFolder(folder))) for read in (BeirFolder.documents, BeirFolder.queries)]
    for file in folder.glob("*.jsonl"):
        file.write_bytes(("\ufeff" + blank + file.read_text() + blank).encode())
    assert [list(read(BeirFolder(folder))) for read in (BeirFolder.documents, BeirFolder.queries)] == expected
    (folder / "qrels/test.tsv").write_bytes(
        f"\ufeff{blank}query-id\tcorpus-id\tscore\nq1\td1\t1{blank}{blank}q1\td2\t0\n".encode()
    )
    assert list(BeirFolder(folder).judgments()) == [("q1", "d1", 1), ("q1", "d2", 0)]


def documents(source: BeirFolder) -> object:
    return list(source.documents())


def queries(source: BeirFolder) -> object:
    return list(source.queries())


def judgments(source: BeirFolder) -> object:
    return list(source.judgments())


@pytest.mark.parametrize(
    ("name", "content", "read", "message"),
    [
        (
            "corpus.jsonl",
            b'{"_id": "d1", "text": "a"}\n{"_id": "d2"\n',
            documents,
            r"corpus\.jsonl, line 2: expected a JSON",
        ),
        ("corpus.jsonl", b'{"_id": "d1", "text": "a"}\n{"_id": "d2"}\n', documents, r"corpus\.jsonl, line 2: .*'text'"),
        ("corpus.jsonl", b'{"text": "a"}\n', documents, r"corpus\.jsonl, line 1: expected a JSON object with '_id'"),
        ("corpus.jsonl", b'{"_id": null, "text": "a"}\n', documents, r"corpus\.jsonl, line 1: expected a JSON"),
        (
            "corpus.jsonl",
            b'{"_id": "1", "text": "a", "_id": "2"}\n',
            documents,
            r"line 1: a key is there twice; keep one",
        ),
        (
            "qrels/test.tsv",
            b"q1\td1\t1\nq1\td1\t1\nq1\td1\t0\n",
            judgments,
            r"line 3: 'd1' is judged twice for 'q1', and",
        ),
        ("corpus.jsonl", b"[1]\n", documents, r"corpus\.jsonl, line 1"),
        ("corpus.jsonl", b'{"_id": "d1", "text": null}\n', documents, r"corpus\.jsonl, line 1"),
        ("corpus.jsonl", b'{"_id": "d1", "text": 5}\n', documents, r"corpus\.jsonl, line 1"),
        ("corpus.jsonl", b'{"_id": "d1", "text": "\xff"}\n', documents, r"corpus\.jsonl: not UTF-8"),
        ("qrels/test.tsv", b"q\td\tscore\nq1\td1\n", judgments, r"test\.tsv, line 2: expected query id, document id"),
        ("queries.jsonl", b'{"_id": "q1", "title": "a"}\n', queries, r"queries\.jsonl, line 1: .*'_id' and 'text'"),
        ("qrels/test.tsv", b"q\td\tscore\nq1\td1\tnan\n", judgments, r"test\.tsv, line 2: expected query id"),
        ("qrels/test.tsv", b"q\td\tscore\nq1\td1\tyes\n", judgments, r"test\.tsv, line 2: expected query id"),
        ("qrels/test.tsv", b"q1\td1\t\nq2\td2\t1\n", judgments, r"test\.tsv, line 1: expected query id"),
        ("qrels/test.tsv", b"q1\td1\t1,5\nq2\td2\t1\n", judgments, r"test\.tsv, line 1: expected query id"),
        ("qrels/test.tsv", b"q1\td1\tyes\nq1\td2\t1\n", judgments, "first line names what line 2 names, so it is no"),
        ("qrels/test.tsv", b"q1\td1\t1\nq1\td2\t99999\n", judgments, r"test\.tsv, line 2: 99999 is above 10,000"),
        ("qrels/test.tsv", b"q\td\tscore\nq1 d1 1\n", judgments, r"test\.tsv, line 2: expected .* tab-separated"),
    ],
)
def test_a_malformed_line_is_reported(
    folder: Path, name: str, content: bytes, read: Callable[[BeirFolder], object], message: str
) -> None:
    (folder / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        read(BeirFolder(folder))


def test_missing_files_are_reported(folder: Path) -> None:
    for name, read in (("corpus.jsonl", documents), ("qrels/test.tsv", judgments)):
        (folder / name).unlink()
        with pytest.raises(InputError, match=f"{name}: no such file; a BEIR folder holds"):
            read(BeirFolder(folder))
    with pytest.raises(InputError, match=r"queries\.jsonl/corpus\.jsonl: no such file"):
        documents(BeirFolder(folder / "queries.jsonl"))
