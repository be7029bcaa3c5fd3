"""A source that cannot be read stops the stage: the message says what is wrong and where, and nothing is written."""

import gzip
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from batchwright.core.errors import InputError
from tests.helpers import tree
from tests.ingest.running import configure, ingest
from tests.ingest.tables import COLUMNS, ROWS, write
from tests.ingest.test_sources import write_beir

DOMAIN = {"domain": "d"}
MAPPING = {"columns": COLUMNS, **DOMAIN}
LINES = b"".join(b'{"ask": "%d", "answer": "a", "wrong": "w"}\n' % number for number in range(50_000))


def refused(*sources: dict[str, Any]) -> str:
    """The error message of the stage for these sources; asserts that it leaves no files behind but in scratch."""
    configure(*sources)
    before = tree(Path())
    with pytest.raises(InputError) as raised:
        ingest(*sources)
    assert {name: content for name, content in tree(Path()).items() if not name.startswith(".scratch/")} == before
    return str(raised.value)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("no.jsonl", "no.jsonl: no such file; correct 'path' of this source"),
        ("no/*.jsonl", "no/*.jsonl: no file matches this pattern; correct 'path' of this source"),
        ("folder", "folder: is a folder; name its files, such as folder/*"),
    ],
)
def test_files_must_exist(workspace: Path, path: str, message: str) -> None:
    Path("folder").mkdir()
    assert refused({"kind": "jsonl", "path": path, **DOMAIN}) == message


@pytest.mark.parametrize("file", ["t.jsonl", "t.csv", "t.tsv", "t.parquet", "t.arrow", "t.arrows"])
def test_the_error_for_an_unknown_column_lists_those_found_and_suggests_the_closest(workspace: Path, file: str) -> None:
    columns = {**COLUMNS, "document": "answers"}
    message = refused({**write(file), "columns": columns, **DOMAIN})
    assert message == f"{file}: no column 'answers' (did you mean 'answer'?); columns found: ask, answer, wrong, area"


def test_an_unknown_domain_column_is_reported(workspace: Path) -> None:
    message = refused({**write("t.jsonl"), "columns": COLUMNS, "domain_column": "xyz"})
    assert message == "t.jsonl: no column 'xyz'; columns found: ask, answer, wrong, area"


def test_a_column_must_not_be_repeated(workspace: Path) -> None:
    Path("t.csv").write_text("query,document,query\na,b,c\n")
    assert refused({"kind": "csv", "path": "t.csv", **DOMAIN}) == "t.csv: has two columns 'query'; rename one"


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("t.jsonl", b""),
        ("t.jsonl", b"\n \n"),
        ("t.jsonl.gz", b""),
        ("t.csv", b""),
        ("t.csv", b"ask,answer,wrong\n"),
        ("t.csv", b"ask,answer,wrong\r\n\r\n"),
    ],
)
def test_a_text_file_without_rows_is_refused(workspace: Path, file: str, content: bytes) -> None:
    kind = write(file)["kind"]
    Path(file).write_bytes(gzip.compress(content) if file.endswith(".gz") else content)
    message = refused({"kind": kind, "path": file, **MAPPING})
    assert message.startswith(f"{file}: has no ")


@pytest.mark.parametrize("file", ["t.parquet", "t.arrow", "t.arrows"])
def test_an_arrow_table_without_rows_is_refused(workspace: Path, file: str) -> None:
    schema = pa.schema([(name, pa.string()) for name in ROWS[0]])
    if file.endswith("parquet"):
        pq.write_table(schema.empty_table(), file)
    else:
        with (pa.ipc.new_file if file == "t.arrow" else pa.ipc.new_stream)(file, schema):
            pass
    kind = "parquet" if file.endswith("parquet") else "arrow"
    assert refused({"kind": kind, "path": file, **MAPPING}).startswith(f"{file}: has no rows")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le"])
@pytest.mark.parametrize("file", ["t.jsonl", "t.csv"])
def test_utf16_is_refused(workspace: Path, file: str, encoding: str) -> None:
    source = write(file)
    Path(file).write_text(Path(file).read_text(), encoding=encoding)
    assert "not UTF-8 text (UTF-16 or binary?); convert it" in refused({**source, **MAPPING})


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("t.jsonl.gz", gzip.compress(LINES)[:-100], "Truncated compressed stream"),
        ("t.jsonl.zst", zstandard.compress(LINES)[:-100], "Truncated compressed stream"),
        ("t.jsonl.gz", LINES, "incorrect header check"),
    ],
)
def test_a_damaged_compressed_file_is_refused(workspace: Path, file: str, content: bytes, reason: str) -> None:
    Path(file).write_bytes(content)
    message = refused({"kind": "jsonl", "path": file, **MAPPING})
    assert message.startswith(f"{file}: cannot be read (")
    assert reason in message


