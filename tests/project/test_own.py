"""A project of one's own, on an installed package: made, filled, run and brought up to date."""

import csv
import json
import re
import shutil
import subprocess
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml

from project.__main__ import main
from project.own import init, upgrade
from project.pipeline import project_pipeline
from tests.end_to_end import docs
from tests.helpers import REPO
from tests.project.installed import run

[FIRST], [LOOK], [MORE], [UPGRADE] = map(docs.steps, (docs.FIRST, docs.CHANGE, docs.MORE, docs.UPGRADE))
QUEUE = [line for line in docs.steps(docs.TRY)[0] if "queue" in line]


@pytest.fixture(scope="module")
def project(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with batches made from a CSV file, by the commands of its page."""
    folder = tmp_path_factory.mktemp("own")
    lines = [
        f"how does thing {n} work with part {n % 7}?,part {n % 7} of thing {n} works like this" for n in range(300)
    ]
    (folder / "faq.csv").write_text("question,answer\n" + "\n".join(lines) + "\n")
    assert len(FIRST) == 3
    done = run("sh", "-ec", "\n".join(FIRST), cwd=folder, installed=installed)
    assert done.returncode == 0, done.stderr
    return folder / "mine"


def test_it_says_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"batchwright {version('batchwright')}")


def test_the_readme_shows_the_same_commands() -> None:
    [shown] = docs.steps(docs.README_WALK)
    assert [line.replace("../mine", "mine") for line in shown[:2]] == FIRST[:2]
    assert FIRST[2].startswith(shown[2])


def test_three_commands_lead_to_the_first_batch(project: Path, installed: Path) -> None:
    shown = run("batchwright", "show", "0", cwd=project, installed=installed)
    assert shown.returncode == 0, shown.stderr
    assert "thing" in shown.stdout


def test_nothing_in_the_project_is_code_or_a_result_of_the_repository(project: Path) -> None:
    files = subprocess.run(["git", "ls-files"], cwd=project, capture_output=True, text=True, check=True).stdout.split()
    assert not [file for file in files if file.endswith(".py")]
    assert not [file for file in files if file.startswith("results/")]
    assert len((project / "README.md").read_text().splitlines()) <= 12


def test_a_repository_around_the_project_overlooks_it_and_init_says_so(tmp_path: Path) -> None:
    git = ("git", "-C", str(tmp_path))
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    told = init(tmp_path / "deep" / "my [1] project")
    assert f"\n  cd '{tmp_path}/deep/my [1] project'\n" in told
    assert f"It lies in the git repository {tmp_path}, but is one of its own" in told
    (tmp_path / "deep/notes.txt").touch()
    subprocess.run([*git, "add", "."], check=True)
    staged = subprocess.run([*git, "diff", "--cached", "--name-only"], capture_output=True, text=True, check=True)
    assert staged.stdout == "deep/notes.txt\n"


def test_a_changed_source_is_noticed_wherever_it_lies(project: Path, installed: Path) -> None:
    source = project.parent / "faq.csv"
    before = source.read_text()
    source.write_text(before + "one more question?,one more answer\n")
    status = run("dvc", "status", "ingest", cwd=project, installed=installed)
    source.write_text(before)
    assert "modified:           raw/pairs" in status.stdout
    assert "up to date" in run("dvc", "status", "ingest", "pack", cwd=project, installed=installed).stdout


def test_other_code_is_told_until_the_project_is_brought_up_to_date(project: Path, installed: Path) -> None:
    code = next(installed.parent.glob("lib/*/site-packages/stages/cluster/params.py"))
    before, params = code.read_text(), (project / "params.yaml").read_text()
    code.write_text(before + "\n# newer\n")
    try:
        stale = run("batchwright", "stage", "cluster", cwd=project, installed=installed)
        assert stale.returncode == 1
        assert stale.stderr.endswith("is not the one that this project was made for; run: batchwright upgrade\n")
        done = run(*UPGRADE[0].split(), cwd=project, installed=installed)
        assert done.stdout.startswith("these stages have changed, and run again with dvc repro: cluster; commit")
        changed = run("dvc", "status", "cluster", "pack", cwd=project, installed=installed).stdout
        assert "code.json:\n" in changed
        assert (project / "params.yaml").read_text() == params
    finally:
        code.write_text(before)
    assert "cluster; commit" in run("batchwright", "upgrade", cwd=project, installed=installed).stdout
    assert (
        run("batchwright", "upgrade", cwd=project, installed=installed).stdout == "up to date; no stage has changed\n"
    )


def test_a_project_of_an_older_version_gets_the_groups_that_it_lacks(tmp_path: Path) -> None:
    init(tmp_path / "mine")
    file = tmp_path / "mine/params.yaml"
    before = file.read_text()
    file.write_text("\n".join(line for line in before.splitlines() if not line.startswith(("tune:", "tokens:"))))
    assert upgrade(tmp_path / "mine") == (
        "up to date; no stage has changed; params.yaml has new, empty groups: tune, tokens"
    )
    assert yaml.safe_load(file.read_text()) == yaml.safe_load(before)
    assert "# a quarter of a batch" in file.read_text()
    assert upgrade(tmp_path / "mine") == "up to date; no stage has changed"


def test_a_pipeline_changed_by_hand_is_not_replaced(project: Path, installed: Path) -> None:
    file = project / "dvc.yaml"
    before = file.read_text()
    file.write_text(before + "# mine\n")
    done = run("batchwright", "upgrade", cwd=project, installed=installed)
    assert (done.returncode, file.read_text()) == (1, before + "# mine\n")
    assert done.stderr.startswith("batchwright upgrade: error: dvc.yaml: was changed by hand; put stages of your own")
    file.write_text(before)


def test_a_project_is_made_in_a_new_folder_only(project: Path, installed: Path) -> None:
    done = run("batchwright", "init", str(project), cwd=project.parent, installed=installed)
    assert done.returncode == 1
    assert done.stderr.endswith("is not empty; name a new folder\n")
    done = run("batchwright", "upgrade", cwd=project.parent, installed=installed)
    assert "run this in a project that batchwright init made" in done.stderr


def test_an_unknown_stage_is_explained(project: Path, installed: Path) -> None:
    done = run("batchwright", "stage", "clusters", cwd=project, installed=installed)
    assert done.stderr == "batchwright stage: error: unknown stage 'clusters'; did you mean 'cluster'?\n"


@pytest.mark.slow
def test_the_rest_of_the_page_leads_on(project: Path, installed: Path) -> None:
    """Another domain, files of DVC's and of another repository, and a queue of experiments."""

    def shell(*lines: str) -> str:
        done = run("sh", "-ec", "\n".join(lines), cwd=project, installed=installed)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    shell("git config user.name me; git config user.email me@here")
    pairs = [{"query": f"where is chapter {n}?", "document": f"chapter {n} is on page {3 * n}"} for n in range(150)]
    (project.parent / "manual.jsonl").write_text("\n".join(map(json.dumps, pairs)) + "\n")
    told = shell(*LOOK[:4])
    assert "manual" in told
    assert "manual" in shell(*LOOK[4:])

    write_csv(project / "raw/pairs/notes.csv", "note")
    other = project.parent / "other"
    other.mkdir()
    write_csv(other / "pairs.csv", "theirs")
    theirs = "git config user.name you; git config user.email you@there; dvc add --quiet pairs.csv; git add --all"
    shell(f"cd {other}; git init --quiet; dvc init --quiet; {theirs}; git commit --quiet --message pairs")
    shell(*MORE[:-1])
    ingested = json.loads((project / "results/ingest.json").read_text())["domains"]
    assert ingested.keys() == {"faq", "manual", "notes", "theirs"}
    write_csv(other / "pairs.csv", "newer")
    shell(f"cd {other}; dvc add --quiet pairs.csv; git commit --quiet --all --message newer")
    shell(MORE[-1])
    assert "newer" in (project / "raw/pairs/theirs.csv").read_text()
    assert "raw/pairs" in shell("dvc status ingest")
    shell("dvc repro pack; git commit --quiet --all --message newer")

    shell(*QUEUE[:2])
    for _ in range(240):
        if (shown := shell(QUEUE[2])).count("Success") == 2:
            break
        assert "Failed" not in shown, shown
        time.sleep(1)
    sizes = {row.get("cluster.cluster_size") for row in csv.DictReader(shell("dvc exp show --csv").splitlines())}
    assert {"16", "32"} <= sizes


@pytest.mark.slow
def test_other_trainers_train_on_a_new_project_s_batches(project: Path, installed: Path) -> None:
    page = (REPO / "docs/train-elsewhere.md").read_text(encoding="utf-8")
    [made] = re.findall(r"`(dvc repro [^`]*)`", page)
    commands = [made, *re.findall(r"^batchwright export .*", page, re.MULTILINE)]
    done = run("sh", "-ec", "\n".join(commands), cwd=project, installed=installed)
    assert done.returncode == 0, done.stdout + done.stderr
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL)[:2]:
        done = run("python", "-c", code, cwd=project, installed=installed)
        assert done.returncode == 0, done.stderr
        shutil.rmtree(project / "trained")


