"""What XTR retrieves before any training, with and without special tokens ([CLS], [SEP]).

``python -m experiments.xtr.step0 DATA START [--batches N] [--output FILE]``

``DATA`` is a folder like the ``data`` that ``dvc repro ingest`` makes, ``START`` a model that ``dvc repro fetch`` made.
Batches of 64 pairs are drawn from all domains. ``accuracy`` is the share of queries whose own document scores best in
the batch, ``retrieved`` the share of all documents of which a query's tokens retrieve any token.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from sentence_transformers import MultiVectorEncoder
from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

from batchwright.core.command import new_parser
from batchwright.core.files import write_tsv
from batchwright.formats.pairs import domains, read_pairs
from batchwright.retrievers.common.model_folder import ModelInfo
from batchwright.retrievers.xtr.model import Task
from experiments.common.workspace import Row
from trainers.xtr.learner import embed_tokens
from trainers.xtr.scores import Tokens, score
from trainers.xtr.start import start_from

BATCH = 64
K = (64, 128, 256, 512, 1024, None)


def main() -> None:
    """Print and write one row per k; the last one, without k, is ColBERT."""
    parser = new_parser(
        "experiments.xtr.step0", str(__doc__), "python -m experiments.xtr.step0 data models/start/minilm"
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("start", type=Path)
    parser.add_argument("--batches", type=int, default=4)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    model = start_from(arguments.start, ModelInfo.read(arguments.start), "cpu").eval()
    pairs = pa.concat_tables([read_pairs(arguments.data / "pairs", name) for name in domains(arguments.data / "pairs")])
    chosen = np.random.default_rng(0).permutation(len(pairs))[: arguments.batches * BATCH]
    rows: list[Row] = [{"k": k or "all (ColBERT)"} for k in K]
    for way, tasks in (("with", []), ("without", ["query", "document"])):
        for module in model:
            if isinstance(module, MultiVectorMask):
                module.skiplist_tasks = tasks
        for row, (accuracy, retrieved) in zip(rows, _measure(model, pairs.take(chosen)), strict=True):
            row |= {f"accuracy, {way}": round(accuracy, 3), f"retrieved, {way}": round(retrieved, 3)}
    for row in rows:
        print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    if arguments.output:
        write_tsv(arguments.output, rows)


def _measure(model: MultiVectorEncoder, pairs: pa.Table) -> list[tuple[float, float]]:
    """Accuracy and share of retrieved documents for each of ``K``, over batches."""
    measures: list[list[tuple[float, float]]] = []
    for start in range(0, len(pairs), BATCH):
        batch = pairs.slice(start, BATCH)
        queries = _tokens(model, batch["query"].to_pylist(), "query")
        documents = _tokens(model, batch["document"].to_pylist(), "document")
        scored = [score(queries, documents, k) for k in K]
        own = torch.arange(len(batch))
        measures.append(
            [
                (float((each.values.argmax(dim=1) == own).float().mean()), float((each.retrieving > 0).float().mean()))
                for each in scored
            ]
        )
    return [(float(accuracy), float(retrieved)) for accuracy, retrieved in np.mean(measures, axis=0)]


def _tokens(model: MultiVectorEncoder, texts: list[str], task: Task) -> Tokens:
    features = model.preprocess(texts, task=task)
    with torch.no_grad():
        vectors = embed_tokens(model, features, task, features["input_ids"].shape[1])
    return Tokens(vectors, (vectors != 0).any(dim=2).cpu().numpy())


if __name__ == "__main__":
    main()
