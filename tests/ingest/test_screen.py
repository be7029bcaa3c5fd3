"""Given negatives are screened: what answers the query is removed, and told."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from batchwright.core.normal_form import normal_form
from batchwright.formats.pairs import read_pairs
from pipelines.ingest.domain import POSITIVE, REPEATED, answers_in, screen
from pipelines.ingest.read import sift
from pipelines.ingest.sources.base import Row
from tests.helpers import run_stage, write_params

WORDS = st.sampled_from(["a", "A", "a.", "b", "c c", "C  C"])
ROWS = st.lists(st.tuples(WORDS, WORDS, st.lists(WORDS, max_size=3)).filter(lambda row: row[0] != row[1]), max_size=8)


@given(ROWS)
def test_exactly_the_negatives_that_answer_the_query_are_removed(rows: list[tuple[str, str, list[str]]]) -> None:
    raw = [
        Row("f", n, f"query {q}", f"document {d}", "x", [f"document {n}" for n in ns])
        for n, (q, d, ns) in enumerate(rows)
    ]
    candidates = sift(raw)[0]
    pairs = pa.Table.from_batches([candidates]).append_column("part", pa.array([0] * len(raw), pa.int32()))
    screened, rejected = screen(pairs, answers_in([candidates]))
    answers = {
        (normal_form(q), normal_form(d))
        for q, d in zip(*pairs.select(["query", "document"]).to_pydict().values(), strict=True)
    }
    for before, after in zip(pairs.to_pylist(), screened.to_pylist(), strict=True):
        query = normal_form(before["query"])
        wanted = [each for each in before["negatives"] if (query, normal_form(each)) not in answers]
        assert after == before | {"negatives": wanted}
    count = sum(map(len, pairs["negatives"].to_pylist())) - sum(map(len, screened["negatives"].to_pylist()))
    assert len(rejected) == count
    assert {each["reason"] for each in rejected} <= {REPEATED, POSITIVE}


def test_the_stage_counts_them_beside_the_rows(workspace: Path) -> None:
    rows = [
        {"query": "how to list?", "document": "ls", "negatives": ["LS", "dir", "rm"]},
        {"query": "How to list", "document": "dir", "negatives": []},
        {"query": "", "document": "nothing", "negatives": []},
        {"query": "how to list?", "document": "ls", "negatives": ["cat", "dir"]},
    ]
    file = workspace / "raw/pairs/f.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("\n".join(map(json.dumps, rows)) + "\n")
    source = {"kind": "jsonl", "path": "raw/pairs/f.jsonl", "domain": "d", "columns": {"negatives": ["negatives"]}}
    write_params(workspace)
    params = workspace / "params.yaml"
    params.write_text(
        params.read_text()
        + "\n"
        + json.dumps({"ingest": {"sources": [source], "held_out": 0.0, "max_reject_rate": 0.5}})[1:-1]
    )
    done = run_stage("ingest", cwd=workspace)
    assert done.returncode == 0, done.stderr
    assert (
        "2 rows rejected: duplicate (1), empty query (1); 3 hard negatives removed that answer their query"
        in done.stdout
    )
    [account] = json.loads((workspace / "results/ingest.json").read_text())["sources"].values()
    assert account == {
        "in": 4,
        "out": 2,
        "rejected": {"duplicate": 1, "empty query": 1},
        "negatives_removed": {REPEATED: 1, POSITIVE: 2},
    }
    rejects = pq.read_table(workspace / "data/rejects.parquet").to_pylist()
    assert [(each["row"], each["reason"], each["text"]) for each in rejects if "negative" in each["reason"]] == [
        (1, REPEATED, "LS"),
        (1, POSITIVE, "dir"),
        (4, POSITIVE, "dir"),
    ]
    pairs = read_pairs(workspace / "data/pairs", "d").to_pylist()
    assert {pair["query"]: pair["negatives"] for pair in pairs} == {"how to list?": ["rm", "cat"], "How to list": []}
