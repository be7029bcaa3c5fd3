"""What ``batchwright add`` makes of files without a header, and of folders that hold more than pairs to train on."""

import gzip
import json
import os
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.ingest.running import ingest
from tests.project.test_add import PAIRS, add, sources, write_csv


@pytest.mark.parametrize("delimiter", ["\t", ",", ";", "|"])
@pytest.mark.parametrize(
    "rows",
    [
        [(f"how do I reset device {number}", f"hold the button of device {number}") for number in range(9)],
        [(str(number), f"word{number}", f"device {number}") for number in range(9)],
        [(f"word{number}", f"wort{number}") for number in range(9)],
        [("faq", f"reset {number}?", f"Hold the small button of device number {number}.") for number in range(9)],
    ],
    ids=["sentences", "numbers", "words", "topics"],
)
def test_a_first_line_of_data_is_doubted_and_read_when_that_is_said(
    project: Path, capsys: pytest.CaptureFixture[str], rows: list[tuple[str, ...]], delimiter: str
) -> None:
    Path("a.csv").write_text("".join(delimiter.join(row) + "\n" for row in rows))
    with pytest.raises(SystemExit):
        add("a.csv")
    said = capsys.readouterr().err
    assert "a.csv: the first line looks like data, such as '" in said
    assert "add --no-header if it is, or say which columns it names: --query and --document" in said
    columns = [str(len(rows[0]) - 1), str(len(rows[0]))]
    add("a.csv", "--no-header", "--query", columns[0], "--document", columns[1])
    assert ingest(*sources()).texts == {row[-2:] for row in rows}


@pytest.mark.parametrize("header", ["query,document", "Frage,Antwort", "x,y", "The question,Its answer", "Question?,A"])
def test_names_of_columns_are_not_doubted(project: Path, header: str) -> None:
    add(str(write_csv(Path("a.csv"), header)))
    assert [*sources()[0]["columns"].values()] == header.split(",")


