"""What ``batchwright add`` reads the columns of a table as, says of them, and asks where it is not clear."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from batchwright.core.errors import InputError
from batchwright.formats.pairs import SCORED_PAIRS, scan_pairs
from pipelines.ingest.sources.chats import first_exchange, is_chat
from project.__main__ import main
from project.add.columns import guess_columns
from project.add.labels import guess_labels
from tests.ingest.running import ingest
from tests.project.test_add import PAIRS, PARAMS, add, sources
from tests.train.toys import toy_batch, toy_rows, write_toy_shards


def write(**columns: Any) -> str:
    """Write a file of nine pairs with further columns, whose values may depend on the number of the row."""
    rows = [
        {"query": query, "document": document}
        | {name: value(number) if callable(value) else value for name, value in columns.items()}
        for number, (query, document) in enumerate(PAIRS)
    ]
    Path("a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return "a.jsonl"


@pytest.mark.parametrize(
    ("table", "given", "expected"),
    [
        ({"Query": ["a b"], "ANSWER": ["c"]}, {}, {"query": "Query", "document": "ANSWER"}),
        ({"x": ["a"], "y": ["b"]}, {}, {"query": "x", "document": "y"}),
        ({"x": ["a long text"], "y": ["b"]}, {}, {"query": "y", "document": "x"}),
        ({"x": ["a"], "question": ["b"], "n": [1]}, {}, {"query": "question", "document": "x"}),
        ({"x": ["a"], "y": ["b"], "z": ["c"]}, {"query": "z", "document": "x"}, {"query": "z", "document": "x"}),
        (
            {"query": ["a"], "positive": ["b"], "negative_1": ["c"], "negative_2": ["d"]},
            {},
            {"query": "query", "document": "positive", "negatives": ["negative_1", "negative_2"]},
        ),
        ({"Sentence_1": ["a"], "sentence-2": ["b"], "x": ["c"]}, {}, {"query": "Sentence_1", "document": "sentence-2"}),
        ({"query": [1, "a", "b"], "document": ["c", None, "d"]}, {}, {"query": "query", "document": "document"}),
        (
            {
                "func_name": ["C.f"],
                "whole_func_string": ["def f(): 'Do.'"],
                "func_code_string": ["def f()"],
                "func_documentation_string": ["Do."],
                "split_name": ["train"],
            },
            {},
            {"query": "func_documentation_string", "document": "func_code_string"},
        ),
        (
            {"func_name": ["f"], "original_string": ["def f()"], "docstring": ["Do."], "docstring_tokens": [["Do"]]},
            {},
            {"query": "docstring", "document": "original_string"},
        ),
        ({"query": ["a"], "pos": [["b", "c"]]}, {}, {"query": "query", "document": "pos"}),
        ({"query": ["a"], "document": [{"text": "b", "title": "c"}]}, {}, {"query": "query", "document": "document"}),
        (
            {
                "query": ["a", "b"],
                "pos": [["c", "d"], ["e"]],
                "neg": [["f"], ["g", "h"]],
                "neg_scores": [[0.1], [0.2, 0]],
                "pos_scores": [[0.9, 0.8], [0.7]],
            },
            {},
            {"query": "query", "document": "pos", "negatives": ["neg"], "scores": ["pos_scores", "neg_scores"]},
        ),
        (  # a few rows have no scores, a score too few, or no document
            {
                "query": [f"a {n}" for n in range(30)],
                "pos": [*([f"b {n}"] for n in range(29)), []],
                "neg": [*([f"c {n}", f"d {n}"] for n in range(28)), ["c", ""], ["d"]],
                "pos_scores": [None, *[[0.9]] * 28, []],
                "neg_scores": [None, [0.1], *[[0.1, None]] * 27, [0.1]],
            },
            {},
            {"query": "query", "document": "pos", "negatives": ["neg"], "scores": ["pos_scores", "neg_scores"]},
        ),
        (  # of the pair, not of each text: rows without negatives say nothing
            {
                "query": [f"a {n}" for n in range(30)],
                "document": [f"b {n}" for n in range(30)],
                "negative": [*["c", "d", "e"], *[None] * 27],
                "score": [n / 30 for n in range(30)],
            },
            {},
            {"query": "query", "document": "document", "negatives": ["negative"]},
        ),
        (  # as they are exported
            {
                "anchor": ["a", "b", "c"],
                "positive": ["d", "e", "f"],
                "negative_1": ["g", "h", "i"],
                "scores": [[0.9, 0.1], [None, None], [0.7, None]],
            },
            {},
            {"query": "anchor", "document": "positive", "negatives": ["negative_1"], "scores": ["scores"]},
        ),
        (
            {"query": ["a"], "positive": ["b"], "negative_1": ["c"], "negative_2": ["d"], "score": [[0.9, 0.2, 0.1]]},
            {},
            {"query": "query", "document": "positive", "negatives": ["negative_1", "negative_2"], "scores": ["score"]},
        ),
        (
            {"query": ["a"], "positive": ["b"], "negative": ["c"], "scores": [[0.9, 0.2, 0.1]]},
            {},
            {"query": "query", "document": "positive", "negatives": ["negative"]},
        ),
        ({"query": ["a"], "positive": ["b"], "score": [0.9]}, {}, {"query": "query", "document": "positive"}),
        (
            {"prompt": ["a"], "chosen": ["b"], "rejected": ["c"]},
            {},
            {"query": "prompt", "document": "chosen", "negatives": ["rejected"]},
        ),
        (
            {"question": ["a"], "correct_answer": ["b"], "distractor1": ["c"], "distractor2": ["d"], "support": ["e"]},
            {},
            {"query": "question", "document": "correct_answer", "negatives": ["distractor1", "distractor2"]},
        ),
        (
            {"query": ["a"], "positive_passages": [[{"docid": "1", "title": "", "text": "b"}]], "query_id": ["1"]},
            {},
            {"query": "query", "document": "positive_passages"},
        ),
        (
            {"text": ["a b", "b c"] * 20, "document": ["c d", "d e"] * 20, "label": ["x", "y"] * 20},
            {},
            {"query": "text", "document": "document"},
        ),
    ],
)
def test_columns_are_found_by_their_names_or_their_texts(table: Any, given: Any, expected: Any) -> None:
    assert guess_columns(table, given, "t") == expected


@pytest.mark.parametrize(
    "columns",
    [
        {"query": [["Represent it:", "a b"]], "pos": ["c"], "task": ["nq"]},  # as MEDI has them
        {"question": ["a b"], "answers": [[{"body": "c"}]], "author": ["d e"]},
        {"text": ["a b", "c d", "e f"], "status": ["Validated"] * 3},
        {"question": ["a b", "c d", "e f", "g h"], "author": ["anna", "bob"] * 2},
        {"text": ["a b", "c d"], "options": [[{"text": "e"}]] * 2, "answer": ["accept"] * 2},
        {"question": ["a b", "c d", "e f", "g h"], "options": [["i", "j"]] * 4, "answer": ["A", "B"] * 2},
        {"product": ["a b"], "price": ["3,50 €"]},
        {"question": ["a b"], "created": ["2026-01-31 12:00:00"]},
    ],
)
def test_labels_numbers_and_times_are_not_taken_for_a_side(columns: Any) -> None:
    with pytest.raises(InputError, match="it is not clear which columns hold query and document"):
        guess_columns(columns, {}, "t")


@pytest.mark.parametrize(
    ("row", "program"),
    [
        ({"set": {"query": "a", "pos": ["b"]}}, """.\"set\""""),
        (
            {"queries": {"1": "a"}, "corpus": {"2": "b"}, "relevant_docs": {"1": ["2"]}},
            ". as $d | .relevant_docs | to_entries[] | .key as $q | .value[] | "
            "{query: $d.queries[$q], document: $d.corpus[.]}",
        ),
        ({"data": [{"question": "a", "answer": "b"}]}, """.\"data\"[]"""),
        (
            {"data": [{"paragraphs": [{"context": "b", "qas": [{"question": "a"}]}]}]},
            """.\"data\"[].paragraphs[] | .context as $c | .qas[] | {query: .question, document: $c}""",
        ),
        ({f"what is {number}": ["a", "b"] for number in range(201)}, "to_entries[] | {query: .key, document: .value}"),
        ({"set": ["a", "b"]}, """{query: .\"set\"[0], document: .\"set\"[1]}"""),
        ({"query": "a text", "passages": {"selected": [1], "passage_text": ["b"]}}, """. + .\"passages\""""),
        ({"query": "a text", "hits": [{"id": "7", "body": "b c"}]}, """del(.\"hits\") + .\"hits\"[]"""),
        ({"query": {"text": "a text"}, "document": {"text": "b c"}}, """.\"query\" |= .text"""),
    ],
)
def test_columns_of_objects_come_with_a_command_that_takes_the_pairs_out(row: Any, program: str) -> None:
    with pytest.raises(InputError) as refused:
        guess_columns({name: [value] for name, value in row.items()}, {}, "my t.jsonl")
    assert str(refused.value).endswith(f"jq -c '{program}' 'my t.jsonl' > pairs.jsonl")
    with pytest.raises(InputError, match=r"holds no text, write its texts into columns of their own$"):
        guess_columns({name: [value] for name, value in row.items()}, {}, "t.parquet")


