"""Do hard batches help where the documents that a model confuses with a query's own are in the query's cluster?

``DATA`` are Parquet files as ``experiments.rivals`` reads them, each of one domain. A model trains on random batches
with our loss. ``early``, after a sixteenth of the training, and ``late``, at its end, ``QUERIES`` training queries are
compared with all documents: of what the softmax gives to others than a query's own document, ``early`` and ``late`` are
the shares of its cluster, of which a hard batch holds eight. ``hard batches`` is what these gain with our loss, from
the table ``GAINS``, which ``experiments.rivals.summary`` wrote.
"""

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr
from torch import nn

from batchwright.core.command import run
from batchwright.core.files import read_tsv, write_tsv
from experiments.common.small_models import LEARNING_RATES
from experiments.rivals.compare import Texts, texts_of, train_arm
from experiments.rivals.encoders import Kind
from experiments.rivals.orders import HARD, clusters_of
from experiments.rivals.runs import Row, Run
from experiments.rivals.sets import Training, pairs_parser, read_set
from experiments.rivals.training import Settings, embed

QUERIES = 500
KIND: Kind = "static"
SETTINGS, EPOCHS, POINTS = Settings(0.05, LEARNING_RATES["static"]), 4, 16
ARM = "random, our loss"
EXAMPLE = "python -m experiments.rivals.confused pairs/medquad.parquet --output confused.tsv"


def main() -> str:
    """Measure all sets; the table is written anew after each."""
    arguments = _parse()
    gains = _gains(arguments.gains)
    rows: list[Row] = []
    for file in arguments.data:
        rows.append({"set": file.stem, **_measure(file, arguments), "hard batches": round(gains[file.stem], 4)})
        print("  ".join(f"{name} {value}" for name, value in rows[-1].items()), flush=True)
        write_tsv(arguments.output, rows)
    gained = [gains[str(row["set"])] for row in rows]
    ranked = {name: spearmanr([float(row[name]) for row in rows], gained).statistic for name in ("before", "early")}
    told = ", ".join(f"{name} {value:.2f}" for name, value in ranked.items())
    return f"{len(rows)} sets in {arguments.output}; rank correlation with hard batches: {told}"


def _gains(file: Path) -> dict[str, float]:
    """What hard batches gain on each set, with our loss on both sides."""
    ndcg = {
        (row["set"], row["arm"]): float(row["ndcg"]) for row in read_tsv(file, made_by="experiments.rivals.summary")
    }
    return {name: score - ndcg[name, ARM] for (name, arm), score in ndcg.items() if arm == "ours"}


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
    scores = queries @ documents.T / SETTINGS.temperature
    softmax = np.exp(scores - scores.max(axis=1, keepdims=True))
    softmax /= softmax.sum(axis=1, keepdims=True)
    right = softmax[np.arange(len(own)), own].copy()
    softmax[np.arange(len(own)), own] = 0
    return float(softmax[inside].sum() / softmax.sum()), float(right.mean())


def _measure(file: Path, arguments: argparse.Namespace) -> Row:
    pairs = read_set(file.stem, [file], arguments.vectors)
    look = _Look(pairs.training, texts_of(pairs, KIND))
    curve, _ = train_arm(pairs, Run(pairs.name, ARM, KIND, EPOCHS, SETTINGS, seed=0), look, POINTS)
    (early, _), (late, right) = (curve.scores[place].tolist() for place in (0, -1))
    measures = {"before": look.before(pairs.training), "early": early, "late": late, "own": right}
    return {name: round(value, 3) for name, value in measures.items()}


class _Look:
    """Measures a model; called as one that scores held-out queries."""

    def __init__(self, training: Training, texts: Texts) -> None:
        rows = np.arange(len(training))
        self.rows = np.random.default_rng(0).permutation(rows)[:QUERIES]
        self.queries = texts.pairs[0][self.rows]
        self.places = texts.pairs[1]
        self.documents, self.first, place = np.unique(self.places, return_index=True, return_inverse=True)
        self.own = place[self.rows]
        assignment = clusters_of(training, rows, 0, round(HARD * training.batch)).assignment
        self.inside = np.zeros((len(self.rows), len(self.documents)), np.bool_)
        for number, row in enumerate(self.rows):
            self.inside[number, place[assignment == assignment[row]]] = True

    def before(self, training: Training) -> float:
        """The same share by the vectors that clusters are made of."""
        vectors = training.vectors
        asked, documents = (
            side.astype(np.float32) for side in (vectors.queries(self.rows), vectors.documents(self.first))
        )
        return shares(asked, documents, self.own, self.inside)[0]

    def __call__(self, model: nn.Module) -> NDArray[np.float32]:
        measured = shares(embed(model, self.queries), embed(model, self.documents), self.own, self.inside)
        return np.array(measured, np.float32)


def _parse() -> argparse.Namespace:
    parser = pairs_parser("experiments.rivals.confused", str(__doc__), EXAMPLE)
    parser.add_argument("--gains", type=Path, default=Path("experiments/rivals/static.tsv"))
    return parser.parse_args()


if __name__ == "__main__":
    run("confused", main)