@pytest.mark.parametrize("line", ["sep=;", "sep=,", "sep=|", "SEP=\t", '"sep=;"', "sep=#", " sep = ;", "sep=;;"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_first_line_that_says_the_delimiter_is_no_header(project: Path, line: str, mark: str) -> None:
    delimiter = line.replace(" ", "").strip('"')[4]
    file = write_csv(Path("a.csv"), "Frage,Antwort", delimiter)
    file.write_text(f"{mark}{line}\r\n{file.read_text()}", encoding="utf-8")
    add("a.csv")
    [source] = sources()
    assert "delimiter" not in source
    assert source["columns"] == {"query": "Frage", "document": "Antwort"}
    outcome = ingest(*sources())
    assert (outcome.texts, outcome.rejects) == ({*PAIRS}, [])


@pytest.mark.parametrize(
    ("names", "read", "told"),
    [
        (
            ["train.csv", "validation.csv", "test.csv"],
            "train.csv",
            "not read: test.csv, validation.csv, by their names",
        ),
        (["train-0-of-2.csv", "train-1-of-2.csv", "dev-0-of-1.csv"], "train*.csv", "not read: dev-0-of-1.csv, by its"),
        (["faq_train.csv", "faq_valid.csv"], "faq_train.csv", "not read: faq_valid.csv, by its name not for training"),
        (["a.train.csv", "a.eval.csv", "b.train.csv"], "*train*.csv", "not read: a.eval.csv"),
        (["faq.csv", "held-out.csv"], "faq.csv", "not read: held-out.csv, by its name not for training"),
        (["train.csv", "other.csv"], "train.csv", "not read: 1 other files, such as other.csv"),
        (["trainset.csv", "testset.csv"], "trainset.csv", "not read: testset.csv, by its name not for training"),
        (["faqTrain.csv", "faqDevData.csv"], "faqTrain.csv", "not read: faqDevData.csv, by its name"),
        (["contest.csv", "latest.csv", "evaluator.csv", "strain.csv"], "*.csv", None),
    ],
)
def test_only_files_for_training_are_read_and_the_others_are_told(
    project: Path, capsys: pytest.CaptureFixture[str], names: list[str], read: str, told: str | None
) -> None:
    for name in names:
        write_csv(Path("raw/pairs/set") / name, "query,document")
    add("raw/pairs/set")
    assert [source["path"] for source in sources()] == [f"raw/pairs/set/{read}"]
    printed = capsys.readouterr().out
    assert told in printed if told else "not read" not in printed


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["test.csv", "dev.csv"], "set: holds no file for training, only dev.csv, test.csv; add a file by its name"),
        (["a.csv", "b.csv", "test.csv"], "set: holds files for training and others, and no pattern tells them apart"),
        (["data/train.csv", "data/test.csv"], "add one of its folders: data"),
        (["train/a.csv", "test/a.csv"], "add one of its folders: train\n"),
    ],
)
def test_a_folder_in_which_it_is_not_clear_is_refused(
    project: Path, capsys: pytest.CaptureFixture[str], names: list[str], message: str
) -> None:
    for name in names:
        write_csv(Path("set") / name, "query,document")
    with pytest.raises(SystemExit):
        add("set")
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("title", ["FAQ export\n", "FAQ export,\n", "exported by,me\n\n"])
def test_a_title_above_the_header_is_doubted(project: Path, capsys: pytest.CaptureFixture[str], title: str) -> None:
    file = write_csv(Path("a.csv"), "query,document")
    file.write_text(title + file.read_text())
    with pytest.raises(SystemExit):
        add("a.csv")
    said = "a.csv: the first line stands above the names of the columns, query, document; remove it, or say"
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a.csv": "text,text\na b,c d\n"}, "set/a.csv: has two columns 'text'; rename one"),
        ({"a.csv": "", "b.csv": "query,document\na,b\n"}, "set/a.csv: is empty; write rows into it, or leave it out"),
        ({"corpus.jsonl.gz": "", "queries.jsonl.gz": ""}, "set: the files of this BEIR folder are compressed; gunzip"),
        (
            {"corpus.jsonl": "", "queries.jsonl": "", "qrels/train.tsv.gz": ""},
            "set/qrels: the judgements of this BEIR folder are compressed; gunzip them",
        ),
        (
            {"corpus.jsonl": '{"_id": "d", "text": "x"}', "queries.jsonl": '{"_id": "q", "text": "y"}',
             "qrels/train.tsv": "q\td\t0\n"},
            "set: no row is a pair; the first reason: no judgement is above 0",
        ),
    ],
)  # fmt: skip
def test_what_a_folder_lacks_is_told(
    project: Path, capsys: pytest.CaptureFixture[str], files: dict[str, str], message: str
) -> None:
    for name, content in files.items():
        Path("set", name).parent.mkdir(parents=True, exist_ok=True)
        Path("set", name).write_text(content)
    with pytest.raises(SystemExit):
        add("set")
    assert f"error: {message}" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet"])