TEXTS = ["a text", "another one"]


@pytest.mark.parametrize(
    "name",
    [
        *("negative", "negatives", "neg", "Negative 1", "negative_text", "negative_passages", "hard_negative_1"),
        *("hard_negatives", "hardNegative2", "hard-neg", "hard_negative_ctxs", "neg_docs", "mined_negatives"),
        *("rejected", "distractors", "incorrect_answers", "wrong answer", "irrelevant_passages"),
        *("bm25_negatives", "random_neg_2", "denseNegatives"),
    ],
)
def test_hard_negatives_are_known_by_their_names(name: str) -> None:
    for values in (TEXTS, [TEXTS, []], [[{"text": "a text"}]]):
        columns = guess_columns({"query": ["a"], "document": ["b"], name: values}, {}, "t")
        assert columns["negatives"] == [name]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("negative_ids", ["d17", "d4"]),
        ("negatives", [["d17", "d4"], ["d1"]]),
        ("negative", ["17", "4"]),
        ("negative", [17, 4]),
        ("negative_score", [0.5, 0.25]),
        ("neg_scores", [[0.5], [0.25, 1]]),
        ("negative_source", ["bm25 of the index", "the dense index"]),
        ("negative_type", ["hard one", "easy one"]),
        ("negative_urls", ["http://a.b/1", "http://a.b/2"]),
        ("negative_feedback", ["a bad answer", "never again"]),
        ("hard", TEXTS),
        ("false_negatives", TEXTS),
        ("negative_query", TEXTS),
        ("query_negative", TEXTS),
        ("negative", ["yes", "no"]),
    ],
)
def test_ids_scores_and_sources_are_no_hard_negatives(name: str, values: list[Any]) -> None:
    columns = guess_columns({"query": ["a"], "document": ["b"], name: values}, {}, "t")
    assert columns == {"query": "query", "document": "document"}


