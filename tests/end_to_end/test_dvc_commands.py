"""What pages show of DVC works, in their order: in a project with these DVC settings, and stages that take no time."""

import csv
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from batchwright.core.files import write_json, write_tsv
from stages.compare import hardness_lines, headline, learning_lines, quality_bars
from tests.end_to_end import docs
from tests.end_to_end.project import ROOT, Project

[LOOK], [TRY] = docs.steps(docs.RESULTS), docs.steps(docs.TRY)
SHARE, GET = docs.steps(docs.SHARE)
STAGE = """
import json, pathlib, sys, yaml
params = yaml.safe_load(open("params.yaml"))
shards = pathlib.Path("data/shards", sys.argv[1])
shards.mkdir(parents=True)
(shards / "manifest.json").write_text(json.dumps({key: params[key] for key in ("base", "cluster", "pack", "ingest")}))
"""
DVC = yaml.safe_load((ROOT / "dvc.yaml").read_text().replace("${key}", "static"))
CURVES = {
    file: settings
    for plot in DVC["stages"]["train"]["do"]["plots"]
    for file, settings in plot.items()
    if "title" in settings
}
"""The curves of a run, as DVC shows them."""
PIPELINE = {
    "stages": {
        "train": {
            "cmd": "true",
            "deps": ["stage.py"],
            "plots": [{file: {**settings, "persist": True}} for file, settings in CURVES.items()],
        },
        "pack": {
            "matrix": {"policy": ["contextual", "random"]},
            "cmd": f"{sys.executable} stage.py ${{item.policy}}",
            "params": ["base", "cluster", "ingest", "pack"],
            "outs": ["data/shards/${item.policy}"],
        },
        "compare": {
            "cmd": "true",
            "deps": ["stage.py"],
            "metrics": [{"results/metrics.json": {"cache": False, "persist": True}}],
            "outs": [{"results/plots": {"cache": False, "persist": True}}],
        },
    },
    "plots": DVC["plots"],
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, warm: Path) -> Iterator[Project]:
    folder = tmp_path_factory.mktemp("dvc") / "project"
    folder.mkdir()
    made = Project(folder, warm, "params.yaml", "profiles", ".dvc", ".gitignore")
    (folder / "stage.py").write_text(STAGE)
    (folder / "dvc.yaml").write_text(yaml.safe_dump(PIPELINE))
    write_results(folder / "results")
    run(made, "git config user.name me; git config user.email me@here; dvc repro")
    run(made, "git add --all; git commit --quiet -m first")
    yield made
    made.dvc("queue", "stop", "--kill")


def write_results(folder: Path) -> None:
    """What the stage ``compare`` writes of two runs."""
    scores = {("held_out", name): [{"q": 0.5}] for name in ("BM25", "static", "static-random")}
    curve = [{"step": str(step), "ndcg@10": str(step / 100)} for step in range(0, 50, 10)]
    batches = [{"domain": domain, "hardness": "0.1"} for domain in ("birds", "fish") for _ in range(60)]
    write_tsv(folder / "train/static.tsv", [{"step": step, "loss": 1.0 / step} for step in range(1, 9)])
    write_tsv(folder / "train/static-dev.tsv", curve)
    write_tsv(folder / "plots/quality.tsv", quality_bars(scores))
    write_tsv(folder / "plots/learning.tsv", learning_lines({"static": curve, "static-random": curve}))
    write_tsv(folder / "plots/hardness.tsv", hardness_lines({"contextual": batches, "random": batches}))
    packed = {"hardness": 0.123456, "masked_share": 0.012}
    write_json(folder / "metrics.json", headline(packed, {f"static-random-{number}": 0.61234 for number in range(4)}))


def run(project: Project, command: str) -> str:
    done = project.shell(f"set -e; {command}")
    assert done.returncode == 0, command + done.stdout + done.stderr
    return done.stdout + done.stderr


def packed(project: Project) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = project.json("data/shards/contextual/manifest.json")
    return found


def test_metrics_are_one_line_and_pictures_are_on_one_page(project: Project) -> None:
    shown = [run(project, command) for command in LOOK]
    assert max(map(len, shown[0].splitlines())) <= 120
    page = (project.folder / "dvc_plots" / "index.html").read_text()
    assert [title for title in _titles() if title not in page] == []
    assert "vegaEmbed('#" in page


def test_pictures_are_drawn_while_a_training_runs(project: Project) -> None:
    growing, waiting = (project.folder / file for file in CURVES)
    whole = growing.read_text()
    growing.write_text("".join(whole.splitlines(keepends=True)[:3]))  # two steps
    waiting.unlink()
    try:
        run(project, "dvc plots show")
        page = (project.folder / "dvc_plots" / "index.html").read_text()
        assert "static: loss" in page and '"loss": "0.5"' in page and '"step": "3"' not in page
        assert "static: nDCG@10 on dev queries" not in page
    finally:
        run(project, "git checkout --quiet .")


def _titles() -> list[str]:
    shown = [*CURVES.values(), *(settings for plot in DVC["plots"] for settings in plot.values())]
    return [settings["title"] for settings in shown]


def test_experiments_change_parameters_of_params_yaml_or_of_a_profile(project: Project) -> None:
    before = packed(project)
    run(project, TRY[0])
    assert packed(project)["pack"] == {**before["pack"], "batch_size": 64, "cluster_share": [0, 0.5, 1], "epochs": 3}
    run(project, TRY[1])
    params = yaml.safe_load((project.folder / "params.yaml").read_text())
    assert params["ingest"]["sources"][0]["max_characters"] == 400 and "cde" not in params["runs"]
    assert params["pack"]["batch_size"] == 64  # params.yaml as it was
    run(project, TRY[2])
    profile = yaml.safe_load((ROOT / "profiles/cde_small.yaml").read_text())
    assert yaml.safe_load((project.folder / "params.yaml").read_text()) == {**profile, "base": {"seed": 18}}
    assert packed(project)["pack"] == profile["pack"]
    run(project, "git checkout --quiet . ; dvc checkout --quiet")


@pytest.mark.slow
def test_a_queue_runs_every_value(project: Project) -> None:
    queue, start, status, show = TRY[3:]
    run(project, f"{queue}; {start}")
    for _ in range(240):
        if (shown := run(project, status)).count("Success") == 2:
            break
        assert "Failed" not in shown, shown
        time.sleep(0.5)
    done = project.shell(f"{show} --csv")
    shown_sizes = [row.get("cluster.cluster_size") for row in csv.DictReader(done.stdout.splitlines())]
    assert {"16", "32"} <= set(shown_sizes), done.stdout


def test_data_goes_to_a_remote_and_comes_back_and_to_other_projects(project: Project) -> None:
    add, push, pull = SHARE
    run(project, f"git checkout --quiet . ; dvc checkout --quiet; {add}; {push}")
    run(project, f"git commit --quiet --all -m remote; rm -rf data .dvc/cache; {pull}")
    wanted = (project.folder / "data/shards/contextual/manifest.json").read_bytes()
    other = project.folder.parent / "other"
    run(project, f"mkdir {other}; cd {other}; git init --quiet; dvc init --quiet; {'; '.join(GET)}")
    for name in ("batches", "shards"):
        assert (other / name / "manifest.json").read_bytes() == wanted


@pytest.mark.parametrize("profile", sorted(docs.profiles_named()))
def test_profiles_that_pages_name_exist(profile: str) -> None:
    assert (ROOT / "profiles" / f"{profile}.yaml").is_file()
