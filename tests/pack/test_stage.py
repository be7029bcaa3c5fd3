"""``python -m stages pack``: shards, their manifest, resuming, and what is refused."""

import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from batchwright.by_domain import domains
from batchwright.core.atomic import CHECKSUMS, faults
from batchwright.core.errors import InputError
from batchwright.core.files import read_json
from batchwright.formats.pairs import read_pairs
from batchwright.formats.shards import ShardSet
from stages.pack import batches
from tests.helpers import (
    plant_vectors,
    project_environment,
    run_on_full_disk,
    run_stage,
    start_slowed,
    topic_pairs,
    tree,
    write_pairs,
    write_params,
)
from tests.pack.corpora import RunPack, prepare, with_duplicates

OURS = Path("data/shards/contextual")
ALL_FIELDS = ["id", "query", "document", "domain", "negatives"]
STALE_CLUSTERS = "data/clusters: the pairs or vectors it was made from have changed; run the stage 'cluster' again"


def test_each_batch_contains_unchanged_pairs_of_one_domain(corpus: Path, run_pack: RunPack) -> None:
    assert run_pack("contextual").startswith("30 contextual batches of 8, hardness 0.")
    pairs = {
        row["id"]: {field: row[field] for field in ALL_FIELDS}
        for domain in ("birds", "fish")
        for row in read_pairs(Path("data/pairs"), domain, "train").to_pylist()
    }
    shards = ShardSet.open(OURS)
    shards.verify()
    for number in range(len(shards)):
        batch = shards.batch(number)
        assert len(batch) == 8
        assert len(set(batch["domain"].to_pylist())) == 1
        for row in batch.select(ALL_FIELDS).to_pylist():
            assert row == pairs[row["id"]]


def test_every_pair_is_in_an_epoch_once_or_counted_as_left_over(corpus: Path, run_pack: RunPack) -> None:
    run_pack("contextual")
    shards = ShardSet.open(OURS)
    for epoch in shards.manifest.epochs:
        numbers = range(epoch.first_batch, epoch.first_batch + epoch.batches)
        ids = [name for number in numbers for name in shards.batch(number)["id"].to_pylist()]
        assert len(set(ids)) == len(ids)
        assert epoch.left_over == {"birds": 0, "fish": 5}
        assert len(ids) + sum(epoch.left_over.values()) == 80 + 45
    assert read_json(Path("results/pack/contextual.json"), made_by="pack")["left_over"] == 10


@pytest.mark.parametrize(("draws", "least", "most"), [(1, 1, 1), (2, 0.05, 0.9)])
def test_the_manifest_reports_the_share_of_pairs_that_meet_again(
    workspace: Path, run_pack: RunPack, draws: int, least: float, most: float
) -> None:
    write_params(workspace, {"cluster.cluster_size": 8, "cluster.draws": draws})
    prepare(birds=topic_pairs(80))
    run_pack("contextual")
    first, second = ShardSet.open(OURS).manifest.epochs
    assert first.met_before == 0
    assert least <= second.met_before <= most


def test_refilled_batches_leave_nothing_over_and_count_repeated_pairs(corpus: Path, run_pack: RunPack) -> None:
    write_params(corpus, {"pack.left_over": "refill"})
    run_pack("contextual")
    for epoch in ShardSet.open(OURS).manifest.epochs:
        assert (epoch.left_over, epoch.repeated) == ({"birds": 0, "fish": 0}, 3)


def test_the_manifest_says_what_the_shards_were_made_from(corpus: Path, run_pack: RunPack) -> None:
    run_pack("contextual")
    manifest = ShardSet.open(OURS).manifest
    assert (manifest.policy, manifest.seed, manifest.batch_size, manifest.batches) == ("contextual", 1, 8, 30)
    assert manifest.parameters == {
        "batch_size": 8,
        "epochs": 2,
        "seeds": 1,
        "cluster_share": [1.0],
        "left_over": "drop",
        "small_domains": "merge",
        "weights": {},
        "hard_negatives": None,
        "judge": None,
        "batches_per_shard": 3,
    }
    assert manifest.models == {"clusters": "weights of planted", "surrogate": "weights of planted"}
    assert [shard.batches for shard in manifest.shards] == [3] * 10
    assert manifest.rows == sum(shard.rows for shard in manifest.shards) == 240
    published = {file.name for file in OURS.iterdir()}
    assert published == {"README.md", "manifest.json", CHECKSUMS, *(shard.name for shard in manifest.shards)}


