"""Pre-trains start models for ``experiments.gpu.run``: ``python -m experiments.gpu.pretraining FOLDER STARTS``.

FOLDER is what ``experiments.gpu.carry`` wrote. MLM, SEED and RetroMAE begin with the same random weights and read the
texts of all training pairs, each for as long: how many steps that is, is measured first.
"""

import argparse
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from batchwright.core.command import new_parser, run
from batchwright.core.fingerprint import content_id
from batchwright.formats.pairs import PAIRS_SCHEMA, pairs_file, write_table
from experiments.gpu.arms import PRETRAINED
from experiments.gpu.folder import TOKENIZER, Carried
from experiments.gpu.machine import SPARE, Clock, name_card
from experiments.gpu.training import SEED, SMALL, Shape, median_seconds, write_start
from trainers.common.step_loop import build_optimiser
from trainers.pretraining.job import PretrainJob, plan_pretraining
from trainers.pretraining.params import PretrainParams
from trainers.pretraining.reader import Masked
from trainers.pretraining.train import Pretraining, pretrain

EXAMPLE = "python -m experiments.gpu.pretraining --minutes 5 table1 starts"
WARM, TIMED = 5, 10
"""Steps that come first, and those that are timed."""


def main() -> str:
    """Pre-train all."""
    arguments = _parse()
    clock, card = Clock(60 * arguments.minutes), name_card(small=arguments.small)
    carried = Carried.read(arguments.folder)
    shape = SMALL if arguments.small else Shape()
    with tempfile.TemporaryDirectory() as folder:
        scratch = write_start(Path(folder) / "start", arguments.folder / TOKENIZER, shape)
        shared = {
            "encoder": {"model": str(scratch)},
            "max_length": shape.length,
            "batch_size": arguments.batch,
            "learning_rate": arguments.learning_rate,
            "new_learning_rate": arguments.learning_rate,
            "warmup_ratio": 0.1,
            "precision": "bfloat16",
            "dropout": 0,
            "validations": 1,
        }
        jobs = _plan(carried, shared, Path(folder) / "pairs", arguments.starts)
        clock.say(f"{card}: {len(carried.texts):,} texts are read")
        costs = {name: _seconds_of_step(job) for name, job in jobs.items()}
        seconds = (1 - SPARE) * clock.left / len(jobs)
        for name, job in jobs.items():
            steps = min(max(1, int(seconds / costs[name])), arguments.steps)
            clock.say(f"{name}: {1000 * costs[name]:.1f} ms a step, {steps:,} steps")
            pretrain(replace(job, params=job.params.model_copy(update={"steps": steps})))
    return f"{arguments.starts}: {', '.join(jobs)}"


def _parse() -> argparse.Namespace:
    parser = new_parser("experiments.gpu.pretraining", str(__doc__), EXAMPLE)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("starts", type=Path, metavar="STARTS")
    parser.add_argument("--minutes", type=float, default=5, help="all must end within so many")
    parser.add_argument("--steps", type=int, default=100_000, help="of each, at most")
    parser.add_argument("--batch", type=int, default=1024, help="texts of a step")
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--small", action="store_true", help="tiny models, which train on a CPU")
    return parser.parse_args()


def _plan(carried: Carried, shared: Mapping[str, Any], pairs: Path, starts: Path) -> Mapping[str, PretrainJob]:
    """A job for each kind, all on the tokens of the training pairs, which are read once."""
    write_pairs(carried, pairs)
    kinds = {
        name: PretrainParams.model_validate({**shared, **params, "steps": 10**9})  # no validation but before the first
        for name, params in PRETRAINED.items()
    }
    first, *_ = kinds
    job = plan_pretraining(
        name=first, seed=SEED, params=kinds[first], pairs=pairs, model=starts / first, results=starts / "curves"
    )
    return {
        name: replace(job, name=name, params=params, model=(starts / name).resolve(), storage=job.storage / name)
        for name, params in kinds.items()
    }


def write_pairs(carried: Carried, folder: Path) -> None:
    """Write the training pairs as the stage ``ingest`` does."""
    for place, domain in enumerate(carried.domains):
        rows = np.flatnonzero(carried.domain == place)
        texts = [[carried.texts[number] for number in side[rows]] for side in (carried.queries, carried.documents)]
        records = [
            {"id": content_id(*pair), "query": pair[0], "document": pair[1]} for pair in zip(*texts, strict=True)
        ]
        constant = {"domain": domain, "split": "train", "negatives": []}
        table = pa.Table.from_pylist([each | constant for each in records], PAIRS_SCHEMA).sort_by("id")
        write_table(pairs_file(folder, domain), table, PAIRS_SCHEMA)


def _seconds_of_step(job: PretrainJob) -> float:
    """Median seconds of a step; the model is thrown away."""
    run, steps = Pretraining(job), range(1, WARM + TIMED + 1)
    optimiser, _ = build_optimiser(run.model.train(), job.params, len(steps), run.fresh)

    def train(prepared: tuple[int, Masked]) -> None:
        run.backward(*prepared)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)

    return median_seconds(train, ((step, run.read(step)) for step in steps), WARM)


if __name__ == "__main__":
    run("pretraining", main)
