"""Every night: new data, none, worse data, crashes and two at once, against a git remote and a DVC remote."""

import http.server
import json
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from batchwright.core.errors import InputError
from batchwright.core.paths import MODELS, PAIRS
from batchwright.formats.runs import Run
from project.programs import dvc
from project.retrain.prepare import clean
from project.retrain.repository import upstream
from project.retrain.retrain import retrain
from project.retrain.score import score
from tests.helpers import REPO, project_environment, wait_for
from tests.project.nightly import Nightly


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory, warm: Path) -> Nightly:
    """A project after its first night."""
    project = Nightly(tmp_path_factory.mktemp("nightly"), warm)
    assert "promoted-1 is deployed" in project.retrain("promoted")
    return project


@pytest.fixture
def project(begun: Nightly, tmp_path: Path) -> Nightly:
    """A copy of that project, with remotes of its own."""
    return begun.copied(tmp_path)


def published(project: Nightly) -> tuple[str, str]:
    """What whoever follows the branch ``deployed`` gets: the pairs and the files of the model."""
    project.run("rm -rf ../got; git clone --quiet --branch deployed ../origin.git ../got; cd ../got; dvc pull --quiet")
    shown = project.run("cd ../got; cat raw/pairs/*.csv; ls models/m; git log -1 --format=%B").stdout
    state = project.run("cd ../got; dvc status; git status --porcelain").stdout
    return shown, state


def test_the_first_night_publishes_everything(project: Nightly) -> None:
    refs = project.refs()
    assert refs["main"] == refs["deployed"] == refs["promoted-1"]
    shown, state = published(project)
    assert "w0 of birds" in shown and "model.safetensors" in shown
    assert (
        "Retrained on 30 pairs\n\nm on all collections: nDCG@10 1.0000, not compared with what is deployed, 20 queries"
        in shown
    )
    assert state == "Data and pipelines are up to date.\n"
    assert project.run("git status --porcelain").stdout == ""


def test_three_nights(project: Nightly) -> None:
    before = project.refs()
    project.retrain("nothing new")
    assert project.refs() == before

    project.write("fish")
    text = project.retrain("promoted")
    assert "m on all collections: nDCG@10 1.0000, +0.0000 ± 0.0000 over what is deployed, 40 queries, 1 seed" in text
    assert project.refs().keys() - before.keys() == {"promoted-2"}
    assert "w0 of fish" in published(project)[0]

    before = project.refs()
    project.write("fish", "bad")
    text = project.retrain("rejected")
    assert text.splitlines()[1].endswith("40 queries, 1 seed FAILED: worse than what is deployed")
    assert (
        "m on held_out fish: nDCG@10 0.1000, -0.9000 ± 0.0000 over what is deployed, 20 queries, 1 seed FAILED: loses"
        in text
    )
    assert "m on all collections: nDCG@10 0.1000, -0.4000 ± 0.0000 over BM25" in text
    assert text.splitlines()[-2] == "see what came with it: git diff --stat origin/deployed origin/rejected"
    after = project.refs()
    assert after == before | {"rejected": after["rejected"]}
    assert "FAILED" in project.run("git log -1 --format=%B origin/rejected").stdout
    assert "it was rejected" in project.retrain("nothing new"), "the same night again brings no other alert"
    allow(project, "baselines: []")
    assert "over BM25" not in project.retrain("rejected"), "other limits are another question"

    project.write("fish", "some", "more")
    project.retrain("promoted")
    assert project.refs()["deployed"] == project.refs()["promoted-3"]


def test_queries_that_one_of_two_models_was_trained_on_do_not_compare_them(project: Nightly) -> None:
    file = project.folder / "raw/pairs/birds.csv"
    lines = file.read_text().splitlines()
    moved = {"w0 of birds,w0 in birds,train": "W0 of birds?,w0 in birds,test"}
    moved |= {f"w{n} of birds,w{n} in birds,test": f"w{n} of birds,w{n} in birds,train" for n in (1, 2)}
    file.unlink()
    file.write_text("\n".join(moved.get(line, line) for line in lines) + "\n")
    text = project.retrain("promoted")
    assert "m on all collections: nDCG@10 1.0000, +0.0000 ± 0.0000 over what is deployed, 18 queries" in text
    assert "1 of 19 queries of held_out are left out: what is deployed was trained on them" in text
    assert "2 of 20 queries of held_out_before are left out: the new models were trained on them" in text
    assert "m on held_out_before: nDCG@10 1.0000" in text