def test_every_column_is_shown_with_what_it_is_read_as(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add(write(neg=["a wrong answer"], neg_scores=[0.1], views=lambda n: n, label=lambda n: n % 2, note="x y", area="s"),
        "--domain-column", "area")  # fmt: skip
    assert roles(capsys.readouterr().out) == {
        "query": "read as query",
        "document": "read as document",
        "neg": "read as hard negatives",
        "neg_scores": "left out (lists)",
        "views": "left out (numbers)",
        "label": "labels: rows with 1 are pairs, the others are left out",
        "note": "left out (texts)",
        "area": "read as domain",
    }


def test_a_domain_that_is_left_out_says_how_to_read_it(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add(write(domain=lambda n: "ab"[n % 2]))
    hint = "--domain-column domain makes a domain of each of them"
    assert roles(capsys.readouterr().out)["domain"] == f"left out (texts; {hint})"


def roles(printed: str) -> dict[str, str]:
    """What each column is read as."""
    lines = [line.split(maxsplit=2) for line in printed.splitlines() if line.startswith("column")]
    return {column: role for _, column, role in lines}


def test_columns_that_are_left_out_can_be_kept_and_the_command_says_how(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(id=lambda n: n, product="my p", mask="m", **{"the date": "2024"})
    add(file, "--look")
    said = capsys.readouterr().out
    assert "\nto keep columns that are left out beside the pairs: --metadata id product 'the date'\n" in said
    add(file, "--metadata", "product", "the date")
    said = capsys.readouterr().out
    assert "column product   read as metadata" in said and said.count("read as metadata") == 2
    assert sources()[0]["columns"]["metadata"] == ["product", "the date"]
    ingest(*sources(), held_out=0)
    with pytest.raises(SystemExit):
        add(file, "--metadata", "mask")
    assert "a.jsonl: the column 'mask' cannot be metadata" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        add(file, "--metadata", "prduct")
    assert "no column 'prduct'; did you mean 'product'?" in capsys.readouterr().err


def test_groups_and_queries_that_say_several_splits_are_counted(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(write(split=lambda n: ["train", "train", "test"][n % 3], group=lambda n: "ab"[n % 2]), "--group", "group")
    said = capsys.readouterr().out
    assert "\n  2 groups have rows of several splits: all rows of one go to test, or else to dev\n" in said
    assert "queries have rows" not in said
    add(write(split=lambda n: ["train", "test"][n % 2], group=lambda n: "ab"[n % 2]), "--group", "group")
    assert "have rows of several splits" not in capsys.readouterr().out


def test_splits_and_weights_are_known_by_their_names_and_values(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(write(split=lambda n: ["train", "validation", "test"][n % 3], weight=lambda n: 1 + n / 2, note="x y"))
    said = capsys.readouterr().out
    expected = {"split": "read as the split", "weight": "read as the pair's weight in the loss"}
    assert expected.items() <= roles(said).items()
    assert "splits: 3 train, 3 dev, 3 test\n" in said
    assert {name: sources()[0]["columns"][name] for name in expected} == {"split": "split", "weight": "weight"}
    outcome = ingest(*sources(), held_out=0)
    assert sorted(pair["split"] for pair in outcome.pairs) == ["dev"] * 3 + ["test"] * 3 + ["train"] * 3


@pytest.mark.parametrize(
    ("column", "value", "role", "options", "read"),
    [
        ("split", "train", "left out (only train so far; --split-column split reads it)", ["--split-column"], "split"),
        ("split", lambda n: f"part {n}", "left out (texts)", [], None),
        ("weight", lambda n: n - 1, "left out (numbers)", [], None),
        ("times", lambda n: n + 1, "left out (numbers)", ["--weight"], "weight"),
        ("group", "x y", "left out (texts; --group group keeps each of them in one split)", ["--group"], "group"),
        ("customer", lambda n: n % 4, "left out (numbers)", ["--group"], "group"),
    ],
)
def test_others_are_left_out_unless_somebody_says_what_they_are(
    project: Path, capsys: pytest.CaptureFixture[str], column: str, value: Any, role: str, options: list[str], read: Any
) -> None:
    file = write(**{column: value})
    add(file, "--look")
    assert roles(capsys.readouterr().out)[column] == role
    if read:
        add(file, *options, column)
        assert sources()[0]["columns"][read] == column


def test_a_beir_folder_keeps_fields(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("set/qrels").mkdir(parents=True)
    Path("set/corpus.jsonl").write_text('{"_id": "1", "title": "T", "text": "a document", "url": "u"}\n')
    Path("set/queries.jsonl").write_text('{"_id": "q", "text": "a query"}\n')
    Path("set/qrels/train.tsv").write_text("query-id\tcorpus-id\tscore\nq\t1\t1\n")
    add("set", "--metadata", "url")
    assert sources()[0]["columns"] == {"metadata": ["url"]}
    for option in ("--weight", "--domain-column"):
        with pytest.raises(SystemExit):
            add("set", option, "w")
        assert f"is a BEIR folder, which has no columns; leave out {option}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("column", "good", "bad"),
    [
        ("label", 1, 0),
        ("is_duplicate", "1", "0"),
        ("label", 1.0, 0.0),
        ("score", "1.0", "0.0"),
        ("isRelevant", True, False),
        ("gold_label", "True", "False"),
        ("relevance", 1, -1),
        ("is_answer", "yes", "no"),
        ("feedback", "good", "bad"),
        ("verdict", "relevant", "not relevant"),
        ("label", "entailment", "not_entailment"),
        ("rating", "Relevant", "irrelevant"),
    ],
)
def test_rows_whose_label_says_that_they_do_not_match_are_left_out_and_counted(
    project: Path, column: str, good: object, bad: object
) -> None:
    add(write(**{column: lambda number: good if number % 3 else bad}))
    outcome = ingest(*sources(), max_reject_rate=0.0)
    assert outcome.texts == {pair for number, pair in enumerate(PAIRS) if number % 3}
    assert [reason for _, _, reason in outcome.reasons] == ["the label says that it is no pair"] * 3
    assert outcome.results["sources"]["0 raw/pairs/a.jsonl"]["in"] == 9


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"score": lambda n: n / 8}, "column 'score' (numbers from 0 to 1) may say which rows are pairs: keep those "
         "with --label score --at-least NUMBER, or all rows with --ignore score"),
        ({"label": lambda n: n % 3}, "column 'label' (0, 1, 2) may say which rows are pairs: keep those with --label "
         "label --positive VALUE or --at-least NUMBER, or"),
        ({"gold label": lambda n: ("entailment", "neutral")[n % 2]}, "column 'gold label' (entailment, neutral) may "
         "say which rows are pairs: keep those with --label 'gold label' --positive VALUE"),
        ({"label": 0}, "column 'label' (0) may"),
        ({"dup": lambda n: ("TRUE", "FALSE")[n % 2]}, "column 'dup' (TRUE, FALSE) may"),
        ({"ok": lambda n: n % 2}, "column 'ok' (0, 1) may"),
        ({"fits": lambda n: n % 2 > 0}, "column 'fits' (False, True) may"),
        ({"cosine": lambda n: n / 10}, "column 'cosine' (numbers from 0 to 0.8) may"),
        ({"split": lambda n: ("test", "dev")[n % 2]}, "column 'split' (test, dev) may say which rows are pairs: keep "
         "those with --label split --positive VALUE, or all rows with --ignore split; or read it as the split with "
         "--split-column split"),
        ({"split": lambda n: ("train", "test", "it")[n % 3]}, "column 'split' (train, test, it) may"),
        ({"is_negative": lambda n: n % 2}, "column 'is_negative' (0, 1) may"),
        ({"negative": lambda n: n % 2}, "column 'negative' (0, 1) may"),
        ({"positive": lambda n: n % 2 > 0}, "column 'positive' (False, True) may"),
        ({"clicks": lambda n: n % 5}, "column 'clicks' (0, 1, 2, 3, ...) may say which rows are pairs: keep those with "
         "--label clicks --positive VALUE or --at-least NUMBER, or"),
        ({"sent": lambda n: ("similar", "dissimilar")[n % 2]}, "column 'sent' (similar, dissimilar) may"),
        ({"label": lambda n: n % 2, "relevant": lambda n: n % 2}, "column 'label' (0, 1) may"),
        ({"labels": lambda n: [1, 0]}, "column 'labels' holds lists, which may say which of a row's documents"),
        ({"set": lambda n: ("val", "test")[n % 2]}, "column 'set' (val, test) may say which rows are pairs: keep "
         "those with --label set --positive VALUE, or all rows with --ignore set; or read it as the split with "
         "--split-column set"),
        ({"score": lambda n: f"0,{n}"}, "column 'score' (0,0, 0,1, 0,2, 0,3, ...) may"),
        ({"match": lambda n: f"{n} %"}, "column 'match' (0 %, 1 %, 2 %, 3 %, ...) may"),
        ({"ok": lambda n: "✓✗"[n % 2]}, "column 'ok' (✓, ✗) may"),
        ({"passt": lambda n: ("ja", "nein")[n % 2]}, "column 'passt' (ja, nein) may"),
        ({"passt": lambda n: ("wahr", "falsch")[n % 2]}, "column 'passt' (wahr, falsch) may"),
        ({"\u6b63\u89e3": lambda n: "\u25cb\u00d7"[n % 2]}, "column '\u6b63\u89e3' (\u25cb, \u00d7) may"),
        ({"type": lambda n: ("positive", "hard_negative", "other")[n % 3]}, "column 'type' (positive, hard_negative, "
         "other) may"),
        ({"judged": lambda n: ("fitting", "partly", "not fitting")[n % 3]}, "column 'judged' (fitting, partly, not "),
        ({"fits": lambda n: ("x", "")[n % 2]}, "column 'fits' (x) may"),
        ({"fits": lambda n: ("yes", None)[n % 2]}, "column 'fits' (yes) may"),
        ({"rank": lambda n: n % 3 + 1}, "column 'rank' (1, 2, 3) may"),
        ({"confidence": lambda n: 90 - n}, "column 'confidence' (90, 89, 88, 87, ...) may"),
    ],
)  # fmt: skip
def test_what_may_be_a_label_is_asked_for(
    project: Path, capsys: pytest.CaptureFixture[str], columns: dict[str, Any], message: str
) -> None:
    file = write(**columns)
    with pytest.raises(SystemExit):
        add(file)
    assert f"a.jsonl: {message}" in capsys.readouterr().err
    add(file, "--ignore", *columns)
    assert not {"labels", "split"} & {*sources()[0], *sources()[0]["columns"]}


def test_splits_in_a_column_of_any_name_are_asked_for_beside_labels(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(part=lambda n: ("train", "test")[n % 2], label=lambda n: int(n > 0))
    for options in ([], ["--label", "label"]):
        with pytest.raises(SystemExit):
            add(file, *options)
        assert "or read it as the split with --split-column part" in capsys.readouterr().err
    add(file, "--split-column", "part")
    outcome = ingest(*sources())
    assert [pair["split"] for pair in outcome.pairs].count("test") == 4
    assert len(outcome.pairs) == 8


def test_decimal_numbers_are_labels_and_scores(project: Path) -> None:
    scores = pa.array([Decimal(number % 2) for number in range(9)], pa.decimal128(5, 3))
    queries, documents = zip(*PAIRS, strict=True)
    pq.write_table(pa.table({"query": queries, "document": documents, "label": scores}), "a.parquet")
    add("a.parquet")
    assert ingest(*sources()).texts == {*PAIRS[1::2]}
    Path("params.yaml").write_text(PARAMS)
    add("a.parquet", "--label", "label", "--at-least", "0.5")
    assert ingest(*sources()).texts == {*PAIRS[1::2]}


def test_scores_from_a_number_on_and_named_labels_are_pairs(project: Path) -> None:
    add(write(score=lambda n: n / 8), "--label", "score", "--at-least", "0.5")
    assert sources()[0]["labels"] == {"column": "score", "at_least": 0.5}
    assert ingest(*sources()).texts == {*PAIRS[4:]}
    Path("params.yaml").write_text(PARAMS)
    add(
        write(label=lambda n: ("contradiction", "Entailment", None)[n % 3]),
        "--label",
        "label",
        "--positive",
        "entailment",
    )
    outcome = ingest(*sources())
    assert outcome.texts == {*PAIRS[1::3]}
    assert {reason for _, _, reason in outcome.reasons} == {"the label says that it is no pair", "no label"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--at-least", "5"],
            "a.jsonl: no row is a pair; the first reason: the label says that it is no pair; correct",
        ),
        (["--positive", "yes"], "is no pair; correct --positive or --at-least"),
        (["--at-least", "nan"], "a.jsonl: at_least: Input should be a finite number (found nan)"),
    ],
)
def test_labels_that_no_row_has_are_told(
    project: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    with pytest.raises(SystemExit):
        add(write(score=lambda n: n / 8), "--label", "score", *options)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "values", [lambda n: 100 + n, "a note", None, lambda n: [0.5, n], lambda n: f"text number {n}", lambda n: {"a": n}]
)
def test_other_columns_are_no_labels(values: Any) -> None:
    for other in (["NO", "SI", "SE"] * 3, ["en", ""] * 3, ["x"] * 3):
        assert guess_labels({"extra": other}, (), {}, "t") is None
    made = [values(number) if callable(values) else values for number in range(9)]
    assert guess_labels({"extra": made}, (), {}, "t") is None


