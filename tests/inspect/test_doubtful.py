"""``batchwright export --doubtful``, a judge, and what its verdicts change in the next batches."""

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from batchwright.core.atomic import CHECKSUMS
from batchwright.core.errors import InputError
from batchwright.formats.pairs import read_pairs
from batchwright.formats.shards import NAMES, ShardSet, read_reasons
from batchwright.inspect.artifacts import Artifacts
from batchwright.inspect.doubtful import write_doubtful
from project.__main__ import main
from stages.cluster import stage as cluster
from stages.filter import stage as judge
from stages.ingest import main as ingest
from stages.pack import stage as pack
from tests.end_to_end import docs
from tests.helpers import plant_vectors, topic_pairs, write_pairs, write_params

FILE = "raw/judgements/doubtful.jsonl"
[SCRIPT] = docs.code(docs.JUDGE)
[EXPORT], [ADD] = docs.steps(docs.JUDGE)
Rows = list[dict[str, Any]]
Cell = tuple[str, str]


def run_stages() -> str:
    said = judge.main()
    cluster.main()
    pack.main("contextual")
    return said


@pytest.fixture
def project(workspace: Path) -> Path:
    """Batches with cells that are masked by score, and two mined hard negatives a pair."""
    write_params(workspace, {"filter.likeness": 0.6, "filter.margin": None, "filter.mine": {"count": 2, "depth": 10}})
    write_pairs("birds", topic_pairs(60))
    write_pairs("fish", topic_pairs(40, seed=1))
    plant_vectors()
    Path("raw/judgements").mkdir(parents=True)
    run_stages()
    return workspace


def export(*options: str, output: str = FILE) -> Rows:
    main(["export", "contextual", output, "--doubtful", *options])
    return read(output)


def read(file: str) -> Rows:
    return [json.loads(line) for line in Path(file).read_text(encoding="utf-8").split("\n")[:-1]]


def write(rows: Rows) -> None:
    Path(FILE).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def read_verdicts() -> None:
    """Write the line of the page into ``params.yaml``."""
    [line] = re.findall("`filter: ({.*})`", docs.JUDGE.text)
    params = yaml.safe_load(Path("params.yaml").read_text())
    params["filter"] |= yaml.safe_load(line)
    Path("params.yaml").write_text(yaml.safe_dump(params))


def kind(row: dict[str, Any]) -> str:
    return re.split("[ ,]", row["why"])[0]


def cells() -> dict[str, set[Cell]]:
    """Query and document of the cells of batches by the reason why they are masked, and of mined negatives."""
    found: dict[str, set[Cell]] = {name: set() for name in ("none", *NAMES, "mined")}
    shards = ShardSet.open(Path("data/shards/contextual"))
    for number in range(len(shards)):
        batch = shards.batch(number)
        queries, documents, negatives = (batch[name].to_pylist() for name in ("query", "document", "negatives"))
        for (row, column), reason in np.ndenumerate(read_reasons(batch)):
            if row != column:
                found[NAMES[reason] if reason >= 0 else "none"].add((queries[row], documents[column]))
        found["mined"] |= {(query, text) for query, texts in zip(queries, negatives, strict=True) for text in texts}
    return found


def test_what_is_written_is_in_batches_and_can_be_found_again(project: Path) -> None:
    rows, there = export(), cells()
    assert {kind(row) for row in rows} == {"hardest", "masked", "mined"}
    pairs = {
        row["id"]: row
        for name in ("birds", "fish")
        for row in read_pairs(Path("data/pairs"), name, "train").to_pylist()
    }
    for row in rows:
        where = {"hardest": "none", "masked": "score", "mined": "mined"}[kind(row)]
        assert (row["query"], row["document"]) in there[where]
        own = pairs[row["pair"]]
        assert (own["domain"], own["query"], own["document"]) == (row["domain"], row["query"], row["own_document"])
        assert pairs[row["other"]]["document"] == row["document"]
        assert row["verdict"] == ""
        assert -1.2 < row["score"] < 1.2
    assert len({(row["query"], row["document"]) for row in rows}) == len(rows), "each question once"
    first = next(row for row in rows if kind(row) == "hardest")
    number = int(re.findall(r"batch (\d+)", first["why"])[0])
    batch = ShardSet.open(Path("data/shards/contextual")).batch(number)
    assert first["pair"] in batch["id"].to_pylist()
    assert re.search(r"masked in batch \d+, scored like an answer: .*limit 0\.60", str(rows))


def test_most_limits_each_kind_of_a_domain_and_the_draw_is_the_same_again(project: Path) -> None:
    rows = export("--most", "3")
    counts = {(row["domain"], kind(row)): 0 for row in rows}
    for row in rows:
        counts[row["domain"], kind(row)] += 1
    assert max(counts.values()) == 3
    assert len(counts) >= 4
    assert export("--most", "3", output="again.jsonl") == rows
    texts = {(row["query"], row["document"], kind(row)) for row in rows}
    assert texts < {(row["query"], row["document"], kind(row)) for row in export("--most", "9", output="more.jsonl")}


