"""Every experiment runs from data to table, in miniature."""

from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from batchwright.core.files import read_tsv
from tests.helpers import plant_vectors, run_python, topic_pairs, write_rows

pytestmark = pytest.mark.slow

Table = list[dict[str, str]]
Experiment = Callable[..., Table]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two domains of 600 pairs, a tenth of them held out."""
    made = tmp_path_factory.mktemp("experiments")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        for seed, domain in enumerate(("birds", "fish")):
            pairs = topic_pairs(600, seed=seed)
            write_rows(domain, [(*pair, "test" if row % 10 == 0 else "train") for row, pair in enumerate(pairs)])
        for name in ("minilm", "tfidf"):
            plant_vectors(name)
    return made


@pytest.fixture
def experiment(folder: Path) -> Experiment:
    def run(module: str, *arguments: str, table: str) -> Table:
        given = ["-m", f"experiments.{module}", "data", *arguments, "--output", table]
        done = run_python(*given, cwd=folder, OMP_NUM_THREADS="2")
        assert done.returncode == 0, done.stderr
        return read_tsv(folder / table, made_by=module)

    return run


def test_training_elsewhere(experiment: Experiment) -> None:
    rows = experiment(
        "handover", "--domains", "birds", "--vectors", "minilm", "--seeds", "2", "--epochs", "2", table="handover.tsv"
    )
    trainers = ["Batchwright", "sentence-transformers", "sentence-transformers, rows shuffled"]
    assert [row["trainer"] for row in rows] == trainers
    assert all(0 <= float(row["nDCG@10"]) <= 1 and row["seeds"] == "2" for row in rows)
    assert float(rows[0]["difference"]) == 0
    assert float(rows[1]["difference"]) == pytest.approx(0, abs=0.01), "as good as our own"


def test_pretraining(experiment: Experiment, folder: Path) -> None:
    rows = experiment(
        "seed_encoder.pretraining", "kept", "--domains", "birds", "--seeds", "2", "--steps", "4", "--tuning", "6",
        "--rate", "0.016", table="pretraining.tsv",
    )  # fmt: skip
    kinds = ["MLM", "SEED, 3 layers, window 2", "RetroMAE"]
    assert [(row["pre-training"], row["seeds"]) for row in rows] == [(kind, "2") for kind in kinds]
    rates = read_tsv(folder / "pretraining-rates.tsv", made_by="seed_encoder.pretraining")
    tried = {(row["pre-training"], float(row["rate"])) for row in rates}
    for row, factor in product(rows, (2, 0.5)):
        assert (row["pre-training"], factor * float(row["rate"])) in tried, "no neighbour is better"
    assert int(rows[0]["steps"]) > int(rows[1]["steps"]) == 4, "MLM alone is cheaper, so it takes more steps"
    assert [bool(row["h0_gap"]) for row in rows] == [row["pre-training"] != "MLM" for row in rows]
    assert [row for row in rows if not row["gain"]] == rows[:1], "what all are compared with"
    assert all(0 <= float(row[name]) <= 1 for row in rows for name in ("nDCG@10, 0", "nDCG@10, 6"))


def test_fine_tuning_on_few_labels_after_as_many_steps(experiment: Experiment) -> None:
    rows = experiment(
        "seed_encoder.pretraining", "few", "--domains", "birds", "--seeds", "0", "--steps", "2", "--tuning", "6",
        "--kinds", *(kinds := ("MLM", "SEED, 3 layers, window 2")), "--rate", "1e-3", "--labels", "0.25", "1",
        "--equal", "steps", table="labels.tsv",
    )  # fmt: skip
    assert [row["steps"] for row in rows] == ["2"] * 4
    assert [(row["pre-training"], row["labels"]) for row in rows] == list(product(kinds, ("0.25", "1")))
    start = {row["pre-training"]: row["nDCG@10, 0"] for row in rows}
    assert all(row["nDCG@10, 0"] == start[row["pre-training"]] for row in rows), "the same encoder"
    assert len({row["nDCG@10, 6"] for row in rows}) == 4


def test_cde_against_the_biencoder(experiment: Experiment) -> None:
    rows = experiment(
        "cde.quality", "--domains", "birds", "fish", "--documents", "4", "--batch", "32", "--steps", "2",
        "--seeds", "1", "--first-stages", "shared", "--forms", "gated", "sequence", "--vectors", "minilm",
        table="cde.tsv",
    )  # fmt: skip
    asked = list(product(("gated", "sequence"), ("own", "another domain's", "none")))
    assert [(row["model"], row["form"], row["step"], row["context"]) for row in rows] == [
        ("biencoder", "none", "0", "none"), *(("cde", form, "0", context) for form, context in asked),
        ("biencoder", "none", "2", "none"), *(("cde, shared, 0.02", form, "2", context) for form, context in asked),
    ]  # fmt: skip
    start, *untrained = (row for row in rows if row["step"] == "0" and row["form"] != "sequence")
    assert {row["ndcg@10"] for row in untrained} == {start["ndcg@10"]}
    assert {row["over biencoder"] for row in untrained} == {".000 ± .000"}


def test_a_cde_reads_fewer_and_shorter_documents_and_its_first_stage_may_be_smaller(experiment: Experiment) -> None:
    rows = experiment(
        "cde.quality", "--domains", "birds", "fish", "--documents", "4", "--batch", "32", "--steps", "2",
        "--seeds", "1", "--first-stages", "1", "--forms", "sequence", "--read", "2", "4", "--tokens", "8",
        "--queries", "40", "--vectors", "minilm", table="read.tsv",
    )  # fmt: skip
    trained = {row["context"]: row for row in rows if row["model"] == "cde, 1, 0.02"}
    assert list(trained) == ["own", "another domain's", "none", "own, 2 documents", "own, 4 documents", "own, 8 tokens"]
    measures = [name for name in rows[0] if name != "context"]
    assert [trained["own, 4 documents"][name] for name in measures] == [trained["own"][name] for name in measures]


def test_xtr_against_colbert_from_a_fetched_model(experiment: Experiment, tmp_path: Path) -> None:
    kept, small = str(tmp_path / "kept"), ["--domains", "birds", "--batch", "32", "--steps", "2", "--documents", "200"]
    rows = experiment(
        "xtr.fair", kept, *small, "--k", "16", "--largest-k", "16", "--rate", "2e-5", "--temperature", ".05",
        "--seeds", "2", "--tuning", "10", "--queries", "20", table="fair.tsv",
    )  # fmt: skip
    ways = ["10", "100", "1000", "4000", "all"]
    assert [(row["tokens retrieved"], row["queries"], row["seeds"]) for row in rows] == [
        (way, "20", "2") for way in ways
    ]
    for row in rows:
        difference = float(row["difference"].split()[0])
        assert float(row["xtr"]) - float(row["colbert"]) == pytest.approx(difference, abs=0.0016), "rounded"
    rows = experiment("xtr.histogram", *small, "--k", "16", "--queries", "20", "--tokens", "50", table="histogram.tsv")
    assert [row["similarity"] for row in rows[:2]] == ["below 0", "0.0 to 0.1"]
    for name in ("xtr", "xtr, gold", "colbert", "colbert, gold"):
        assert sum(float(row[name]) for row in rows) == pytest.approx(1, abs=0.006)
    options = ["--k", "16", "--seeds", "1", "--queries", "20", "--batch", "16", "32", "--no-colbert"]
    rows = experiment("xtr.grid", str(tmp_path / "grid"), *small, *options, table="grid.tsv")
    cells = [("16", "16"), ("32", "16")]
    assert [(row["batch"], row["k in training"]) for row in rows] == cells