def test_the_first_of_the_texts_after_the_query_is_suggested() -> None:
    """As in triples without a header, where negatives may be longer than documents."""
    table = {"1": ["who is it"], "2": ["It is somebody from afar."], "3": ["Something else, a bit longer."]}
    with pytest.raises(InputError, match=r"such as --query 1 --document 2\Z"):
        guess_columns(table, {}, "t.tsv")
    table = {"text_of_it": ["It is somebody from afar."], "asked": ["who is it"], "by": ["Ann"]}
    with pytest.raises(InputError, match=r"such as --query asked --document text_of_it\Z"):
        guess_columns(table, {}, "t.tsv")


def test_objects_whose_texts_would_replace_those_of_the_row_come_with_no_command() -> None:
    table = {"text": ["a text"], "options": [[{"id": 0, "text": "b c"}]], "label": ["x", "x"]}
    with pytest.raises(InputError, match=r"out of: text, options, label\Z"):
        guess_columns(table, {}, "t.jsonl")


def test_objects_without_texts_beside_a_query_come_with_no_command() -> None:
    with pytest.raises(InputError, match=r"out of: question, corpus_id, positive$"):
        guess_columns({"question": ["a"], "corpus_id": ["c1"], "positive": [[{"id": "7"}]]}, {}, "t.jsonl")


