"""What a stage's command prints and how it exits."""

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from batchwright.core.command import run
from batchwright.core.errors import InputError
from project.__main__ import main as batchwright
from stages.__main__ import STAGES, TOOLS
from tests.helpers import REPO, project_environment, run_python, run_stage


def fail_with(error: Exception) -> Callable[[], str]:
    def main() -> str:
        raise error

    return main


def caused(error: Exception, reason: str) -> Exception:
    """An error that was raised while another one was handled."""
    error.__context__ = OSError(reason)
    return error


def test_a_stage_that_succeeds_prints_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    run("pack", lambda: "3 batches")
    assert capsys.readouterr() == ("pack: 3 batches\n", "")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (InputError("a.csv: no column 'q'"), "pack: error: a.csv: no column 'q'\n"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "x"), "pack: error: the disk is full; free space"),
        (OSError(errno.EDQUOT, os.strerror(errno.EDQUOT), "x"), "pack: error: the disk is full; free space"),
        (shutil.Error([("a", "b", "[Errno 28] No space left on device: 'b'")]), "pack: error: the disk is full; free"),
        (
            caused(RuntimeError("unexpected pos"), os.strerror(errno.ENOSPC)),
            "pack: error: the disk is full; free space",
        ),
        (OSError("8192 requested and 120 written"), "pack: error: the disk is full; free space"),
        (
            PermissionError(errno.EACCES, "Permission denied", "data/pairs"),
            "pack: error: data/pairs: Permission denied\n",
        ),
        (OSError("odd"), "pack: error: odd\n"),
    ],
)
def test_an_error_is_one_message_and_exit_status_1(
    capsys: pytest.CaptureFixture[str], error: Exception, message: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        run("pack", fail_with(error))
    assert ended.value.code == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(message)
    assert "Traceback" not in err


@pytest.mark.parametrize(("sent", "said"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated")])
def test_a_signal_ends_a_command_with_one_line_and_its_code(tmp_path: Path, sent: signal.Signals, said: str) -> None:
    """What the command had begun is cleaned up."""
    script = """
import time
from pathlib import Path
from batchwright.core.atomic import atomic_dir
from batchwright.core.command import run
def main():
    with atomic_dir(Path("data/pairs")) as folder:
        print("begun", flush=True)
        time.sleep(30)
run("pack", main)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=project_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout and process.stdout.readline() == "begun\n"
    process.send_signal(sent)
    _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (128 + sent, f"pack: {said}; run it again to go on\n")
    assert list((tmp_path / "data").iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has ended")
@pytest.mark.parametrize("by_dvc", [True, False])
def test_a_stage_ends_with_the_dvc_that_started_it(tmp_path: Path, *, by_dvc: bool) -> None:
    stage = """
import os, time
from pathlib import Path
from batchwright.core.atomic import atomic_dir
from batchwright.core.command import run_stage
def main():
    with atomic_dir(Path("data/pairs")):
        print("begun", flush=True)
        time.sleep(2)
    return "done"
run_stage("pack", main)
"""
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {stage!r}])"
    (tmp_path / "params.yaml").write_text("runs: {}\n")
    process = subprocess.Popen(
        [sys.executable, "-c", parent],
        cwd=tmp_path,
        env=project_environment(**({"DVC_STAGE": "pack"} if by_dvc else {})),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout and process.stdout.readline() == "begun\n"
    process.kill()
    ended = "pack: terminated; run it again to go on\n" if by_dvc else "pack: done\n"
    assert process.stdout.read() == ended
    process.wait()
    assert [file.name for file in (tmp_path / "data").iterdir()] == ([] if by_dvc else ["pairs"])


def test_a_stage_looks_for_no_garbage_when_it_ends(tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_text("runs: {}\n")
    last = "atexit.register(lambda: print(gc.get_freeze_count() > 0))"
    done = run_python("-c", f"import atexit, gc; {last}; import stages.__main__ as s; s.main(['check'])", cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == "True", done.stderr


def test_a_bug_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError):
        run("pack", fail_with(ZeroDivisionError()))


COMMANDS = [*(f"stages {name}" for name in STAGES | TOOLS), "stages", "docs.parameters", "docs.picture", "docs.tables"]
MEASUREMENTS = [
    ".".join(file.relative_to(REPO).with_suffix("").parts).removesuffix(".__main__")
    for folder in ("benchmarks", "experiments")
    for file in sorted((REPO / folder).rglob("*.py"))
    if "__main__" in file.read_text()
]


@pytest.mark.parametrize("module", COMMANDS)
def test_help_shows_an_example_and_runs_nothing(module: str, tmp_path: Path, warm: Path) -> None:
    assert_helps(module, tmp_path, warm)


def test_without_a_stage_all_are_listed(tmp_path: Path, warm: Path) -> None:
    done = run_python("-m", "stages", cwd=tmp_path, programs=warm)
    assert done.returncode == 0, done.stderr
    assert {*(STAGES | TOOLS)} <= set(re.findall(r"^    (\w+)", done.stdout, re.MULTILINE))


@pytest.mark.slow
@pytest.mark.parametrize("module", MEASUREMENTS)
def test_help_of_benchmarks_and_experiments_shows_an_example(module: str, tmp_path: Path, warm: Path) -> None:
    assert_helps(module, tmp_path, warm)


def assert_helps(module: str, folder: Path, programs: Path) -> None:
    done = run_python("-m", *module.split(), "--help", cwd=folder, programs=programs)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"usage: python -m {module}")
    assert re.search(rf"examples?:\n +python -m {module}", done.stdout)
    assert not list(folder.iterdir())


@pytest.mark.parametrize("file", ["results/train/curve.tsv", "data/rejects.parquet", "report/index.html"])
def test_a_stage_removes_what_killed_ones_left(workspace: Path, file: str) -> None:
    script = f"""
import os
from pathlib import Path
from batchwright.core.atomic import atomic_file
with atomic_file(Path({file!r})):
    os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", script], env=project_environment(), check=False)
    assert len(list(Path(file).parent.glob(".*"))) == 1
    run_stage("ingest", cwd=workspace)
    assert not list(Path(file).parent.glob(".*"))


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("export a b --metadata url", "batchwright export"),
        ("show 1 --url", "batchwright show"),
        ("--url", "batchwright"),
    ],
)
def test_what_a_command_does_not_take_is_told_with_its_own_help(
    capsys: pytest.CaptureFixture[str], line: str, program: str
) -> None:
    with pytest.raises(SystemExit):
        batchwright(line.split())
    said = capsys.readouterr().err
    assert said.startswith(f"usage: {program} [-h]")
    assert f"{program}: error: unrecognized arguments: {line.split()[-1]}\n" in said
