"""The command of the stage ``train``."""

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import yaml
from sentence_transformers import SentenceTransformer

import stages.train
from batchwright.core.command import run
from batchwright.core.errors import InputError
from batchwright.core.files import read_json, read_tsv
from batchwright.retrievers import ModelInfo, load_retriever
from stages.evaluate import evaluate
from stages.train import main, summarise
from tests.helpers import write_rows
from tests.train.toys import COMMON, toy_batch, toy_rows, write_toy_model, write_toy_shards
from trainers.common.job import TrainJob

STEPS = 4
ALL = ["query_to_document", "document_to_query", "query_to_query", "document_to_document"]


TAUGHT = {"hard_negatives": 1, "distill": {"weight": None}}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BATCHWRIGHT_TRAIN_WORKERS", raising=False)
    monkeypatch.delenv("BATCHWRIGHT_SCRATCH", raising=False)
    write_toy_model(tmp_path / "start")
    for policy in ("contextual", "random"):
        batches = [toy_batch(toy_rows(6, seed)) for seed in range(STEPS)]
        write_toy_shards(tmp_path / "data" / "shards" / policy, batches)
    runs = {
        "biencoder": {"variant": "biencoder", "batches": "contextual", "start": "start"},
        "short": {"variant": "biencoder", "batches": "random", "start": "start", "steps": 2, "learning_rate": 1e-4},
    }
    train = {"common": COMMON, "biencoder": {"temperature": 0.05}}
    write_params(tmp_path, {"base": {"seed": 3}, "train": train, "runs": runs})
    return tmp_path


def write_params(folder: Path, values: dict[str, object]) -> None:
    (folder / "params.yaml").write_text(yaml.safe_dump(values))


def test_the_stage_writes_model_curve_and_metrics(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = main("biencoder")
    assert summary.startswith("biencoder: 4 steps, 24 pairs, loss ")
    assert (project / "models" / "biencoder" / "model.safetensors").exists()
    assert (project / "results" / "train" / "biencoder.tsv").exists()
    metrics = read_json(project / "results" / "train" / "biencoder.json", made_by="train")
    assert list(metrics) == ["accuracy", "first_loss", "last_loss", "pairs", "steps", "trained_with"]
    assert not list((project / ".scratch").rglob("*.pt"))


def test_a_run_may_differ_from_the_common_parameters(project: Path) -> None:
    assert main("short").startswith("short: 2 steps, 12 pairs")
    assert not (project / "models" / "biencoder").exists()
    curve = read_tsv(project / "results" / "train" / "short.tsv", made_by="train")
    assert max(float(row["learning_rate"]) for row in curve) == pytest.approx(1e-4)


def test_a_run_may_differ_from_the_parameters_of_its_variant(project: Path) -> None:
    values = yaml.safe_load((project / "params.yaml").read_text())
    values["train"] |= {"xtr": {"k": 7, "width": 8}, "common": COMMON | {"steps": 3, "warmup_ratio": 0.5}}
    other = {"k": 3, "width": None, "steps": None, "warmup_ratio": 0, "temperature": 0.5}
    run = {"variant": "xtr", "batches": "random", "start": "start"}
    write_params(project, values | {"runs": {"as it is": run, "other": run | other}})
    found = [
        (plan.common.steps, plan.common.warmup_ratio, plan.params.model_dump(include={"k", "width", "temperature"}))
        for plan in map(planned, ("as it is", "other"))
    ]
    assert found == [
        (3, 0.5, {"k": 7, "width": 8, "temperature": 0.05}),
        (None, 0, {"k": 3, "width": None, "temperature": 0.5}),
    ]


def planned(run: str) -> TrainJob:
    """The job that the stage would train."""
    plans: list[TrainJob] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stages.train, "train_seeds", plans.extend)
        patch.setattr(stages.train, "summarise", lambda *_: pytest.fail("nothing was trained"))
        with pytest.raises(InputError, match="run the stage 'train' first"):
            main(run)
    return plans[0]


