"""docs/retrain.md, command by command: the whole pipeline, installed, against remotes on this machine."""

import json
import random
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.end_to_end.docs import NIGHTLY, ROLL_BACK, ROOT, steps
from tests.project.installed import run
from tests.project.nightly import Nightly

[WALK], [USE] = steps(NIGHTLY), steps(ROLL_BACK)
THINGS = ["archive", "branch", "folder", "image", "key", "log", "package", "port", "process", "table", "user", "file"]
ACTIONS = ["open", "close", "copy", "rename", "delete", "list", "sort", "print", "count", "compress", "move", "merge"]
SMALL = {
    "train": {"common": {"epochs": 2, "mini_batch_size": 32, "learning_rate": 1e-2}},
    "pack": {"batch_size": 32, "epochs": 2},
    "cluster": {"cluster_size": 32},
    "start_models": {"minilm": {"max_length": 16, "static_width": 32}},
    "ingest": {"held_out": 0.3},
}
"""A static model from scratch, which learns in seconds."""


def write_pairs(file: Path, rows: int, shuffled: bool = False) -> None:
    pairs = [(f"how do I {action} a {thing}?", f"{action} --{thing} now") for action in ACTIONS for thing in THINGS]
    pairs = [(f"{query} {n}", f"{document} {n}") for n in range(4) for query, document in pairs][:rows]
    documents = [document for _, document in pairs]
    if shuffled:
        random.Random(0).shuffle(documents)
    lines = [f"{query},{document}" for (query, _), document in zip(pairs, documents, strict=True)]
    file.write_text("\n".join(["question,answer", *lines]) + "\n")


def make_small(file: Path, **more: object) -> None:
    params = yaml.safe_load(file.read_text())
    for group, values in {**SMALL, **more}.items():
        for key, value in values.items():  # type: ignore[attr-defined]
            params[group][key] = {**params[group].get(key, {}), **value} if isinstance(value, dict) else value
    file.write_text(yaml.safe_dump(params, sort_keys=False))


@pytest.mark.slow
def test_the_page_leads_to_models_that_are_retrained(tmp_path: Path, installed: Path) -> None:
    def shell(*lines: str, at: str = ".", code: int = 0) -> str:
        done = run("sh", "-ec", "\n".join(lines), cwd=tmp_path / at, installed=installed)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    write_pairs(tmp_path / "faq.csv", 300)
    remotes, first, *rest = WALK
    shell(remotes, first.replace(" && cd mine", ""))
    shell("git config user.name me; git config user.email me@here", at="mine")
    project = tmp_path / "mine"
    make_small(project / "params.yaml")
    assert "promoted-1 is deployed" in shell(*rest, at="mine")
    assert shell("git status --porcelain", at="mine") == ""
    assert "nothing new" in shell(WALK[-1], at="mine", code=3)

    write_pairs(tmp_path / "faq.csv", 500)
    assert "over what is deployed" in shell(WALK[-1], at="mine")
    got, *others = USE
    shell(got, at="mine")
    assert (project / "biencoder/model.safetensors").exists()
    shell("rm -r biencoder", *others, at="mine")

    write_pairs(tmp_path / "faq.csv", 500, shuffled=True)
    told = shell(WALK[-1], at="mine", code=4)
    assert "so nothing was trained\nfaq: doubtful pairs 0." in told
    make_small(project / "params.yaml", retrain={"drift": {"action": "warn"}})
    shell("git commit --quiet --all --message warn; git push --quiet", at="mine")
    told = shell(WALK[-1], at="mine", code=4)
    assert "on the pairs of its own night" in told and "look at the data" in told
    message = json.loads((project / ".scratch/retrain/message.json").read_text())
    assert message["outcome"] == "rejected"


