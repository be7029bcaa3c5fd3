"""What was read once is not read again until it changes; a killed run goes on; ranges of ids change nothing."""

import random
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from batchwright.core.errors import InputError
from pipelines.ingest import domain as domains
from pipelines.ingest import pipeline
from pipelines.ingest.read import PartRead
from pipelines.ingest.sources.base import Part, Source
from pipelines.ingest.sources.docstrings import DocstringsSource
from pipelines.ingest.sources.jsonl import JsonlSource
from stages import ingest as stage
from tests.helpers import start_slowed
from tests.ingest.running import configure, ingest
from tests.ingest.tables import COLUMNS, ROWS, write

MAPPING = {"columns": COLUMNS, "domain_column": "area"}
NORTH, SOUTH = ([row for row in ROWS if row["area"] == area] for area in ("north", "south"))


class Log:
    """Names of the parts that are read, and of the domains that are made, in a file: Beam copies what it calls."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def add(self, name: str) -> None:
        with self._file.open("a") as handle:
            handle.write(f"{name}\n")

    def take(self) -> list[str]:
        """Return the names, and forget them."""
        names = self._file.read_text().split() if self._file.exists() else []
        self._file.unlink(missing_ok=True)
        return names


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Log:
    log = Log(tmp_path / "log")
    read_part, write_domain = pipeline.read_part, stage.write_domain

    def noted_part(source: Source, part: Part, *others: Any) -> None:
        log.add(part.name)
        read_part(source, part, *others)

    def noted_domain(domain: str, parts: list[PartRead], *others: Any) -> dict[str, Any]:
        log.add(domain)
        return write_domain(domain, parts, *others)

    monkeypatch.setattr(pipeline, "read_part", noted_part)
    monkeypatch.setattr(stage, "write_domain", noted_domain)
    return log


def test_only_what_has_changed_is_read_and_made_again(workspace: Path, work: Log) -> None:
    sources = [{**write("n.jsonl", NORTH), **MAPPING}, {**write("s.jsonl", SOUTH[4:]), **MAPPING}]
    ingest(*sources)
    assert sorted(work.take()) == ["n.jsonl", "north", "s.jsonl", "south"]
    before = ingest(*sources)
    assert work.take() == []
    ingest({**write("more.csv", SOUTH[:6]), **MAPPING}, *sources)
    assert work.take() == ["more.csv", "south"]
    ingest({**write("more.csv", SOUTH[:5]), **MAPPING}, *sources)
    assert work.take() == ["more.csv", "south"]
    assert ingest(*sources) == before
    assert work.take() == ["south"]  # its pairs were made anew without more.csv, whose part is gone
    assert len(list(Path(".scratch/ingest/parts").iterdir())) == 2
    work.take()
    ingest(*sources, held_out=0.5)
    assert work.take() == ["north", "south"]


def test_of_a_file_with_many_domains_only_those_with_other_rows_are_made_again(workspace: Path, work: Log) -> None:
    source = {**write("a.jsonl", [*NORTH, *SOUTH]), **MAPPING}
    ingest(source)
    work.take()
    ingest({**write("a.jsonl", [*NORTH, *SOUTH[:-1]]), **MAPPING})
    assert work.take() == ["a.jsonl", "south"]


def test_accounts_and_rejects_follow_when_sources_change_places(workspace: Path, work: Log) -> None:
    first, second = ({**write(name, rows), **MAPPING} for name, rows in (("a.jsonl", NORTH), ("b.jsonl", NORTH[3:])))
    before = ingest(first, second)
    assert before.results["sources"]["1 b.jsonl"]["rejected"] == {"duplicate": 9}
    work.take()
    after = ingest(second, first)
    assert work.take() == ["north"]
    assert after.results["sources"]["1 a.jsonl"]["rejected"] == {"duplicate": 9}
    assert after.pairs == before.pairs


def test_what_cannot_be_told_from_files_is_read_every_time(
    workspace: Path, work: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JsonlSource, "read_for", lambda source, part: [])  # as a dataset on the hub
    source = {**write("a.jsonl", NORTH), **MAPPING}
    ingest(source)
    write("a.jsonl", NORTH[:7])
    assert len(ingest(source).pairs) == 7
    assert work.take() == ["a.jsonl", "north", "a.jsonl", "north"]


def test_of_a_package_every_module_counts(workspace: Path, work: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    module = '"""M."""\n\n\ndef f(x):\n    """Return the next {} number."""\n    y = x + 1\n    return y\n'
    folder = workspace / "here/measured_package"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "code.py").write_text(module.format("whole"))
    monkeypatch.syspath_prepend(str(workspace / "here"))
    source = {"kind": "docstrings", "packages": ["measured_package"]}
    assert len(DocstringsSource(**source).read_for(Part("measured_package"))) == 2
    assert ingest(source).pairs[0]["query"] == "Return the next whole number."
    assert ingest(source).pairs[0]["query"] == "Return the next whole number."
    assert work.take() == ["measured_package", "measured_package"]  # the part and the domain, once
    (folder / "code.py").write_text(module.format("odd"))
    assert ingest(source).pairs[0]["query"] == "Return the next odd number."


@pytest.mark.parametrize("file", ["candidates.arrow", "rejects.arrow", "ledger.json", "pairs.parquet"])
def test_a_damaged_file_of_scratch_is_made_again(
    workspace: Path, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source = {**write("a.jsonl", [*NORTH, *NORTH[:2]]), **MAPPING}
    before = ingest(source)
    [damaged] = [found for found in Path(".scratch").rglob(file) if file != "ledger.json" or "parts" in str(found)][:1]
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    assert ingest(source) == before
    assert "damaged; this part of the work is done again" in capsys.readouterr().err


def test_a_killed_run_reads_on(workspace: Path, work: Log) -> None:
    names = [f"raw/pairs/{letter}.jsonl" for letter in "abc"]
    sources = [{**write(name, rows), **MAPPING} for name, rows in zip(names, (NORTH, SOUTH, NORTH[5:]), strict=True)]
    configure(*sources)
    with start_slowed("ingest", after="pipelines.ingest.pipeline.read_part", seconds=60, cwd=workspace) as process:
        while not list(Path(".scratch").rglob("ledger.json")):
            assert process.poll() is None, "the stage ended before it could be killed"
            time.sleep(0.02)
        process.kill()
    assert not Path("data").exists()
    killed = ingest(*sources)
    assert len([name for name in work.take() if name in names]) == 2
    assert not list(Path(".scratch").rglob(".*.*.*"))  # no temporary files
    (workspace / ".scratch").rename(workspace / "old")
    assert ingest(*sources) == killed


def test_ranges_of_ids_give_the_same_pairs(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the negatives that answer a query in a pair of another range are found."""
    numbers = random.Random(3)
    rows = [
        {
            "ask": f"q {numbers.randrange(9)}",
            "answer": f"a {n % 40}",
            "wrong": f"a {numbers.randrange(40)}",
            "area": "x",
        }
        for n in range(120)
    ]
    sources = [{**write("a.jsonl", rows[:70]), **MAPPING}, {**write("b.jsonl", rows[60:]), **MAPPING}]
    whole = ingest(*sources)
    assert whole.results["sources"]["0 a.jsonl"]["negatives_removed"]
    monkeypatch.setattr(domains, "_RANGE_PAIRS", 5)
    (workspace / ".scratch").rename(workspace / "old")
    assert ingest(*sources) == whole
    monkeypatch.setattr(domains, "_RANGE_PAIRS", 10**6)
    monkeypatch.setattr(domains, "_RANGE_BYTES", 1000)
    (workspace / ".scratch").rename(workspace / "older")
    assert ingest(*sources) == whole


@pytest.mark.parametrize("killed", [False, True])
def test_what_was_read_while_its_file_changed_does_not_count_as_read(
    killed: bool, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if the run is killed before it can say so, and the file becomes what it was."""
    source = {**write("a.jsonl", NORTH), **MAPPING}
    real = pipeline.find_part
    monkeypatch.setattr(pipeline, "find_part", lambda folder: (write("a.jsonl", SOUTH), real(folder))[1])
    if killed:
        monkeypatch.setattr(pipeline, "raise_errors", lambda _: sys.exit("killed"))
    with pytest.raises(SystemExit if killed else InputError, match=r"killed|a.jsonl: changed while it was read"):
        ingest(source)
    monkeypatch.undo()
    monkeypatch.chdir(workspace)
    monkeypatch.setattr("stages.ingest.RAW_PAIRS", Path())
    write("a.jsonl", NORTH)
    assert {pair["domain"] for pair in ingest(source).pairs} == {"north"}


def test_a_part_that_is_not_there_after_reading_stops_the_stage(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "read_part", lambda *_: None)
    with pytest.raises(InputError, match=r"a.jsonl: was read, but its rows are not in .*BATCHWRIGHT_SCRATCH"):
        ingest({**write("a.jsonl", NORTH), **MAPPING})
