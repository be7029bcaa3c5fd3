"""Compare the systems that were scored, query by query."""

from collections.abc import Mapping
from typing import Any

from batchwright.core.files import read_json, read_tsv, write_json, write_tsv
from batchwright.core.params import load_params
from batchwright.core.paths import RESULTS, SCORES
from batchwright.formats.query_scores import ByQuery, read_query_scores
from batchwright.formats.runs import Run, Runs
from stages.compare import pictures
from stages.compare.headline import headline
from stages.compare.references import references
from stages.scoring.paired import by_query, difference

OUTPUT = RESULTS / "compare.tsv"
HEADLINE = RESULTS / "metrics.json"
PICTURES = RESULTS / "plots"
POLICIES = ("contextual", "random")

BySystem = Mapping[tuple[str, str], ByQuery]
"""nDCG@10 of each query, by collection and system."""


def main() -> str:
    """Write ``results/compare.tsv``: one row per run, collection and what the run is compared with.

    What ``dvc metrics show`` and ``dvc plots show`` show is in ``results/metrics.json`` and ``results/plots``.
    """
    runs = load_params("runs", Runs).root
    scores = read_query_scores(SCORES / "baselines.parquet", made_by="baselines")
    for name in runs:
        scores |= read_query_scores(SCORES / "runs" / f"{name}.parquet", made_by="evaluate")
    rows = compare(runs, scores)
    write_tsv(OUTPUT, rows)
    first = rows[0]["collection"]
    packed = read_json(RESULTS / "pack/contextual.json", made_by="pack")
    write_json(HEADLINE, headline(packed, {name: pictures.mean(scores[first, name]) for name in runs}))
    _write_pictures(runs, scores)
    gains = [row for row in rows if (row["collection"], row["over"]) == (first, "start")]
    return "nDCG@10 over the start model: " + ", ".join(
        f"{row['system']} {row['difference']:+.3f} ± {row['error']:.3f}" for row in gains
    )


def _write_pictures(runs: Mapping[str, Run], scores: BySystem) -> None:
    write_tsv(PICTURES / "quality.tsv", pictures.quality(scores))
    curves = {name: read_tsv(RESULTS / "train" / f"{name}-dev.tsv", made_by="train") for name in runs}
    write_tsv(PICTURES / "learning.tsv", pictures.learning(curves))
    batches = {policy: read_tsv(RESULTS / "pack" / f"{policy}.tsv", made_by="pack") for policy in POLICIES}
    write_tsv(PICTURES / "hardness.tsv", pictures.hardness(batches))


def compare(runs: Mapping[str, Run], scores: BySystem) -> list[dict[str, Any]]:
    """Return the differences in nDCG@10 between runs and their references, with standard errors paired by query."""
    rows = []
    for collection in dict.fromkeys(collection for collection, _ in scores):
        for name in runs:
            for over, reference in references(name, runs).items():
                pair = [scores[collection, system] for system in (name, reference) if (collection, system) in scores]
                if len(pair) == 2:
                    rows.append(
                        {"collection": collection, "system": name, "over": over, "reference": reference, **_row(*pair)}
                    )
    return rows


def _row(ours: ByQuery, theirs: ByQuery) -> dict[str, Any]:
    table = by_query([ours, theirs])
    found = difference(table[0], table[1])
    means = {"ndcg@10": float(table[0].mean()), "reference_ndcg@10": float(table[1].mean())}
    return {"queries": table.shape[1], **means, "difference": found.mean, "error": found.error, "p": found.p}
