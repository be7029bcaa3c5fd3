"""Stages that work domain by domain resume after they are killed."""

import time
from pathlib import Path

import pytest

from batchwright.core.results import read_json
from stages import by_domain
from stages.cluster import stage as cluster
from stages.filter import stage as judge
from tests.helpers import plant_vectors, start_slowed, topic_pairs, tree, write_pairs, write_params

STAGES = {
    "cluster": (cluster, "data/clusters", {"base.seed": 2}),
    "filter": (judge, "data/negatives", {"filter.margin": 0.2}),
}


@pytest.fixture(autouse=True)
def corpus(workspace: Path) -> Path:
    for number, domain in enumerate(("ants", "ants.json", "bees/wild")):
        write_pairs(domain, topic_pairs(40, seed=number))
    plant_vectors()
    judge.main()
    return workspace


def kill_after_one_domain(stage: str, folder: Path) -> None:
    with start_slowed(stage, after="stages.by_domain.write_json", seconds=60, cwd=folder) as process:
        while not list(Path(".scratch", stage).rglob("ants.json")):
            assert process.poll() is None, "the stage ended before it could be killed"
            time.sleep(0.02)
        process.kill()


def watch(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the domains that are processed from now on."""
    worked: list[str] = []
    real = by_domain.sync_files

    def watched(folder: Path) -> None:
        worked.append(folder.name)
        real(folder)

    monkeypatch.setattr(by_domain, "sync_files", watched)
    return worked


@pytest.mark.parametrize("stage", STAGES)
def test_a_killed_run_resumes_and_gives_the_same_bytes(stage: str, corpus: Path, monkeypatch) -> None:
    module, output, changes = STAGES[stage]
    module.main()
    uninterrupted = tree(Path(output)), tree(Path("results"))
    write_params(corpus, changes)
    module.main()
    old = tree(Path(output))
    assert old != uninterrupted[0]
    write_params(corpus)
    kill_after_one_domain(stage, corpus)
    assert tree(Path(output)) == old, "a killed stage must leave its old output unchanged"
    worked = watch(monkeypatch)
    module.main()
    assert worked == ["ants.json", "bees%2Fwild"]
    assert (tree(Path(output)), tree(Path("results"))) == uninterrupted
    assert not list(Path(".scratch", stage).iterdir()), "a finished run must leave nothing in scratch"


@pytest.mark.parametrize("stage", STAGES)
def test_a_killed_run_is_not_resumed_with_other_parameters(stage: str, corpus: Path, monkeypatch) -> None:
    module, _, changes = STAGES[stage]
    kill_after_one_domain(stage, corpus)
    write_params(corpus, changes)
    worked = watch(monkeypatch)
    module.main()
    assert worked == ["ants", "ants.json", "bees%2Fwild"]


def test_a_new_model_recomputes_all_negatives(corpus: Path, monkeypatch) -> None:
    kill_after_one_domain("filter", corpus)
    file = Path("data/vectors/planted/encoder.json")
    assert read_json(file, made_by="embed")["weights"]
    file.write_text(file.read_text().replace("weights of", "other weights of"))
    worked = watch(monkeypatch)
    judge.main()
    assert worked == ["ants", "ants.json", "bees%2Fwild"]
