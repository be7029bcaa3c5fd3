"""Every kind of source yields the same pairs for the same rows."""

import json
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from batchwright.core.files import read_json
from pipelines.ingest.sources.columnar import ParquetSource
from tests.ingest.running import Outcome, ingest
from tests.ingest.tables import COLUMNS, ROWS, write

MAPPING = {"columns": COLUMNS, "domain_column": "area"}


@pytest.fixture
def expected(workspace: Path) -> Outcome:
    return ingest({**write("reference.jsonl"), **MAPPING})


def test_pairs_contain_the_rows(expected: Outcome) -> None:
    assert expected.texts == {(row["ask"], row["answer"]) for row in ROWS}
    assert {(pair["query"], *pair["negatives"]) for pair in expected.pairs} == {
        (row["ask"], row["wrong"]) for row in ROWS
    }
    assert {pair["domain"] for pair in expected.pairs} == {"north", "south"}
    assert expected.rejects == []


@pytest.mark.parametrize(
    "file",
    ["t.jsonl.gz", "t.jsonl.zst", "t.csv", "t.csv.gz", "t.tsv", "t.tsv.zst", "t.parquet", "t.arrow", "t.arrows"],
)
def test_each_format_gives_the_same_pairs(expected: Outcome, file: str) -> None:
    assert ingest({**write(file), **MAPPING}).pairs == expected.pairs


def test_a_dataset_saved_to_disk_gives_the_same_pairs(expected: Outcome) -> None:
    saved = datasets.Dataset.from_list(ROWS)
    saved.save_to_disk("saved/one")
    datasets.DatasetDict({"train": saved.select([0]), "all": saved}).save_to_disk("saved/splits")
    one = {"kind": "huggingface", "name": "saved/one", **MAPPING}
    assert ingest(one).pairs == expected.pairs
    assert ingest({**one, "name": "saved/splits", "split": "all"}).pairs == expected.pairs


def test_a_dataset_is_loaded_by_name_with_its_builder(expected: Outcome) -> None:
    write("hub/team/set/data/train.parquet")
    source = {"kind": "huggingface", "name": "hub/team/set", **MAPPING}
    assert ingest(source).pairs == expected.pairs


def test_a_dataset_is_read_in_pieces_without_losing_rows(expected: Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.ingest.sources.huggingface._PART_ROWS", 7)
    monkeypatch.setattr("pipelines.ingest.sources.huggingface._BATCH_ROWS", 3)
    datasets.Dataset.from_list([*ROWS, {**ROWS[0], "ask": None}]).save_to_disk("saved/pieces")
    outcome = ingest({"kind": "huggingface", "name": "saved/pieces", **MAPPING})
    assert outcome.pairs == expected.pairs
    assert outcome.reasons == [("train", len(ROWS) + 1, "no query")]


def test_a_pattern_reads_all_matching_files(expected: Outcome) -> None:
    write("many/b.parquet", ROWS[:7])
    write("many/deep/a.parquet", ROWS[7:])
    assert ingest({"kind": "parquet", "path": "many/**/*.parquet", **MAPPING}).pairs == expected.pairs


def test_text_of_any_arrow_type_is_read(expected: Outcome) -> None:
    table = pa.Table.from_pylist(ROWS)
    lists = pa.array([[row["wrong"]] for row in ROWS], pa.list_(pa.string()))
    kinds = {"ask": pa.large_string(), "answer": pa.string_view(), "area": pa.dictionary(pa.int8(), pa.string())}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in table.column_names])
    pq.write_table(table.cast(schema).set_column(2, "wrong", lists), "typed.parquet")
    assert ingest({"kind": "parquet", "path": "typed.parquet", **MAPPING}).pairs == expected.pairs


