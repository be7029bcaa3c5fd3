"""What CDE costs: time per step compared with the biencoder's, memory by mini-batch size, and encoding a corpus.

``python -m benchmarks.cde [--steps N] [--chunks 8 16 32 64] [--output FILE]`` takes the packed default corpus (run
``dvc repro pack fetch`` first) and the parameters in ``params.yaml``. Every line is measured in a separate process, so
that its peak memory is its own.
"""

import multiprocessing
import resource
import statistics
import time
from pathlib import Path
from typing import Any, cast

import torch
from sentence_transformers import SentenceTransformer

from batchwright.core.command import new_parser
from batchwright.core.files import write_tsv
from batchwright.core.params import Base, load_params
from batchwright.formats.shards import ShardSet
from batchwright.training.batches import BatchReader
from trainers.biencoder import build_learner
from trainers.cde.learner import ContextualLearner
from trainers.common.job import TrainJob, plan_job
from trainers.common.params import Common
from trainers.common.run import Learner
from trainers.variants import load_variant

SHARDS = Path("data/shards/contextual")
START = Path("models/start/minilm")
KINDS = ("biencoder", "cde")

Row = dict[str, Any]


def main() -> None:
    """Print one line per kind of model and chunk size; ``encode`` is texts per second, with the context fitted."""
    parser = new_parser("benchmarks.cde", str(__doc__), "python -m benchmarks.cde --steps 3")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--chunks", nargs="+", type=int, default=[8, 16, 32, 64])
    parser.add_argument("--documents", type=int, help="context documents; by default as in params.yaml")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    rows: list[Row] = []
    for chunk in arguments.chunks:
        for kind in KINDS:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                rows.append(pool.apply(_measure, (kind, chunk, arguments.steps, arguments.documents)))
            first = next(row for row in rows if row["chunk"] == chunk)
            ratio = rows[-1]["step_seconds"] / first["step_seconds"]
            line = "{kind:20} chunk {chunk:4} {step_seconds:7.2f} s per step, {mib:6} MiB, {encode:6.0f} texts/s"
            print(f"{line.format(**rows[-1])}, {ratio:.2f} x the biencoder", flush=True)
    if arguments.output:
        write_tsv(arguments.output, rows)


def _measure(kind: str, chunk: int, steps: int, documents: int | None) -> Row:
    options: dict[str, Any] = {} if kind == "biencoder" else {"context_dropout": 0.0}
    if documents is not None and kind == "cde":
        options["context_documents"] = documents
    job = _job(kind, chunk, options)
    shards = ShardSet.open(SHARDS)
    reader = BatchReader(shards, job.info.prefixes, job.common.hard_negatives)
    learner: Learner = build_learner(job) if kind == "biencoder" else ContextualLearner(job)
    learner.model.train()
    seconds = []
    for index in range(steps):
        batch = reader.read(index, slice(0, shards.manifest.batch_size))
        start = time.perf_counter()
        learner.backward(learner.prepare(batch))
        seconds.append(time.perf_counter() - start)
        learner.model.zero_grad()
    mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {
        "kind": kind,
        "chunk": chunk,
        "step_seconds": round(statistics.median(seconds), 3),
        "mib": mib,
        "encode": round(_encode(learner, batch.documents), 1),
    }


def _encode(learner: Learner, texts: list[str]) -> float:
    model = cast(SentenceTransformer, learner.model.eval())
    if isinstance(learner, ContextualLearner):
        learner.encoder.fit_context(texts)
    with torch.no_grad():
        model.encode(texts[:8])
        start = time.perf_counter()
        for _ in range(3):
            model.encode(texts)
    return 3 * len(texts) / (time.perf_counter() - start)


def _job(variant: str, chunk: int, options: dict[str, Any]) -> TrainJob:
    return plan_job(
        name=variant,
        variant=variant,
        seed=load_params("base", Base).seed,
        common=load_params("train.common", Common).model_copy(update={"mini_batch_size": chunk}),
        params=load_params(f"train.{variant}", load_variant(variant).Params).model_copy(update=options),
        start=START,
        shards=SHARDS,
        model=Path(f"models/{variant}"),
        curve=Path(f"results/train/{variant}.tsv"),
    )


if __name__ == "__main__":
    main()