def test_pairs_that_another_version_wrote_stop_no_night(project: Nightly, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.folder)
    old = project.folder / "old"
    old.mkdir()
    pq.write_table(pa.table({"question": ["q"]}), old / "birds.parquet")
    monkeypatch.setattr("project.retrain.score.copy_of", lambda artifact, _: MODELS / "m" if artifact != PAIRS else old)
    run = Run(variant="biencoder", batches="contextual", start="models/start/minilm")
    [scored], notes = score({"m": run}, "HEAD", [])
    assert (scored.collection, len(scored.domains)) == ("held_out", 20) and scored.deployed
    assert len(notes) == 1 and "birds.parquet: columns are ['question']" in notes[0]


def test_old_nights_are_removed_from_the_cache_and_stay_in_the_remote(
    project: Nightly, monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_cache(name: str) -> bool:
        pairs = yaml.safe_load(project.run(f"git fetch --quiet --tags; git show {name}:dvc.lock").stdout)["stages"][
            "pack"
        ]["outs"][0]["md5"]
        return (project.folder / ".dvc/cache/files/md5" / pairs[:2] / pairs[2:]).exists()

    allow(project, "keep_days: 7")
    day = 24 * 3600
    in_ten_days, ten_days_ago = time.time() + 10 * day, time.time() - 10 * day
    stale, fresh = (project.folder / ".scratch/train" / name for name in ("stale", "fresh"))
    for folder in (stale, fresh):
        folder.mkdir(parents=True)
    os.utime(stale, (ten_days_ago, ten_days_ago))
    monkeypatch.setenv("GIT_COMMITTER_DATE", f"{in_ten_days:.0f} +0000")
    project.write("fish")
    project.retrain("promoted")
    assert (stale.exists(), fresh.exists()) == (False, True)
    assert in_cache("promoted-1") and in_cache("promoted-2")

    monkeypatch.chdir(project.folder)
    monkeypatch.setattr("project.retrain.prepare.time.time", lambda: in_ten_days)
    clean(upstream(), days=7)
    assert (in_cache("promoted-1"), in_cache("promoted-2")) == (False, True)
    project.run("python -m project rollback")
    assert "birds" in published(project)[0], "whoever follows deployed gets it from the remote"


def allow(project: Nightly, limits: str, before: str = "floor: 0.2") -> None:
    """Write other limits into ``retrain``, and commit them."""
    file = project.folder / "params.yaml"
    file.write_text(file.read_text().replace(before, limits))
    project.run("git commit --quiet --message limits params.yaml; git push --quiet")


@pytest.mark.slow
def test_a_little_less_every_night_is_stopped_by_the_record(project: Nightly) -> None:
    for night in range(2):
        project.write("fish", f"some {night}")
        project.retrain("promoted")
    record = json.loads((project.folder / "retrain.json").read_text())
    assert record["since"]["m"]["nights"] == 2
    record["since"]["m"] |= {"total": -0.5, "error": 0.1}
    (project.folder / "retrain.json").write_text(json.dumps(record))
    project.run("git commit --quiet --message lost retrain.json; git push --quiet origin HEAD:main HEAD:deployed")
    project.write("fish", "some more")
    assert "worse than the reference, 3 promotions ago" in project.retrain("rejected")
    project.run("git add .; git commit --quiet --message meant; git push --quiet; python -m project promote")
    project.write("fish", "even more")
    assert "reference" not in project.retrain("promoted"), "what a person promotes is one"


def test_data_that_changed_much_stop_the_night_before_it_trains(project: Nightly) -> None:
    before = project.refs()
    project.write("fish")
    project.run("dvc remove raw/pairs/birds.csv.dvc; rm -f raw/pairs/birds.csv")
    text = project.retrain("rejected")
    assert "so nothing was trained\nbirds: 30 pairs -> none any more\nif it is meant, set retrain.drift" in text
    assert "Running stage 'all'" not in project.said
    after = project.refs()
    assert after == before | {"rejected": after["rejected"]}
    project.retrain("nothing new")
    allow(project, "drift: {action: warn}")
    assert "data: birds: 30 pairs -> none any more" in project.retrain("promoted")
    allow(project, "review: false", "drift: {action: warn}")
    project.run("git rm --quiet retrain.json; git commit --quiet --message own; git push --quiet")
    project.run("python -m project promote")
    project.write("fish", "more")
    assert "data: the deployed commit has no record" in project.retrain("promoted"), "which stops nothing"


def test_one_command_rolls_back_and_the_same_is_not_promoted_again(project: Nightly) -> None:
    project.write("fish")
    project.retrain("promoted")
    assert project.run("python -m project rollback").stdout == "promoted-1 is deployed again\n"
    refs = project.refs()
    assert refs["deployed"] == refs["promoted-1"] and refs["main"] == refs["promoted-2"]
    assert "fish" not in published(project)[0]
    project.retrain("nothing new")
    failed = project.run("python -m project rollback", check=False)
    assert (failed.returncode, failed.stderr) == (
        1,
        "batchwright rollback: error: nothing was promoted before what is deployed now\n",
    )
    project.run("python -m project promote promoted-2")
    assert project.refs()["deployed"] == refs["promoted-2"]


def test_what_was_never_made_is_not_deployed(project: Nightly) -> None:
    project.run("git rm --quiet dvc.lock; git commit --quiet -m reset")
    failed = project.run("python -m project promote", check=False)
    assert (failed.returncode, failed.stderr) == (
        1,
        "batchwright promote: error: dvc.lock: no such file, so there is nothing to deploy; run dvc repro "
        "and commit what it wrote\n",
    )
    assert "promoted-2" not in project.refs()


CRASHES = {
    "the data come in": ("dvc", "add"),
    "the pipeline begins": ("dvc", "repro"),
    "the deployed model is fetched": ("dvc", "get"),
    "data goes to the remote": ("dvc", "push"),
    "before the commit": ("git", "commit-tree"),
    "before the push": ("git", "push"),
    "after the push": ("git", "reset"),
}


QUICK = ("before the push",)


@pytest.mark.parametrize(
    "crash", [pytest.param(crash, marks=() if crash in QUICK else pytest.mark.slow) for crash in CRASHES]
)
def test_after_a_crash_the_next_night_goes_on(project: Nightly, crash: str) -> None:
    project.write("fish")
    program, command = CRASHES[crash]
    project.before(program, command, "kill -9 $PPID && exit 1")
    killed = project.run("python -m project retrain", check=False)
    assert killed.returncode == -9 or killed.returncode == 137, killed.stdout + killed.stderr
    left = project.message()
    assert left["outcome"] == "running" and left["stage"], "not what the night before told"
    project.run("rm -r bin")
    project.retrain("nothing new" if crash == "after the push" else "promoted")
    assert f"the run before was killed: {left['text']}" in project.said
    refs = project.refs()
    assert refs.keys() == {"HEAD", "main", "deployed", "promoted-1", "promoted-2"}
    assert refs["main"] == refs["deployed"] == refs["promoted-2"]
    shown, state = published(project)
    assert "w0 of fish" in shown and state == "Data and pipelines are up to date.\n"
    assert project.run("git status --porcelain").stdout == ""
    assert project.run("git rev-parse HEAD").stdout.strip() == refs["main"]


@pytest.mark.slow
def test_a_stage_that_fails_is_told_and_publishes_nothing(project: Nightly) -> None:
    before = project.refs()
    project.write("fish", "break")
    text = project.retrain("failed")
    assert "dvc repro failed in stage all: " in text and "the stage broke" in text and "Traceback" not in text
    assert text.splitlines()[-1].endswith(", at: stage all")
    project.write("fish")
    project.retrain("promoted")
    assert project.refs().keys() - before.keys() == {"promoted-2"}


def test_a_lock_that_a_killed_dvc_left_half_written_stops_nothing(project: Nightly) -> None:
    (project.folder / ".dvc/tmp/rwlock").write_text("")
    assert "RWLock" in project.run("dvc repro", check=False).stderr
    project.retrain("nothing new")


def test_a_second_one_at_the_same_time_is_refused(project: Nightly) -> None:
    project.write("fish")
    project.before("dvc", "repro", "while [ ! -e refused ]; do sleep 0.1; done")
    first = subprocess.Popen(
        ["python", "-m", "project", "retrain"],
        cwd=project.folder,
        env=project.environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert first.stdout
    while "taking in" not in first.stdout.readline():
        assert first.poll() is None
    second = project.run("python -m project retrain", check=False)
    assert second.returncode == 1 and "wait until it ends" in second.stderr
    (project.folder / "refused").touch()
    assert first.wait(60) == 0
    assert project.refs()["deployed"] == project.refs()["promoted-2"]


def test_terminating_it_ends_the_stage_as_well(project: Nightly) -> None:
    project.write("fish")
    project.before("dvc", "repro", 'sh -c "echo \\$\\$ > pid; sleep 60"')
    process = subprocess.Popen(
        [sys.executable, "-m", "project", "retrain"], cwd=project.folder, env=project.environment
    )
    while not (project.folder / "pid").exists():
        time.sleep(0.1)
    process.terminate()
    assert process.wait(20) == 143
    own = (project.folder / "pid").read_text().strip()
    assert not Path(f"/proc/{own}").exists() or "sleep" not in Path(f"/proc/{own}/cmdline").read_text()
    assert project.message()["outcome"] == "failed"


def test_it_ends_at_a_limit_of_its_own(project: Nightly) -> None:
    project.write("fish")
    project.before("dvc", "repro", "sleep 60")
    limited = project.run("python -m project retrain --hours 0.002", check=False)
    assert limited.returncode == 1 and "it took more than --hours 0.002" in limited.stderr
    told = project.message()
    assert (told["outcome"], told["stage"]) == ("failed", "making what has changed") and 7 <= told["seconds"] < 30


@pytest.mark.parametrize("hours", [0.0, -1.0, float("nan"), float("inf")])
def test_a_limit_is_some_time(hours: float) -> None:
    with pytest.raises(InputError, match="give more than 0"):
        retrain(hours)


SAID = """\
Running stage 'ingest':
> batchwright stage ingest
ingest: 3 pairs
Updating lock file 'dvc.lock'
Running stage 'pack@random':
> batchwright stage pack random
pack: error: params.yaml: too small
params.yaml: and odd
ERROR: failed to reproduce 'pack@random': failed to run: batchwright stage pack random, exited with 1
"""


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        (SAID, "dvc update failed in stage pack@random: pack: error: params.yaml: too small | params.yaml: and odd"),
        ("Killed\nERROR: failed to reproduce 'x': exited with -9", "dvc update failed: Killed | ERROR: failed to "),
        ("Stage 'a' didn't change, skipping\nERROR: 'b' is busy", "dvc update failed: ERROR: 'b' is busy"),
    ],
)
def test_a_failure_says_why_and_where(
    printed: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "dvc"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{printed}\nEND\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    stages: list[str] = []
    with pytest.raises(InputError) as failed:
        dvc("update", quiet=True, begins=stages.append)
    assert str(failed.value).startswith(told)
    assert stages == (["stage ingest", "stage pack@random"] if printed is SAID else [])
    assert capfd.readouterr().out == ""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has ended")
def test_what_a_killed_night_had_started_ends_with_it(tmp_path: Path) -> None:
    program = tmp_path / "dvc"
    program.write_text("#!/bin/sh\necho $$ > begun.part && mv begun.part begun\nexec sleep 60\n")
    program.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-c", "from project.retrain.repository import dvc; dvc('repro')"],
        cwd=tmp_path,
        env={**project_environment(), "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(REPO)},
    )
    wait_for((tmp_path / "begun").exists, "dvc did not begin")
    begun = psutil.Process(int((tmp_path / "begun").read_text()))
    process.kill()
    process.wait()
    wait_for(lambda: not begun.is_running() or begun.status() == psutil.STATUS_ZOMBIE, "dvc goes on")


@pytest.mark.slow
def test_what_others_pushed_comes_in_first(project: Nightly) -> None:
    other = project.home / "other"
    project.run(
        f"git clone --quiet ../origin.git {other}; cd {other}; git config user.name you; git config user.email y@y"
    )
    project.run(
        f"cd {other}; dvc pull --quiet; rm -f raw/pairs/*.csv; echo 'w1 of them,w1 in them,test' > raw/pairs/birds.csv"
    )
    project.run(f"cd {other}; echo '# note' >> params.yaml; dvc add --quiet raw/pairs/birds.csv; dvc push --quiet")
    project.run(f"cd {other}; git commit --quiet --all -m theirs; git push --quiet")
    project.write("fish")
    project.retrain("promoted")
    shown, _ = published(project)
    assert "w1 of them" in shown and "w0 of fish" in shown and "w0 of birds" not in shown
    assert "# note" in (project.folder / "params.yaml").read_text()


@pytest.mark.slow
def test_a_linked_source_is_imported_and_followed(project: Nightly) -> None:
    outside = project.home / "fish.csv"
    project.write("fish").rename(outside)
    (project.folder / "raw/pairs/fish.csv").symlink_to(outside)
    project.retrain("promoted")
    assert "w0 of fish" in published(project)[0]
    project.retrain("nothing new")
    assert "path: ../../../fish.csv" in (project.folder / "raw/pairs/fish.csv.dvc").read_text()
    outside.write_text(outside.read_text() + "w5 of late fish,w5 in fish,train\n")
    project.retrain("promoted")
    assert "w5 of late fish" in published(project)[0]


@pytest.mark.slow
def test_a_person_may_review_first(project: Nightly) -> None:
    allow(project, "review: true")
    before = project.refs()
    project.write("fish")
    assert "branch candidate is ready for review" in project.retrain("promoted")
    refs = project.refs()
    assert refs == before | {"candidate": refs["candidate"]}
    assert "over what is deployed" in project.run("git log -1 --format=%B origin/candidate").stdout
    project.retrain("nothing new")
    project.run("git reset --quiet --hard origin/candidate")
    assert project.run("python -m project promote").stdout.endswith("promoted-2 is deployed\n")
    assert project.refs()["deployed"] == refs["candidate"]
    project.retrain("nothing new")


def spoil_remote(project: Nightly) -> None:
    (project.home / "storage").rename(project.home / "away")


def spoil_link(project: Nightly) -> None:
    (project.folder / "raw/pairs/fish.csv").symlink_to("/nowhere/fish.csv")


def spoil_import(project: Nightly) -> None:
    (project.folder / "raw/pairs/fish.csv.dvc").write_text(
        "deps: [{path: /nowhere/fish.csv}]\nouts: [{path: fish.csv}]\n"
    )


def spoil_params(project: Nightly) -> None:
    file = project.folder / "params.yaml"
    file.write_text(file.read_text() + "# half a change\n")


def spoil_git_remote(project: Nightly) -> None:
    (project.home / "origin.git").rename(project.home / "away.git")


def spoil_models(project: Nightly) -> None:
    file = project.folder / "params.yaml"
    file.write_text(file.read_text().replace("floor: 0.2", "models: [n]"))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (spoil_remote, "DVC's remote s: no folder"),
        (spoil_git_remote, "git fetch failed"),
        (spoil_link, "raw/pairs/fish.csv: the file that it links to, /nowhere/fish.csv, is not there"),
        (spoil_import, "raw/pairs/fish.csv.dvc: imports /nowhere/fish.csv, which is not on "),
        (spoil_params, "params.yaml: is changed and not committed; commit it and push, or undo it"),
        (spoil_models, "retrain.models names 'n', which is not in runs: m"),
    ],
)
def test_what_is_missing_is_said_before_anything_runs(project: Nightly, spoil: Any, said: str) -> None:
    spoil(project)
    assert said in project.retrain("failed")


@pytest.fixture
def hook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A web server on this machine, and what was posted to it."""
    received: list[dict[str, Any]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook", received
    server.shutdown()


def test_a_webhook_is_told(project: Nightly, hook: tuple[str, list[dict[str, Any]]]) -> None:
    url, received = hook
    project.run(f"BATCHWRIGHT_WEBHOOK={url} python -m project retrain", check=False)
    assert [message["outcome"] for message in received] == ["nothing new"]
    told = received[0]
    assert told == project.message() and told["project"] == "project" and told["host"] == platform.node()
    assert told["commit"] == project.refs()["main"] and told["began"] <= told["time"] and told["seconds"] < 100
    done = project.run("BATCHWRIGHT_WEBHOOK=http://127.0.0.1:9/ python -m project retrain", check=False)
    assert done.returncode == 3 and "the message could not be sent" in done.stderr
