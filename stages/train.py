"""Stage ``train``: trains a model on packed batches, scores it on dev queries meanwhile, and sums up its curve."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from batchwright.core.errors import InputError
from batchwright.core.files import read_tsv, write_json
from batchwright.core.fingerprint import fingerprint
from batchwright.core.params import Base, load_params
from batchwright.core.paths import MODELS, PAIRS, RESULTS, SHARDS
from batchwright.formats.runs import Run, of_seed, seed_folders, settled
from batchwright.formats.shards import Manifest
from stages.scoring.collection import Collection, HeldOutParams, average, held_out, score_queries
from stages.scoring.retrieval import model_system
from trainers.common.job import TrainJob, plan_job
from trainers.common.params import Common, overridden
from trainers.launch.seeds import train_seeds
from trainers.variants import load_run, load_variant

OUTPUT = RESULTS / "train"
WINDOW = 10
"""Steps whose losses are averaged, at either end of a training; of a short one, half of its steps."""


def main(run: str) -> str:
    """Write ``models/RUN``, ``results/train/RUN.{tsv,json}`` and ``RUN-dev.tsv``, which is empty if nothing is due.

    The curves are those of the first seed; only that is scored on dev queries meanwhile.
    """
    settings, reason = settled(load_run(run), SHARDS)
    jobs = _plan(run, settings, reason)
    train_seeds(jobs)
    first = jobs[0]
    summary = summarise(read_tsv(first.curve, made_by="train"), first.batch_size)
    if first.dev:
        summary |= summarise_dev(read_tsv(first.dev_curve, made_by="train"))
    write_json(OUTPUT / f"{run}.json", {**summary, "trained_with": trained_with(settings, first)})
    return f"{run}: {summary['steps']:,} steps, {summary['pairs']:,} pairs, {_losses(summary)}" + (
        f", and {settings.seeds - 1} more with other seeds" if settings.seeds > 1 else ""
    )


def trained_with(settings: Run, job: TrainJob) -> dict[str, Any]:
    """Return all settings that decide what a run learns, whether the run, ``train`` or ``tune`` says so."""
    run = settings.model_dump(include={"variant", "batches", "start"})
    return {**job.common.model_dump(), **job.params.model_dump(), **run}


def _plan(run: str, settings: Run, reason: str) -> list[TrainJob]:
    """Plan a job for each seed."""
    common = overridden(load_params("train.common", Common), settings)
    params = overridden(load_params(f"train.{settings.variant}", load_variant(settings.variant).Params), settings)
    seed = load_params("base", Base).seed
    shards = SHARDS / settings.batches
    _check_seeds(run, settings, shards)
    dev = (
        DevScores(held_out(PAIRS, load_params("evaluate.dev", HeldOutParams), "dev")) if common.evaluate_every else None
    )
    return [
        plan_job(
            name=run if place == 1 else f"{run}-seed-{place}",
            variant=settings.variant,
            seed=seed + place - 1,
            common=common,
            params=params,
            start=Path(settings.start),
            shards=of_seed(shards, place),
            model=MODELS / run,
            curve=OUTPUT / f"{run}.tsv",
            redraw=place > 1,
            dev=dev if place == 1 else None,
            note=f"Tuned: {reason}." if reason else "",
        )
        for place in range(1, settings.seeds + 1)
    ]


def _check_seeds(run: str, settings: Run, shards: Path) -> None:
    """Check that there are batches for all seeds.

    Raises:
        InputError: there are not.
    """
    there = len(seed_folders(shards))
    if settings.seeds <= there or not shards.exists():  # what is missing altogether has its own message
        return
    mined = Manifest.read(shards).policy != settings.batches
    remedy = "mined batches are of one seed" if mined else "or raise pack.seeds and run the stage 'pack' again"
    raise InputError(
        f"runs.{run}.seeds is {settings.seeds}, but {shards} has batches of {there}; lower it to {there}, {remedy}"
    )


@dataclass(frozen=True)
class DevScores:
    """A ``trainers.common.job.DevMeasure``: averages over the queries of ``collection``."""

    collection: Collection

    @property
    def fingerprint(self) -> str:
        """See ``DevMeasure``."""
        return fingerprint(asdict(self.collection))

    def __call__(self, folder: Path) -> dict[str, float]:
        """See ``DevMeasure``."""
        scored = score_queries(self.collection, model_system(folder)(self.collection))
        return average(scored, scored)


def summarise(curve: Sequence[Mapping[str, str]], batch_size: int) -> dict[str, float | int]:
    """Return the number of steps and pairs, the mean loss of the first and last steps, and the mean last accuracy.

    No step is among both, unless there is only one.
    """
    width = _width(len(curve))
    first, last = curve[:width], curve[-width:]
    return {
        "steps": len(curve),
        "pairs": len(curve) * batch_size,
        "first_loss": _mean(first, "loss"),
        "last_loss": _mean(last, "loss"),
        "accuracy": _mean(last, "accuracy"),
    }


def summarise_dev(curve: Sequence[Mapping[str, str]]) -> dict[str, float]:
    """Return nDCG@10 on the dev queries before the first and after the last step."""
    return {f"dev_{name}": float(curve[place]["ndcg@10"]) for name, place in (("first", 0), ("last", -1))}


def _losses(summary: Mapping[str, float | int]) -> str:
    """Say which losses these are."""
    first, last, width = (f"{summary['first_loss']:.4f}", f"{summary['last_loss']:.4f}", _width(int(summary["steps"])))
    if summary["steps"] == 1:
        return f"loss {first}"
    return f"loss {first} -> {last}" + (f" (means of {width} steps)" if width > 1 else "")


def _width(steps: int) -> int:
    return max(1, min(WINDOW, steps // 2))


def _mean(rows: Sequence[Mapping[str, str]], column: str) -> float:
    return round(sum(float(row[column]) for row in rows) / len(rows), 6)