def test_a_file_without_rows_is_told_to_be_empty(project: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    if name == "a.parquet":
        pq.write_table(pa.table({"query": pa.array([], pa.string())}), name)
    else:
        Path(name).write_bytes(gzip.compress(b"") if name.endswith("gz") else b"\xef\xbb\xbf\n\n")
    with pytest.raises(SystemExit):
        add(name)
    assert f"{name}: is empty; write rows into it, or leave it out" in capsys.readouterr().err


@pytest.mark.parametrize("name", [b"caf\xe9.csv", b"caf\xe9.parquet", b"set/caf\xe9.csv"])
def test_a_file_whose_name_is_not_utf_8_is_refused(
    project: Path, capsys: pytest.CaptureFixture[str], name: bytes
) -> None:
    write_csv(Path(os.fsdecode(name)), "query,document")
    with pytest.raises(SystemExit):
        add(os.fsdecode(name if name.startswith(b"caf") else b"set"))
    assert "\\udce9" in (said := capsys.readouterr().err)
    assert "the name of this file is not UTF-8; rename it" in said


def test_folders_in_a_folder_are_told(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.csv", "more/b.csv", "test/c.csv", ".hidden/d.csv", "~$a.csv", "notes/e.md"):
        write_csv(Path("set") / name, "query,document")
    add("set")
    assert "not read: what is in more/, test/; add folders by themselves\n" in capsys.readouterr().out
    assert len(ingest(*sources()).pairs) == len(PAIRS)
    write_csv(Path("deep/en/train/a.csv"), "query,document")
    write_csv(Path("deep/en/test/a.csv"), "query,document")
    with pytest.raises(SystemExit):
        add("deep")
    assert "add one of its folders: en/train\n" in capsys.readouterr().err


def test_columns_that_only_another_file_of_a_folder_has_are_shown_and_asked_for(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, more in (("a", {}), ("b", {"label": 0, "note": "x"})):
        rows = [{"query": query, "document": document} | more for query, document in PAIRS]
        Path("set").mkdir(exist_ok=True)
        Path(f"set/{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(SystemExit):
        add("set")
    assert "set: column 'label' (0) may say which rows are pairs" in capsys.readouterr().err
    add("set", "--ignore", "label")
    assert "column note      left out (texts)" in capsys.readouterr().out


def test_a_name_too_long_for_a_domain_is_told_what_to_do(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = str(write_csv(Path("\u6f22" * 30 + ".csv"), "query,document"))
    with pytest.raises(SystemExit):
        add(name)
    assert "domain is too long for a name; give it a shorter one with --domain" in capsys.readouterr().err
    add(name, "--domain", "faq")
    assert sources()[0]["domain"] == "faq"


def test_other_splits_of_beir_and_saved_datasets_are_told(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    split = datasets.Dataset.from_list([{"query": query, "document": document} for query, document in PAIRS])
    datasets.DatasetDict({"train": split, "test": split}).save_to_disk("raw/pairs/saved")
    add("raw/pairs/saved")
    assert "not read: the split test" in capsys.readouterr().out
    Path("beir/qrels").mkdir(parents=True)
    Path("beir/corpus.jsonl").write_text(json.dumps({"_id": "d", "text": "an answer"}))
    Path("beir/queries.jsonl").write_text(json.dumps({"_id": "q", "text": "a question"}))
    for name in ("train", "dev", "test"):
        Path(f"beir/qrels/{name}.tsv").write_text("query-id\tcorpus-id\tscore\nq\td\t1\n")
    add("beir")
    assert "not read: the splits dev, test\n" in capsys.readouterr().out
    Path("beir/qrels/train.tsv").unlink()
    add("beir", "--domain", "other")
    told = "not read: the split test\nread: the split dev, since there is none for training; then do not evaluate on it"
    assert told in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["saved", "beir"])
def test_a_split_of_a_folder_can_be_chosen(project: Path, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / kind
    if kind == "saved":
        rows = {name: [{"query": f"{name} {query}", "document": text} for query, text in PAIRS] for name in ("a", "b")}
        datasets.DatasetDict({name: datasets.Dataset.from_list(rows[name]) for name in rows}).save_to_disk(folder)
    else:
        (folder / "qrels").mkdir(parents=True)
        (folder / "corpus.jsonl").write_text(json.dumps({"_id": "d", "text": "an answer"}))
        for number, name in enumerate(("a", "b", "train")):
            (folder / f"qrels/{name}.tsv").write_text(f"query-id\tcorpus-id\tscore\n{number}\td\t1\n")
        queries = [json.dumps({"_id": str(number), "text": f"{name} question"}) for number, name in enumerate("abc")]
        (folder / "queries.jsonl").write_text("\n".join(queries))
    with pytest.raises(SystemExit):
        add(str(folder), "--split", "none")
    add(str(folder), "--split", "b")
    assert sources()[0]["split"] == "b"
    assert {pair["query"].split()[0] for pair in ingest(*sources()).pairs} == {"b"}
