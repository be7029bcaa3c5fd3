"""``batchwright add``: what it guesses, shows and writes."""

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from pydantic import TypeAdapter
from ruamel.yaml import YAML

from batchwright.core import untrusted_arrow
from batchwright.core.errors import InputError
from batchwright.core.params import load_params
from pipelines.files import find_files
from pipelines.ingest.params import IngestParams
from pipelines.ingest.sources import AnySource
from pipelines.ingest.sources.csv import likely_delimiter
from project.__main__ import main
from project.add.peek import peek
from tests.helpers import REPO

SOURCES: TypeAdapter[Any] = TypeAdapter(AnySource)
PARAMS = (REPO / "project/template/params.yaml").read_text()
PAIRS = [
    (f"question {number} of many?", f"a much longer answer to question {number}, in a sentence") for number in range(9)
]
# fmt: off
YAML_WORDS = [
    "no", "on", "yes", "Off", "y", "n", "null", "~", "true", "12:30", "1e3", "1.5e+3", "0x10", "0o17", "012", "1_000",
    ".5", "3", "-", "#", "'no'", '"', "*a", "&a", "!a", "%a", "<<", "=", "[a]", "{a}", "?", "|", "a: b", "a #b", "1 2",
    "2024-01-01", "2024-01-01 10:00:00",
]
# fmt: on
"""What YAML 1.1 or 1.2 reads as something else than a text if it is not quoted."""


def add(*arguments: str) -> None:
    main(["add", *arguments])


def sources() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load(Path("params.yaml").read_text())["ingest"]["sources"]
    return found


def write_csv(file: Path, header: str, delimiter: str = ",") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [f'"{query}"{delimiter}"{document}"' for query, document in PAIRS]
    file.write_text("\n".join([header.replace(",", delimiter), *lines]) + "\n")
    return file


def test_a_file_elsewhere_is_linked_shown_and_named(project: Path, tmp_path: Path, capsys) -> None:
    file = write_csv(tmp_path / "elsewhere/my faq.csv", "Question,Reply")
    add(str(file))
    assert sources() == [
        {
            "kind": "csv",
            "path": "raw/pairs/my faq.csv",
            "columns": {"query": "Question", "document": "Reply"},
            "domain": "my faq",
        }
    ]
    assert Path("raw/pairs/my faq.csv").resolve() == file.resolve()
    shown = capsys.readouterr().out
    assert shown.count("  query     question ") == 5
    assert "9 rows: 9 pairs, 0 of them repeated" in shown
    assert "document: 10 words (median), 10 at most" in shown
    assert shown.endswith("Written to params.yaml. Next: dvc repro\n")


def test_a_second_time_changes_nothing(project: Path, tmp_path: Path, capsys) -> None:
    file = write_csv(tmp_path / "faq.csv", "query,document")
    add(str(file))
    first = Path("params.yaml").read_text()
    add(str(file))
    assert Path("params.yaml").read_text() == first
    assert "names it already" in capsys.readouterr().out


def test_a_second_domain_that_nobody_asked_for_is_told(project: Path, tmp_path: Path, capsys) -> None:
    told = "It is a domain of its own: 'manual'. If it is searched together with 'faq', give both one domain in "
    for name, options, expected in (
        ("faq", [], []),
        ("manual", [], [f"{told}params.yaml"]),
        ("forum", ["--domain", "faq"], []),
    ):
        add(str(write_csv(tmp_path / f"{name}.csv", "question,answer")), *options)
        assert [line for line in capsys.readouterr().out.splitlines() if "domain of" in line] == expected


def test_comments_and_everything_else_in_the_parameters_stay(project: Path) -> None:
    text = PARAMS.replace(
        "sources: [] # batchwright add FILE", "sources:\n    - {kind: docstrings, packages: [sympy], domain: x} # mine"
    )
    Path("params.yaml").write_text(text)
    add(str(write_csv(Path("raw/pairs/faq.csv"), "query,document")), "--domain", "help")
    new = Path("params.yaml").read_text()
    added = [line for line in new.splitlines() if line not in text.splitlines()]
    assert [line.strip() for line in added] == [
        "- kind: csv",
        "path: raw/pairs/faq.csv",
        "columns:",
        "query: query",
        "document: document",
        "domain: help",
    ]
    assert [line for line in new.splitlines() if line in text.splitlines()] == text.splitlines()