def test_a_query_that_is_a_list_is_told() -> None:
    with pytest.raises(InputError, match=r"'query' holds lists, in whose place one text must stand$"):
        guess_columns({"query": [["a text"]], "pos": [["b"]]}, {}, "t.jsonl")


@pytest.mark.parametrize("ids", [["17", "PMID18"], [["17"], ["18", "19"]], [[17], [18]]])
def test_ids_are_no_documents(ids: list[Any]) -> None:
    with pytest.raises(InputError, match="'positive' holds ids, in whose place their texts must stand"):
        guess_columns({"query": ["a b", "c d"], "positive": ids}, {}, "t.jsonl")
    assert guess_columns({"query": ["a"], "positive": ids, "body": ["b c"]}, {}, "t")["document"] == "body"


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
@pytest.mark.parametrize(("who", "what", "asks"), [("role", "content", "user"), ("from", "value", "human")])
def test_chats_are_pairs_of_the_first_question_and_its_answer(
    project: Path, capsys: pytest.CaptureFixture[str], kind: str, who: str, what: str, asks: str
) -> None:
    answers = "assistant" if who == "role" else "gpt"
    rows: list[dict[str, object]] = []
    for query, document in PAIRS:
        turns = [("system", "Be kind."), (asks, query), (answers, document), (asks, "And then?"), (answers, "Nothing.")]
        kept = turns if len(rows) == 2 else turns[:3]
        rows.append({"chat_id": f"c{len(rows)}", "messages": [{who: one, what: said} for one, said in kept]})
    file = Path(f"chats.{kind}")
    if kind == "jsonl":
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pq.write_table(pa.Table.from_pylist(rows), file)
    add(str(file))
    shown = " ".join(capsys.readouterr().out.split())
    assert (
        "column messages read as chats: the first turn of a user is the query, the answer after it the document"
        in shown
    )
    assert "; 1 of the first 9 chats go on, which is left out" in shown
    [source] = sources()
    assert source["columns"] == {"query": "messages", "document": "messages"}
    assert ingest(source).texts == set(PAIRS)