@pytest.mark.parametrize("workers", ["1", "3"])
def test_the_number_of_workers_does_not_change_a_byte(
    corpus: Path, run_pack: RunPack, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    run_pack("contextual")
    first = tree(OURS), tree(Path("results"))
    shutil.rmtree(".scratch")
    monkeypatch.setenv("BATCHWRIGHT_WORKERS", workers)
    run_pack("contextual")
    assert (tree(OURS), tree(Path("results"))) == first


def test_further_seeds_leave_the_first_as_it_is_and_are_those_of_base_seed(corpus: Path, run_pack: RunPack) -> None:
    run_pack("contextual")
    one = {file.name: file.read_bytes() for file in OURS.glob("*.arrow")}, tree(Path("results"))
    write_params(corpus, {"pack.seeds": 2})
    assert run_pack("contextual").startswith("30 contextual batches of 8 for each of 2 seeds, hardness 0.")
    assert ({file.name: file.read_bytes() for file in OURS.glob("*.arrow")}, tree(Path("results"))) == one
    assert not list(faults(OURS))
    second = ShardSet.open(OURS / "seed-2")
    second.verify()
    assert [each.manifest.seed for each in (ShardSet.open(OURS), second)] == [1, 2]
    batches = [second.batch(number).to_pylist() for number in range(len(second))]
    write_params(corpus, {"base.seed": 2})
    run_pack("contextual")
    alone = ShardSet.open(OURS)
    assert [alone.batch(number).to_pylist() for number in range(len(alone))] == batches


def test_another_seed_gives_different_bytes(corpus: Path, run_pack: RunPack) -> None:
    run_pack("contextual")
    first = tree(OURS)
    write_params(corpus, {"base.seed": 2})
    run_pack("contextual")
    assert tree(OURS)["train-00000-of-00010.arrow"] != first["train-00000-of-00010.arrow"]


def test_a_new_domain_changes_no_batch_of_another(corpus: Path, run_pack: RunPack) -> None:
    def batches_of_birds() -> list[str]:
        shards = ShardSet.open(OURS)
        batches = [shards.batch(number).to_pydict() for number in range(len(shards))]
        return sorted(str(batch) for batch in batches if batch["domain"][0] == "birds")

    run_pack("contextual")
    first = batches_of_birds()
    prepare(mammals=topic_pairs(40, seed=7))
    run_pack("contextual")
    assert batches_of_birds() == first


def test_a_killed_run_resumes_and_gives_the_same_bytes(
    corpus: Path, run_pack: RunPack, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_pack("contextual")
    uninterrupted = tree(OURS), tree(Path("results"))
    write_params(corpus, {"base.seed": 2})
    run_pack("contextual")
    write_params(corpus)

    after = "batchwright.by_domain.kept._do_part"
    with start_slowed("pack", "contextual", after=after, seconds=0.5, cwd=corpus, large=60) as process:
        while len(parts := sorted(Path(".scratch").rglob("parts/2/?"))) < 3:  # after vectors
            assert process.poll() is None, "the stage ended before it could be killed"
            time.sleep(0.02)
        process.kill()
    assert ShardSet.open(OURS).manifest.seed == 2, "a killed stage must leave the old shards unchanged"
    files = parts[0].parents[2] / "files"
    finished = {(files / f"{int(part.name):06d}.arrow").resolve() for part in parts}
    (files / ".half-written").touch()
    damaged = min(finished)
    damaged.write_bytes(damaged.read_bytes()[:-1])

    written: list[Path] = []
    write_file = batches._write_file

    def watched(source: Any, most: int | None, part: tuple[Path, Any]) -> Any:
        written.append(part[0])
        return write_file(source, most, part)

    monkeypatch.setattr(batches, "_write_file", watched)
    monkeypatch.setattr(domains, "LARGE", 60)
    monkeypatch.setenv("BATCHWRIGHT_WORKERS", "1")
    run_pack("contextual")
    assert (tree(OURS), tree(Path("results"))) == uninterrupted
    assert finished & set(written) == {damaged}
    assert set(written) - finished


def test_an_unfinished_run_is_not_resumed_after_inputs_change(
    corpus: Path, run_pack: RunPack, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("stages.pack.stage.write_shards", interrupt)
        run_pack("contextual")
    assert len(list(Path(".scratch", "pack").rglob("*.arrow"))) == 11
    prepare(birds=with_duplicates(topic_pairs(50, seed=9)))
    run_pack("contextual")
    shards = ShardSet.open(OURS)
    packed = {name for number in range(len(shards)) for name in shards.batch(number)["id"].to_pylist()}
    known = {name for domain in ("birds", "fish") for name in read_pairs(Path("data/pairs"), domain)["id"].to_pylist()}
    assert len(shards.manifest.shards) == 10
    assert packed <= known


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pack.batch_sise": 8}, r"unknown parameter 'pack\.batch_sise'; did you mean 'batch_size'\?"),
        ({"pack.batch_size": 1}, r"parameter 'pack\.batch_size': .*greater than 1"),
        ({"pack.epochs": 0}, r"parameter 'pack\.epochs': .*greater than 0"),
        ({"pack.epochs": "two"}, r"parameter 'pack\.epochs': .*integer.*found 'two'"),
    ],
)
def test_wrong_parameters_are_explained(
    corpus: Path, run_pack: RunPack, changes: dict[str, object], message: str
) -> None:
    write_params(corpus, changes)
    with pytest.raises(InputError, match=message):
        run_pack("contextual")
    assert not OURS.exists()


def test_an_unknown_policy_is_explained(corpus: Path) -> None:
    ended = run_stage("pack", "contextaul", cwd=corpus)
    assert ended.returncode == 1
    assert ended.stderr == "pack: error: unknown policy 'contextaul'; did you mean 'contextual'?\n"


@pytest.mark.parametrize("count", [45, 60])
def test_clusters_made_from_other_pairs_are_refused(corpus: Path, run_pack: RunPack, count: int) -> None:
    write_pairs("fish", topic_pairs(count, seed=77))
    plant_vectors()
    with pytest.raises(InputError, match=STALE_CLUSTERS):
        run_pack("contextual")


def test_clusters_made_from_other_vectors_are_refused(corpus: Path, run_pack: RunPack) -> None:
    encoder = Path("data/vectors/planted/encoder.json")
    encoder.write_text(encoder.read_text().replace("weights of planted", "retrained weights"))
    with pytest.raises(InputError, match=STALE_CLUSTERS):
        run_pack("contextual")


@pytest.mark.parametrize(
    ("artifact", "stage"), [("clusters", "cluster"), ("negatives", "filter"), ("vectors", "embed")]
)
def test_a_missing_artifact_names_the_stage_that_makes_it(
    corpus: Path, run_pack: RunPack, artifact: str, stage: str
) -> None:
    Path("data", artifact).rename("elsewhere")
    with pytest.raises(InputError, match=f"run the stage '{stage}' first"):
        run_pack("contextual")


def test_vectors_of_the_wrong_size_are_named(corpus: Path, run_pack: RunPack) -> None:
    file = Path("data/vectors/planted/birds/vectors.npy")
    np.save(file, np.load(file)[:-1])
    with pytest.raises(InputError, match=r"birds/keys\.npy: expected .* of shape"):
        run_pack("contextual")
    assert not OURS.exists()


@pytest.mark.parametrize("pages", [0, 9])
def test_a_full_disk_gives_one_message_and_no_partial_output(corpus: Path, tmp_path: Path, pages: int) -> None:
    before = set(tree(corpus))
    ended, left = run_on_full_disk("pack", "contextual", cwd=corpus, pages=pages, outside=tmp_path)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("pack: error: the disk is full; free space")
    assert len(ended.stderr.splitlines()) == 1
    new = {name for name in left if not name.startswith(".scratch/locks/")} - before
    assert all(name.startswith(".scratch/pack/") and "/." not in name.removeprefix(".") for name in new)


def test_a_disk_that_fills_up_while_shards_are_published_keeps_no_partial_output(corpus: Path, tmp_path: Path) -> None:
    ended, left = run_on_full_disk(
        "pack", "contextual", cwd=corpus, pages=9, outside=tmp_path, BATCHWRIGHT_SCRATCH=str(tmp_path / "scratch")
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("pack: error: the disk is full; free space")
    assert sorted(name for name in left if not name.startswith(".scratch/locks/pack")) == sorted(tree(corpus))


def test_a_hundred_domains_are_packed_with_few_files_open(workspace: Path) -> None:
    prepare(**{f"d{number}": topic_pairs(8, seed=number) for number in range(100)})
    command = f"ulimit -n 180; exec {sys.executable} -m stages pack random"
    environment = project_environment()
    ended = subprocess.run(["sh", "-c", command], cwd=workspace, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("pack: 200 random batches of 8")


def test_domains_with_hardly_any_unmasked_negatives_are_named(workspace: Path) -> None:
    prepare(birds=topic_pairs(40), copies=[(f"query {number}", "the same answer") for number in range(16)])
    done = run_stage("pack", "random", cwd=workspace)
    assert done.returncode == 0
    assert done.stderr.strip() == (
        "pack: warning: 100% of the negatives of 'copies' are masked, so it adds next to nothing to training; "
        "the reasons are in results/pack/random.json; see them with batchwright show --worst masked --shards random"
    )


def test_rows_with_most_of_their_negatives_masked_are_counted_by_domain(workspace: Path) -> None:
    """A query with seven answers among sixteen pairs: hardly a fifth of the domain's cells, but half of them in it."""
    write_params(workspace, {"pack.batch_size": 16, "pack.epochs": 1, "filter.margin": -2.0})
    asked = [("topic0 one question", f"topic0 answer {number}") for number in range(9)]
    prepare(birds=topic_pairs(32), fish=[*asked, *topic_pairs(7, seed=3)])
    done = run_stage("pack", "random", cwd=workspace)
    assert done.stderr.strip() == (
        "pack: warning: 9 of 16 rows of 'fish' have more than half of their negatives masked, so they add little to "
        "training; the reasons are in results/pack/random.json; "
        "see them with batchwright show --worst masked --shards random"
    )
    domains = read_json(Path("results/pack/random.json"), made_by="pack")["domains"]
    assert {name: domain["rows_mostly_masked"] for name, domain in domains.items()} == {"birds": 0, "fish": 9}
