"""Launching training with Ray Train: in this process, and with two real workers on a local cluster."""

import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import ray
from ray._raylet import AuthenticationMode, get_authentication_mode

from batchwright.core.errors import InputError
from batchwright.core.files import read_tsv
from tests.helpers import project_environment, run_python, wait_for
from tests.train import waiting
from tests.train.toys import toy_batch, toy_job, toy_rows, write_toy_model, write_toy_shards
from trainers.common import step_loop
from trainers.common.job import TrainJob
from trainers.launch import fit
from trainers.launch.fit import launch
from trainers.variants import train

STEPS = 6


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path / "scratch"))
    monkeypatch.setenv("BATCHWRIGHT_TRAIN_GPUS", "0")


def job(folder: Path, **changes: object) -> TrainJob:
    start = folder / "start"
    if not start.exists():
        write_toy_model(start, dropout=0.0)
        write_toy_shards(folder / "shards", [toy_batch(toy_rows(5, seed, negatives=1)) for seed in range(STEPS)])
    return toy_job(folder / "out", start, folder / "shards", hard_negatives=1, **changes)


def losses(trained: TrainJob) -> list[float]:
    return [float(row["loss"]) for row in read_tsv(trained.curve, made_by="train")]


def slowly(work: TrainJob) -> None:
    """Train for longer than Ray's processes wait before they say something, and report after each step."""
    time.sleep(8)
    step_loop.SAVE_EVERY_SECONDS = 0.0
    train(work)


def look() -> None:
    """Print whether Ray asks for a token, and on which addresses its parts listen once the workers have ended."""
    ends = time.monotonic() + 20
    while (found := listening()) != {"127.0.0.1"} and time.monotonic() < ends:  # torch's store listens to all
        time.sleep(0.2)
    print(get_authentication_mode() == AuthenticationMode.TOKEN, found)


def listening() -> set[str]:
    """The addresses on which this process and those that it started listen."""
    sockets = []
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            sockets += process.net_connections("inet")
    return {socket.laddr.ip.removeprefix("::ffff:") for socket in sockets if socket.status == psutil.CONN_LISTEN}


def test_a_cluster_of_our_own_trains_as_this_process_does_serves_this_machine_and_prints_progress_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before other tests start a cluster, which Ray would tell of."""
    trained = job(tmp_path)
    monkeypatch.setenv("BATCHWRIGHT_TRAIN_WORKERS", "0")
    launch(trained, train)
    alone = losses(trained)
    assert not trained.scratch.exists()
    shutil.rmtree(trained.model)

    code = f"""
from pathlib import Path
from batchwright.core.command import keep_quiet
keep_quiet()
from trainers.launch.fit import launch
import ray
from tests.train.test_launch import job, look, slowly
shutdown = ray.shutdown
ray.shutdown = lambda: (look(), shutdown())
launch(job(Path({str(tmp_path)!r})), slowly)
"""
    knobs = {
        "BATCHWRIGHT_TRAIN_WORKERS": "2",
        "RAY_local_fs_capacity_threshold": "1",
    }  # of a disk nearly full, Ray warns
    done = run_python("-c", code, cwd=tmp_path, **knobs)
    assert (done.returncode, done.stdout) == (0, "True {'127.0.0.1'}\n"), done.stderr
    assert len(alone) == STEPS
    assert losses(trained) == pytest.approx(alone, rel=1e-3)
    assert (trained.model / "model.safetensors").exists()
    assert not trained.scratch.exists()
    if "Found multiple active Ray instances" in done.stderr:
        pytest.skip("what it prints is not judged, since Ray found the cluster of somebody else, too")
    printed = [line for line in re.split(r"[\r\n]", done.stderr) if line.strip()]
    assert printed and all(line.startswith("train biencoder: ") for line in printed), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_training_on_workers_with_its_code(tmp_path: Path, sent: signal.Signals) -> None:
    code = f"""
from pathlib import Path
from batchwright.core.command import failing, keep_quiet
keep_quiet()
from tests.train.waiting import begin, job
from trainers.launch.fit import launch
with failing("train biencoder"):
    launch(job(Path({str(tmp_path)!r})), begin)
