"""What runs are compared with, and the differences."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from batchwright.core.errors import InputError
from batchwright.core.files import read_json, read_tsv, write_json, write_tsv
from batchwright.formats.query_scores import write_query_scores
from stages.compare import hardness_lines, headline, main, references
from stages.scoring.paired import estimate
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


SEEDED = TABLE[SYSTEMS.index("ours")] + np.random.default_rng(1).normal(0, 0.05, (3, QUERIES))


def rows(collection: str, *systems: str) -> list[dict[str, Any]]:
    """Rows with the scores of one seed."""
    return [row for system in systems for row in of_seeds(collection, system, TABLE[SYSTEMS.index(system)][None])]


def of_seeds(collection: str, system: str, table: np.ndarray) -> list[dict[str, Any]]:
    return [
        {"collection": collection, "system": system, "seed": place, "domain": "d", "query": f"q{number}"}
        | dict.fromkeys(("mrr@10", "recall@100"), 0.0)
        | {"ndcg@10": of_seed[number]}
        for place, of_seed in enumerate(table, start=1)
        for number in np.random.default_rng(len(system)).permutation(QUERIES)
    ]


def write_runs(runs: dict[str, dict[str, Any]], pretrained: dict[str, dict[str, Any]] | None = None) -> None:
    """Write runs into the parameters, and as what they were trained with."""
    write_params(Path(), {"runs": runs, "pretrain": pretrained or {}})
    for name, run in runs.items():
        write_json(Path(f"results/train/{name}.json"), {"trained_with": run})


@pytest.fixture
def scored(workspace: Path) -> Path:
    write_runs(RUNS)
    scores = workspace / "data/scores"
    for policy, hardness in (("contextual", 0.25), ("random", 0.125)):
        write_json(workspace / f"results/pack/{policy}.json", {"hardness": hardness, "masked_share": 0.01})
        packed = [{"batch": 0, "domain": "d", "hardness": hardness}, {"batch": 1, "domain": "e", "hardness": hardness}]
        write_tsv(workspace / f"results/pack/{policy}.tsv", packed)
    write_query_scores(scores / "baselines.parquet", rows("held_out", *SYSTEMS[:2]) + rows("nfc", "BM25"))
    for run in RUNS:
        measured = [{"step": step, "ndcg@10": 0.5} for step in (0, 2)] if run in ("ours", "control") else []
        write_tsv(workspace / f"results/train/{run}-dev.tsv", measured)
        write_query_scores(scores / "runs" / f"{run}.parquet", rows("held_out", run) + rows("nfc", run))
    return workspace


def test_runs_are_compared_with_start_words_and_the_same_variant_on_random_batches() -> None:
    start = {"start": "minilm, before training", "BM25": "BM25"}
    assert compared("ours", RUNS) == {**start, "random batches": "control"}
    assert compared("control", RUNS) == compared("cde", RUNS) == start
    assert compared("again", RUNS) == {"start": "ours", "BM25": "BM25"}


def compared(name: str, runs: dict[str, dict[str, Any]]) -> dict[str, str]:
    """The names of what a run is compared with."""
    return {over: reference.system for over, reference in references(name, runs, {}).items()}


def test_an_encoder_with_a_decoder_is_compared_with_mlm_as_many_runs_later() -> None:
    weak: dict[str, Any] = {"decoder": {}, "steps": 2000, "validations": 4}
    pretrained = {"seed": weak, "bert": {"steps": 2000}, "mae": weak | {"mlm_probability": 0.3}, "short": {"steps": 5}}
    run = {"variant": "seed_encoder", "batches": "random"}
    firsts = {name: {**run, "start": f"models/start/{name}"} for name in pretrained}
    seconds = {f"{name}-2": {**run, "start": f"models/{name}", "batches": name} for name in ("seed", "bert")}
    others = {"bert-3": seconds["bert-2"] | {"batches": "contextual"}, "other": run | {"start": "raw/models/seed"}}
    runs: dict[str, dict[str, Any]] = {"ours": RUNS["ours"], **firsts, **others, **seconds}
    assert {name: told for name in runs if (told := references(name, runs, pretrained).get("MLM"))} == {
        "seed": ("bert", ["decoder"]),
        "mae": ("bert", ["decoder", "mlm_probability"]),
        "seed-2": ("bert-2", ["decoder"]),
    }
    runs["bert"] = runs["bert"] | {"steps": 3}
    for name, other in (("seed", "bert"), ("seed-2", "bert-2")):
        assert references(name, runs, pretrained)["MLM"] == (other, ["decoder", "steps"])


def test_mlm_is_compared_by_seed(scored: Path) -> None:
    runs = {name: RUNS[name] | {"start": f"models/start/{name}"} for name in ("ours", "control")}
    write_runs(runs, {"ours": {"decoder": {}}, "control": {}})
    row = gains(scored, SEEDED, SEEDED[::-1] - 0.1)["MLM"]
    assert (row["reference"], row["differs_in"], row["seeds"]) == ("control", "decoder, batches", "3")
    assert float(row["error"]) == pytest.approx(estimate(SEEDED - SEEDED[::-1] + 0.1).error, rel=1e-4)


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


def gains(scored: Path, ours: np.ndarray, control: np.ndarray) -> dict[str, dict[str, str]]:
    """What the run ``ours`` gains on held-out queries, by reference, given the scores of all seeds."""
    for run, table in (("ours", ours), ("control", control)):
        file = scored / f"data/scores/runs/{run}.parquet"
        write_query_scores(file, of_seeds("held_out", run, table))
    main()
    found = read_tsv(Path("results/compare.tsv"), made_by="compare")
    return {row["over"]: row for row in found if row["system"] == "ours"}


def test_seeds_are_paired_with_those_of_random_batches_and_all_with_other_references(scored: Path) -> None:
    control = SEEDED[::-1] - 0.1
    found = gains(scored, SEEDED, control)
    words = TABLE[SYSTEMS.index("BM25")]
    for over, expected in (("random batches", SEEDED - control), ("BM25", SEEDED - words)):
        row, of_all = found[over], estimate(expected)
        assert row["seeds"] == "3"
        assert float(row["difference"]) == pytest.approx(of_all.mean, rel=1e-4)
        assert float(row["error"]) == pytest.approx(of_all.error, rel=1e-4)
    shown = read_json(Path("results/metrics.json"), made_by="compare")
    assert shown["ours"] == pytest.approx(SEEDED.mean(), abs=1e-4)


@pytest.mark.parametrize(("ours", "control"), [(3, 1), (1, 3), (2, 3)])
def test_with_other_numbers_of_seeds_those_of_both_runs_are_compared(scored: Path, ours: int, control: int) -> None:
    found = gains(scored, SEEDED[:ours], SEEDED[:control] - 0.1)
    both = min(ours, control)
    assert found["random batches"]["seeds"] == str(both)
    assert float(found["random batches"]["difference"]) == pytest.approx(0.1)
    assert found["BM25"]["seeds"] == str(ours)


def test_random_batches_are_of_the_run_that_differs_in_the_fewest_settings_and_these_are_told(scored: Path) -> None:
    others = {
        "loss": RUNS["control"] | {"negatives_stand_for": "domain"},
        "alike": RUNS["control"] | {"seeds": 3, "evaluate_every": 2},
        "steps": RUNS["control"] | {"steps": 3},
    }
    assert compared("ours", RUNS | others)["random batches"] == "control"
    runs = {name: run for name, run in RUNS.items() if name != "control"} | others
    assert compared("ours", runs)["random batches"] == "alike"
    write_runs({"ours": RUNS["ours"], "control": others["loss"]})
    main()
    told = {row["over"]: row["differs_in"] for row in read_tsv(Path("results/compare.tsv"), made_by="compare")}
    assert told == {"start": "", "BM25": "", "random batches": "batches, negatives_stand_for"}


def test_a_training_of_an_older_version_is_to_be_run_again(scored: Path) -> None:
    write_json(Path("results/train/cde.json"), {"steps": 2})
    with pytest.raises(InputError, match=r"results/train/cde.json: does not say .* run the stage 'train' again"):
        main()


def test_scores_of_other_queries_are_refused(scored: Path) -> None:
    write_query_scores(scored / "data/scores/runs/cde.parquet", rows("held_out", "cde")[:-1])
    with pytest.raises(InputError, match="different queries; score all systems again"):
        main()


def test_the_headline_has_the_batches_and_as_many_runs_as_fit(scored: Path) -> None:
    main()
    shown = read_json(Path("results/metrics.json"), made_by="compare")
    means = {run: round(float(TABLE[SYSTEMS.index(run)].mean()), 4) for run in RUNS}
    assert shown == {"hardness": 0.25, "masked": 0.01, **means}
    packed = {"hardness": 0.25, "masked_share": 0.01}
    assert list(headline(packed, {f"r{number}": 0.5 for number in range(20)}))[-1] == "r6"
    assert list(headline(packed, {f"{'long' * 8}{number}": 0.5 for number in range(20)}))[-1] == f"{'long' * 8}1"


def test_pictures_compare_in_one_table_and_never_add_domains_or_collections(scored: Path) -> None:
    main()
    bars, steps, hardness = (
        read_tsv(Path(f"results/plots/{name}.tsv"), made_by="compare") for name in ("quality", "learning", "hardness")
    )
    assert len({row["name"] for row in bars}) == len(bars) == 11  # one bar each: six systems, and five on nfc
    assert {"BM25 on held_out", "BM25 on nfc"} < {row["name"] for row in bars}
    assert sorted((row["name"], row["step"]) for row in steps) == [
        (run, step) for run in ("control", "ours") for step in "02"
    ]
    assert [(row["name"], row["domain"], row["batch"], row["hardness"]) for row in hardness] == [
        ("contextual", "d", "1", "0.25"),
        ("contextual", "e", "1", "0.25"),
        ("random", "d", "1", "0.125"),
        ("random", "e", "1", "0.125"),
    ]


def test_a_long_line_of_hardness_is_thinned_to_means_of_neighbours() -> None:
    rows = [{"domain": "d", "hardness": str(number)} for number in range(120)]
    line = hardness_lines({"random": rows})
    assert len(line) == 40
    assert [(row["batch"], row["hardness"]) for row in line[:2]] == [(1, 1.0), (4, 4.0)]


def test_without_runs_there_is_nothing_to_compare_and_batches_are_still_shown(scored: Path) -> None:
    write_params(scored, {"runs": {}, "pretrain": {}})
    assert main() == "params.yaml lists no runs to compare"
    assert read_tsv(Path("results/compare.tsv"), made_by="compare") == []
    assert read_json(Path("results/metrics.json"), made_by="compare") == {"hardness": 0.25, "masked": 0.01}
    assert read_tsv(Path("results/plots/hardness.tsv"), made_by="compare")
