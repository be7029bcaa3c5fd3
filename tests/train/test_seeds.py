"""Runs with several seeds: what each is trained on and from, kills between them, and what is refused."""

import json
from pathlib import Path

import pytest
import yaml
from safetensors.numpy import load_file
from torch import distributed as dist

from batchwright.core.atomic import faults
from batchwright.core.errors import InputError
from batchwright.core.files import read_tsv
from batchwright.formats.runs import of_seed, seed_folders
from batchwright.retrievers.common.model_folder import ModelInfo
from stages.train import main
from tests.helpers import tree
from tests.train.ranks import WORLD, run_ranks
from tests.train.toys import COMMON, toy_batch, toy_rows, write_toy_model, write_toy_shards, write_toy_static
from trainers.common.job import TrainJob
from trainers.launch import seeds
from trainers.variants import train

SEEDS, STEPS, FIRST = 3, 3, 5
MODEL = Path("models/static")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of a static model with random weights, and shards of three seeds."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path / ".scratch"))
    monkeypatch.setenv("BATCHWRIGHT_TRAIN_GPUS", "0")
    monkeypatch.delenv("BATCHWRIGHT_TRAIN_WORKERS", raising=False)
    write_toy_model(tmp_path / "toy")
    for place in range(1, SEEDS + 1):
        batches = [toy_batch(toy_rows(6, 10 * place + step)) for step in range(STEPS)]
        write_toy_shards(of_seed(tmp_path / "data/shards/contextual", place), batches)
    start(FIRST)
    write_run(seeds=SEEDS)
    return tmp_path


def start(seed: int) -> None:
    """Write the static model that a seed starts from if it is the first."""
    write_toy_static(Path("toy"), Path("models/start/static"), seed)


def write_run(seed: int = FIRST, **settings: object) -> None:
    run = {"variant": "biencoder", "batches": "contextual", "start": "models/start/static", **settings}
    params = {"base": {"seed": seed}, "runs": {"static": run}}
    train = {"common": {**COMMON, "learning_rate": 1e-2}, "biencoder": {"temperature": 0.05}}
    Path("params.yaml").write_text(yaml.safe_dump(params | {"train": train}))


def weights(folder: Path) -> list[float]:
    [file] = [
        file for file in folder.rglob("*.safetensors") if not file.relative_to(folder).parts[0].startswith("seed")
    ]
    [values] = load_file(file).values()
    return [float(value) for value in values.ravel()]


def test_each_seed_has_its_own_batches_and_weights_and_the_first_is_the_run_of_one_seed(project: Path) -> None:
    assert main("static").endswith(", and 2 more with other seeds")
    models = seed_folders(MODEL)
    assert models == [MODEL, MODEL / "seed-2", MODEL / "seed-3"]
    assert len({tuple(weights(folder)) for folder in models}) == SEEDS
    assert not list(faults(MODEL)) and not list((project / ".scratch").rglob("*.*"))
    assert not any(ModelInfo.read(folder).random for folder in models)
    curve, several = Path("results/train/static.tsv").read_bytes(), weights(MODEL)
    write_run()
    main("static")
    assert (weights(MODEL), Path("results/train/static.tsv").read_bytes()) == (several, curve)
    assert seed_folders(MODEL) == [MODEL]


def test_a_further_seed_is_what_it_is_on_its_own(project: Path) -> None:
    """Seed 6 as the second one, or as the first one on the same batches and from the weights that it draws."""
    main("static")
    second = weights(MODEL / "seed-2")
    Path("data/shards/alone").symlink_to(Path("contextual/seed-2"))
    write_run(FIRST + 1, batches="alone")
    start(FIRST + 1)
    main("static")
    assert weights(MODEL) == second


def test_weights_that_were_trained_are_the_same_for_all_seeds(project: Path) -> None:
    ModelInfo(variant="biencoder", max_length=8).write(Path("models/start/static"))
    drawn = [job.redraw for job in planned("static")]
    ModelInfo(variant="biencoder", max_length=8, random=True).write(Path("models/start/static"))
    assert (drawn, [job.redraw for job in planned("static")]) == ([False] * 3, [False, True, True])


def planned(run: str) -> list[TrainJob]:
    jobs: list[TrainJob] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("stages.train.train_seeds", lambda planned: jobs.extend(planned) or stop())
        with pytest.raises(KeyboardInterrupt):
            main(run)
    return jobs


def stop() -> None:
    raise KeyboardInterrupt


def test_a_killed_run_goes_on_with_the_seed_that_it_was_at(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    main("static")
    whole = tree(MODEL), tree(Path("results"))
    trained, launch = [], seeds.launch

    def killed(job: TrainJob, work: object) -> None:
        trained.append(job.seed)
        if job.seed == FIRST + 2 and trained.count(job.seed) == 1:
            stop()
        launch(job, work)  # type: ignore[arg-type]

    monkeypatch.setattr(seeds, "launch", killed)
    for folder in ("models/static", "results"):
        for file in sorted(Path(folder).rglob("*"), reverse=True):  # as DVC does before a stage
            file.rmdir() if file.is_dir() else file.unlink()
    Path(MODEL).rmdir()
    with pytest.raises(KeyboardInterrupt):
        main("static")
    assert not MODEL.exists(), "no model before all are there"
    Path("results/train/static.tsv").unlink()
    main("static")
    assert trained == [FIRST, FIRST + 1, FIRST + 2, FIRST + 2]
    assert (tree(MODEL), tree(Path("results"))) == whole


def train_as_one_of_two(rank: int, job: TrainJob, folder: Path) -> None:
    store = dist.FileStore(str(folder / f"store-{job.seed}"), WORLD)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=WORLD)
    train(job)
    dist.destroy_process_group()


@pytest.mark.parametrize("by_ray", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_two_workers_train_all_seeds_as_this_process_does(
    project: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, by_ray: bool
) -> None:
    main("static")
    alone = [weights(folder) for folder in seed_folders(MODEL)]
    if by_ray:
        request.getfixturevalue("cluster")
        monkeypatch.setenv("BATCHWRIGHT_TRAIN_WORKERS", "2")
    else:
        monkeypatch.setattr(seeds, "launch", lambda job, _: run_ranks(train_as_one_of_two, job, project))
    main("static")
    for folder, expected in zip(seed_folders(MODEL), alone, strict=True):
        assert weights(folder) == pytest.approx(expected, rel=1e-3, abs=1e-5)
    assert len(read_tsv(Path("results/train/static.tsv"), made_by="train")) == STEPS


@pytest.mark.parametrize(
    ("policy", "remedy"),
    [("contextual", "or raise pack.seeds and run the stage 'pack' again"), ("made", "mined batches are of one seed")],
)
def test_more_seeds_than_batches_were_made_for_are_refused(project: Path, policy: str, remedy: str) -> None:
    file = Path("data/shards/contextual/manifest.json")
    file.write_text(json.dumps(json.loads(file.read_text()) | {"policy": policy}))
    write_run(seeds=4)
    message = f"runs.static.seeds is 4, but data/shards/contextual has batches of 3; lower it to 3, {remedy}"
    with pytest.raises(InputError) as error:
        main("static")
    assert str(error.value) == message
    assert not MODEL.exists()
