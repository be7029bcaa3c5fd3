"""Train a model on packed batches."""

from pathlib import Path

from batchwright.core.files import read_tsv, write_json
from batchwright.core.params import Base, load_params
from batchwright.core.paths import MODELS, PAIRS, RESULTS, SHARDS
from batchwright.formats.runs import Run
from batchwright.formats.shards import Manifest
from stages.scoring.collection import held_out
from stages.scoring.params import HeldOutParams
from stages.train.dev import DevScores
from stages.train.summary import summarise, summarise_dev
from trainers.common.params import Common
from trainers.common.train_job import plan_job
from trainers.launch import launch
from trainers.variants import load_variant, train

OUTPUT = RESULTS / "train"
_OWN = Run.model_fields.keys() & Common.model_fields.keys()


def main(run: str) -> str:
    """Write ``models/RUN``, ``results/train/RUN.{tsv,json}`` and ``RUN-dev.tsv``, which is empty if nothing is due."""
    own = load_params(f"runs.{run}", Run)
    shards = SHARDS / own.batches
    curve = OUTPUT / f"{run}.tsv"
    common = load_params("train.common", Common).model_copy(update=own.model_dump(include={*_OWN}, exclude_none=True))
    job = plan_job(
        name=run,
        variant=own.variant,
        seed=load_params("base", Base).seed,
        common=common,
        params=load_params(f"train.{own.variant}", load_variant(own.variant).Params),
        start=Path(own.start),
        shards=shards,
        model=MODELS / run,
        curve=curve,
        dev=_dev() if common.evaluate_every else None,
    )
    launch(job, train)
    summary = summarise(read_tsv(curve, made_by="train"), Manifest.read(shards).batch_size)
    if job.dev:
        summary |= summarise_dev(read_tsv(job.dev_curve, made_by="train"))
    write_json(OUTPUT / f"{run}.json", summary)
    return (
        f"{run}: {summary['steps']:,} steps, {summary['pairs']:,} pairs, "
        f"loss {summary['first_loss']:.4f} -> {summary['last_loss']:.4f}"
    )


def _dev() -> DevScores:
    return DevScores(held_out(PAIRS, load_params("evaluate.dev", HeldOutParams), "dev"))
