"""``dvc repro`` in a fresh copy of the project leads from raw files to a table of results."""

import pytest

from tests.end_to_end.docs import commands
from tests.end_to_end.project import Project, write_corpus


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    made = Project(tmp_path_factory.mktemp("project"))
    write_corpus(made.folder / "raw" / "pairs")
    columns = {"query": "ask", "document": "command", "negatives": ["wrong"]}
    made.set_params(
        ingest__sources=[
            {"kind": "jsonl", "path": "raw/pairs/shell.jsonl", "columns": columns, "domain": "shell"},
            {
                "kind": "csv",
                "path": "raw/pairs/guide.csv",
                "columns": {"query": "title", "document": "body"},
                "domain": "guide",
            },
        ],
        embed__models__minilm__max_length=24,
        cluster__cluster_size=16,
        pack__batch_size=16,
        train__common__steps=4,
        train__common__hard_negatives=1,
        train__biencoder__max_length=24,
        train__cde__max_length=24,
        train__cde__documents=8,
        train__xtr__max_length=24,
        evaluate__held_out={"queries": 60, "documents": 200},
    )
    done = made.dvc("repro")
    assert done.returncode == 0, done.stdout + done.stderr
    return made


def test_results_table_compares_all_systems(project):
    table = project.json("results/evaluate/biencoder.json")["held_out"]
    assert list(table) == ["BM25", "biencoder, contextual batches", "biencoder, random batches", "untrained"]
    for measures in table.values():
        assert set(measures) == {"ndcg@10", "mrr@10", "recall@100"}
        assert 0 < measures["ndcg@10"] <= 1


def test_counts_reconcile_from_raw_rows_to_batches(project):
    ingested = project.json("results/ingest.json")
    train = {name: counts["train"] for name, counts in ingested["domains"].items()}
    assert sum(counts["train"] + counts["test"] for counts in ingested["domains"].values()) == 720
    manifest = project.json("data/shards/contextual/manifest.json")
    for epoch in manifest["epochs"]:
        assert epoch["batches"] * 16 + sum(epoch["left_over"].values()) == sum(train.values())


def test_contextual_batches_are_harder_than_random_ones(project):
    contextual, random = (project.json(f"results/pack/{policy}.json") for policy in ("contextual", "random"))
    assert contextual["hardness"] > 1.1 * random["hardness"]


def test_report_shows_the_results(project):
    report = (project.folder / "report" / "index.html").read_text()
    value = project.json("results/evaluate/biencoder.json")["held_out"]["BM25"]["ndcg@10"]
    assert f"{value:.3f}".lstrip("0") in report


def test_every_stage_run_again_with_other_workers_gives_the_same_bytes(project):
    before = project.artifacts()
    threads = "--runner=FnApiRunner --direct_running_mode=multi_threading --direct_num_workers=2"
    knobs = f"export BATCHWRIGHT_SCRATCH=.scratch/again BATCHWRIGHT_WORKERS=1 BEAM_OPTIONS='{threads}';"
    commands = ["ingest", "embed", "filter", "cluster", "pack contextual", "pack random", "train biencoder"]
    commands += ["train biencoder --batches random", "evaluate biencoder", "report"]
    done = project.shell(f"{knobs} set -e; " + "; ".join(f"python -m stages.{command}" for command in commands))
    assert done.returncode == 0, done.stderr
    after = project.artifacts()
    assert [name for name in before if after.get(name) != before[name]] == []
    assert after.keys() == before.keys()


def test_nothing_changed_nothing_is_done(project):
    done = project.dvc("repro")
    assert done.returncode == 0
    assert "Running stage" not in done.stdout
    assert "up to date" in done.stdout


@pytest.mark.parametrize("command", sorted(commands("sh")))
def test_shell_commands_of_the_docs_run(project, command):
    if command.startswith("make "):
        command = command.replace("make ", "make --dry-run ")  # the installation would take minutes
    if command.startswith("cp "):
        assert project.shell(f"cp params.yaml kept && {command} && mv kept params.yaml").returncode == 0
        return
    done = project.shell(command)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("code", sorted(commands("python")))
def test_python_code_of_the_docs_runs(project, code):
    done = project.shell(f"python - <<'END'\n{code}\nEND")
    assert done.returncode == 0, done.stderr


def test_a_changed_training_parameter_leaves_the_batches_alone(project):
    project.set_params(train__biencoder__temperature=0.1)
    done = project.dvc("repro", "--dry")
    running = [line for line in done.stdout.splitlines() if "Running stage" in line]
    assert running
    assert all(any(name in line for name in ("train@", "control@", "evaluate@", "report")) for line in running)
