"""Pairs with known false negatives, and how many of them masks find.

Each pair comes with a second pair whose document also answers its query.
"""

import string
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from batchwright.formats.negatives import KnownPositives, Negatives
from stages.filter.params import FilterParams
from stages.filter.rules import thresholds
from stages.negatives.duplicates import duplicate_classes
from stages.pack.domain import mask_of

RULE = FilterParams(vectors="planted", margin=0.05)
Text = tuple[str, str]
Rng = np.random.Generator

WIDTH = 384
TOPIC, QUERY, PARAPHRASE = 0.92, 0.75, 0.97
"""Cosines: of a document with its topic, of a query with its document, of a paraphrase with its original."""


@dataclass(frozen=True, kw_only=True)
class Planted:
    """The two pairs of a ``group`` answer each other's queries; ``kind`` says how the second is made from the first."""

    queries: list[str]
    documents: list[str]
    query_vectors: NDArray[np.float32]
    document_vectors: NDArray[np.float32]
    kind: NDArray[np.str_]
    group: NDArray[np.int64]
    topic: NDArray[np.int64]


def exact_copy(pair: Text, rng: Rng) -> Text:
    """Another query, the same document."""
    return words(rng, 8), pair[1]


def other_form(pair: Text, rng: Rng) -> Text:
    """Another query, the document in other case, white space, punctuation and Unicode form."""
    changed = [
        f"{word.upper() if rng.random() < 0.3 else word}{rng.choice(['', ',', '.', ' !'])}" for word in pair[1].split()
    ]
    return words(rng, 8), unicodedata.normalize("NFD", "  ".join(changed))


def small_edits(pair: Text, rng: Rng) -> Text:
    """Another query, the document with one to three letters changed."""
    letters = list(pair[1])
    for place in rng.choice(len(letters), size=rng.integers(1, 4), replace=False):
        letters[place] = str(rng.choice(list(string.ascii_lowercase)))
    return words(rng, 8), "".join(letters)


def paraphrase(_pair: Text, rng: Rng) -> Text:
    """Another query, a document in other words that means the same, as only its vector shows."""
    return words(rng, 8), words(rng, 60)


def same_query(pair: Text, rng: Rng) -> Text:
    """The same query in another form, with another answer."""
    return f" {pair[0].title()}?", words(rng, 60)


KINDS: dict[str, Callable[[Text, Rng], Text]] = {
    kind.__name__: kind for kind in (exact_copy, other_form, small_edits, paraphrase, same_query)
}


def plant(groups: int, topics: int, seed: int) -> Planted:
    """``2 * groups`` pairs, cycling through the kinds; pair ``2 g + 1`` is the second of group ``g``."""
    rng = np.random.default_rng(seed)
    kinds = [list(KINDS)[group % len(KINDS)] for group in range(groups)]
    first = [(words(rng, 8), words(rng, 60)) for _ in range(groups)]
    second = [KINDS[kind](pair, rng) for kind, pair in zip(kinds, first, strict=True)]
    topic = rng.integers(topics, size=groups)
    left = _near(_unit(rng.normal(size=(topics, WIDTH)))[topic], TOPIC, rng)
    same = np.isin(kinds, ["exact_copy", "other_form", "small_edits"])
    right = np.where(same[:, None], left, _near(left, PARAPHRASE, rng))
    other = np.array(kinds) == "same_query"
    right[other] = _near(left[other], QUERY, rng)  # the vectors alone do not show that it is an answer
    documents = np.stack([left, right], axis=1).reshape(2 * groups, WIDTH).astype(np.float32)
    pairs = [pair for both in zip(first, second, strict=True) for pair in both]
    return Planted(
        queries=[query for query, _ in pairs],
        documents=[document for _, document in pairs],
        query_vectors=_near(documents.astype(np.float64), QUERY, rng).astype(np.float32),
        document_vectors=documents,
        kind=np.repeat(kinds, 2),
        group=np.repeat(np.arange(groups), 2),
        topic=np.repeat(topic, 2),
    )


def words(rng: Rng, count: int) -> str:
    """A text of made-up words, some with an accent."""
    letters = rng.choice(list("aeiouéüñbcdfglmnprst"), size=(count, 7))
    lengths = rng.integers(3, 8, size=count)
    return " ".join("".join(row[:length]) for row, length in zip(letters, lengths, strict=True))


def _near(vectors: NDArray[np.float64], cosine: float, rng: Rng) -> NDArray[np.float64]:
    """Unit vectors that have this cosine with ``vectors``, in random directions."""
    noise = rng.normal(size=vectors.shape)
    noise -= np.einsum("nd,nd->n", noise, vectors)[:, None] * vectors
    return _unit(cosine * vectors + np.sqrt(1 - cosine**2) * _unit(noise))


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    unit: NDArray[np.float64] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


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


def without_duplicates(scores: NDArray[np.float32], lowest: NDArray[np.float32]) -> Negatives:
    """Pairs without duplicate texts, none of them dropped; ``lowest`` are their thresholds."""
    classes = np.arange(len(scores), dtype=np.int32)
    return Negatives(
        scores=scores,
        thresholds=lowest,
        query_class=classes,
        document_class=classes,
        dropped=np.zeros(len(scores), np.uint8),
        mined=np.empty((len(scores), 0), np.int32),
    )