def test_looking_changes_nothing(project: Path, tmp_path: Path, capsys) -> None:
    add(str(write_csv(tmp_path / "faq.csv", "query,document")), "--look")
    assert Path("params.yaml").read_text() == PARAMS
    assert not Path("raw").exists()
    assert capsys.readouterr().out.endswith("Nothing was written.\n")


@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl", "a.arrow", "a.json"])
def test_each_kind_of_file_is_recognised(project: Path, tmp_path: Path, name: str) -> None:
    rows = [{"id": str(number), "title": query, "body": document} for number, (query, document) in enumerate(PAIRS)]
    file, table = tmp_path / name, pa.Table.from_pylist(rows)
    if name.endswith("parquet"):
        pq.write_table(table, file)
    elif name.endswith("arrow"):
        with pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table)
    else:
        file.write_text("\n".join(map(json.dumps, rows)))
    add(str(file))
    kind = {"json": "jsonl"}.get(file.suffix[1:], file.suffix[1:])
    assert (sources()[0]["kind"], sources()[0]["columns"]) == (kind, {"query": "title", "document": "body"})


def test_a_folder_becomes_a_pattern_and_each_file_a_link(project: Path, tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        write_csv(tmp_path / "many" / name, "query,document")
    add(str(tmp_path / "many"))
    assert sources()[0]["path"] == "raw/pairs/many/*.csv"
    assert not Path("raw/pairs/many").is_symlink()
    assert all(Path("raw/pairs/many", name).is_symlink() for name in ("a.csv", "b.csv"))


def test_files_of_other_kinds_in_a_folder_are_told(project: Path, tmp_path: Path, capsys) -> None:
    for name in ("a.csv.gz", "b.csv.gz", "c.csv", "d.jsonl.gz"):
        file = write_csv(tmp_path / "many" / name.removesuffix(".gz"), "query,document")
        if name.endswith(".gz"):
            Path(f"{file}.gz").write_bytes(gzip.compress(file.read_bytes()))
            file.unlink()
    (tmp_path / "many/notes.pdf").touch()
    add(str(tmp_path / "many"))
    assert sources()[0]["path"] == "raw/pairs/many/*.csv.gz"
    told = "not read: 2 other files, such as c.csv; add them by themselves"
    assert told in capsys.readouterr().out.splitlines()


def test_a_beir_folder_is_recognised(project: Path, tmp_path: Path) -> None:
    folder = tmp_path / "set"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text('{"_id": "d", "title": "", "text": "an answer"}\n')
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "a question"}\n')
    (folder / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td\t1\n")
    add(str(folder))
    assert sources() == [{"kind": "beir", "path": "raw/pairs/set", "split": "test", "domain": "set"}]


@pytest.mark.parametrize("delimiter", [";", "|", "\t", "^", "\x01"])
def test_the_delimiter_is_found_in_the_lines(project: Path, tmp_path: Path, delimiter: str) -> None:
    file = write_csv(tmp_path / "faq.csv", "query,document", delimiter)
    assert likely_delimiter(str(file)) == delimiter
    add(str(file))
    assert sources()[0]["delimiter"] == delimiter


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.csv",
            "x,y,long one,z\na text,a text,a longer text,a text\n",
            "a.csv: it is not clear which columns hold query and document; say --query and --document, out of: x, y, "
            "long one, z; such as --query x --document 'long one'",
        ),
        ("a.json", '[{"query": "a"}]', "a.json: is a JSON array; write one object a line: jq -c"),
        ("a.xlsx", "x", "a.xlsx: unknown kind of file; save its sheet as CSV"),
        ("a.jsonl.zip", "x", "a.jsonl.zip: unknown kind of file; unpack it, and add what is in it"),
        ("a.md", "x", "a.md: unknown kind of file; convert it, or rename it to one of .parquet"),
        ("a.jsonl", "PAR1 and more", "a.jsonl: is Parquet; rename it to end in .parquet"),
        ("a.jsonl", "", "a.jsonl: is empty; write one JSON object a line"),
        ("a.jsonl", "{'query': 'a'}\n{1", "a.jsonl: line 1: not valid JSON; write one JSON object a line"),
        (
            "a.json",
            '{\n "query": "a"\n}',
            "a.json: has objects of several lines; write one object a line: jq -c . a.json",
        ),
        ("a.csv", "query,document\na b,c, d\n", "a.csv: the first line has 2 fields, the next 3; put quotation marks"),
        (
            "a.csv",
            'query,document\n"a \\"b\\"",c\n',
            "a.csv: no row after the first line can be read; add rows, or double the quotation marks inside fields",
        ),
        ("a.csv", "query,document\nsame,same\n", "a.csv: no row is a pair; the first reason: query equals document"),
        ("a.csv", b"caf\xe9,b c\nd e,f g\n", "a.csv: the first line is not UTF-8; convert the file to UTF-8"),
        ("gone", None, "gone: no such file or folder"),
    ],
)
def test_what_cannot_be_read_is_explained(project: Path, capsys, name: str, content: Any, message: str) -> None:
    if content is not None:
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(SystemExit):
        add(name)
    assert capsys.readouterr().err.startswith(f"batchwright add: error: {message}")
    assert Path("params.yaml").read_text() == PARAMS
    assert not Path("raw").exists()


