"""``python -m stages.report``: what all stages made, on one page."""

import argparse
from collections.abc import Mapping
from pathlib import Path

from formats.atomic import atomic_file
from formats.params import load_params
from stages.cluster.params import ClusterParams
from stages.entry import run
from stages.report.charts import write_picture
from stages.report.collect import read_cluster_sizes, read_curves, read_ingested, read_packed
from stages.report.dag import read_stages
from stages.report.evaluation import HELD_OUT, read_evaluation
from stages.report.experiments import read_experiments
from stages.report.page import Results, batch_hardness, render
from stages.report.params import Loop, Names
from stages.report.pretraining import read_pretraining
from stages.report.tokens import read_tokens

PIPELINE = Path("dvc.yaml")
CLUSTERS = Path("data/clusters")
RESULTS = Path("results")
EXPERIMENTS = Path("experiments")
OUTPUT = Path("report/index.html")


def main() -> str:
    """Write ``report/index.html``, or with ``--picture`` only that file."""
    parser = argparse.ArgumentParser(prog="python -m stages.report")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="write only an SVG of hardness and results")
    picture = parser.parse_args().picture
    loops = {
        "variants": load_params("variants", Loop).root,
        "pretrain": load_params("pretrain", Loop).root,
        "rounds": load_params("rounds", Loop).root,
    }
    results = _read(loops)
    if picture:
        write_picture(picture, batch_hardness(results.packed), results.evaluation.ndcg(HELD_OUT))
        return f"{picture} written"
    page = render(results, read_stages(PIPELINE, loops))
    with atomic_file(OUTPUT) as temporary:
        temporary.write_text(page, encoding="utf-8")
    system, ndcg = results.evaluation.best
    return f"{OUTPUT}, {len(page):,} characters; best nDCG@10 on held-out queries {ndcg:.3f} ({system})"


def _read(loops: Mapping[str, Mapping[str, Mapping[str, str]]]) -> Results:
    rounds = {
        variant: [name for name, round in loops["rounds"].items() if round["variant"] == variant]
        for variant in loops["variants"]
    }
    further = [f"{variant}-{name}" for variant, names in rounds.items() for name in names]
    evaluation = read_evaluation(RESULTS / "evaluate", [*rounds, *further])
    return Results(
        ingested=read_ingested(RESULTS / "ingest.json"),
        cluster_sizes=read_cluster_sizes(RESULTS / "cluster.json", CLUSTERS),
        cluster_size=load_params("cluster", ClusterParams).cluster_size,
        packed=read_packed(RESULTS / "pack"),
        curves={variant: read_curves(RESULTS / "train", variant, names) for variant, names in rounds.items()},
        evaluation=evaluation,
        pretraining={variant: read_pretraining(RESULTS / "pretrain", variant) for variant in loops["pretrain"]},
        experiments=read_experiments(EXPERIMENTS),
        tokens=read_tokens(RESULTS / "evaluate" / "tokens", load_params("token_variants", Names).root),
    )


if __name__ == "__main__":
    run("report", main)