def test_a_chat_without_an_answer_is_a_reject(project: Path) -> None:
    rows = [[{"role": "user", "content": query}, {"role": "assistant", "content": text}] for query, text in PAIRS]
    lines = [json.dumps({"messages": row}) for row in [*rows, rows[0][:1]]]
    Path("chats.jsonl").write_text("\n".join(lines))
    add("chats.jsonl")
    assert [reject["reason"] for reject in ingest(*sources(), max_reject_rate=0.5).rejects] == ["no document"]


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        ([("user", "a b"), ("assistant", None), ("tool", "x"), ("assistant", "c")], ("a b", "c")),
        ([("user", "a b"), ("tool", "x"), ("assistant", "c"), ("user", "And he?"), ("assistant", "d")], ("a b", "c")),
        ([("user", "a b"), ("user", "And he?"), ("assistant", "d")], ("a b", None)),
        ([("user", [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), ("assistant", "c")], ("a b", "c")),
        ([("assistant", "Hello"), ("user", "a b"), ("assistant", "c")], ("a b", "c")),
        ([("system", "Be kind."), ("assistant", "Hello")], (None, None)),
    ],
)
def test_the_answer_to_the_first_question_stands_before_the_next(turns: Any, expected: Any) -> None:
    chat = [{"role": role, "content": content} for role, content in turns]
    assert is_chat(chat)
    assert first_exchange(chat) == expected


