"""``python -m stages ingest``: the same bytes however it is run, and no output after an error."""

import random
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from batchwright.core.command import run
from batchwright.core.errors import InputError
from batchwright.formats.pairs import pairs_file, read_pairs
from stages.ingest import main
from tests.helpers import run_on_full_disk, run_stage, tree
from tests.ingest.running import configure, ingest
from tests.ingest.tables import COLUMNS, ROWS, write
from tests.job_service import portable_runner

MAPPING = {"columns": COLUMNS, "domain_column": "area"}
LOCAL = "--runner=FnApiRunner --direct_num_workers=2 --direct_running_mode="


@pytest.fixture
def sources(workspace: Path) -> list[dict[str, Any]]:
    """Three files that share rows and contain some invalid rows."""
    bad = [{**ROWS[0], "ask": ""}, {**ROWS[1], "answer": ROWS[1]["ask"]}]
    write("raw/pairs/a.jsonl", ROWS[:16] + bad)
    write("raw/pairs/b.jsonl", ROWS[10:])
    return [
        {"kind": "jsonl", "path": "raw/pairs/*.jsonl", **MAPPING},
        {**write("raw/pairs/c.parquet", ROWS[5:9]), **MAPPING},
    ]


@pytest.fixture
def published(sources: list[dict[str, Any]]) -> dict[str, bytes]:
    ingest(*sources)
    return artifacts()


def artifacts() -> dict[str, bytes]:
    return {
        f"{folder}/{name}": content for folder in ("data", "results") for name, content in tree(Path(folder)).items()
    }


def test_the_command_writes_pairs_rejects_and_counts_and_prints_a_summary(published: dict[str, bytes]) -> None:
    assert sorted(published) == [
        "data/pairs/north.parquet",
        "data/pairs/south.parquet",
        "data/rejects.parquet",
        "results/ingest.json",
    ]
    done = run_stage("ingest", cwd=Path())
    assert (done.returncode, done.stdout[:8]) == (0, "ingest: ")
    assert done.stderr.startswith("ingest: warning: 12 of 12 pairs of 'north' are pairs of 'south', too")
    assert done.stdout.endswith(
        " test pairs in 2 domains, 12 rows rejected: duplicate (10), empty query (1), query equals document (1)\n"
    )
    assert artifacts() == published


@pytest.mark.parametrize("mode", ["multi_threading", "multi_processing"])
def test_two_workers_write_the_same_bytes(published: dict[str, bytes], mode: str) -> None:
    shutil.rmtree(".scratch")  # so that they read, and do not find what has been read
    done = run_stage("ingest", cwd=Path(), BEAM_OPTIONS=LOCAL + mode)
    assert done.returncode == 0, done.stderr
    assert not re.search("INFO|WARNING|sdk", done.stderr)  # workers are quiet, too
    assert artifacts() == published


@pytest.mark.slow
def test_a_portable_runner_writes_the_same_bytes(published: dict[str, bytes], tmp_path: Path) -> None:
    shutil.rmtree(".scratch")
    with portable_runner(tmp_path / "port") as options:
        done = run_stage("ingest", cwd=Path(), BEAM_OPTIONS=options)
    assert done.returncode == 0, done.stderr
    assert artifacts() == published