"""
    knobs = {"BATCHWRIGHT_TRAIN_WORKERS": "2", "BATCHWRIGHT_SCRATCH": str(tmp_path / "scratch")}
    with (tmp_path / "said").open("wb") as said:
        environment = project_environment(**knobs, BATCHWRIGHT_TRAIN_GPUS="0")
        process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=environment, stderr=said)
    wait_for(
        lambda: len(list(tmp_path.rglob("*.begun"))) == 2 or process.poll() is not None, "no worker began", seconds=240
    )
    process.send_signal(sent)
    assert process.wait(60) == 128 + sent
    last = (tmp_path / "said").read_text().splitlines()[-1]
    assert last.endswith(" run it again to go on")
    assert last.startswith("train biencoder: " + {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}[sent])
    begun = [int(file.stem) for file in tmp_path.rglob("*.begun")]
    wait_for(lambda: not any(map(psutil.pid_exists, begun)), "workers are left over")


@pytest.mark.slow
def test_a_workers_message_reaches_the_user(cluster: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCHWRIGHT_TRAIN_WORKERS", "2")
    with pytest.raises(InputError, match=r"^biencoder: the loss is nan$"):
        launch(waiting.job(tmp_path), waiting.refuse)
    assert not (tmp_path / "model").exists()


def test_more_workers_than_the_cluster_has_are_refused(
    cluster: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BATCHWRIGHT_TRAIN_WORKERS", "3")
    with pytest.raises(InputError, match="needs 3 CPUs, the cluster has 2; lower it, or name a larger cluster"):
        launch(job(tmp_path), train)


def test_the_gpus_of_a_cluster_are_used_from_a_machine_without(
    cluster: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[TrainJob] = []
    monkeypatch.setattr(fit, "_fit", lambda job, *_: begun.append(job))
    monkeypatch.setattr(ray, "cluster_resources", lambda: {"CPU": 2.0, "GPU": 2.0})
    monkeypatch.setenv("BATCHWRIGHT_TRAIN_WORKERS", "2")
    launch(job(tmp_path), train)
    monkeypatch.delenv("BATCHWRIGHT_TRAIN_GPUS")
    launch(job(tmp_path), train)
    assert [each.device for each in begun] == ["cpu", "cuda"]


def test_more_workers_than_a_batch_has_rows_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCHWRIGHT_TRAIN_WORKERS", "6")
    with pytest.raises(InputError, match="a batch has only 5 rows"):
        launch(job(tmp_path), train)


def test_an_address_without_workers_is_said_to_be_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BATCHWRIGHT_TRAIN_WORKERS", "0")
    monkeypatch.setenv("RAY_ADDRESS", "nowhere:6379")
    launch(job(tmp_path), train)
    assert "warning: RAY_ADDRESS is ignored: BATCHWRIGHT_TRAIN_WORKERS is 0" in capsys.readouterr().err
    assert len(losses(job(tmp_path))) == STEPS


@ray.remote(num_cpus=1)
class Occupied:
    """Something else that the cluster is busy with."""


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["2", "2:3"])
def test_workers_that_cannot_be_started_are_waited_for_but_not_for_ever(
    cluster: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    monkeypatch.setenv("BATCHWRIGHT_TRAIN_WORKERS", workers)
    monkeypatch.setenv("RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S", "3")
    monkeypatch.setattr(fit, "PATIENCE", 8)
    other = Occupied.remote()
    ray.get(other.__ray_ready__.remote())
    with pytest.raises(InputError, match=f"{workers} workers could not be started within .* run it again to go on"):
        launch(job(tmp_path), train)
    ray.kill(other)


def test_only_the_launcher_imports_ray_and_only_searches_faiss() -> None:
    root = Path(__file__).parents[2]
    imports = re.compile(r"^\s*(?:import|from)\s+(ray|faiss|apache_beam)\b", re.MULTILINE)
    found = {
        (str(file.relative_to(root)), name)
        for package in ("trainers", "batchwright")
        for file in (root / package).rglob("*.py")
        for name in imports.findall(file.read_text(encoding="utf-8"))
    }
    assert found == {
        ("trainers/launch/fit.py", "ray"),
        ("trainers/launch/cluster.py", "ray"),
        ("trainers/launch/patience.py", "ray"),
        ("trainers/launch/trials.py", "ray"),
        ("batchwright/core/neighbours.py", "faiss"),  # which only stages import
        ("batchwright/retrievers/xtr/index.py", "faiss"),
        ("batchwright/retrievers/xtr/spilling.py", "faiss"),
    }


def test_models_can_be_trained_without_ray_faiss_and_beam(warm: Path) -> None:
    code = """
import sys
sys.modules |= dict.fromkeys(("ray", "faiss", "apache_beam"))
from trainers.variants import VARIANTS, load_variant
assert VARIANTS
for variant in VARIANTS:
    assert load_variant(variant).build_learner
"""
    done = run_python("-c", code, cwd=Path(__file__).parents[2], programs=warm)
    assert done.returncode == 0, done.stderr
