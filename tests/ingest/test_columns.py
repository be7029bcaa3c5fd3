"""Columns beyond query and document: metadata, the split and the weight."""

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from batchwright.core.errors import InputError
from batchwright.formats.metadata import read_metadata
from batchwright.formats.pairs import ANNOTATED_PAIRS, PAIRS_SCHEMA, SCORED_PAIRS, pairs_file, scan_pairs
from tests.ingest.running import Outcome, ingest
from tests.ingest.tables import write
from tests.ingest.test_heavy import queries

PAIRS = Path("data/pairs")


def source(file: str, rows: list[dict[str, Any]], domain: str = "d", **columns: object) -> dict[str, Any]:
    """Write rows, whose queries and documents are ``q`` and ``d``, and return their entry."""
    return {**write(f"raw/pairs/{file}", rows), "domain": domain, "columns": {"query": "q", "document": "d", **columns}}


def told(domain: str = "d") -> dict[str, tuple[float, dict[str, str]]]:
    """Weight and metadata of each document's pair."""
    rows = pa.Table.from_batches(scan_pairs(PAIRS, domain, None, ANNOTATED_PAIRS.names))
    found = zip(rows["weight"].to_pylist(), read_metadata(rows["metadata"]), strict=True)
    return dict(zip(rows["document"].to_pylist(), found, strict=True))


def splits(outcome: Outcome) -> dict[str, str]:
    return {pair["document"]: pair["split"] for pair in outcome.pairs}


@pytest.mark.parametrize("ending", ["csv", "tsv.gz", "jsonl", "parquet", "arrow"])
def test_metadata_are_the_texts_of_the_source_in_its_order(workspace: Path, ending: str) -> None:
    rows = [{"date": f"2024-01-0{n}", "q": f"q{n}", "d": f"d{n}", "product": f' "Ä {n}" ', "x": "y"} for n in (1, 2)]
    ingest(source(f"a.{ending}", rows, metadata=["product", "date"]))
    said = {f"d{n}": (1, {"product": f' "Ä {n}" ', "date": f"2024-01-0{n}"}) for n in (1, 2)}
    assert told() == said
    assert [list(of) for _, of in told().values()] == [["product", "date"]] * 2


def test_what_is_no_text_becomes_one_and_what_is_missing_stays_so(workspace: Path) -> None:
    when = dt.datetime(2024, 5, 6, 7, 8, 9)
    values = {"a": [1, None], "b": [0.5, 2.0], "c": [True, False], "e": [when, when.replace(day=7)]}
    values |= {"f": [Decimal("1.10"), None], "g": [["x", "y"], []], "h": [{"k": 1}, None], "i": ["", None]}
    table = pa.table({"q": ["p", "q"], "d": ["d1", "d2"], **values})
    Path("raw/pairs").mkdir(parents=True)
    pq.write_table(table, "raw/pairs/a.parquet")
    columns = {"query": "q", "document": "d", "metadata": list(values)}
    ingest({"path": "raw/pairs/a.parquet", "domain": "d", "columns": columns})
    assert told() == {
        "d1": (
            1,
            {"a": "1", "b": "0.5", "c": "true", "e": "2024-05-06 07:08:09.000000", "f": "1.10"}
            | {"g": '["x", "y"]', "h": '{"k": 1}', "i": ""},
        ),
        "d2": (1, {"b": "2.0", "c": "false", "e": "2024-05-07 07:08:09.000000", "g": "[]"}),
    }


