"""Judgements from outside: how files are read, which texts they are about, and what becomes of them."""

import csv
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchwright.core import untrusted_arrow
from batchwright.core.atomic import CHECKSUMS
from batchwright.core.errors import InputError
from batchwright.core.files import read_json
from batchwright.formats.negatives import KnownPositives, Negatives, judged
from batchwright.formats.pairs import read_pairs
from stages.filter.judgements import BY_PAIR, NOT_OVERRULED, Matched, read_judgements, verdicts
from stages.filter.stage import main
from tests.helpers import plant_vectors, topic_pairs, write_pairs, write_params

Rows = list[dict[str, Any]]
ROWS: Rows = [
    {"query": "what's\nit", "document": 'a "quoted", tab\tand é', "label": 1},
    {"query": "why", "document": "because", "label": 0},
    {"query": "how", "document": "so", "label": 2},
]


def write_jsonl(file: Path, rows: Rows) -> None:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def write_separated(file: Path, rows: Rows) -> None:
    with file.open("w", newline="", encoding="utf-8") as text:
        writer = csv.DictWriter(text, list(rows[0]), delimiter="\t" if file.suffix == ".tsv" else ",")
        writer.writeheader()
        writer.writerows(rows)


WRITERS: dict[str, Callable[[Path, Rows], None]] = {
    "csv": write_separated,
    "tsv": write_separated,
    "jsonl": write_jsonl,
    "parquet": lambda file, rows: pq.write_table(pa.Table.from_pylist(rows), file),
}


@pytest.mark.parametrize("kind", WRITERS)
def test_all_kinds_of_files_say_the_same(tmp_path: Path, kind: str) -> None:
    WRITERS[kind](tmp_path / f"j.{kind}", ROWS)
    write_jsonl(tmp_path / "plain.jsonl", ROWS)
    found, plain = (read_judgements([tmp_path / name], None) for name in (f"j.{kind}", "plain.jsonl"))
    assert found.relevant.tolist() == [True, False, True]
    assert found.queries.tolist() == plain.queries.tolist()
    assert found.documents.tolist() == plain.documents.tolist()


def test_a_repeated_text_of_parquet_is_not_spread_out_without_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "j.parquet"
    pq.write_table(pa.table({"query": ["x" * 1000] * 3000, "document": ["d"] * 3000, "label": [1] * 3000}), file)
    assert len(read_judgements([file], None)) == 3000
    monkeypatch.setattr(untrusted_arrow, "MOST_BYTES", 1_000_000)
    with pytest.raises(
        InputError, match=r"j.parquet: row 1 and .* hold 3,000,000 bytes .*; write the file with smaller row groups"
    ):
        read_judgements([file], None)


def test_decimal_labels_are_numbers_and_text_must_be_utf8(tmp_path: Path) -> None:
    file = tmp_path / "j.parquet"
    label = pa.array([Decimal("1.5")])
    pq.write_table(pa.table({"query": ["q"], "document": ["d"], "label": label}), file)
    assert read_judgements([file], None).relevant.tolist() == [True]
    bad = pa.array([b"\xff"]).view(pa.string())
    pq.write_table(pa.table({"query": bad, "document": ["d"], "label": label}), file)
    with pytest.raises(InputError, match=r"j.parquet: cannot be read"):
        read_judgements([file], None)


@pytest.mark.parametrize(
    ("positive", "expected"), [(None, [False, True, True, False]), (0.5, [False, False, True, False])]
)
def test_the_limit_tells_relevant_from_irrelevant(tmp_path: Path, positive: float | None, expected: list[bool]) -> None:
    scores = [0, "0.25", 0.5, -1]
    write_jsonl(tmp_path / "j.jsonl", [{"query": "q", "document": "d", "score": score} for score in scores])
    assert read_judgements([tmp_path / "j.jsonl"], positive).relevant.tolist() == expected


