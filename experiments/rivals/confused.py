"""How many of the documents that a model confuses with a query's own are in the query's cluster, as it learns.

``DATA`` are Parquet files as ``experiments.rivals`` reads them, each of one domain. A model trains on random batches
with our loss. At each point, ``QUERIES`` training queries are compared with all documents. ``own`` is what the softmax
gives to a query's own document; ``inside`` is the share of the rest that goes to its cluster of 32.
"""

import argparse
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import nn

from batchwright.core.command import run
from batchwright.core.files import write_tsv
from experiments.common.small_models import LEARNING_RATES
from experiments.rivals.arms import ARMS
from experiments.rivals.compare import Texts, texts_of
from experiments.rivals.encoders import RATES, Kind, build
from experiments.rivals.orders import clusters_of, steps
from experiments.rivals.runs import Row
from experiments.rivals.sets import Training, pairs_parser, read_set
from experiments.rivals.training import Settings, embed, train

QUERIES, CLUSTER = 500, 32
TEMPERATURE = 0.05
ARM = ARMS["random, our loss"]
EXAMPLE = "python -m experiments.rivals.confused pairs/medquad.parquet --output confused.tsv"


def main() -> str:
    """Measure all sets; the table is written anew after each."""
    arguments = _parse()
    rows: list[Row] = []
    for file in arguments.data:
        for row in _measure(file, arguments):
            rows.append(row)
            print("  ".join(f"{name} {value}" for name, value in row.items()), flush=True)
        write_tsv(arguments.output, rows)
    return f"{len(rows)} points in {arguments.output}"


def shares(
    queries: NDArray[np.float32], documents: NDArray[np.float32], own: NDArray[np.int64], inside: NDArray[np.bool_]
) -> tuple[float, float]:
    """Return ``inside`` and ``own``.

    Args:
        queries: ``(Q, d)``.
        documents: ``(N, d)``, all different.
        own: ``(Q,)``, the place of each query's own document.
        inside: ``(Q, N)``, which documents are in each query's cluster.
    """
    scores = queries @ documents.T / TEMPERATURE
    softmax = np.exp(scores - scores.max(axis=1, keepdims=True))
    softmax /= softmax.sum(axis=1, keepdims=True)
    right = softmax[np.arange(len(own)), own].copy()
    softmax[np.arange(len(own)), own] = 0
    return float(softmax[inside].sum() / softmax.sum()), float(right.mean())


def _measure(file: Path, arguments: argparse.Namespace) -> Iterator[Row]:
    kind: Kind = arguments.kind
    pairs = read_set(file.stem, [file], arguments.vectors, surrogate="minilm")
    own, texts = pairs.training, texts_of(pairs, kind)
    count, loss = steps(own, arguments.epochs), ARM.loss(own)
    batches = islice(ARM.batches(own, arguments.epochs, 0), count)
    look = _Look(own, texts)
    named = {"set": file.stem, "kind": kind, "epochs": arguments.epochs}
    yield {**named, "step": 0, **_shares(*look.surrogate(own))}
    curve = train(
        build(kind, 0, texts.tokens),
        kind,
        texts.pairs,
        batches,
        count,
        loss,
        Settings(TEMPERATURE, LEARNING_RATES.get(kind, RATES[kind])),
        look,
        points=16 if kind == "static" else None,
    )
    for step, (inside, right) in zip(curve.steps, curve.scores.tolist(), strict=True):
        yield {**named, "step": step, **_shares(inside, right)}


def _shares(inside: float, own: float) -> Row:
    return {"inside": round(inside, 3), "own": round(own, 3)}


class _Look:
    """Measures a model; called as one that scores held-out queries."""

    def __init__(self, training: Training, texts: Texts) -> None:
        rows = np.arange(len(training))
        self.rows = np.random.default_rng(0).permutation(rows)[:QUERIES]
        self.queries = texts.pairs[0][self.rows]
        self.places = texts.pairs[1]
        self.documents, place = np.unique(self.places, return_inverse=True)
        self.own = place[self.rows]
        assignment = clusters_of(training, rows, 0, CLUSTER).assignment
        self.inside = np.zeros((len(self.rows), len(self.documents)), np.bool_)
        for number, row in enumerate(self.rows):
            self.inside[number, place[assignment == assignment[row]]] = True

    def surrogate(self, training: Training) -> tuple[float, float]:
        """What the vectors that made the clusters confuse, before any training."""
        _, first = np.unique(self.places, return_index=True)
        vectors = training.vectors
        return shares(vectors.queries(self.rows), vectors.documents(first), self.own, self.inside)

    def __call__(self, model: nn.Module) -> NDArray[np.float32]:
        measured = shares(embed(model, self.queries), embed(model, self.documents), self.own, self.inside)
        return np.array(measured, np.float32)


def _parse() -> argparse.Namespace:
    parser = pairs_parser("experiments.rivals.confused", str(__doc__), EXAMPLE)
    parser.add_argument("--kind", choices=("static", "transformer", "minilm"), default="static")
    parser.add_argument("--epochs", type=int, default=4)
    return parser.parse_args()


if __name__ == "__main__":
    run("confused", main)