def test_bytes_and_broken_text_are_rejected(workspace: Path) -> None:
    Path("raw/pairs").mkdir(parents=True)
    raw = '{"q": "q", "d": "d1", "url": "\\ud800"}\n{"q": "q", "d": "d2", "url": "u"}\n'
    Path("raw/pairs/a.jsonl").write_text(raw)
    maps = pa.array([[("k", "v")], None], pa.map_(pa.string(), pa.string()))
    pq.write_table(pa.table({"q": ["q", "q"], "d": ["d3", "d4"], "url": maps}), "raw/pairs/b.parquet")
    named = {"domain": "d", "columns": {"query": "q", "document": "d", "metadata": ["url"]}}
    outcome = ingest({"path": "raw/pairs/a.jsonl", **named}, {"path": "raw/pairs/b.parquet", **named})
    assert told() == {"d2": (1, {"url": "u"}), "d4": (1, {})}
    assert outcome.reasons == [
        ("a.jsonl", 1, "metadata 'url' is not UTF-8"),
        ("b.parquet", 1, "metadata 'url' is not text"),
    ]


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "csv"])
def test_numbers_and_dates_name_domains(workspace: Path, kind: str) -> None:
    days = {"jsonl": "2026-01-31", "parquet": dt.date(2026, 1, 31), "csv": "2026-01-31"}
    table = pa.table({"query": ["a", "b"], "document": ["c", "d"], "topic": [3, 10], "day": [days[kind]] * 2})
    if kind == "parquet":
        pq.write_table(table, "a.parquet")
    elif kind == "csv":
        pa.csv.write_csv(table, "a.csv")
    else:
        Path("a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    for column, expected in (("topic", {"3", "10"}), ("day", {"2026-01-31"})):
        outcome = ingest({"path": f"a.{kind}", "domain_column": column})
        assert {pair["domain"] for pair in outcome.pairs} == expected


def test_sources_with_different_columns_work_together(workspace: Path) -> None:
    both = {"q": "q", "d": "both"}
    a = source("a.csv", [{**both, "product": "A"}, {"q": "q", "d": "a", "product": "B"}], metadata=["product"])
    b = source("b.jsonl", [{**both, "url": "u"}, {"q": "q", "d": "b", "url": "v"}], metadata=["url"])
    c = source("c.jsonl", [{"q": "q", "d": ["c1", "c2"], "url": "w"}], metadata=["url"])
    plain = [source("e.jsonl", [{"q": "q", "d": "e"}]), source("f.jsonl", [{"q": "q", "d": "f"}], "plain")]
    ingest(a, b, c, *plain)
    assert {document: said for document, (_, said) in told().items()} == {
        "both": {"product": "A"},  # of the first
        "a": {"product": "B"},
        "b": {"url": "v"},
        "c1": {"url": "w"},
        "c2": {"url": "w"},
        "e": {},
    }
    schemas = [pq.read_schema(pairs_file(PAIRS, domain)).remove_metadata() for domain in ("d", "plain")]
    assert schemas == [ANNOTATED_PAIRS, PAIRS_SCHEMA]
    assert told("plain") == {"f": (1, {})}


def test_scores_and_metadata_lie_beside_each_other(workspace: Path) -> None:
    rows = [{"q": "q", "d": "d", "wrong": ["n", "m"], "s": [3, 1, 2], "url": "u"}]
    ingest(source("a.jsonl", rows, negatives=["wrong"], scores=["s"], metadata=["url"]))
    (row,) = (row for batch in scan_pairs(PAIRS, "d", None, ANNOTATED_PAIRS.names) for row in batch.to_pylist())
    assert (row["negatives"], row["scores"], row["metadata"]) == (["n", "m"], [3, 1, 2], '{"url": "u"}')


def test_a_beir_folder_has_fields_of_documents_or_else_of_queries(workspace: Path) -> None:
    folder = Path("raw/pairs/beir")
    (folder / "qrels").mkdir(parents=True)
    corpus = [{"_id": "1", "title": "T", "text": "one", "metadata": {"url": "u1"}}, {"_id": "2", "text": "two"}]
    asked = [{"_id": "a", "text": "first", "date": 2024, "url": "of the query"}, {"_id": "b", "text": "second"}]
    for name, records in (("corpus", corpus), ("queries", asked)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    (folder / "qrels/train.tsv").write_text("query-id\tcorpus-id\tscore\na\t1\t1\na\t2\t1\nb\t2\t1\n")
    entry = {"kind": "beir", "path": str(folder), "domain": "d", "columns": {"metadata": ["title", "url", "date"]}}
    ingest(entry)
    pairs = pa.Table.from_batches(scan_pairs(PAIRS, "d", None, ["query", "document", "metadata"]))
    said = read_metadata(pairs["metadata"])
    assert sorted(said, key=len) == [
        {},
        {"url": "of the query", "date": "2024"},
        {"url": "u1", "date": "2024", "title": "T"},
    ]
    entry["columns"] = {"metadata": ["year"]}
    with pytest.raises(InputError, match=r"corpus\.jsonl: no record has a field 'year'"):
        ingest(entry)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("prodct", r"a\.jsonl: no column 'prodct' \(did you mean 'product'\?\)"),
        ("mask", r"a\.jsonl: the column 'mask' cannot be metadata"),
        ("negative_1", r"a\.jsonl: the column 'negative_1' cannot be metadata"),
    ],
)
def test_a_column_that_is_not_there_or_has_a_name_of_ours_is_refused(workspace: Path, name: str, message: str) -> None:
    rows = [{"q": "q", "d": "d", "product": "p", "mask": "m", "negative_1": "n", "id": "7"}]
    with pytest.raises(InputError, match=message):
        ingest(source("a.jsonl", rows, metadata=["id", name]))


