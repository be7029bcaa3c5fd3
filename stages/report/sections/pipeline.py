"""Pipeline: a drawing of the stages, and how much each of them made."""

from collections.abc import Iterable, Mapping

from markupsafe import Markup

from batchwright.core.params import load_params
from batchwright.core.paths import PIPELINE
from stages.report.dag.draw import draw
from stages.report.dag.read import Group, read_stages
from stages.report.evaluation import evaluation_files, read_evaluation
from stages.report.params import Loop, Names
from stages.report.section import Section
from stages.report.sections.clusters import count_clusters
from stages.report.sections.counts import read_ingested
from stages.report.sections.curves import read_curve
from stages.report.sections.hardness import read_summaries
from stages.report.sections.pretraining import read_validations
from stages.report.templates import TEMPLATES


def section() -> Section:
    """Return ``dvc.yaml`` drawn as boxes and arrows."""
    runs = load_params("runs", Loop).root
    pretrained = load_params("pretrain", Loop).root
    groups: Mapping[str, Group] = {
        "start_models": load_params("start_models", Loop).root,
        "pretrain": pretrained,
        "mine": load_params("mine", Loop).root,
        "index": load_params("index", Loop).root,
        "runs": runs,
        "tokens": load_params("tokens", Names).root,
    }
    drawing = draw(read_stages(PIPELINE, groups))
    svg = TEMPLATES.get_template("dag/drawing.svg.j2").render(drawing=drawing, counts=_counts(runs, pretrained))
    return Section(
        id="pipeline",
        title="Pipeline",
        intro="Each box is a stage, and arrows lead to it from the stages that it waits for. The number below a box is "
        "how much the stage made. A doubled box is a stage that runs several times: for each model, run or kind of "
        "batches. If an arrow has two heads, later runs of the left stage wait for what the right stage makes from "
        "earlier ones.",
        parts=[Markup(svg)],
    )


def _counts(runs: Iterable[str], pretrained: Iterable[str]) -> dict[str, str]:
    """Return how much each stage made, by its name."""
    ingested = read_ingested()
    batches = sum(summary.batches for summary in read_summaries().values())
    queries = read_evaluation(evaluation_files(runs)).queries
    return {
        "ingest": f"{ingested.pairs:,} pairs",
        "embed": f"{ingested.texts:,} texts",
        "cluster": f"{count_clusters():,} clusters",
        "pack": f"{batches:,} batches",
        "pretrain": f"{sum(read_validations(name)[-1].step for name in pretrained):,} steps",
        "train": f"{sum(len(read_curve(run)) for run in runs):,} steps",
        "evaluate": f"{sum(queries.values()):,} queries",
    }