GOOD = '{"query": "q", "document": "d", "label": 1}\n'


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("j.jsonl", GOOD + "\nnonsense\n", r"j\.jsonl: row 3: not valid JSON .*correct this line"),
        ("j.jsonl", GOOD.replace("}", ', "query": "r"}'), r"row 1: not valid JSON \(a key is there twice\)"),
        ("j.jsonl", GOOD + "[1]\n", r"row 2: not a JSON object; write one object per line"),
        ("j.jsonl", '{"query": "q", "label": 1}\n', r"row 1: no column 'document'; columns found: query, label"),
        ("j.jsonl", GOOD.replace("1", '"yes"'), r"row 1: label 'yes' is not a number; write a number"),
        ("j.jsonl", GOOD.replace("1", "NaN"), r"row 1: label nan is not a number"),
        ("j.jsonl", GOOD.replace("1", "1" * 400), r"row 1: label 1+ is not a number"),
        ("j.jsonl", GOOD.replace("1", "null"), r"row 1: label None is not a number"),
        ("j.jsonl", GOOD.replace('"q"', '" "'), r"row 1: no text in the column 'query'; add the text or remove"),
        ("j.jsonl", GOOD.replace('"d"', "7"), r"row 1: no text in the column 'document'"),
        ("j.jsonl", GOOD.replace("1", '1, "score": 2'), r"row 1: needs a column 'label' or a column 'score', not both"),
        ("j.csv", "", r"j\.csv: no column 'query'; columns found: none"),
        ("j.csv", "query,document,label\nq,d\n", r"row 2: more or fewer fields than the header"),
        ("j.csv", 'query,document,label\n\n"a\nb",d,1\n"a\nb",d\n', r"row 5: more or fewer fields than the header"),
        ("j.csv", "query,document,label\nq,d,1,1\n", r"row 2: more or fewer fields than the header"),
        ("j.csv", 'query,document,label\nq,"d,1\n', r"j\.csv: row 2: .*; correct the quotation marks"),
        ("j.csv", "query;document;label\n", r"no column 'query'; columns found: query;document;label"),
        ("j.tsv", "query\tdocument\n", r"j\.tsv: needs a column 'label' or a column 'score'"),
        ("j.csv", "query,document,label,document\nq,d,1,e\n", r"j\.csv: has two columns 'document'; rename one"),
        ("j.tsv", "query\tdocument\tlabel\tlabel\nq\td\t1\t0\n", r"j\.tsv: has two columns 'label'; rename one"),
        ("j.csv", "query,document,label\n", r"j\.csv: holds no judgements; add some, or remove it from filter\.judge"),
        ("j.jsonl", "\n", r"j\.jsonl: holds no judgements"),
        ("j.parquet", "nonsense", r"j\.parquet: cannot be read \(.*\); save it again"),
        ("j.txt", "", r"j\.txt: judgements are read from \.csv, \.jsonl, \.parquet, \.tsv; save it as one of them"),
    ],
)
def test_what_cannot_be_read_is_named_with_file_and_row(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_judgements([tmp_path / name], None)


@pytest.mark.parametrize(
    "values",
    [
        pa.array([2**62], pa.timestamp("ms")),
        pa.array([1], pa.timestamp("s", "Mars/Base")),
        pa.array([2**31 - 1], pa.date32()),
    ],
)
def test_dates_and_time_zones_that_do_not_exist_are_refused(tmp_path: Path, values: pa.Array) -> None:
    pq.write_table(pa.table({"query": values, "document": ["d"], "label": [1]}), tmp_path / "j.parquet")
    with pytest.raises(InputError, match=r"j\.parquet: row 1: no text in the column 'query'"):
        read_judgements([tmp_path / "j.parquet"], None)


def test_a_missing_file_and_one_that_is_not_text_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no\.csv: no such file; correct filter\.judgements"):
        read_judgements([tmp_path / "no.csv"], None)
    (tmp_path / "j.csv").write_bytes(b"query,document,label\n\xff,d,1\n")
    with pytest.raises(InputError, match=r"j\.csv: cannot be read \(.*utf-8"):
        read_judgements([tmp_path / "j.csv"], None)


def test_parquet_of_two_columns_of_one_name_or_without_rows_is_refused(tmp_path: Path) -> None:
    file, names = tmp_path / "j.parquet", ["query", "document", "label"]
    pq.write_table(pa.table([["q"], ["d"], [1], ["e"]], [*names, "document"]), file)
    with pytest.raises(InputError, match=r"j\.parquet: has two columns 'document'; rename one"):
        read_judgements([file], None)
    pq.write_table(pa.table([["q"], ["d"], [1]], names).slice(1), file)
    with pytest.raises(InputError, match=r"j\.parquet: holds no judgements"):
        read_judgements([file], None)


CELLS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.booleans()), max_size=12)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=8), CELLS)
def test_verdicts_are_those_of_a_loop(pairs: list[tuple[int, int]], cells: list[tuple[int, int, bool]]) -> None:
    """Judgements name rows; what counts are the classes of these rows."""
    rows = [(query % len(pairs), document % len(pairs)) for query, document, _ in cells]
    said = [verdict for *_, verdict in cells]
    query_class, document_class = np.array(pairs, np.int32).T
    matched = Matched(
        numbers=np.arange(len(cells)), rows=np.array(rows, np.int64).reshape(-1, 2), relevant=np.array(said, bool)
    )
    found, relevant, overruled = verdicts(matched, query_class, document_class)
    expected: dict[tuple[int, int], bool] = {}
    classes = [(pairs[query][0], pairs[document][1]) for query, document in rows]
    for cell, verdict in zip(classes, said, strict=True):
        if cell not in pairs:
            expected[cell] = expected.get(cell, False) or verdict
    assert {tuple(cell): bool(each) for cell, each in zip(found.tolist(), relevant, strict=True)} == expected
    yes = {cell: number for number, cell in reversed(list(enumerate(classes))) if said[number]}
    assert overruled.tolist() == [
        NOT_OVERRULED if verdict else BY_PAIR if cell in pairs else yes.get(cell, NOT_OVERRULED)
        for cell, verdict in zip(classes, said, strict=True)
    ]