def test_small_row_groups_are_read_together_and_rows_are_numbered_over_the_whole_file(workspace: Path) -> None:
    rows = [{"query": f"q {n}" if n % 7 else "", "document": f"d {n}"} for n in range(1, 20_001)]
    source = {"kind": "parquet", "path": "t.parquet", "domain": "d"}
    outcomes, parts = [], []
    for size in (20_000, 20):
        pq.write_table(pa.Table.from_pylist(rows), "t.parquet", row_group_size=size)
        outcomes.append(ingest(source))
        parts.append(len(ParquetSource.model_validate(source).parts()))
    assert parts == [1, 3]
    assert outcomes[0] == outcomes[1]
    assert [reject["row"] for reject in outcomes[1].rejects] == list(range(7, 20_001, 7))


def test_lists_of_negatives_and_empty_ones_are_read(workspace: Path) -> None:
    rows = [{"query": "q1", "document": "d", "a": ["x", "y"], "b": "z"}, {"query": "q2", "document": "d", "a": None}]
    rows += [{"query": "q3", "document": "d", "a": [" ", "x", ""], "b": "\n \t"}]
    Path("t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = {"kind": "jsonl", "path": "t.jsonl", "domain": "d", "columns": {"negatives": ["a", "b"]}}
    negatives = {pair["query"]: pair["negatives"] for pair in ingest(source).pairs}
    assert negatives == {"q1": ["x", "y", "z"], "q2": [], "q3": ["x"]}


@pytest.mark.parametrize("told", [{"quote": ""}, {}])
def test_quotation_marks_can_be_ordinary_characters(workspace: Path, told: dict[str, str]) -> None:
    Path("t.tsv").write_text('query\tdocument\n"open\td1\na "b" c\t"d2\n')
    assert ingest({"kind": "csv", "path": "t.tsv", "domain": "d", **told}).texts == {
        ('"open', "d1"),
        ('a "b" c', '"d2'),
    }


def test_quoted_fields_with_tabs_stay_quoted(workspace: Path) -> None:
    Path("t.tsv").write_text('query\tdocument\n"a ""b"""\t"c\td"\n"two\nlines"\te\n')
    assert ingest({"kind": "csv", "path": "t.tsv", "domain": "d"}).texts == {('a "b"', "c\td"), ("two\nlines", "e")}


def test_a_byte_order_mark_and_windows_line_ends_are_not_part_of_the_text(workspace: Path) -> None:
    Path("t.csv").write_bytes("\ufeffquery,document\r\nq,d\r\n".encode())
    assert ingest({"kind": "csv", "path": "t.csv", "domain": "d"}).texts == {("q", "d")}


def test_positive_judgements_of_a_beir_folder_become_pairs(workspace: Path) -> None:
    write_beir(workspace / "set", "query-id\tcorpus-id\tscore\n1\ta\t2\n1\tb\t0\n2\tb\t1\n3\ta\t1\n2\tc\t1\n")
    outcome = ingest({"kind": "beir", "path": "set", "domain": "set"})
    assert outcome.texts == {("first query", "A title first document"), ("second query", "second document")}
    assert outcome.reasons == [
        ("train.tsv", 4, "query id is not in queries.jsonl"),
        ("train.tsv", 5, "document id is not in corpus.jsonl"),
    ]


def test_each_source_has_its_own_account(workspace: Path) -> None:
    first, second = write("a.jsonl", ROWS[:5]), write("b.jsonl", ROWS)
    ingest({**first, **MAPPING}, {**second, **MAPPING})
    assert read_json(Path("results/ingest.json"), made_by="ingest")["sources"] == {
        "0 a.jsonl": {"in": 5, "out": 5, "rejected": {}},
        "1 b.jsonl": {"in": 24, "out": 19, "rejected": {"duplicate": 5}},
    }


def write_beir(folder: Path, judgements: str) -> None:
    (folder / "qrels").mkdir(parents=True)
    documents = [
        {"_id": "a", "title": "A title", "text": "first document"},
        {"_id": "b", "title": "", "text": "second document"},
    ]
    queries = [{"_id": "1", "text": "first query"}, {"_id": "2", "text": "second query"}]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(record) + "\n" for record in documents))
    (folder / "queries.jsonl").write_text("".join(json.dumps(record) + "\n" for record in queries))
    (folder / "qrels" / "train.tsv").write_text(judgements)