def test_another_file_of_that_name_is_not_replaced(project: Path, tmp_path: Path, capsys) -> None:
    write_csv(Path("raw/pairs/faq.csv"), "query,document")
    with pytest.raises(SystemExit):
        add(str(write_csv(tmp_path / "faq.csv", "query,document")))
    assert "raw/pairs/faq.csv: is there already; rename" in capsys.readouterr().err


def test_a_file_in_its_place_is_known_by_any_path_and_never_to_be_removed(project: Path, tmp_path: Path) -> None:
    file = write_csv(Path("raw/pairs/faq.csv"), "query,document").resolve()
    (tmp_path / "faq.csv").symlink_to(file)
    for path in (file, "raw/pairs/faq.csv", "raw/../raw/pairs/faq.csv", tmp_path / "faq.csv"):
        add(str(path))
        assert [source["path"] for source in sources()] == ["raw/pairs/faq.csv"]
    assert not file.is_symlink()


def test_a_link_is_a_domain_of_its_own_name(project: Path) -> None:
    """DVC makes files links to its cache, by ``cache.type symlink``."""
    Path("raw/pairs").mkdir(parents=True)
    Path("raw/pairs/faq.csv").symlink_to(write_csv(Path(".dvc/cache/ab/c0e67.csv"), "query,document").resolve())
    add("raw/pairs/faq.csv")
    assert [(source["path"], source["domain"]) for source in sources()] == [("raw/pairs/faq.csv", "faq")]


def test_a_name_is_no_pattern(project: Path) -> None:
    other = write_csv(Path("raw/pairs/data1.csv"), "query,document")
    for file in (Path("raw/pairs/data[1].csv"), Path("raw/pairs/set[1]/a.csv")):
        write_csv(file, "query,document").write_text(other.read_text() + "one more,than there\n")
    write_csv(Path("raw/pairs/set1/a.csv"), "query,document")
    add("raw/pairs/data[1].csv")
    add("raw/pairs/set[1]")
    named, folder = (SOURCES.validate_python(source) for source in sources())
    assert (named.domain, named.files()) == ("data[1]", ["raw/pairs/data[1].csv"])
    assert folder.files() == ["raw/pairs/set[1]/a.csv"]
    assert find_files("raw/pairs/data[1].csv") == ["raw/pairs/data[1].csv"]  # written by hand