def test_verdicts_mask_unmask_and_take_out_of_mined_negatives(project: Path) -> None:
    rows = export("--most", "4")
    said = {"hardest": "relevant", "masked": "not relevant", "mined": " Relevant"}
    for row in rows:
        row["verdict"] = said[kind(row)]
    rows[-1]["verdict"] = None
    asked = {where: {(row["query"], row["document"]) for row in rows[:-1] if kind(row) == where} for where in said}
    write(rows)
    read_verdicts()
    told = run_stages()
    assert told.endswith(
        f"1 rows have no verdict yet; 0 of {len(rows) - 1} judgements are about no domain's training pairs"
    )
    after = cells()
    assert not asked["hardest"] & (after["none"] | after["mined"])
    assert asked["hardest"] & after["judged"]
    assert not asked["masked"] & after["score"]
    assert asked["masked"] & (after["none"] | after["mined"])
    assert not asked["mined"] & after["mined"]
    again = {(row["query"], row["document"]) for row in export("--most", "99", output="again.jsonl")}
    assert not again & set().union(*asked.values()), "what was judged is not asked again"


def test_relevant_documents_become_pairs(project: Path) -> None:
    """As RLHN relabels: the file is a source of pairs, too, and the judge's file is not copied."""
    rows = export("--most", "4")
    for place, row in enumerate(rows):
        row["verdict"] = ("relevant", "not relevant")[place % 2]
    write(rows)
    params = yaml.safe_load(Path("params.yaml").read_text())
    params["ingest"] = {"sources": [], "held_out": 0}
    Path("params.yaml").write_text(yaml.safe_dump(params))
    main(ADD.split()[1:])
    link = Path("raw/pairs/doubtful.jsonl")
    assert not link.readlink().is_absolute()
    ingest()
    found = {
        (domain, *pair)
        for domain in ("birds", "fish")
        for pair in zip(*(read_pairs(Path("data/pairs"), domain)[side].to_pylist() for side in ("query", "document")),
                        strict=True)
    }  # fmt: skip
    assert found == {(row["domain"], row["query"], row["document"]) for row in rows[::2]}


def test_what_verdicts_cannot_do_is_told_with_file_and_row(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = export("--most", "1")[0]
    own = {**row, "document": row["own_document"]}
    gone = {**row, "document": "a document that is not there any more", "verdict": "relevant"}
    write([
        {**row, "verdict": "relevant"}, {**row, "verdict": "not relevant"}, {**own, "verdict": "not relevant"}, gone
    ])  # fmt: skip
    read_verdicts()
    assert judge.main().endswith("; 1 of 4 judgements are about no domain's training pairs")
    told = capsys.readouterr().err
    assert f"{FILE}: row 2: says that the document is not relevant, but {FILE}: row 1 says that it is" in told
    assert f"{FILE}: row 3: says that the document is not relevant, but a training pair of '{row['domain']}'" in told
    assert f"{FILE}: row 4: no domain has training pairs with this query and this document" in told
    write([{**row, "verdict": "perhaps"}])
    with pytest.raises(InputError, match=r"row 1: verdict 'perhaps' is none of 'relevant', 'not relevant'; write one"):
        judge.main()


def test_what_cannot_be_exported_is_refused(project: Path) -> None:
    export()
    shards = ShardSet.open(Path("data/shards/contextual"))
    for output, message in ((FILE, "is there already, and may hold verdicts"), ("j.csv", "name a .jsonl file")):
        with pytest.raises(InputError, match=message):
            write_doubtful(shards, Artifacts.of(shards), Path(output))
    with pytest.raises(InputError, match="--most 0: must be 1 or more"):
        write_doubtful(shards, Artifacts.of(shards), Path("new.jsonl"), 0)
    write_pairs("birds", topic_pairs(50))
    Path("data/negatives", CHECKSUMS).unlink()
    judge.main()
    with pytest.raises(InputError, match="no longer those of these batches; run the stage 'pack' again"):
        write_doubtful(shards, Artifacts.of(shards), Path("new.jsonl"))
    assert not Path("new.jsonl").exists()


def test_options_that_contradict_each_other_are_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options, message in (
        (["--doubtful", "--negatives", "1"], "--negatives is for pairs"),
        (["--most", "1"], "--most is for --doubtful"),
    ):
        with pytest.raises(SystemExit):
            main(["export", "contextual", "new.jsonl", *options])
        assert message in capsys.readouterr().err


class Model(BaseHTTPRequestHandler):
    """A large model that finds documents about birds of an even number relevant."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"][0]["content"]
        said = "Yes." if int(asked.rpartition("Document:")[2].split()[2]) % 2 == 0 else "No."
        answer = json.dumps({"choices": [{"message": {"content": said}}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def model() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Model) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1/chat/completions"
        server.shutdown()


def test_the_script_of_the_page_fills_in_verdicts(project: Path, model: str) -> None:
    main(EXPORT.split()[1:])
    assert len(SCRIPT.splitlines()) <= 13
    [url] = re.findall(r'"(http://[^"]*)"', SCRIPT)
    exec(compile(SCRIPT.replace(url, model), "batches.md", "exec"), {})
    rows = read(FILE)
    assert {row["verdict"] for row in rows} == {"relevant", "not relevant"}
    for row in rows:
        assert (row["verdict"] == "relevant") == (int(row["document"].split()[2]) % 2 == 0)