def test_without_negatives_in_the_batch_pairs_need_some_of_their_own(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = yaml.safe_load((project / "params.yaml").read_text())
    values["runs"] = {
        f"{name} {count}": values["runs"]["biencoder"] | {"batches": name, "in_batch": False, "hard_negatives": count}
        for name, count in (("contextual", 2), ("own", 0), ("own", 2))
    }
    write_params(project, values)
    rows = [row | {"negatives": row["negatives"][: number % 2]} for number, row in enumerate(toy_rows(6, 0, 1))]
    write_toy_shards(project / "data/shards/own", [toy_batch(rows)])
    remedy = "so there are no negatives; set in_batch to true, or use pairs with hard negatives"
    with pytest.raises(InputError, match=f"in_batch is false and the pairs have no hard negatives, {remedy}"):
        main("contextual 2")
    with pytest.raises(InputError, match=f"in_batch is false and hard_negatives is 0, {remedy}"):
        main("own 0")
    main("own 2")
    assert "warning: train own 2: 3 of 6 pairs have no hard negatives and teach nothing" in capsys.readouterr().err


def test_hard_negatives_that_no_pair_has_are_told(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = yaml.safe_load((project / "params.yaml").read_text())
    values["runs"] = {"biencoder": values["runs"]["biencoder"] | {"hard_negatives": 2}}
    write_params(project, values)
    main("biencoder")
    told = "warning: train biencoder: hard_negatives is 2, and no pair of data/shards/contextual has any, so none is"
    assert told in capsys.readouterr().err


def test_a_student_needs_a_teacher(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = yaml.safe_load((project / "params.yaml").read_text())
    student = values["runs"]["biencoder"] | {"hard_negatives": 2, "distill": {"weight": None}}
    values["runs"] = {name: student | {"batches": name} for name in ("contextual", "none", "some")}
    write_params(project, values)
    rows = [row | {"scores": []} for row in toy_rows(6, 0, 1)]
    write_toy_shards(project / "data/shards/none", [toy_batch(rows)])
    scored = [
        row | {"scores": [2.0, 1.0][: 1 + len(row["negatives"])]} for row in toy_rows(2, 1, 0) + toy_rows(4, 1, 1)
    ]
    write_toy_shards(project / "data/shards/some", [toy_batch(scored)])
    with pytest.raises(
        InputError, match=r"distill needs a teacher, which has scored none of .*contextual; train on batc"
    ):
        main("contextual")
    with pytest.raises(InputError, match=r"which scored no pair together with a hard negative in .*none"):
        main("none")
    assert main("some").startswith("some: 1 steps, 6 pairs, loss ")
    assert "warning: train some: of 6 pairs, 2 have no teacher's scores of" in capsys.readouterr().err


@pytest.mark.parametrize("variant", ["biencoder", "cde"])
def test_a_model_is_trained_and_evaluated_at_the_dimensions_of_its_run(
    project: Path, capsys: pytest.CaptureFixture[str], variant: str
) -> None:
    values = yaml.safe_load((project / "params.yaml").read_text())
    values["runs"]["short"] |= {"variant": variant, "dimensions": [4, 12]}
    write_params(project, values | {"train": values["train"] | {"cde": {"context_documents": 3}}, "evaluate": {}})
    main("short")
    assert "warning: train short: dimensions lacks 16, so that whole vectors are not trained" in capsys.readouterr().err
    folder = project / "models/short"
    rows = [(str(row["query"]), str(row["document"]), "test") for row in toy_rows(20, 7)]
    write_rows("toys", rows)
    evaluate("short")
    found = read_json(project / "results/evaluate/short.json", made_by="evaluate")["held_out"]["short"]
    queries, documents, _ = (list(column) for column in zip(*rows, strict=True))
    index: Any = load_retriever(folder).index(documents)
    assert ModelInfo.read(folder).dimensions == [4, 12]
    for dimension in (4, 12):
        assert found[f"ndcg@10_{dimension}d"] > 0
        theirs = SentenceTransformer(str(folder), truncate_dim=dimension, device="cpu", trust_remote_code=True)
        theirs.max_seq_length = 16
        if variant == "cde":
            cast(Any, theirs[0]).context = index.contexts[None]
        scores = theirs.similarity(theirs.encode(queries), theirs.encode(documents))
        best = index.cut(dimension).search(queries, 3)[1]
        np.testing.assert_allclose(scores.topk(3).values, best, atol=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"directions": ALL[2:]}, "'runs.short.directions': add query_to_document, the direction of the pairs"),
        ({"dimensions": [8, 8]}, "'runs.short.dimensions': the same is there twice"),
        ({"dimensions": [8, 17]}, "dimensions has 17, but vectors of model 'start' have 16; lower it"),
        ({"directions": ALL, "partition_mode": "per_direction"}, "partition_mode does not .* set it to joint"),
        ({"directions": ALL, "negatives_stand_for": "domain"}, "directions does not .* negatives_stand_for: domain"),
        ({"directions": ALL, "in_batch": False}, "directions does not go together with in_batch: false"),
        ({"hardness_strength": 5, "hardness_mode": "hard_negatives"}, "hardness_strength does not .* raise hard_nega"),
        ({"directions": ALL, "variant": "seed_encoder", "loss": "hinge"}, "directions .* with loss: hinge; remove it"),
        (
            {"negatives_stand_for": "domain", "variant": "seed_encoder", "loss": "hinge"},
            "negatives_stand_for .* with loss: hinge; remove it",
        ),
        (
            {"temperature": 0.1, "variant": "seed_encoder", "loss": "hinge"},
            "temperature .* with loss: hinge; remove it",
        ),
        (
            {"margin": 0.5, "variant": "seed_encoder"},
            "margin does not .* loss: infonce; remove it, or set loss to hinge",
        ),
        ({"distill": {}}, "distill does not go together with hard_negatives: 0, .* raise hard_negatives"),
        (TAUGHT | {"directions": ALL}, "directions does not go together with distill.weight: null, .*; give a weight"),
        (TAUGHT | {"variant": "seed_encoder", "loss": "hinge"}, "distill does not .* loss: hinge; remove it"),
        ({"distill": {"loss": "mse"}}, "'runs.short.distill.loss': .*'kl' or 'margin_mse'"),
        ({"dimensions": [8], "variant": "xtr"}, "dimensions does not go together with XTR, which .* remove it"),
    ],
)
def test_options_of_the_loss_that_do_not_go_together_are_refused(
    project: Path, change: dict[str, object], message: str
) -> None:
    values = yaml.safe_load((project / "params.yaml").read_text())
    values["runs"]["short"] |= change
    write_params(project, values | {"train": values["train"] | {"xtr": {}, "seed_encoder": {}}})
    with pytest.raises(InputError, match=message):
        main("short")
    assert not (project / "models").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"temperature": 0}, "parameter 'train.biencoder.temperature': Input should be greater than 0"),
        ({"temprature": 1}, "unknown parameter 'train.biencoder.temprature'; did you mean 'temperature'?"),
    ],
)
def test_the_message_names_bad_parameters(
    project: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, object], message: str
) -> None:
    values = yaml.safe_load((project / "params.yaml").read_text())
    values["train"]["biencoder"] |= change
    write_params(project, values)
    with pytest.raises(InputError) as error:
        main("biencoder")
    assert message in str(error.value)
    assert not (project / "models").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"start": "nowhere"}, "model 'nowhere': no such folder"),
        ({"variant": "biencodr"}, "unknown variant 'biencodr'; did you mean 'biencoder'"),
        ({"batches": "contextul"}, "contextul/manifest.json: no such file; run the stage 'pack' first"),
        ({"k": 3}, "unknown parameter 'runs.biencoder.k'"),
        ({"steps": 0}, "parameter 'runs.biencoder.steps': Input should be greater than or equal to 1"),
        ({"step": 3}, "unknown parameter 'runs.biencoder.step'; did you mean 'steps'?"),
    ],
)
def test_the_message_names_what_is_wrong_with_a_run(project: Path, change: dict[str, object], message: str) -> None:
    values = yaml.safe_load((project / "params.yaml").read_text())
    values["runs"]["biencoder"] |= change
    write_params(project, values)
    with pytest.raises(InputError) as error:
        main("biencoder")
    assert message in str(error.value)
    assert not (project / "models").exists()


def test_an_unknown_run_and_missing_shards_are_one_line_errors(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match=r"no parameter group 'runs\.biencodr'; did you mean 'biencoder'"):
        main("biencodr")
    (project / "data" / "shards" / "contextual" / "train-00001-of-00002.arrow").unlink()
    with pytest.raises(SystemExit) as exit:
        run("train", lambda: main("biencoder"))
    assert exit.value.code == 1
    assert capsys.readouterr().err.endswith("train-00001-of-00002.arrow: no such file; run the stage 'pack' again\n")


def test_the_summary_averages_the_first_and_last_steps() -> None:
    curve = [{"loss": str(20 - step), "accuracy": str(step / 20)} for step in range(20)]
    summary = summarise(curve, batch_size=8)
    assert summary == {"steps": 20, "pairs": 160, "first_loss": 15.5, "last_loss": 5.5, "accuracy": 0.725}


def test_no_step_is_among_both_the_first_and_the_last() -> None:
    curve = [{"loss": str(5 - step), "accuracy": "0"} for step in range(5)]
    losses = [[summarise(curve[:steps], 8)[name] for name in ("first_loss", "last_loss")] for steps in (5, 2, 1)]
    assert losses == [[4.5, 1.5], [5, 4], [5, 5]]
