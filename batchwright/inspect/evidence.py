"""Why the cells of a batch are masked, in words, and how high the surrogate scores those that are left."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from batchwright.core.errors import InputError
from batchwright.formats.negatives import EVERY_PAIR, Negatives
from batchwright.formats.pairs import InMemory
from batchwright.formats.shards import UNKNOWN, ShardSet
from batchwright.formats.vectors import PairVectors
from batchwright.inspect.artifacts import Artifacts

ROUNDING = 1e-3
OLD = "an older version made these shards; run the stage 'pack' again"
WORDS = {
    "known_positive": "answers this query in another pair",
    "duplicate": "a duplicate of its own document",
    "judged": "judged to answer this query",
    "score": "scored like an answer",
    UNKNOWN: "the reason was not kept",
}


@dataclass(frozen=True, kw_only=True)
class Surrogate:
    """The surrogate's scores of a batch's cells, and the cosines of their pairs, ``(B, B)`` each."""

    scores: NDArray[np.float32]
    likeness: NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class Filtered:
    """What the filter says: ``negatives``, the ``ids`` of its pairs, and the ``rows`` ``(B,)`` of the batch's.

    ``asking`` are the rows of all pairs with a query of the batch, or a duplicate of one.
    """

    negatives: Negatives
    ids: pa.Array
    rows: NDArray[np.int64]
    asking: NDArray[np.int64]

    def paired(self, query: int, document: int) -> str | None:
        """Return the id of a pair that has the query and the document of these rows of the batch, or duplicates."""
        queries, documents = self.negatives.query_class, self.negatives.document_class
        same = queries[self.asking] == queries[self.rows[query]]
        same &= documents[self.asking] == documents[self.rows[document]]
        return str(self.ids[int(self.asking[np.argmax(same)])]) if same.any() else None


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What is known about a batch beyond its shard; ``missing`` says what is not, and why."""

    surrogate: Surrogate | None
    filtered: Filtered | None
    judge: bool
    missing: list[str]

    def why(self, reason: str, query: int, document: int) -> str:
        """Say why document number ``document`` is masked for query number ``query``."""
        words, filtered = WORDS[reason], self.filtered
        if reason == "known_positive" and filtered and (other := filtered.paired(query, document)):
            return f"{words.removesuffix('another pair')}pair {other[:8]}"
        if reason != "score" or not self.surrogate:
            return words
        score, likeness = (matrix[query, document] for matrix in (self.surrogate.scores, self.surrogate.likeness))
        if not filtered:
            return f"{words}: {score:.2f}, alike {likeness:.2f}"
        limits = filtered.negatives.thresholds[filtered.rows[query]], filtered.negatives.likeness
        if self.judge and (score < limits[0] - ROUNDING or likeness < limits[1] - ROUNDING):
            return f"the cross-encoder says so; score {score:.2f}, alike {likeness:.2f}"
        alike = "" if limits[1] == EVERY_PAIR else f"; alike {likeness:.2f}, limit {limits[1]:.2f}"
        limit = "" if np.isneginf(limits[0]) else f", limit {limits[0]:.2f}"
        return f"{words}: {score:.2f}{limit}{alike}"


def gather(shards: ShardSet, artifacts: Artifacts, batch: pa.RecordBatch) -> Evidence:
    """Look up what ``artifacts`` knows about a training batch."""
    domain, *others = batch["domain"].unique().to_pylist()
    judge = shards.manifest.parameters.get("judge") is not None
    if others:
        missing = [f"no scores and limits: the batch is of {1 + len(others)} small domains"]
        return Evidence(surrogate=None, filtered=None, judge=judge, missing=missing)
    missing = []
    if shards.manifest.format == 1:
        missing.append(f"no reasons, hardness and clusters: {OLD}")
    surrogate, filtered = None, None
    try:
        surrogate = surrogate_of(shards, artifacts, domain, batch)
    except InputError as error:
        missing.append(f"no scores: {error}")
    try:
        filtered = _filtered(artifacts, domain, batch["id"])
    except InputError as error:
        missing.append(f"no limits of the filter: {error}")
    return Evidence(surrogate=surrogate, filtered=filtered, judge=judge, missing=missing)


def surrogate_of(shards: ShardSet, artifacts: Artifacts, domain: str, batch: pa.RecordBatch) -> Surrogate:
    """Score a domain's batch as it was scored when it was masked.

    Raises:
        InputError: the vectors are not there any more.
    """
    pairs, rows = surrogate_vectors(shards, artifacts, domain, batch), np.arange(batch.num_rows)
    sums = pairs.sums(rows)
    return Surrogate(scores=pairs.queries(rows) @ pairs.documents(rows).T, likeness=sums @ sums.T)


def surrogate_vectors(shards: ShardSet, artifacts: Artifacts, domain: str, batch: pa.RecordBatch) -> PairVectors:
    """Return the vectors, of those that these shards were masked with, of a batch's queries and documents."""
    vectors = artifacts.vectors(domain, shards.manifest.models.get("surrogate", ""))
    if vectors is None:
        raise InputError(f"the vectors that these batches were masked with are not in {artifacts.data}/vectors")
    return vectors.of_pairs([InMemory([batch])])


def _filtered(artifacts: Artifacts, domain: str, batch_ids: pa.Array) -> Filtered:
    ids = artifacts.train_ids(domain)
    places = pc.index_in(batch_ids, value_set=ids)
    if places.null_count:
        raise InputError(f"{artifacts.data}/pairs no longer holds all pairs of this batch")
    negatives, rows = artifacts.negatives(domain, len(ids)), np.array(places.to_pylist(), dtype=np.int64)
    asking = np.flatnonzero(np.isin(negatives.query_class, negatives.query_class[rows]))
    return Filtered(negatives=negatives, ids=ids, rows=rows, asking=asking)
