"""Stages that work domain by domain go on after they are killed, and do again only what has changed."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from batchwright.by_domain.domains import Done, Metrics, Work, do_domains
from batchwright.by_domain.spread import Map
from stages.cluster import stage as cluster
from stages.filter import stage as judge
from stages.pack import stage as pack
from tests.helpers import (
    install_another,
    plant_vectors,
    run_stage,
    start_slowed,
    topic_pairs,
    tree,
    write_pairs,
    write_params,
)

STAGES: dict[str, tuple[Callable[[], str], str, dict[str, object]]] = {
    "filter": (judge.main, "data/negatives", {"filter.margin": 0.2}),
    "cluster": (cluster.main, "data/clusters", {"base.seed": 2}),
    "pack": (partial(pack.main, "contextual"), "data/shards/contextual", {"base.seed": 2}),
}
DOMAINS = ["ants", "ants.json", "bees/wild"]


@pytest.fixture(autouse=True)
def corpus(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BATCHWRIGHT_WORKERS", "1")  # one domain after the other
    for number, domain in enumerate(DOMAINS):
        write_pairs(domain, topic_pairs(40, seed=number))
    plant_vectors()
    judge.main()
    cluster.main()
    return workspace


def kill_after_one_domain(stage: str, folder: Path) -> None:
    arguments = ["contextual"] if stage == "pack" else []
    before = set(Path(".scratch", stage).rglob("ledger.json"))
    with start_slowed(stage, *arguments, after="batchwright.by_domain.domains.keep", seconds=60, cwd=folder) as process:
        while not set(Path(".scratch", stage).rglob("ledger.json")) - before:
            assert process.poll() is None, "the stage ended before it could be killed"
            time.sleep(0.02)
        process.kill()


@pytest.fixture
def worked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The domains that are processed from now on."""
    domains: list[str] = []

    def watched(
        stage: str, package: Path, work: Work, inputs: dict[str, object], *spread: Any, **more: Any
    ) -> dict[str, Done]:
        def noted(domain: str, folder: Path, do_parts: Map) -> Metrics:
            domains.append(domain)
            return work(domain, folder, do_parts)

        return do_domains(stage, package, noted, inputs, *spread, **more)

    for module in (judge, cluster, pack):
        monkeypatch.setattr(module, "do_domains", watched)
    return domains


@pytest.mark.parametrize("stage", STAGES)
def test_a_killed_run_resumes_and_gives_the_same_bytes(stage: str, corpus: Path, worked: list[str]) -> None:
    main, output, changes = STAGES[stage]
    main()
    uninterrupted = tree(Path(output)), tree(Path("results"))
    write_params(corpus, changes)
    main()
    old = tree(Path(output))
    assert old != uninterrupted[0]
    write_params(corpus)
    kill_after_one_domain(stage, corpus)
    assert tree(Path(output)) == old, "a killed stage must leave its old output unchanged"
    worked.clear()
    main()
    assert worked == DOMAINS[1:]
    assert (tree(Path(output)), tree(Path("results"))) == uninterrupted


@pytest.mark.parametrize("stage", STAGES)
def test_other_parameters_do_all_domains_again(stage: str, corpus: Path, worked: list[str]) -> None:
    main, _, changes = STAGES[stage]
    main()
    write_params(corpus, changes)
    worked.clear()
    main()
    assert worked == DOMAINS


@pytest.mark.parametrize("library", ["numpy", "pyarrow", "scipy", "faiss-cpu"])
def test_other_libraries_do_all_domains_again(library: str, worked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    judge.main()
    assert worked == []
    install_another(library, monkeypatch)
    judge.main()
    assert worked == DOMAINS


@pytest.mark.parametrize("stage", STAGES)
def test_nothing_is_done_again_without_a_change(stage: str, worked: list[str]) -> None:
    main, output, _ = STAGES[stage]
    main()
    first = tree(Path(output)), tree(Path("results"))
    worked.clear()
    main()
    assert worked == []
    assert (tree(Path(output)), tree(Path("results"))) == first


def test_a_new_domain_is_the_only_one_that_is_worked_on(worked: list[str]) -> None:
    pack.main("contextual")
    worked.clear()
    write_pairs("cats", topic_pairs(40, seed=9))
    plant_vectors()
    for main, output, _ in STAGES.values():
        main()
        assert worked == ["cats"], output
        worked.clear()


@pytest.mark.parametrize("stage", STAGES)
def test_a_domain_left_out_leaves_nothing_behind(stage: str) -> None:
    output = STAGES[stage][1]
    Path("data/pairs/ants.parquet").unlink()
    for main, _, _ in STAGES.values():
        main()
    assert len(list(Path(".scratch", stage).rglob("ledger.json"))) == 2
    assert not Path(output, "ants").exists()


def test_another_margin_changes_no_cluster(corpus: Path, worked: list[str]) -> None:
    clusters = tree(Path("data/clusters"))
    write_params(corpus, {"filter.margin": 0.2})
    judge.main()
    assert worked == DOMAINS
    worked.clear()
    cluster.main()
    assert worked == []
    assert tree(Path("data/clusters")) == clusters


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("what", ["files", "ledger"])
def test_kept_work_that_is_damaged_is_done_again(
    stage: str, what: str, worked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    main, output, _ = STAGES[stage]
    main()
    first = tree(Path(output)), tree(Path("results"))
    ledger = min(Path(".scratch", stage).rglob("ledger.json"))
    files = [file for file in ledger.parent.glob("files/**/*") if file.is_file()]
    file = ledger if what == "ledger" else max(files, key=lambda each: each.stat().st_size)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    worked.clear()
    main()
    assert len(worked) == 1
    assert f"warning: {ledger.parent}: damaged; this part of the work is done again" in capsys.readouterr().err
    assert (tree(Path(output)), tree(Path("results"))) == first


def test_two_runs_of_a_stage_at_once_are_refused(corpus: Path) -> None:
    write_params(corpus, {"filter.margin": 0.3})
    with start_slowed("filter", after="batchwright.by_domain.domains.keep", seconds=60, cwd=corpus) as process:
        while not Path(".scratch/locks/filter").exists():
            assert process.poll() is None
            time.sleep(0.02)
        time.sleep(0.5)
        others = [run_stage("filter", cwd=corpus), run_stage("filter", cwd=corpus, BATCHWRIGHT_SCRATCH="another")]
        process.kill()
    refusal = "filter: error: another process is running this here; wait until it ends, or stop it\n"
    assert [(each.returncode, each.stdout, each.stderr) for each in others] == [(1, "", refusal)] * 2
    assert run_stage("filter", cwd=corpus).returncode == 0, "a lock must end with its process"


def test_files_that_a_killed_run_was_writing_are_no_part_of_its_work(corpus: Path) -> None:
    def killed(domain: str, folder: Path, do_parts: Map) -> Metrics:
        (folder / "whole").touch()
        (folder / ".half").touch()
        raise KeyboardInterrupt

    def look(domain: str, folder: Path, do_parts: Map) -> Metrics:
        return {"found": [file.name for file in folder.iterdir()]}

    package = Path(pack.__file__).parent
    with pytest.raises(KeyboardInterrupt):
        do_domains("look", package, killed, {"ants": 1})
    assert do_domains("look", package, look, {"ants": 1})["ants"].metrics == {"found": ["whole"]}
