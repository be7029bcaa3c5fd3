"""Clusters and buckets of docs/scale.md, command by command, on this machine; the cluster asks for a token."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow.fs import LocalFileSystem, copy_files

from batchwright.core.storage import Storage
from tests.end_to_end import docs
from tests.helpers import project_environment, tree
from tests.train.test_stage import project as toys
from tests.train.toys import toy_batch, toy_rows, write_toy_shards

[SUBMIT] = docs.steps(docs.SUBMIT)
KEEP, SHARE = docs.steps(docs.BUCKETS)
[READ] = docs.code(docs.BUCKETS)
project = toys


def shell(*lines: str, cwd: Path, **environment: str) -> str:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["sh", "-ec", "\n".join(lines)],
        cwd=cwd,
        env=project_environment(PATH=path, **environment),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def own_ports() -> Iterator[dict[str, str]]:
    """Free ports instead of the page's."""
    sockets = {name: socket.create_server(("127.0.0.1", 0)) for name in ("6379", "8265")}
    ports = {name: str(each.getsockname()[1]) for name, each in sockets.items()}
    for each in sockets.values():
        each.close()
    yield ports


@pytest.mark.slow
def test_a_job_is_submitted_to_a_cluster_that_asks_for_a_token(project: Path, own_ports: dict[str, str]) -> None:
    token, start, submit = SUBMIT
    for port, free in own_ports.items():
        start, submit = start.replace(port, free), submit.replace(port, free)
    submit = submit.replace("dvc repro", "python -m stages train biencoder").replace("1:4", "1:2")
    assert "python" in submit and "1:2" in submit
    ready = f"ray job list --address=http://127.0.0.1:{own_ports['8265']}"
    begun = f"{start} --num-cpus=2 --num-gpus=0 --node-ip-address=127.0.0.1 --block > ray.log 2>&1 & echo $! > ray.pid"
    try:
        told = shell(
            token,
            begun,
            f"for second in $(seq 90); do {ready} > list.log 2>&1 && break; sleep 1; done",
            f"! env -u RAY_AUTH_TOKEN {ready} > refused.log 2>&1",
            submit,
            cwd=project,
            RAY_TRAIN_ENABLE_PREEMPTION_WATCHER="0",
            HOME=str(project),
        )
    finally:
        stop(int((project / "ray.pid").read_text()))
    assert "biencoder: 4 steps, 24 pairs" in told
    assert (project / "models/biencoder/model.safetensors").exists()
    assert "Authentication" in (project / "refused.log").read_text()


def stop(pid: int) -> None:
    """End a cluster that was started with ``--block``."""
    os.kill(pid, signal.SIGTERM)
    for _ in range(300):
        if not Path(f"/proc/{pid}").exists():
            return
        time.sleep(0.1)
    os.kill(pid, signal.SIGKILL)


def test_shards_in_a_bucket_are_read(tmp_path: Path, bucket: str) -> None:
    write_toy_shards(tmp_path / "shards", [toy_batch(toy_rows(4, seed)) for seed in range(3)])
    upload(tmp_path / "shards", f"{bucket}/shards")
    printed = shell(
        f"python - <<'END'\n{READ.replace('s3://bucket', bucket)}\nprint(len(batches), batches[2].size)\nEND",
        cwd=tmp_path,
    )
    assert printed == "3 4\n"


def test_checkpoints_go_where_the_page_says(tmp_path: Path, bucket: str) -> None:
    code = "from batchwright.core import runtime, storage; print(storage.Storage.at(runtime.storage()))"
    printed = shell(*KEEP, f'python -c "{code}"', cwd=tmp_path)
    assert printed == "s3://bucket/checkpoints\n"


@pytest.mark.slow
def test_data_and_pairs_come_from_a_bucket(tmp_path: Path, bucket: str) -> None:
    remote, push, imported, update = (line.replace("s3://bucket", bucket) for line in SHARE)
    (tmp_path / "raw/pairs").mkdir(parents=True)
    (tmp_path / "models").mkdir()
    (tmp_path / "models/weights").write_text("trained")
    (tmp_path / "faq.csv").write_text("question,answer\nold,old\n")
    upload(tmp_path / "faq.csv", f"{bucket}/pairs/faq.csv")
    shell("git init --quiet", "dvc init --quiet", "dvc add --quiet models", remote, push, imported, cwd=tmp_path)
    (tmp_path / "faq.csv").write_text("question,answer\nnew,new\n")
    upload(tmp_path / "faq.csv", f"{bucket}/pairs/faq.csv")
    before = tree(tmp_path / "raw")
    shell(update, cwd=tmp_path)
    assert (tmp_path / "raw/pairs/faq.csv").read_text() == (tmp_path / "faq.csv").read_text()
    assert before["pairs/faq.csv.dvc"] != (tmp_path / "raw/pairs/faq.csv.dvc").read_bytes()
    shell("rm -r models .dvc/cache", "dvc pull models", cwd=tmp_path)
    assert (tmp_path / "models/weights").read_text() == "trained"


def upload(local: Path, uri: str) -> None:
    storage = Storage.at(uri)
    copy_files(str(local), storage.path, LocalFileSystem(), storage.filesystem)
