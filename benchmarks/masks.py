"""What masks cost, and how many planted false negatives they find.

``python -m benchmarks.masks [--repeats N] [--groups N]`` times the masks of generated batches and, in turn, the bare
matrix product of the same vectors; the bar is 0.60 of the product's speed (medians). Then it plants false negatives of
known kinds and prints recall and precision of the masks; the bar is a recall of 0.99.
"""

import statistics
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from batchwright.core.command import new_parser
from batchwright.formats.negatives import Negatives
from batchwright.formats.positives import KnownPositives
from batchwright.formats.shards import pack_mask, pack_reasons
from benchmarks.planted import KINDS, Planted, plant
from stages.filter.classes import duplicate_classes
from stages.filter.params import FilterParams
from stages.filter.rules import thresholds
from stages.pack.masks import mask_of, reasons_of

BAR, RECALL_BAR = 0.60, 0.99
RULE = FilterParams(vectors="planted", margin=0.05)


def main() -> None:
    """Print speeds, then recall and precision."""
    parser = new_parser("benchmarks.masks", str(__doc__), "python -m benchmarks.masks --repeats 5")
    parser.add_argument("--repeats", type=int, default=31)
    parser.add_argument("--groups", type=int, default=20_000)
    arguments = parser.parse_args()
    print("batch    d  classes      product ms  masks ms  speed")
    for batch in (512, 4096):
        for classes in ("unique", "tenth", "one"):
            _print_speed(batch, 384, classes, arguments.repeats)
    print(f"bar: {BAR}\n")
    _print_recall(arguments.groups)


def _print_speed(batch: int, width: int, classes: str, repeats: int) -> None:
    """``classes``: texts are unique, every tenth is a duplicate, or all are the same."""
    rng = np.random.default_rng(batch)
    queries, documents = rng.normal(size=(2, batch, width)).astype(np.float32) / np.float32(np.sqrt(width))
    names = {"unique": batch, "tenth": batch * 9 // 10, "one": 1}[classes]
    negatives = _negatives(
        np.einsum("nd,nd->n", queries, documents),
        *(rng.integers(names, size=(2, batch)) if names < batch else [np.arange(batch)] * 2),
    )
    known = KnownPositives(negatives)
    turns: dict[str, Callable[[], object]] = {
        "product": lambda: queries @ documents.T,
        "masks": lambda: _packed(queries, documents, negatives, known),
    }
    seconds: dict[str, list[float]] = {name: [] for name in turns}
    for _ in range(repeats):
        for name, work in turns.items():
            start = time.perf_counter()
            work()
            seconds[name].append(time.perf_counter() - start)
    product, masks = (statistics.median(seconds[name]) * 1000 for name in turns)
    print(f"{batch:5} {width:4}  {classes:9} {product:13.2f} {masks:9.2f}  {product / masks:5.2f}")


def _print_recall(groups: int) -> None:
    planted = plant(groups, topics=max(groups // 200, 1), seed=0)
    start = time.perf_counter()
    negatives = judge(planted)
    print(f"scores and classes of {2 * groups:,} pairs: {time.perf_counter() - start:.1f} s")
    found, cells, wrong = compare(planted, negatives)
    for kind in KINDS:
        print(f"{kind:12} recall {found[kind] / cells[kind]:.4f} of {cells[kind]:,}")
    every = sum(found.values())
    print(f"all kinds    recall {every / sum(cells.values()):.4f} (bar {RECALL_BAR})")
    for reason, count in wrong.items():
        print(f"{reason:12} {count:,} masked that were not planted")
    print(f"precision    {every / (every + sum(wrong.values())):.4f}")


def judge(planted: Planted) -> Negatives:
    """Scores, thresholds and classes of the planted pairs, as the filter computes them."""
    scores = np.einsum("nd,nd->n", planted.query_vectors, planted.document_vectors)
    texts = planted.queries, planted.documents
    return _negatives(scores, *(duplicate_classes([side], RULE.near_duplicates) for side in texts))


def compare(planted: Planted, negatives: Negatives) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """Count by kind the planted cells that are found and all of them, and by reason the other cells that are masked.

    The pairs of a topic are a batch, which is as hard as batches get.
    """
    known = KnownPositives(negatives)
    found, cells = dict.fromkeys(KINDS, 0), dict.fromkeys(KINDS, 0)
    wrong = {"identity": 0, "score": 0}
    for topic in range(int(planted.topic.max()) + 1):
        rows = np.flatnonzero(planted.topic == topic)
        own = _take(negatives, rows)
        mask, positives = _mask(planted.query_vectors[rows], planted.document_vectors[rows], own, known)
        truth = planted.group[rows][:, None] == planted.group[rows][None, :]
        np.fill_diagonal(truth, False)
        for kind in KINDS:
            of_kind = truth & (planted.kind[rows] == kind)[:, None]
            cells[kind] += int(of_kind.sum())
            found[kind] += int((mask & of_kind).sum())
        wrong["identity"] += int((mask & ~truth & positives).sum())
        wrong["score"] += int((mask & ~truth & ~positives).sum())
    return found, cells, wrong


def _mask(
    queries: NDArray[np.float32], documents: NDArray[np.float32], negatives: Negatives, known: KnownPositives
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The mask of a batch, as packing makes it, and the known positives."""
    positives = known.among(negatives.query_class, negatives.document_class)
    sums = queries + documents
    sums /= np.linalg.norm(sums, axis=1, keepdims=True)
    return mask_of(negatives.false(slice(None), queries @ documents.T, sums @ sums.T), positives), positives


def _packed(
    queries: NDArray[np.float32], documents: NDArray[np.float32], negatives: Negatives, known: KnownPositives
) -> tuple[list[bytes], list[bytes]]:
    """The mask of a batch and its reasons, as packing stores them."""
    mask, positives = _mask(queries, documents, negatives, known)
    reasons = reasons_of(mask, positives, np.zeros_like(positives), negatives.document_class)
    return pack_mask(mask), pack_reasons(reasons, mask)


def _negatives(
    scores: NDArray[np.float32], query_class: NDArray[np.int32], document_class: NDArray[np.int32]
) -> Negatives:
    return Negatives(
        scores=scores,
        thresholds=thresholds(scores, RULE),
        query_class=query_class,
        document_class=document_class,
        dropped=np.zeros(len(scores), np.uint8),
        mined=np.empty((len(scores), 0), dtype=np.int32),
    )


def _take(negatives: Negatives, rows: NDArray[np.int64]) -> Negatives:
    return _negatives(negatives.scores[rows], negatives.query_class[rows], negatives.document_class[rows])


if __name__ == "__main__":
    main()
