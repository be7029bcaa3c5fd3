"""The report's page, from what was read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from numpy.typing import NDArray

from stages.report import charts, data_tables, result_tables
from stages.report.collect import Ingested, Packed, Step
from stages.report.dag import Stage, draw
from stages.report.evaluation import Evaluation
from stages.report.experiments import Experiment
from stages.report.pretraining import Pretraining, draw_pretraining
from stages.report.table import share
from stages.report.tokens import Rank, Retrieval, draw_tokens


@dataclass(frozen=True, kw_only=True)
class Results:
    """All that the page shows but the pipeline itself; ``cluster_sizes`` are by domain, ``curves`` and
    ``pretraining`` by variant."""

    ingested: Ingested
    cluster_sizes: dict[str, NDArray[np.int64]]
    cluster_size: int
    packed: dict[str, Packed]
    curves: dict[str, dict[str, list[Step]]]
    evaluation: Evaluation
    pretraining: dict[str, Pretraining]
    experiments: list[Experiment]
    tokens: dict[str, tuple[list[Retrieval], list[Rank]]]


def render(results: Results, stages: Sequence[Stage]) -> str:
    """The page as HTML that needs no other file."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["share"] = share
    evaluation, packed = results.evaluation, results.packed
    sizes = np.concatenate(list(results.cluster_sizes.values()))
    return environment.get_template("template.html.j2").render(
        results=results,
        drawing=draw(stages),
        counts=_counts(results),
        tables={
            "results": result_tables.results_table(evaluation),
            "results_by_domain": result_tables.results_by_domain(evaluation),
            "sources": data_tables.source_counts(results.ingested),
            "domains": data_tables.domain_counts(results.ingested),
            "clusters": data_tables.cluster_table(results.cluster_sizes, results.cluster_size),
            "hardness": data_tables.hardness_table(packed),
            "hardness_by_domain": data_tables.hardness_by_domain(packed),
        },
        bars=_bars(evaluation),
        cluster_chart=charts.cluster_sizes(sizes, results.cluster_size),
        hardness_chart=charts.hardness(batch_hardness(packed)),
        curve_charts=_curve_charts(results.curves),
        pretraining_charts={name: draw_pretraining(curves) for name, curves in results.pretraining.items()},
        token_charts={name: draw_tokens(name, *found) for name, found in results.tokens.items()},
    )


def batch_hardness(packed: Mapping[str, Packed]) -> dict[str, NDArray[np.float64]]:
    """Hardness of every batch by policy."""
    return {policy: np.array([batch.hardness for batch in own.batches]) for policy, own in packed.items()}


def _counts(results: Results) -> dict[str, str]:
    """What a stage made, by the stage's name."""
    domains = results.ingested.domains.values()
    return {
        "ingest": f"{sum(domain.train + domain.test for domain in domains):,} pairs",
        "embed": f"{sum(domain.queries + domain.documents for domain in domains):,} texts",
        "cluster": f"{sum(len(sizes) for sizes in results.cluster_sizes.values()):,} clusters",
        "pack": f"{sum(own.summary.batches for own in results.packed.values()):,} batches",
        "pretrain": f"{sum(curves.validations[-1].step for curves in results.pretraining.values()):,} steps",
        "train": f"{sum(len(runs['contextual']) for runs in results.curves.values()):,} steps",
        "control": f"{sum(len(runs['random']) for runs in results.curves.values()):,} steps",
        "evaluate": f"{sum(results.evaluation.queries.values()):,} queries",
    }


def _bars(evaluation: Evaluation) -> dict[str, Markup]:
    titles = {name: result_tables.collection_title(name) for name in evaluation.queries}
    return {title: charts.result_bars(evaluation.ndcg(name), title) for name, title in titles.items()}


def _curve_charts(curves: Mapping[str, Mapping[str, Sequence[Step]]]) -> dict[str, dict[str, Markup]]:
    return {
        variant: {
            measure.replace("_", " ").capitalize(): charts.curves(variant, runs, measure)
            for measure in ("loss", "accuracy", "z", "missed_positives")
            if all(getattr(step, measure) is not None for steps in runs.values() for step in steps)
        }
        for variant, runs in curves.items()
    }
