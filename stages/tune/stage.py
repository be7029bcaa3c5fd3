"""Stage ``tune``: tries temperature, rate, loss and batches for a run on its dev queries, and chooses."""

import math
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from pydantic import Field

from batchwright.core.atomic import atomic_dir
from batchwright.core.errors import InputError
from batchwright.core.files import write_json, write_tsv
from batchwright.core.fingerprint import fingerprint
from batchwright.core.names import Name
from batchwright.core.params import Base, Params, load_params
from batchwright.core.paths import PAIRS, RESULTS, SHARDS, START_MODELS
from batchwright.core.runtime import scratch
from batchwright.formats.runs import Choice, Run
from batchwright.formats.shards import Manifest, ShardSet
from stages.scoring.collection import Collection, HeldOutParams, held_out, score_queries
from stages.scoring.retrieval import model_system
from stages.tune.search import CONTEXTUAL, MOST, RANDOM, Chosen, Scores, Trial, search
from trainers.common.job import TrainJob, job_storage, plan_job, planned_batches
from trainers.common.params import Common, VariantParams, overridden
from trainers.launch.trials import trial_runner
from trainers.variants import load_run, load_variant

OUTPUT = RESULTS / "tune"
FEWEST_STEPS = 5
"""A trial of fewer steps tells nothing."""
MEASURE = "ndcg@10"


class Tuning(Params):
    """Group ``tune.NAME``; the run takes what was chosen if its ``batches`` is NAME."""

    run: Name
    """The entry of ``runs`` to find temperature, learning rate, ``negatives_stand_for`` and batches for, contextual or
    random. Its own temperature and rate are where the search begins, and ``temperature: auto`` where it stays; its
    ``start`` must be in ``models/start``."""
    share: float = Field(default=0.5, gt=0, le=1)
    """All trials together have at most this share of the run's steps, those of all its seeds."""


@dataclass(frozen=True)
class DevScores:
    """nDCG@10 of each query of ``collection``."""

    collection: Collection

    def __call__(self, folder: Path) -> Scores:
        """Score the model in ``folder``."""
        scored = score_queries(self.collection, model_system(folder)(self.collection))
        return {query: measures[MEASURE] for query, measures in scored.items()}


def main(name: str) -> str:
    """Write the choice to ``data/shards/NAME``, and the trials to ``results/tune/NAME.{tsv,json}``."""
    params = load_params(f"tune.{name}", Tuning)
    run = load_run(params.run)
    if Path(run.start).parent != START_MODELS:
        raise InputError(f"tune.{name}: runs.{params.run} starts from {run.start}; tune runs start from models/start")
    common = overridden(load_params("train.common", Common), run)
    variant = overridden(load_params(f"train.{run.variant}", load_variant(run.variant).Params), run)
    alone = common.distill is not None and common.distill.weight is None
    if len(common.directions) > 1 or not common.in_batch or alone:
        raise InputError(
            f"tune.{name}: runs.{params.run} has in_batch: false, directions or distill.weight: null, which do not go "
            "together with negatives_stand_for: domain, which tune tries; remove them, or leave out tune"
        )
    whole = {batches: _plan(name, run, common, variant, batches) for batches in (CONTEXTUAL, RANDOM)}
    every = trial_length(name, params, run, min(map(_steps, whole.values())))
    collection = held_out(PAIRS, load_params("evaluate.dev", HeldOutParams), "dev")
    decides = [sorted(job.scratch.name for job in whole.values()), asdict(collection)]
    kept = scratch("tune", fingerprint(*decides)).resolve()

    numbers = count(1)
    with trial_runner(DevScores(collection)) as run_trial:

        def train(trial: Trial) -> Scores:
            return run_trial(_trial(whole[trial.batches], trial, every, kept, next(numbers)))

        chosen = search(
            whole[CONTEXTUAL].params.temperature,
            common.learning_rate,
            every,
            train,
            keep_temperature=whole[CONTEXTUAL].params.temperature != variant.temperature,  # which says auto
        )
    choice = Choice(
        run=params.run,
        **chosen.settings._asdict(),
        reason=reason(chosen),
        manifest=fingerprint(Manifest.read(SHARDS / chosen.settings.batches).model_dump()),
    )
    write_tsv(OUTPUT / f"{name}.tsv", list(rows(chosen)))
    write_json(OUTPUT / f"{name}.json", choice.model_dump())
    with atomic_dir(SHARDS / name) as folder:
        choice.write(folder)
    for folder in (kept, *(job.scratch for job in whole.values())):
        shutil.rmtree(folder, ignore_errors=True)
    return f"{name}: {choice.reason}; temperature {choice.temperature:g}, rate {choice.learning_rate:g}"