SAID = {"train": "Train", "b": "training", "dev": "dev", "v": "validation", "x": "valid", "eval": "eval", "t": " TEST "}
SPLIT = {"train": "train", "b": "train", "dev": "dev", "v": "dev", "x": "dev", "eval": "dev", "t": "test"}


def test_a_column_says_the_split_by_its_usual_names_and_the_hash_says_the_others(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stated = source("a.csv", [{"q": f"q {d}", "d": d, "set": value} for d, value in SAID.items()], split="set")
    hashed = source("b.jsonl", [{"q": query, "d": f"to {query}"} for query in queries(0, 1, 40)])
    outcome = ingest(stated, hashed, held_out=0.2, dev=0.1)
    found = splits(outcome)
    assert {document: found[document] for document in SPLIT} == SPLIT
    alone = splits(ingest(hashed, held_out=0.2, dev=0.1))
    assert set(alone.values()) == {"train", "dev", "test"}
    assert alone.items() <= found.items()
    assert capsys.readouterr().err == ""


def test_no_query_is_in_two_splits_and_what_moves_is_told(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [hashed] = queries(0, 0.2, 1, "of the test split by its hash")
    a = [("How?", "a1", "train"), ("how?", "a2", "test"), ("why", "a3", "dev"), ("why", "a4", "train")]
    a += [("how?", "a2", "train"), (hashed, "a5", "train"), (hashed.upper(), "a6", "train"), ("so", "a7", "train")]
    rows = [{"q": query, "d": document, "split": split} for query, document, split in a]
    other = [{"q": "HOW?", "d": "b1"}, {"q": hashed, "d": "b2"}, {"q": "so", "d": "b3"}]
    outcome = ingest(source("a.csv", rows, split="split"), source("b.jsonl", other, "other"), held_out=0.2)
    test, dev, train = ("a1", "a2", "b1"), ("a3", "a4"), ("a5", "a6", "a7", "b2", "b3")
    places = {"test": test, "dev": dev, "train": train}
    assert splits(outcome) == {document: split for split, documents in places.items() for document in documents}
    to_test, to_dev = (f"split: its query is in {split}, by another row" for split in ("test", "dev"))
    assert outcome.reasons == [
        ("a.csv", 2, to_test),
        ("a.csv", 5, to_dev),
        ("a.csv", 6, "duplicate"),
        ("a.csv", 6, to_test),
    ]
    (counted, _) = outcome.results["sources"].values()
    assert counted == {"in": 8, "out": 7, "rejected": {"duplicate": 1}, "moved": {to_test: 2, to_dev: 1}}
    said = capsys.readouterr().err
    assert said.startswith("ingest: warning: 3 rows go to another split than they say: all rows of a query or group")
    assert "raw/pairs/a.csv, row 2: 'How?'" in said


@pytest.mark.parametrize(
    ("ending", "row", "value", "what"),
    [
        ("csv", 3, "holdout 2", "'set' is 'holdout 2'"),
        ("jsonl", 2, "", "'set' is empty"),
        ("parquet", 2, None, "empty"),
    ],
)
def test_what_is_no_split_is_refused_with_its_row(
    workspace: Path, ending: str, row: int, value: str | None, what: str
) -> None:
    rows = [{"q": "q", "d": "d1", "set": "train"}, {"q": "q", "d": "d2", "set": value}]
    with pytest.raises(InputError, match=rf"a\.{ending}, row {row}: .*{what}.*write train, dev or test"):
        ingest(source(f"a.{ending}", rows, split="set"))


def test_a_heavy_query_stays_where_its_source_puts_it(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"q": "heavy", "d": f"h{n}", "s": "test"} for n in range(20)] + [{"q": "p", "d": "d", "s": "train"}]
    found = splits(ingest(source("a.csv", rows, split="s"), held_out=0.2))
    assert set(found.values()) == {"train", "test"} and found["h0"] == "test"
    assert capsys.readouterr().err == ""


def test_weights_are_positive_numbers_and_1_where_there_is_none(workspace: Path) -> None:
    weights = ["2.5", "", "0", "-1", "a lot", "nan", "1e-3", "inf"]
    rows = [{"q": "q", "d": f"d{n}", "w": weight} for n, weight in enumerate(weights)]
    outcome = ingest(source("a.csv", rows, weight="w"))
    assert {document: weight for document, (weight, _) in told().items()} == {
        "d0": 2.5,
        "d1": 1,
        "d6": pytest.approx(1e-3),
    }
    assert {reason for *_, reason in outcome.reasons} == {"weight is not a positive number"}
    ingest(source("a.csv", [{"q": "q", "d": "d", "w": "1"}], weight="w"))
    assert pq.read_schema(pairs_file(PAIRS, "d")).remove_metadata() == PAIRS_SCHEMA != SCORED_PAIRS


def test_only_domains_whose_queries_are_stated_otherwise_are_made_again(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stages import ingest as stage

    made: list[str] = []
    before = stage.write_domain
    monkeypatch.setattr(stage, "write_domain", lambda domain, *rest: made.append(domain) or before(domain, *rest))
    a, b = source("a.jsonl", [{"q": "a", "d": "x"}], "a"), source("b.jsonl", [{"q": "b", "d": "y"}], "b")
    ingest(a, b)
    made.clear()
    ingest(a, b, source("c.csv", [{"q": "B", "d": "c", "s": "test"}], "c", split="s"))
    assert sorted(made) == ["b", "c"]


GROUPED = [("q1", "d1", "A"), ("q2", "d2", "A"), ("q3", "d3", "B"), ("Q3", "d4", "C"), ("q5", "d5", "D")]


def grouped(pairs: list[tuple[str, str, Any]], name: str = "a.jsonl", **columns: str) -> dict[str, Any]:
    rows = [{"q": query, "d": document, "g": group} for query, document, group in pairs]
    return source(name, rows, group="g", **columns)


def test_pairs_of_a_group_are_in_one_split_whatever_the_order_and_the_source(workspace: Path) -> None:
    """A query in two groups joins them; who is in no group is split by the query as before."""
    many = [(f"q {n}", f"d {n}", f"g {n % 100}") for n in range(1000)]
    alone = [
        (query, f"to {query}", none) for query, none in zip(queries(0, 1, 90, "p"), (None, "", " ") * 30, strict=True)
    ]
    found = splits(ingest(grouped(many + GROUPED + alone), held_out=0.3, dev=0.2))
    by_group = [{found[f"d {n}"] for n in range(group, 1000, 100)} for group in range(100)]
    assert all(len(of_group) == 1 for of_group in by_group)
    shares = {split: sum(of == {split} for of in by_group) for split in ("train", "dev", "test")}
    assert shares["test"] == pytest.approx(30, abs=10) and shares["dev"] == pytest.approx(20, abs=10)
    assert found["d1"] == found["d2"] and found["d3"] == found["d4"]
    plain = source("b.jsonl", [{"q": query, "d": document} for query, document, _ in alone])
    assert splits(ingest(plain, held_out=0.3, dev=0.2)).items() <= found.items()
    other = {**grouped((many + GROUPED)[::-1][:900], "a.csv"), "domain": "other"}
    again = splits(ingest(grouped(alone + many[50:][::-1] + GROUPED), other, held_out=0.3, dev=0.2))
    assert {document: found[document] for document in again} == again


def test_groups_that_share_queries_are_held_out_no_more_often_than_others(workspace: Path) -> None:
    """Their key is the least of several hashes, and yet as likely to be low as any."""
    chains = [(f"q {n}", f"d {n} {g}", f"g {n} {g}") for n in range(300) for g in range(8)]
    found = splits(ingest(grouped(chains), held_out=0.3))
    assert sum(found[f"d {n} 0"] == "test" for n in range(300)) == pytest.approx(90, abs=30)
    assert all(len({found[f"d {n} {g}"] for g in range(8)}) == 1 for n in range(300))


def test_numbers_are_groups_and_equal_in_all_kinds_of_files(workspace: Path) -> None:
    pairs = [(f"{n}", f"to {n}", n % 40) for n in range(80)]
    found = splits(ingest(grouped(pairs[:40], "a.parquet"), grouped(pairs[40:], "b.csv"), held_out=0.5))
    assert all(found[f"to {n}"] == found[f"to {n + 40}"] for n in range(40))
    assert len(set(found.values())) == 2


def test_a_group_that_its_source_puts_into_two_splits_goes_to_test_and_is_told(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [("q1", "a1", "A", "train"), ("q2", "a2", "A", "test"), ("q2", "b1", "B", "dev"), ("q3", "c1", "C", "train")]
    table = [{"q": query, "d": document, "g": group, "s": split} for query, document, group, split in rows]
    outcome = ingest(source("a.csv", table, group="g", split="s"), held_out=0.2)
    assert splits(outcome) == {"a1": "test", "a2": "test", "b1": "test", "c1": "train"}
    why = "split: its group is in test, by another row"
    assert outcome.reasons == [("a.csv", 2, why), ("a.csv", 4, why)]
    assert (
        "2 rows go to another split than they say: all rows of a query or group go to test" in capsys.readouterr().err
    )


def test_a_group_with_most_of_a_split_stays_in_train_and_is_told(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = [(f"q {n}", f"d {n}", f"g {n // 2}") for n in range(60)]
    found = splits(ingest(grouped(small), held_out=0.5))
    heavy = next(f"g {n // 2}" for n in range(60) if found[f"d {n}"] == "test")
    more = [(f"more {n}", f"to {n}", heavy) for n in range(200)] + [("more 1", "joined", "another")]
    found = splits(ingest(grouped(small + more), held_out=0.5))
    assert {found[document] for _, document, group in small + more if group in (heavy, "another")} == {"train"}
    assert "test" in found.values()
    told = capsys.readouterr().err
    assert f"group '{min(heavy, 'another')}' with 1 that share queries with it has 203 of " in told
    assert "test pairs of 'd', too many for one group; it stays in train" in told


def test_a_split_without_pairs_because_of_few_groups_is_told(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ingest(grouped([("q", f"d{n}", f"g{n}") for n in range(9)]), held_out=0.1)
    assert capsys.readouterr().err.endswith(
        "no pair is in test, since there are 9 groups, and those that share queries go together, which leaves 1 to "
        "draw from; raise ingest.held_out, or take out columns.group\n"
    )