def write_csv(file: Path, word: str) -> None:
    file.unlink(missing_ok=True)
    rows = [f"what is {word} {n} about?,{word} {n} is about {n * 7} things" for n in range(150)]
    file.write_text("\n".join(["question,answer", *rows]) + "\n")


def test_the_project_s_pipeline_is_the_repository_s_without_its_code() -> None:
    repository = yaml.safe_load((REPO / "dvc.yaml").read_text())
    own = yaml.safe_load(project_pipeline((REPO / "dvc.yaml").read_text()))
    assert own["plots"] == repository["plots"]
    assert list(own["stages"]) == list(repository["stages"])
    code = ("batchwright", "pipelines", "stages", "trainers")
    for name, stage in repository["stages"].items():
        before, after = (each.get("do", each) for each in (stage, own["stages"][name]))
        assert after["cmd"] == before["cmd"].replace("python -m stages", "batchwright stage")
        assert after["deps"] == [dep for dep in before["deps"] if not dep.startswith(code)]
        key: Any = after["params"][0]["code.json"]
        assert key == [f"{name}.${{item.variant}}" if name in ("train", "evaluate") else name]
        assert after["params"][1:] == before["params"]
        same = after.keys() - {"cmd", "desc", "deps", "params"}
        assert {key: after[key] for key in same} == {key: before[key] for key in same}
        assert after.keys() == before.keys()