def test_a_turn_may_have_a_call_of_a_tool_and_no_content() -> None:
    chat: list[dict[str, Any]] = [{"role": "user", "content": "a b"}, {"role": "assistant", "tool_calls": [{}]}]
    chat += [{"role": "tool", "content": "x"}, {"role": "assistant", "content": "c"}]
    assert is_chat(chat)
    assert first_exchange(chat) == ("a b", "c")
    assert not is_chat([{"role": "author"}, {"role": "editor"}])
    assert not is_chat([])


def test_a_column_that_is_not_there_is_told(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--label", "--ignore", "--negatives", "--query", "--domain-column"):
        with pytest.raises(SystemExit):
            add(write(label=1), option, "labl")
        assert "a.jsonl: no column 'labl'; did you mean 'label'?" in capsys.readouterr().err


def test_a_document_is_no_hard_negative_as_well(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        add(write(neg="wrong"), "--negatives", "neg", "document")
    assert "a.jsonl: column 'document' is a query or document already" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "arrow"])
def test_a_list_of_positives_becomes_a_pair_for_each(project: Path, kind: str) -> None:
    rows: list[dict[str, Any]] = [
        {"query": "q1", "pos": ["first", "second"], "neg": ["wrong"]},
        {"query": "q2", "pos": [], "neg": []},
        {"query": "q3", "pos": ["third", None], "neg": ["bad", "worse"]},
    ]
    passages = [
        {
            "query": "q4",
            "pos": [{"docid": "7", "title": "Title", "text": "body"}],
            "neg": [{"title": "", "text": "bad"}],
        },
        {"query": "q5", "pos": [{"text": "of text"}, {"title": "only"}], "neg": []},
        {"query": "q6", "pos": [{"text": "more"}], "neg": []},
        {
            "query": "q7",
            "pos": [{"title": "Title", "text": "again"}],
            "neg": [{"title": "t", "text": None}, {"title": "t", "text": ""}, {"title": "t", "text": "worst"}],
        },
        {"query": "q8", "pos": [{"title": "Title", "text": ""}], "neg": []},
    ]
    for name, table in (("texts", rows), ("passages", passages)):
        add(write_table(Path(f"raw/pairs/{name}.{kind}"), table))
    outcome = ingest(*sources())
    assert {(pair["query"], pair["document"], *pair["negatives"]) for pair in outcome.pairs} == {
        ("q1", "first", "wrong"),
        ("q1", "second", "wrong"),
        ("q3", "third", "bad", "worse"),
        ("q4", "Title body", "bad"),
        ("q5", "of text"),
        ("q6", "more"),
        ("q7", "Title again", "t worst"),
    }
    assert [(Path(file).name, reason) for file, _, reason in outcome.reasons] == [
        (f"passages.{kind}", "document is not text" if kind == "jsonl" else "no document"),  # or a null
        (f"passages.{kind}", "empty document"),
        (f"texts.{kind}", "no document"),
    ]