def prepare(workspace: Path, rows: Rows, **changes: object) -> list[tuple[str, str]]:
    pairs = [*topic_pairs(20), ("Topic0 the SAME question?", "topic0 one"), ("topic0 the same question", "topic0 two")]
    write_pairs("birds", pairs)
    write_pairs("fish", topic_pairs(10, seed=1))
    plant_vectors()
    Path("raw").mkdir()
    Path("raw/judgements").mkdir(parents=True, exist_ok=True)
    write_jsonl(Path("raw/judgements/j.jsonl"), rows)
    settings = {f"filter.{name}": value for name, value in changes.items()}
    write_params(workspace, {"filter.judgements": ["raw/judgements/j.jsonl"], **settings})
    return pairs


def test_judgements_count_for_duplicates_and_those_about_no_pair_are_said(workspace: Path) -> None:
    pairs = topic_pairs(20)
    said = [
        ("topic0 the same question", pairs[3][1].upper(), 1),
        ("topic0 the same question", pairs[4][1], 0),
        (pairs[0][0], pairs[0][1], 0),
        (pairs[0][0], "unheard of", 1),
        ("unheard of", pairs[0][1], 1),
        (pairs[0][0], topic_pairs(10, seed=1)[0][1], 1),
    ]
    prepare(workspace, [dict(zip(("query", "document", "label"), each, strict=True)) for each in said])
    assert main().endswith("; 3 of 6 judgements are about no domain's training pairs")
    assert read_json(Path("results/judgements.json"), made_by="filter") == {"read": 6, "unmatched": 3}
    birds, fish = (read_json(Path("results/filter.json"), made_by="filter")[name] for name in ("birds", "fish"))
    assert (birds["judged_relevant"], birds["judged_irrelevant"], birds["judgements_overruled"]) == (1, 1, 1)
    assert (fish["judged_relevant"], fish["judged_irrelevant"], fish["judgements_overruled"]) == (0, 0, 0)

    table = read_pairs(Path("data/pairs"), "birds", "train")
    negatives = Negatives.read(Path("data/negatives"), "birds", len(table))
    queries, documents = table["query"].to_pylist(), table["document"].to_pylist()
    for query in ("Topic0 the SAME question?", "topic0 the same question"):
        cell = negatives.query_class[[queries.index(query)]], negatives.document_class
        assert np.flatnonzero(judged(negatives, relevant=True).contains(*cell)).tolist() == [
            documents.index(pairs[3][1])
        ]
        assert np.flatnonzero(judged(negatives, relevant=False).contains(*cell)).tolist() == [
            documents.index(pairs[4][1])
        ]
        assert KnownPositives(negatives).contains(*cell).sum() == 3


def test_no_judged_positive_is_mined_and_judged_negatives_may_be(workspace: Path) -> None:
    """With a threshold that every document reaches, only those judged irrelevant are left."""
    pairs = topic_pairs(20)
    rows: Rows = [{"query": pairs[0][0], "document": document, "score": score} for (_, document), score in
                  zip(pairs[1:9], [0, 1] * 4, strict=True)]  # fmt: skip
    prepare(workspace, rows, margin=None, threshold=-2, mine={"count": 9, "depth": 21})
    main()
    table = read_pairs(Path("data/pairs"), "birds", "train")
    mined = Negatives.read(Path("data/negatives"), "birds", len(table)).mined
    row = table["query"].to_pylist().index(pairs[0][0])
    documents = table["document"].to_pylist()
    assert {documents[each] for each in mined[row] if each >= 0} == {document for _, document in pairs[1:9:2]}
    assert (np.delete(mined, row, axis=0) == -1).all()


def test_without_judgements_nothing_is_said_of_them(workspace: Path) -> None:
    prepare(workspace, [], judgements=[])
    assert "judgements" not in main()
    assert read_json(Path("results/judgements.json"), made_by="filter") == {"read": 0, "unmatched": 0}


def test_a_damaged_class_is_refused(workspace: Path) -> None:
    prepare(workspace, [], judgements=[])
    main()
    Path("data/negatives", CHECKSUMS).unlink()
    file = Path("data/negatives/birds/judged.npy")
    for cell in ([21, 0], [0, -1]):
        np.save(file, np.array([cell], np.int32))
        with pytest.raises(InputError, match=r"judged\.npy: refers to a class that no .*run the stage 'filter' again"):
            Negatives.read(Path("data/negatives"), "birds", 22)
    np.save(file, np.array([[0, 1]], np.int32))
    with pytest.raises(InputError, match=r"relevant\.npy: expected bool of shape \(1,\)"):
        Negatives.read(Path("data/negatives"), "birds", 22)
