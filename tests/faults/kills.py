"""Kill ``dvc repro`` at random moments, run it again, and compare: ``python -m tests.faults.kills KILLS``."""

import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

from project.init import main as init
from tests.helpers import REPO, project_environment

SETTINGS = [{"iterations": 3}, {"iterations": 4}]


def environment() -> dict[str, str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**project_environment(), "PATH": path, "PYTHONPATH": str(REPO)}


def new_project(folder: Path) -> Path:
    """A project of one's own with two domains."""
    init(folder)
    sources = []
    for domain in ("shop", "help"):
        rows = [f"how does {domain} thing {n} fit part {n % 37}?,part {n % 37} of {n} fits well" for n in range(1500)]
        (folder / f"raw/pairs/{domain}.csv").write_text("query,document\n" + "\n".join(rows) + "\n")
        sources.append({"kind": "csv", "path": f"raw/pairs/{domain}.csv", "domain": domain})
    params = yaml.safe_load((folder / "params.yaml").read_text())
    params["ingest"]["sources"] = sources
    (folder / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))
    return folder


def choose(project: Path, setting: dict[str, object]) -> None:
    file = project / "params.yaml"
    params = yaml.safe_load(file.read_text())
    params["cluster"] |= setting
    file.write_text(yaml.safe_dump(params, sort_keys=False))


def repro(project: Path, seconds: float | None = None) -> bool:
    """Run to the end, or kill everything after some seconds; return whether it was killed."""
    log = (project / "../log").open("a")
    command = ["dvc", "repro", "pack"]
    process = subprocess.Popen(command, cwd=project, env=environment(), start_new_session=True, stdout=log, stderr=log)
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return True
    assert code == 0, (project / "../log").read_text()[-2000:]
    return False


def content(project: Path) -> dict[str, str]:
    """Hashes of all that stages wrote, but for unfinished work."""
    files = [file for name in ("data", "results") for file in (project / name).rglob("*") if file.is_file()]
    return {str(file.relative_to(project)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def main(kills: int) -> tuple[int, int, int]:
    """Return the number of kills, of files unlike those of runs that were not killed, and of files too many."""
    rng, done, different, left = random.Random(0), 0, 0, 0
    with tempfile.TemporaryDirectory() as name:
        expected = []
        quiet = new_project(Path(name, "quiet"))
        for setting in SETTINGS:
            choose(quiet, setting)
            began = time.monotonic()
            repro(quiet)
            length = time.monotonic() - began
            expected.append(content(quiet))
        killed, turn = new_project(Path(name, "killed")), 0
        while done < kills:
            choose(killed, SETTINGS[turn % 2] | {"cluster_size": 64})
            while repro(killed, rng.uniform(0.2, 1.1) * length) and done < kills:
                done += 1
                if rng.random() < 0.1:
                    subprocess.run(["rm", "-rf", killed / ".scratch"], check=True)
            repro(killed)
            found, wanted = content(killed), expected[turn % 2]
            different += sum(found.get(file) != digest for file, digest in wanted.items())
            left += len(found.keys() - wanted.keys())
            for file in sorted(found.keys() - wanted.keys()):
                print(f"left over: {file}")
            turn += 1
            subprocess.run(["rm", "-rf", killed / "data", killed / ".dvc/cache", killed / "dvc.lock"], check=True)
    return done, different, left


if __name__ == "__main__":
    print("{} kills, {} files that differ, {} left over".format(*main(int(sys.argv[1]))))