def test_names_reach_the_stage_as_they_are(project: Path) -> None:
    with Path("a.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(
            [YAML_WORDS, *([f"text {row} of {name}" for name in YAML_WORDS] for row in range(9))]
        )
    query, document, *negatives = YAML_WORDS
    add("a.csv", "--query", query, "--document", document, "--negatives", *negatives, "--domain", "12:30")
    [source] = load_params("ingest", IngestParams).sources
    columns = source.model_dump(exclude_unset=True)["columns"]
    assert columns == {"query": query, "document": document, "negatives": negatives}
    assert source.model_dump()["domain"] == "12:30"
    for_dvc = YAML(typ="safe").load(Path("params.yaml"))["ingest"]["sources"][0]
    assert for_dvc["columns"] == columns


def test_a_name_that_cannot_be_written_is_refused_before_anything_is(project: Path, tmp_path: Path, capsys) -> None:
    file = tmp_path / "half.jsonl"
    file.write_text('{"Frage": "a question", "R\\udce9ponse": "an answer"}\n')
    with pytest.raises(SystemExit):
        add(str(file))
    assert (
        "half.jsonl: the name 'R\\udce9ponse' is not UTF-8; convert the file, or rename it" in capsys.readouterr().err
    )
    assert not Path("raw").exists()


def test_texts_and_names_do_not_control_the_terminal(project: Path, capsys) -> None:
    evil = "\x1b[2J\x1b]0;owned\x07\x9b\u202e"
    rows = [{f"query{evil}": f"{query} {evil}", "b": document} for query, document in PAIRS]
    Path("a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    add("a.jsonl", "--look", "--domain", evil)
    printed = capsys.readouterr().out
    assert all(character.isprintable() or character == "\n" for character in printed)
    assert "query     question 0 of many? \ufffd[2J" in printed


def test_texts_that_a_model_cuts_are_told(project: Path, capsys) -> None:
    Path("long.csv").write_text(
        "query,document\n" + "".join(f"q{number},{'word ' * 200}{number}\n" for number in range(5))
    )
    add("long.csv", "--look")
    shown = capsys.readouterr().out
    assert shown.count("100% are cut at start_models.minilm.max_length (128 tokens)") == 1, "the documents"
    Path("params.yaml").write_text(Path("params.yaml").read_text().replace("max_length: 128", "max_length: 16"))
    add("long.csv", "--look")
    assert capsys.readouterr().out.count("100% are cut at start_models.minilm.max_length (16 tokens)") == 1


@pytest.mark.parametrize("content", ["ingest: {sources: [}", "<<<<<<< HEAD\ningest: {}\n", "ingest: {sources: 3}"])
def test_damaged_parameters_are_refused_and_stay(
    project: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    Path("a.jsonl").write_text('{"query": "a", "document": "b"}\n')
    Path("params.yaml").write_text(content)
    with pytest.raises(SystemExit):
        add("a.jsonl")
    assert "error: params.yaml: " in capsys.readouterr().err
    assert Path("params.yaml").read_text() == content


def test_more_rejects_than_ingest_takes_are_told(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"query": f"q{number}", "pos": ["" if number % 3 else "d", None]} for number in range(9)]
    Path("a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    add("a.jsonl", "--look")
    shown = capsys.readouterr().out
    assert "9 rows: 3 pairs" in shown and "rejected: no document (6)" in shown
    assert "67% are more than ingest.max_reject_rate, so ingest will stop" in shown


@pytest.mark.parametrize("content", ["", "\n", 'query,document\n"q,d'])
def test_a_csv_file_without_rows_is_refused(project: Path, capsys: pytest.CaptureFixture[str], content: str) -> None:
    Path("a.csv").write_text(content)
    with pytest.raises(SystemExit):
        add("a.csv")
    assert "error: a.csv: " in capsys.readouterr().err


def test_a_text_that_parquet_repeats_is_not_spread_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.table({"query": ["x" * 10_000] * 200, "document": ["d"] * 200}), tmp_path / "a.parquet")
    monkeypatch.setattr(untrusted_arrow, "MOST_BYTES", 1_000_000)
    with pytest.raises(InputError, match=r"a.parquet: row 1 and those after it: 200 rows hold 2,000,000 bytes"):
        peek({"kind": "parquet", "path": str(tmp_path / "a.parquet")})
