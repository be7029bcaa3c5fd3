"""What runs are compared with, and the differences."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from batchwright.core.errors import InputError
from batchwright.core.results import read_tsv
from batchwright.formats.query_scores import write_query_scores
from batchwright.formats.runs import Run, Runs
from stages.compare.references import references
from stages.compare.stage import main
from tests.helpers import write_params

RUNS = {
    "ours": {"variant": "biencoder", "batches": "contextual", "start": "models/start/minilm"},
    "control": {"variant": "biencoder", "batches": "random", "start": "models/start/minilm"},
    "cde": {"variant": "cde", "batches": "contextual", "start": "models/start/minilm"},
    "again": {"variant": "biencoder", "batches": "mined", "start": "models/ours"},
}
QUERIES = 50
SYSTEMS = ["BM25", "minilm, before training", *RUNS]
TABLE = np.random.default_rng(0).random((len(SYSTEMS), QUERIES))


def rows(collection: str, *systems: str) -> list[dict[str, Any]]:
    return [
        {"collection": collection, "system": system, "domain": "d", "query": f"q{number}"}
        | dict.fromkeys(("mrr@10", "recall@100"), 0.0)
        | {"ndcg@10": TABLE[SYSTEMS.index(system), number]}
        for system in systems
        for number in np.random.default_rng(len(system)).permutation(QUERIES)
    ]


@pytest.fixture
def scored(workspace: Path) -> Path:
    write_params(workspace, {"runs": RUNS})
    scores = workspace / "data/scores"
    write_query_scores(scores / "baselines.parquet", rows("held_out", *SYSTEMS[:2]) + rows("nfc", "BM25"))
    for run in RUNS:
        write_query_scores(scores / "runs" / f"{run}.parquet", rows("held_out", run) + rows("nfc", run))
    return workspace


def test_runs_are_compared_with_start_words_and_the_same_variant_on_random_batches() -> None:
    runs: dict[str, Run] = Runs.model_validate(RUNS).root
    start = {"start": "minilm, before training", "BM25": "BM25"}
    assert references("ours", runs) == {**start, "random batches": "control"}
    assert references("control", runs) == references("cde", runs) == start
    assert references("again", runs) == {"start": "ours", "BM25": "BM25"}


def test_differences_have_the_errors_of_the_paired_t_test(scored: Path) -> None:
    main()
    found = {
        (row["collection"], row["system"], row["over"]): row
        for row in read_tsv(Path("results/compare.tsv"), made_by="compare")
    }
    ours, control = (TABLE[SYSTEMS.index(name)] for name in ("ours", "control"))
    row, expected = found["held_out", "ours", "random batches"], stats.ttest_rel(ours, control)
    assert row["reference"] == "control" and row["queries"] == str(QUERIES)
    assert float(row["difference"]) == pytest.approx((ours - control).mean(), rel=1e-4)
    assert float(row["error"]) == pytest.approx(stats.sem(ours - control), rel=1e-4)
    assert float(row["p"]) == pytest.approx(expected.pvalue, rel=1e-4)
    assert ("nfc", "ours", "BM25") in found and ("nfc", "cde", "start") not in found


def test_scores_of_other_queries_are_refused(scored: Path) -> None:
    write_query_scores(scored / "data/scores/runs/cde.parquet", rows("held_out", "cde")[:-1])
    with pytest.raises(InputError, match="different queries; score all systems again"):
        main()