def trial_length(name: str, params: Tuning, run: Run, steps: int) -> int:
    """Return the n for which a trial trains on every n-th batch, so that all fit into the share.

    Raises:
        InputError: a trial would have too few steps to tell anything.
    """
    every = max(1, math.ceil(round(MOST / (params.share * run.seeds), 9)))  # 9 / .3 is above 30
    if steps // every < FEWEST_STEPS:
        share = math.ceil(100 * MOST / (run.seeds * max(steps // FEWEST_STEPS, 1))) / 100
        cure = f"raise share to {share:g}" if share <= 1 and steps >= FEWEST_STEPS else "train longer"
        raise InputError(
            f"tune.{name}: {params.share:g} of {run.seeds} trainings of {steps} steps leaves {steps // every} for each "
            f"trial, fewer than {FEWEST_STEPS}; {cure}, or leave out tune: so small a set tells too little"
        )
    return every


def reason(chosen: Chosen) -> str:
    """Say what decided about the batches."""
    gain, queries = chosen.gain, len(chosen.tried[-1].scores)
    measured = (
        f"{gain.mean:+.3f} ± {gain.error:.3f} nDCG@10 over random ones on {queries:,} dev queries, in trials of "
        f"1/{chosen.every} of the training"
    )
    if chosen.settings.batches == RANDOM:
        return f"random batches, since contextual ones have {measured}"
    late = "; random ones must win by two errors, since what hard batches bring shows late"
    return f"contextual batches, which have {measured}{'' if gain.mean > gain.error else late}"


def rows(chosen: Chosen) -> Iterator[dict[str, Any]]:
    """Yield a row for each trial in their order; ``cost`` is that of all trials so far, in trainings of one seed, and
    ``best`` the best nDCG@10 so far."""
    best = -1.0
    for number, tried in enumerate(chosen.tried, start=1):
        best = max(best, tried.ndcg)
        measured = {MEASURE: round(tried.ndcg, 4), "best": round(best, 4), "cost": round(number / chosen.every, 3)}
        yield {"trial": number, **tried.trial._asdict(), **measured}


def _plan(name: str, run: Run, common: Common, variant: VariantParams, batches: str) -> TrainJob:
    """Plan the whole training of the first seed, of which a trial is a part."""
    return plan_job(
        name=f"tune-{name}",
        variant=run.variant,
        seed=load_params("base", Base).seed,
        common=common,
        params=variant,
        start=Path(run.start),
        shards=SHARDS / batches,
        model=OUTPUT / name,
        curve=OUTPUT / f"{name}.tsv",
    )


def _steps(job: TrainJob) -> int:
    return len(planned_batches(ShardSet.open(job.shards), job.common))


def _trial(job: TrainJob, trial: Trial, every: int, kept: Path, number: int) -> TrainJob:
    """Make a trial of a whole training, in a folder of its own; its bar says its ``number``."""
    name = f"{trial.batches}-{trial.negatives_stand_for}-{trial.temperature:g}-{trial.learning_rate:g}-{every}"
    folder = kept / name
    common = {"learning_rate": trial.learning_rate, "negatives_stand_for": trial.negatives_stand_for}
    return replace(
        job,
        name=f"{job.name}, trial {number} of at most {MOST}",
        every=every,
        common=job.common.model_copy(update={**common, "evaluate_every": None}),
        params=job.params.model_copy(update={"temperature": trial.temperature}),
        scratch=folder,
        storage=job_storage(name, folder),
        model=folder / "model",
        curve=folder / "curve.tsv",
        tensorboard=None,
    )