@pytest.mark.slow
def test_the_workflow_runs_in_a_fresh_clone(tmp_path: Path, warm: Path) -> None:
    """As GitHub's checkout makes it, and with its last step; the night after the first promotion."""
    workflow = yaml.safe_load((ROOT / "docs/schedule/github.yml").read_text())
    [job] = workflow["jobs"].values()
    project = Nightly(tmp_path, warm)
    project.retrain("promoted")
    project.run("git clone --quiet ../origin.git ../runner; cd ../runner; git checkout --quiet -B main origin/main")
    for _ in range(2):
        done = project.run(f"cd ../runner; {job['steps'][-1]['run']}", check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "nothing new" in done.stdout
    assert job["steps"][0]["with"]["fetch-depth"] == 0, "tags and the branch deployed are needed"


SCHEDULE = ROOT / "docs/schedule"
KINDS = yaml.safe_load(Path(__file__).with_name("kuberay.yaml").read_text())


def faults(manifest: Any) -> list[str]:
    """What KubeRay would say of a manifest."""
    schema = {"$ref": f"#/$defs/{manifest['kind']}", **KINDS}
    return [error.message for error in Draft202012Validator(schema).iter_errors(manifest)]


def test_the_manifest_is_a_cron_job_of_the_pinned_ray() -> None:
    manifest = yaml.safe_load((SCHEDULE / "kuberay.yaml").read_text())
    assert (manifest["kind"], faults(manifest)) == ("RayCronJob", [])
    job = manifest["spec"]["jobTemplate"]
    assert f"ray=={job['rayClusterSpec']['rayVersion']}" in (ROOT / "requirements.lock").read_text()
    command = job["entrypoint"].replace("/project", "/").replace("batchwright retrain", "(exit {code})")
    for code, ended in ((0, 0), (3, 0), (4, 1), (1, 1)):
        assert subprocess.run(["sh", "-c", command.replace("{code}", str(code))], check=False).returncode == ended


def test_the_cron_job_makes_a_job_that_runs_once() -> None:
    with (SCHEDULE / "kuberay.yaml").open() as file:
        done = subprocess.run([sys.executable, SCHEDULE / "rayjob.py"], stdin=file, capture_output=True, check=True)
    job = yaml.safe_load(done.stdout)
    assert (job["kind"], faults(job)) == ("RayJob", [])
    assert "jobTemplate" not in job["spec"]
    job["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]["replica"] = job["spec"]["rayClusterSpec"].pop("rayVersion")
    assert faults(job) == ["Additional properties are not allowed ('replica' was unexpected)"]


def test_the_image_installs_the_pinned_packages_of_the_pipeline() -> None:
    instructions = (ROOT / "Dockerfile").read_text()
    [extras] = re.findall(r'pip install .*--constraint requirements.lock "\.\[(.+)\]"', instructions)
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(extras.split(",")) <= declared["optional-dependencies"].keys()
    [python] = re.findall(r"^FROM python:(\S+)-slim$", instructions, re.MULTILINE)
    assert declared["requires-python"] == f">={python}"
    [command] = re.findall(r"^CMD (.+)$", instructions, re.MULTILINE)
    assert json.loads(command)[0] in declared["scripts"]


STAND_INS = {
    "airflow_dag.py": """
class DAG:
    def __init__(self, name, **settings): assert settings["schedule"] == "0 3 * * *"
    def __enter__(self): pass
    def __exit__(self, *_): pass
class BashOperator:
    def __init__(self, bash_command, cwd, skip_on_exit_code, **_):
        code = subprocess.run(["bash", "-c", bash_command], cwd=cwd).returncode
        sys.exit(code not in (0, skip_on_exit_code))
""",
    "dagster_job.py": """
op, job = (lambda function: function,) * 2
Definitions = ScheduleDefinition = lambda **_: sys.exit(ended(sys.modules["__main__"].night))
Failure = RuntimeError
""",
    "prefect_flow.py": """
class flow:
    def __init__(self, function): self.function = function
    def serve(self, name, cron, limit): sys.exit(ended(self.function))
""",
}
"""Each orchestrator, as far as our files use it: it runs at once what they define."""
MODULES = ("airflow", "airflow.sdk", "airflow.providers.standard.operators.bash", "dagster", "prefect")


@pytest.mark.parametrize("name", STAND_INS)
def test_orchestrators_take_a_night_without_news_for_a_success(tmp_path: Path, name: str) -> None:
    script = (SCHEDULE / name).read_text().replace("/srv/mine", str(tmp_path))
    (tmp_path / "script.py").write_text(script)
    start = f"""
import runpy, subprocess, sys, types
def ended(function):
    try: function()
    except RuntimeError: return 1
    return 0
{STAND_INS[name]}
for module in {MODULES}:
    sys.modules[module] = types.ModuleType(module)
    vars(sys.modules[module]).update(globals())
runpy.run_path("script.py", run_name="__main__")
"""
    (tmp_path / "start.py").write_text(start)
    program = tmp_path / ".venv/bin/batchwright"
    program.parent.mkdir(parents=True)
    for code, success in ((0, True), (3, True), (4, False), (1, False)):
        program.write_text(f'#!/bin/sh\n[ "$1" = retrain ] && exit {code}\n')
        program.chmod(0o755)
        done = subprocess.run([sys.executable, "start.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode == 0) == success, done.stderr
        assert "Traceback" not in done.stderr
