"""What the filter masks in contextual batches of 128, by the margin that was its rule and by ``likeness: auto``.

``PAIRS`` is a folder of Parquet files with the columns query, document and group; all pairs of each are embedded,
unless ``--pairs`` says how many. ``masked`` and ``by_score`` are shares of the negatives, ``over_half`` that of rows
with more than half of them masked, ``over_half_known`` by known positives and duplicates alone. ``false`` is the share
of the negatives that answer the query by what is known of the set; ``precision`` and ``recall`` are those of all masks.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from batchwright.core.command import new_parser, run
from batchwright.core.files import write_tsv
from batchwright.formats.clusters import Clusters
from batchwright.formats.negatives import EVERY_PAIR, Negatives
from batchwright.formats.positives import KnownPositives
from experiments.masks.cells import View
from experiments.masks.measure import UNKNOWN, Row
from experiments.masks.sets import PairSet, find_sets
from stages.cluster.methods import METHODS
from stages.cluster.params import ClusterParams
from stages.cluster.side_sums import side_centroids
from stages.filter.params import FilterParams
from stages.filter.rules import thresholds
from stages.pack.masks import mask_of
from stages.pack.policies import contextual

BATCH = 128
FILTERS = {
    "own - .05": FilterParams(vectors="surrogate", margin=0.05),
    "auto": FilterParams(vectors="surrogate", likeness="auto"),
}
EXAMPLE = "python -m experiments.masks.batches pairs --sets banking77 medquad --output experiments/masks/batches.tsv"


def main() -> str:
    """Write a row of figures per set and rule."""
    arguments = _parse()
    found = find_sets(arguments.pairs_folder, None)
    rows: list[Row] = []
    for name in arguments.sets:
        pairs = found[name]()
        pairs = pairs.sample(arguments.pairs or len(pairs.ids), ())
        view = View.of(pairs, arguments.vectors)
        batches = list(batches_of(view))
        rows += [describe(pairs, view, batches, name) for name in FILTERS]
        print(*rows[-len(FILTERS) :], sep="\n", flush=True)
    if arguments.output:
        write_tsv(arguments.output, rows)
    return f"{len(rows)} rows"


def _parse() -> argparse.Namespace:
    parser = new_parser("experiments.masks.batches", str(__doc__), EXAMPLE)
    parser.add_argument("pairs_folder", type=Path, metavar="PAIRS")
    parser.add_argument("--sets", nargs="+", metavar="SET", required=True)
    parser.add_argument("--pairs", type=int, metavar="N", help="pairs per set, drawn by their ids; all by default")
    parser.add_argument("--vectors", type=Path, default=Path("vectors"), help="folder for the surrogate's vectors")
    parser.add_argument("--output", type=Path, metavar="TABLE")
    return parser.parse_args()


def batches_of(view: View) -> Iterator[NDArray[np.int64]]:
    """Batches of one cluster each, as the stages cluster and pack make them."""
    params = ClusterParams(vectors="surrogate", cluster_size=BATCH, iterations=5)
    assignment = METHODS["balanced"](view.vectors, params, 0)
    clusters = Clusters(assignment=assignment, centroids=side_centroids(view.vectors, assignment))
    order = contextual(clusters, BATCH, 1.0, np.random.default_rng(0))
    return (order[end - BATCH : end] for end in range(BATCH, len(order) + 1, BATCH))


def describe(pairs: PairSet, view: View, batches: Sequence[NDArray[np.int64]], name: str) -> Row:
    """Return the figures of the filter ``name`` on ``batches``, whose rows are ``(BATCH,)``; see the command."""
    negatives = _negatives(view, FILTERS[name])
    positives = KnownPositives(negatives)
    masks, certain, truths = [], [], []
    for rows in batches:
        scores, sums = view.vectors.queries(rows) @ view.vectors.documents(rows).T, view.vectors.sums(rows)
        known = positives.among(view.query_class[rows], view.document_class[rows])
        masks.append(mask_of(negatives.false(rows, scores, sums @ sums.T), known))
        certain.append(mask_of(np.zeros_like(known), known))
        truths.append(mask_of(pairs.truth(rows[:, None], rows), np.zeros_like(known)))
    mask, known, truth = (np.concatenate(each) for each in (masks, certain, truths))
    of_row = mask.sum(axis=1) / (BATCH - 1)
    return {
        "set": pairs.name,
        "pairs": len(pairs.ids),
        "batches": len(batches),
        "rule": name,
        "limit": float(negatives.likeness),
        "masked": float(of_row.mean()),
        "by_score": float((mask & ~known).sum() / mask.size * BATCH / (BATCH - 1)),
        "over_half": float(np.mean(of_row > 0.5)),
        "over_half_known": float(np.mean(2 * known.sum(axis=1) > BATCH - 1)),
        "over_nine_tenths": float(np.mean(of_row > 0.9)),
        "false": float(truth.sum() / truth.size * BATCH / (BATCH - 1)) if pairs.true is not None else UNKNOWN,
        "precision": float(truth[mask].mean()) if pairs.true is not None and mask.any() else UNKNOWN,
        "recall": float(mask[truth].mean()) if truth.any() else UNKNOWN,
    }


def _negatives(view: View, params: FilterParams) -> Negatives:
    scores = view.vectors.scores()
    return Negatives(
        scores=scores,
        thresholds=thresholds(scores, params),
        likeness=view.limit() if params.likeness == "auto" else EVERY_PAIR,
        query_class=view.query_class,
        document_class=view.document_class,
        dropped=np.zeros(len(scores), np.uint8),
        mined=np.empty((len(scores), 0), dtype=np.int32),
    )


if __name__ == "__main__":
    run("masks", main)