def test_chunks_of_another_size_give_the_same_bytes(
    published: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.ingest.read.CHUNK_ROWS", 3)
    shutil.rmtree(".scratch")
    main()
    assert artifacts() == published


def test_results_count_each_domain(sources: list[dict[str, Any]]) -> None:
    outcome = ingest(*sources)
    for domain, counts in outcome.results["domains"].items():
        pairs = [pair for pair in outcome.pairs if pair["domain"] == domain]
        assert counts == {
            "train": sum(pair["split"] == "train" for pair in pairs),
            "dev": sum(pair["split"] == "dev" for pair in pairs),
            "test": sum(pair["split"] == "test" for pair in pairs),
            "queries": len({pair["query"] for pair in pairs}),
            "documents": len({pair["document"] for pair in pairs}),
        }
    assert sum(counts["test"] for counts in outcome.results["domains"].values()) > 0


def test_every_row_is_a_pair_or_a_reject(sources: list[dict[str, Any]]) -> None:
    outcome = ingest(*sources)
    for account in outcome.results["sources"].values():
        assert account["in"] == account["out"] + sum(account["rejected"].values())
    assert sum(account["out"] for account in outcome.results["sources"].values()) == len(outcome.pairs) == len(ROWS)
    assert sum(sum(account["rejected"].values()) for account in outcome.results["sources"].values()) == len(
        outcome.rejects
    )


def test_rejects_are_sorted_by_source_and_row(sources: list[dict[str, Any]]) -> None:
    places = [(reject["source"], reject["row"]) for reject in ingest(*sources).rejects]
    assert places == sorted(places)
    assert len({source for source, _ in places}) == 3


def test_the_order_of_rows_and_files_does_not_change_the_pairs(sources: list[dict[str, Any]]) -> None:
    pairs = ingest(*sources).pairs
    rows = random.Random(1).sample(ROWS, len(ROWS))
    write("raw/pairs/a.jsonl", rows[12:])
    write("raw/pairs/b.jsonl", rows[:14])
    assert ingest(*reversed(sources)).pairs == pairs


def test_adding_a_domain_does_not_change_the_bytes_of_the_others(sources: list[dict[str, Any]]) -> None:
    ingest(*sources)
    before = pairs_file(Path("data/pairs"), "north").read_bytes()
    east = [{**row, "area": "the east/far"} for row in ROWS if row["area"] == "north"]
    ingest(*sources, {**write("d.jsonl", east), **MAPPING})
    assert pairs_file(Path("data/pairs"), "north").read_bytes() == before
    assert len(read_pairs(Path("data/pairs"), "the east/far")) == len(east)


def test_a_removed_domain_leaves_no_file(sources: list[dict[str, Any]]) -> None:
    ingest(*sources)
    north = [row for row in ROWS if row["area"] == "north"]
    ingest({**write("north.jsonl", north), **MAPPING})
    assert list(tree(Path("data/pairs"))) == ["north.parquet"]


def test_a_failing_run_keeps_the_previous_output(published: dict[str, bytes], sources: list[dict[str, Any]]) -> None:
    with pytest.raises(InputError):
        ingest(*sources, max_reject_rate=0.0)
    assert artifacts() == published


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (
            {"path": "raw/pairs/gone.jsonl"},
            "ingest: error: raw/pairs/gone.jsonl: no such file; correct 'path' of this source\n",
        ),
        (
            {"columns": {"query": "aks"}},
            "raw/pairs/a.jsonl: no column 'aks' (did you mean 'ask'?); columns found: ask, ",
        ),
        ({"kind": "jsno"}, "params.yaml: parameter 'ingest.sources.0.kind': unknown value 'jsno'; did you mean"),
    ],
)
def test_the_command_ends_with_one_message_and_no_output(
    sources: list[dict[str, Any]], broken: dict[str, Any], message: str
) -> None:
    configure({**sources[0], **broken})
    done = run_stage("ingest", cwd=Path())
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not Path("data").exists()
    assert not Path("results").exists()


@pytest.mark.parametrize("pages", [2, 12])
def test_a_full_disk_is_reported(sources: list[dict[str, Any]], tmp_path: Path, pages: int) -> None:
    configure(*sources)
    ended, left = run_on_full_disk("ingest", cwd=Path.cwd(), pages=pages, outside=tmp_path)
    assert ended.returncode == 1
    assert ended.stderr.startswith("ingest: error: the disk is full")
    assert "Traceback" not in ended.stderr
    assert not [name for name in left if name.startswith(("data/", "results/"))]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--runner=Nope", "environment variable BEAM_OPTIONS: Unexpected pipeline runner: Nope"),
        ("--runnr=FnApiRunner", "environment variable BEAM_OPTIONS: unknown option '--runnr'"),
        ("--direct_num_workers=many", "argument --direct_num_workers: invalid int value: 'many'"),
    ],
)
def test_wrong_beam_options_are_reported(
    sources: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: str,
    message: str,
) -> None:
    configure(*sources)
    monkeypatch.setenv("BEAM_OPTIONS", options)
    with pytest.raises(SystemExit, match="1"):
        run("ingest", main)
    shown = capsys.readouterr().err
    assert shown.startswith("ingest: error: environment variable BEAM_OPTIONS: ")
    assert message in shown


def test_pairs_are_held_out_for_dev_beside_those_for_test(sources: list[dict[str, Any]]) -> None:
    without, outcome = ingest(*sources), ingest(*sources, dev=0.4)
    assert {pair["split"] for pair in without.pairs} == {"train", "test"}
    assert {pair["split"] for pair in outcome.pairs} == {"train", "dev", "test"}
    tested = [{pair["id"] for pair in each.pairs if pair["split"] == "test"} for each in (without, outcome)]
    assert tested[0] == tested[1]


def test_shares_that_leave_nothing_to_train_on_are_refused(sources: list[dict[str, Any]]) -> None:
    with pytest.raises(InputError, match=r"'ingest\.dev': together with held_out it leaves no queries .*found 0\.75"):
        ingest(*sources, held_out=0.25, dev=0.75)