def write_table(file: Path, rows: list[dict[str, Any]]) -> str:
    file.parent.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist(rows)
    if file.suffix == ".jsonl":
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif file.suffix == ".parquet":
        pq.write_table(table, file)
    else:
        with pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table)
    return str(file)


def test_a_named_column_that_is_not_there_is_told_beside_negatives_and_scores(project: Path, capsys) -> None:
    rows = [{"ask": pair[0], "text": pair[1], "negatives": ["no"], "scores": [1.0, 0.5]} for pair in PAIRS]
    Path("a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(SystemExit):
        add("a.jsonl", "--query", "ask", "--document", "nope")
    assert "a.jsonl: no column 'nope'; known: ask, text, negatives, scores" in capsys.readouterr().err


def test_arrays_are_told_how_to_become_objects(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.jsonl").write_text("[1, 17, 4]\n")
    with pytest.raises(SystemExit):
        add("a.jsonl")
    assert "a.jsonl: has arrays of numbers, in whose place texts must stand" in capsys.readouterr().err
    for further, told in (([], ""), ([0], ", label: .[2]"), (["no", "nor"], ", negatives: .[2:]")):
        Path("a.jsonl").write_text("".join(json.dumps([*pair, *further]) + "\n" for pair in PAIRS))
        with pytest.raises(SystemExit):
            add("a.jsonl")
        said = (
            f"has an array on each line; write one object a line: jq -c '{{query: .[0], document: .[1]{told}}}' a.jsonl"
        )
        assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("file", "options"),
    [
        ("pairs.parquet", []),
        ("pairs.jsonl", ["--format", "flagembedding"]),
        ("pairs.jsonl", ["--format", "tevatron"]),
    ],
)
def test_exported_pairs_are_read_again_with_negatives_and_scores(project: Path, file: str, options: list[str]) -> None:
    given = toy_rows(4, negatives=2)
    for place, row in enumerate(given):
        row["negatives"] = row["negatives"][: 2 if file.endswith("parquet") else place % 3]
        row["scores"] = [2 - place / 3, *(place / 7 for _ in row["negatives"])]
    write_toy_shards(Path("shards"), [toy_batch(given)])
    main(["export", "shards", file, *options])
    add(file)
    ingest(*sources(), held_out=0)
    batches = scan_pairs(Path("data/pairs"), "pairs", None, SCORED_PAIRS.names)
    found = {row["query"]: row for batch in batches for row in batch.to_pylist()}
    assert len(found) == len(given)
    for row in given:
        read = found[row["query"]]
        assert (read["document"], read["negatives"]) == (row["document"], row["negatives"])
        assert read["scores"] == ([] if "tevatron" in options else pytest.approx(row["scores"], abs=1e-7))
