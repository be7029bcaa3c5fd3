"""Kill ``dvc repro`` at random moments, run it again, and compare: ``python -m tests.faults.kills KILLS [WORKERS]``.

Most kills take all processes at once, as a power failure does; the others one of them, such as a worker or one of
Ray's parts: then the run must go on, or end with a message. ``WORKERS`` is the number of Ray's workers in training.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import psutil
import yaml

from tests.faults.victim import OFTEN, content, copy_code, environment, new_project

SETTINGS = [{"iterations": 3}, {"iterations": 4}]
ONE, SCRATCH_LOST, PATIENCE = 0.3, 0.1, 300


class Runs:
    """Runs ``dvc repro`` in ``project``; ``counts`` says what was done to it and what came of it."""

    def __init__(self, project: Path, code: Path, workers: int, counts: Counter[str]) -> None:
        self.project, self.counts = project, counts
        self._environment = environment(code, workers)
        self._log = project.with_suffix(".log")

    def choose(self, setting: dict[str, object]) -> None:
        """Change parameters of clusters, on which everything that follows depends."""
        file = self.project / "params.yaml"
        params = yaml.safe_load(file.read_text())
        params["cluster"] |= setting
        file.write_text(yaml.safe_dump(params, sort_keys=False))

    def finish(self) -> float:
        """Run to the end; return the seconds."""
        self._mend_lock()
        began = time.monotonic()
        process = self._start()
        if process.wait(PATIENCE * 4):
            raise SystemExit(f"dvc repro failed:\n{self._log.read_text()[-3000:]}")
        return time.monotonic() - began

    def kill(self, after: float, one: bool, rng: random.Random) -> bool:
        """Run, and kill all processes or ``one`` of them after some seconds, if they still run; return whether."""
        self._mend_lock()
        process = self._start()
        try:
            process.wait(after)
        except subprocess.TimeoutExpired:
            pass
        else:
            return False
        self._kill_one(process, rng) if one else self._kill_all(process)
        return True

    def _mend_lock(self) -> None:
        """Remove DVC's list of locks if DVC was killed while it wrote it, as docs/reliability.md says."""
        file = self.project / ".dvc/tmp/rwlock"
        if file.exists() and not file.read_bytes():
            self.counts["locks of DVC's own removed"] += 1
            file.unlink()

    def _start(self) -> "subprocess.Popen[bytes]":
        with self._log.open("wb") as log:
            command = ["dvc", "repro"]
            return subprocess.Popen(
                command, cwd=self.project, env=self._environment, start_new_session=True, stdout=log, stderr=log
            )

    def _kill_all(self, process: "subprocess.Popen[bytes]") -> None:
        self.counts["all killed"] += 1
        for each in [*_below(process.pid), psutil.Process(process.pid)]:
            _kill(each)
        process.wait()

    def _kill_one(self, process: "subprocess.Popen[bytes]", rng: random.Random) -> None:
        self.counts["one killed"] += 1
        started = _below(process.pid)
        if started:
            chosen = rng.choice(started)
            print(f"killed: {_name(chosen)}", flush=True)
            _kill(chosen)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._fault("hang", process)
            self._kill_all(process)
        if process.returncode:
            said = self._log.read_text()
            if "Traceback" in said or "ERROR: " not in said:
                self._fault("no message", process)
        deadline = time.monotonic() + 30
        while left := [each for each in started if _runs(each)]:
            if time.monotonic() > deadline:
                self.counts["processes left"] += len(left)
                print(f"left running: {'; '.join(map(_name, left))}", flush=True)
                for each in left:
                    _kill(each)
            time.sleep(0.2)

    def _fault(self, what: str, process: "subprocess.Popen[bytes]") -> None:
        self.counts[what] += 1
        print(f"{what}: exit {process.returncode}\n{self._log.read_text()[-3000:]}", flush=True)


def _below(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _runs(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _name(process: psutil.Process) -> str:
    """The command, as far as it says which process this is; Ray's processes name themselves in the first word."""
    try:
        return f"{process.pid} {' '.join(process.cmdline())[:120]}"
    except psutil.Error:
        return f"{process.pid} (ended meanwhile)"


def _kill(process: psutil.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGKILL)


def main(kills: int, workers: int = 0, seed: int = 0) -> Counter[str]:
    """Return how often what was killed, and the number of faults by kind."""
    rng, counts = random.Random(seed), Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        code = copy_code(Path(name, "code"), *OFTEN)
        expected = []
        quiet = Runs(new_project(Path(name, "quiet"), code), code, workers, counts)
        for setting in SETTINGS:
            quiet.choose(setting)
            length = quiet.finish()
            expected.append(content(quiet.project))
        killed, turn = Runs(new_project(Path(name, "killed"), code), code, workers, counts), 0
        while counts["all killed"] + counts["one killed"] < kills:
            killed.choose(SETTINGS[turn % 2])
            while killed.kill(rng.uniform(0.05, 1.1) * length, rng.random() < ONE, rng):
                if rng.random() < SCRATCH_LOST:
                    subprocess.run(["rm", "-rf", killed.project / ".scratch"], check=True)
                if counts["all killed"] + counts["one killed"] >= kills:
                    break
            killed.finish()
            compare(content(killed.project), expected[turn % 2], counts)
            print(dict(counts), flush=True)
            turn += 1
            left = [killed.project / name for name in ("data", "models", ".dvc/cache", "dvc.lock")]
            subprocess.run(["rm", "-rf", *left], check=True)
    return counts


def compare(found: dict[str, str], wanted: dict[str, str], counts: Counter[str]) -> None:
    """Count files that differ from those of a run that was not killed, and files that it did not have."""
    for file in sorted(found.keys() | wanted.keys()):
        if file not in wanted:
            counts["left over"] += 1
            print(f"left over: {file}", flush=True)
        elif found.get(file) != wanted[file]:
            counts["differ"] += 1
            print(f"differs: {file}", flush=True)


if __name__ == "__main__":
    print(dict(main(*map(int, sys.argv[1:]))))
