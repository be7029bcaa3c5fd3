"""A Ray cluster that loses a machine while a model is trained, and gets another."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import ray
from ray.cluster_utils import Cluster

from tests.helpers import REPO
from trainers.launch.cluster import loss

NODES = [
    {"NodeID": "a", "Alive": True, "NodeManagerAddress": "10.0.0.1", "Resources": {"CPU": 2.0}},
    {"NodeID": "b", "Alive": False, "NodeManagerAddress": "10.0.0.2", "Resources": {}},
]
SLOW = """
import sys, time
from pathlib import Path
from trainers.common import step_loop
step_loop.SAVE_EVERY_SECONDS = 0.0
from tests.train.test_launch import job
from trainers.launch.fit import launch
from trainers.variants import train

def work(given):
    from trainers.common import step_loop
    step_loop.SAVE_EVERY_SECONDS = 0.0
    real = step_loop.save_checkpoint
    def save(*arguments):
        real(*arguments)
        time.sleep(3)
    step_loop.save_checkpoint = save
    train(given)

launch(job(Path(sys.argv[1])), work)
print("trained")
"""


def test_a_loss_says_what_is_missing() -> None:
    assert loss(NODES[1], NODES, {"CPU": 2, "GPU": 0}) == (
        "the Ray cluster lost the machine 10.0.0.2; training goes on without it"
    )
    assert loss(NODES[1], NODES, {"CPU": 4, "GPU": 1}) == (
        "the Ray cluster lost the machine 10.0.0.2; training needs 4 CPUs (2 are left) and 1 GPUs (0 are left) and "
        "waits for another"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workers", "told"),
    [
        ("2", "training needs 2 CPUs (1 are left) and waits for another"),
        ("1:2", "training goes on without it"),
    ],
)
def test_training_goes_on_from_its_checkpoint_on_another_machine_or_on_fewer(
    tmp_path: Path, workers: str, told: str
) -> None:
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        other = cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        script = tmp_path / "slow.py"
        script.write_text(SLOW)
        settings = {
            "RAY_ADDRESS": cluster.address,
            "BATCHWRIGHT_TRAIN_WORKERS": workers,
            "BATCHWRIGHT_TRAIN_GPUS": "0",
            "BATCHWRIGHT_SCRATCH": str(tmp_path / "scratch"),
            "PYTHONPATH": f"{REPO}:{tmp_path}",
            "RAY_TRAIN_ENABLE_PREEMPTION_WATCHER": "0",
        }
        process = subprocess.Popen(
            [sys.executable, script, tmp_path],
            env={**os.environ, **settings},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        said: list[str] = []
        threading.Thread(target=lambda: said.extend(iter(process.stderr.readline, "")), daemon=True).start()
        wait(lambda: list(tmp_path.rglob("checkpoint-*/state.pt")) or process.poll() is not None, 300)
        assert process.poll() is None, "".join(said)
        cluster.remove_node(other, allow_graceful=False)
        lost = time.monotonic()
        wait(lambda: any("the Ray cluster lost the machine" in line for line in said), 60)
        assert time.monotonic() - lost < 60
        assert any(told in line for line in said), said
        if workers == "2":
            cluster.add_node(num_cpus=1)
        assert process.wait(180) == 0, "".join(said)
        assert "trained" in process.stdout.read()
    finally:
        ray.shutdown()
        cluster.shutdown()


def wait(until: object, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not until():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.2)
