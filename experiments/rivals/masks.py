"""What a batch masks: documents that are no negatives of a query."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csr_matrix

from batchwright.core.fingerprint import content_id
from batchwright.formats.vectors import PairVectors
from experiments.common.small_models import BASE
from experiments.masks.cells import View
from experiments.rivals.orders import HARD
from experiments.rivals.sets import Training, seen_by_minilm
from stages.filter.rules import unread

MARGIN, LOWER = np.float32(0.05), 0.1
Rows = NDArray[np.int64]
Mask = Callable[[Rows], NDArray[np.bool_]]
"""Takes the rows of a batch ``(B,)``; returns the mask ``(B, B)`` of documents j that are no negatives of query i."""
Rule = Callable[[Training], Mask]


def nothing(_: Training) -> Mask:
    """Mask nothing."""
    return lambda rows: np.zeros((len(rows), len(rows)), dtype=np.bool_)


def known(training: Training) -> Mask:
    """Mask known positives and duplicates, without a score."""

    def mask(rows: Rows) -> NDArray[np.bool_]:
        positives = known_cells(training, rows, rows)
        np.fill_diagonal(positives, False)
        return positives

    return mask


def margin(training: Training) -> Mask:
    """Mask known positives, duplicates, and documents that the surrogate scores within a margin of the query's own."""
    certain = known(training)

    def mask(rows: Rows) -> NDArray[np.bool_]:
        scores = training.vectors.queries(rows) @ training.vectors.documents(rows).T
        near: NDArray[np.bool_] = scores >= scores.diagonal()[:, None] - MARGIN
        np.fill_diagonal(near, False)
        return near | certain(rows)

    return mask


def alike(training: Training, *, lower: float = 0.0) -> Mask:
    """Mask known positives, duplicates, and documents of pairs that are alike, as ``likeness: auto`` does.

    Limits are that much ``lower`` than it finds.
    """
    certain, limits = known(training), likeness_limits(training)
    blank = unread(training.vectors, training.vectors.scores())

    def mask(rows: Rows) -> NDArray[np.bool_]:
        sums = training.vectors.sums(rows)
        near: NDArray[np.bool_] = sums @ sums.T >= limits[str(training.domains[rows[0]])] - lower
        near[blank[rows]] = False
        np.fill_diagonal(near, False)
        return near | certain(rows)

    return mask


def alike_by_minilm(training: Training) -> Mask:
    """The same by MiniLM's vectors."""
    return alike(seen_by_minilm(training))


def same_group(training: Training, *, clusters: Literal["all", "own", "other"] = "all") -> Mask:
    """Mask documents of the query's group: the truth, where groups say what answers what (banking77's intents).

    In all ``clusters`` of a hard batch, in the query's own one, or in the others.
    """
    certain = known(training)
    cluster = np.arange(training.batch) // round(HARD * training.batch)
    inside = cluster[:, None] == cluster
    looked_at = {"all": np.True_, "own": inside, "other": ~inside}[clusters]

    def mask(rows: Rows) -> NDArray[np.bool_]:
        same: NDArray[np.bool_] = (training.groups[rows][:, None] == training.groups[rows]) & looked_at
        np.fill_diagonal(same, False)
        return same | certain(rows)

    return mask


RULES: dict[str, Rule] = {
    "nothing": nothing,
    "known": known,
    "margin": margin,
    "alike": alike,
    "alike, lower": partial(alike, lower=LOWER),
    "alike by MiniLM": alike_by_minilm,
    "same group": same_group,
    "same group, own cluster": partial(same_group, clusters="own"),
    "same group, other clusters": partial(same_group, clusters="other"),
}


def likeness_limits(training: Training) -> dict[str, np.float32]:
    """The limit of likeness that ``likeness: auto`` finds in each domain, which is printed."""
    limits = {}
    for domain, members in training.by_domain().items():
        vectors = PairVectors(vectors=training.vectors.vectors, rows=training.vectors.rows[:, members])
        queries, documents = training.classes[:, members]
        view = View(
            vectors=vectors,
            queries=[training.queries[row] for row in members],
            documents=[training.documents[row] for row in members],
            query_class=queries,
            document_class=documents,
        )
        rng = np.random.default_rng([BASE["base"]["seed"], int(content_id(domain), 16)])
        limit = view.limit(rng, unread(vectors, vectors.scores()))
        print(f"{domain}: {limit.because or f'alike from {limit.likeness:.2f} on'}", flush=True)
        limits[domain] = limit.likeness
    return limits


def known_cells(training: Training, rows: Rows, others: Rows) -> NDArray[np.bool_]:
    """Which documents of ``others`` ``(n,)`` are known to answer the queries of ``rows`` ``(B,)``, as ``(B, n)``.

    They are if any pair joins a duplicate of the query with a duplicate of the document.
    """
    answers: NDArray[np.bool_] = _answers(training)[training.classes[0, rows]].toarray()
    of_others: NDArray[np.bool_] = answers[:, training.classes[1, others]]
    return of_others


@lru_cache(maxsize=4)
def _answers(training: Training) -> csr_matrix:
    """Whether any pair joins a query and a document of two classes, by both."""
    queries, documents = training.classes
    return coo_matrix((np.ones(len(training), np.bool_), (queries, documents))).tocsr()