@pytest.mark.parametrize("file", ["t.parquet", "t.arrow", "t.arrows"])
@pytest.mark.parametrize("damage", ["truncated", "overwritten", "other"])
def test_a_damaged_arrow_or_parquet_file_is_refused(workspace: Path, file: str, damage: str) -> None:
    source = write(file)
    content = Path(file).read_bytes()
    middle = len(content) // 2
    damaged = {
        "truncated": content[:middle],
        "overwritten": content[:20] + b"\xff" * (len(content) - 60) + content[-40:],
        "other": b"something else entirely",
    }
    Path(file).write_bytes(damaged[damage])
    assert refused({**source, **MAPPING}).startswith(f"{file}: ")


def test_a_quotation_mark_that_is_never_closed_is_refused(workspace: Path) -> None:
    Path("t.csv").write_text('query,document\na,b\n"c,d\ne,f\n')
    message = refused({"kind": "csv", "path": "t.csv", **DOMAIN})
    assert message.startswith("t.csv: line 3: a quotation mark is opened and never closed")


@pytest.mark.parametrize("missing", ["corpus.jsonl", "queries.jsonl", "qrels/train.tsv"])
def test_a_beir_folder_lacking_a_file_is_refused(workspace: Path, missing: str) -> None:
    write_beir(Path("set"), "1\ta\t1\n")
    Path("set", missing).unlink()
    message = refused({"kind": "beir", "path": "set", **DOMAIN})
    assert message.startswith(f"set/{missing}: no such file; a BEIR folder has")


def test_a_beir_folder_with_malformed_judgements_is_refused(workspace: Path) -> None:
    write_beir(Path("set"), "query-id\tcorpus-id\tscore\n1\ta\n")
    assert refused({"kind": "beir", "path": "set", **DOMAIN}).startswith("set/qrels/train.tsv, line 2: expected")


def test_a_dataset_that_cannot_be_reached_is_refused(workspace: Path) -> None:
    message = refused({"kind": "huggingface", "name": "nobody/nothing", **DOMAIN})
    assert message.startswith("dataset 'nobody/nothing': cannot be loaded (")


def test_a_split_or_column_that_a_saved_dataset_lacks_is_refused(workspace: Path) -> None:
    datasets.DatasetDict({"all": datasets.Dataset.from_list(ROWS)}).save_to_disk("saved")
    source = {"kind": "huggingface", "name": "saved", **DOMAIN}
    assert refused(source) == "dataset 'saved': no split 'train'; set split, or --split of add, to one that it has: all"
    message = refused({**source, "split": "all"})
    assert message == "saved/all: no column 'query'; columns found: ask, answer, wrong, area"


def test_all_sources_that_cannot_be_read_are_reported_together(workspace: Path) -> None:
    Path("a.jsonl").write_bytes(b"")
    Path("b.csv").write_text("x,y\n1,2\n")
    message = refused({"kind": "jsonl", "path": "a.jsonl", **DOMAIN}, {"kind": "csv", "path": "b.csv", **DOMAIN})
    assert [line.split(":")[0] for line in message.splitlines()] == ["a.jsonl", "b.csv"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"kind": "jsnl"}, "'ingest.sources.0.kind': unknown value 'jsnl'; did you mean 'jsonl'?"),
        ({"path": "x"}, "parameter 'ingest.sources.0.kind' is missing"),
        ({"kind": "csv", "domain": "d"}, "parameter 'ingest.sources.0.path' is missing"),
        ({"kind": "csv", "path": "x"}, "give either 'domain' (a name) or 'domain_column'"),
        ({"kind": "csv", "path": "x", "domain": "d", "domain_column": "e"}, "give either 'domain' (a name) or"),
        ({"kind": "csv", "pth": "x", "path": "x", **DOMAIN}, "'ingest.sources.0.pth'; did you mean 'path'?"),
        ({"kind": "csv", "path": "x", "columns": {"doc": "x"}, **DOMAIN}, "sources.0.columns.doc'; did you mean"),
        ({"kind": "docstrings", "packages": ["a.b"]}, "ingest.sources.0.packages.0'"),
    ],
)
def test_wrong_settings_are_reported(workspace: Path, source: dict[str, Any], message: str) -> None:
    found = refused(source)
    assert found.startswith("params.yaml: ")
    assert message in found
