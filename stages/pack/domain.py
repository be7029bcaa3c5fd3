"""A domain to pack, and the batches made of its pairs, with masks, their reasons and hardness."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import islice
from math import nan

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from batchwright.formats.negatives import KnownPositives, Negatives, Relation, judged
from batchwright.formats.pairs import SAYS_NOTHING
from batchwright.formats.shards import REASONS, SHARD_SCHEMA, extended, pack_mask, pack_reasons
from batchwright.formats.vectors import PairVectors
from stages.pack.judge import Judge

_OF_PAIRS = pa.schema(list(SHARD_SCHEMA)[:5])
"""The columns of pairs in shards."""


@dataclass(frozen=True, kw_only=True)
class Domain:
    """A domain to pack.

    ``pairs`` is what ``map_pairs`` returned. Clusters were made from ``vectors``; ``surrogate`` says which negatives
    are false, and ``judge`` where it is unsure. Several small domains may be packed as one. Their vectors cannot be
    compared, so that similarities across domains count as 0, and only the data for masks says which of these negatives
    are false.
    """

    pairs: pa.Table
    negatives: Negatives
    vectors: PairVectors
    surrogate: PairVectors
    judge: Judge | None = None

    def batch(self, rows: NDArray[np.int64], clusters: NDArray[np.int32]) -> tuple[pa.RecordBatch, dict[str, float]]:
        """Return the training batch of ``rows`` ``(B,)`` with its mask, and its measures.

        ``clusters`` ``(B,)`` are the rows' clusters. The measures are the batch's hardness, its masked share by reason,
        the number of rows that are mostly masked and, if there is a judge, how many cells it was asked about and
        masked.
        """
        taken = self.pairs.take(rows)
        table = taken.select(_OF_PAIRS.names).cast(_OF_PAIRS)
        same_domain = _same(table["domain"])
        similarities = _similarities(self.vectors, rows) * same_domain
        scores = similarities if self.surrogate is self.vectors else _similarities(self.surrogate, rows)
        query_class, document_class = self.negatives.query_class[rows], self.negatives.document_class[rows]
        known, relevant, irrelevant = (relation.among(query_class, document_class) for relation in self.relations)
        false, judge_counts = self._false(table, rows, scores, known | irrelevant | ~same_domain)
        mask = mask_of(false, known)
        reasons = reasons_of(mask, known, relevant, document_class)
        hardness, masked_share = measure_rows(similarities, mask)
        columns = {
            **{name: table[name].combine_chunks() for name in table.column_names},
            "negatives": self._hard_negatives(table, rows),
            "mask": pa.array(pack_mask(mask)),
            "reasons": pa.array(pack_reasons(reasons, mask), pa.binary()),
            "hardness": pa.array(hardness),
            "masked_share": pa.array(masked_share),
            "cluster": pa.array(clusters),
        }
        measures = {
            **asdict(measure(similarities, mask)),
            **{f"masked_{reason}": share for reason, share in masked_by(reasons, len(mask)).items()},
            **judge_counts,
            "rows_mostly_masked": rows_mostly_masked(mask),
        }
        batch = pa.record_batch([columns[name] for name in SHARD_SCHEMA.names], schema=SHARD_SCHEMA)
        further = {name: _FURTHER[name](taken, batch) for name in taken.column_names if name in _FURTHER}
        return extended(batch, **further), measures

    @cached_property
    def relations(self) -> tuple[Relation, ...]:
        """Known positives, and what only judgements say: which documents answer a query, and which do not."""
        return (
            KnownPositives(self.negatives),
            judged(self.negatives, relevant=True),
            judged(self.negatives, relevant=False),
        )

    def _false(
        self, table: pa.Table, rows: NDArray[np.int64], scores: NDArray[np.float32], certain: NDArray[np.bool_]
    ) -> tuple[NDArray[np.bool_], dict[str, int]]:
        """Return which cells that are not ``certain`` hold false negatives, and the judge's counts if there is one."""
        sums = self.surrogate.sums(rows)
        likeness = sums @ sums.T
        read = self.surrogate.documents(rows).any(axis=1)  # of a vector of zeros nothing is known
        false = self.negatives.false(rows, scores, likeness) & read & ~certain
        if self.judge is None:
            return false, {}
        asked = self.judge.in_doubt(self.negatives, rows, scores, likeness) & ~certain
        answers = self.judge.answers(table["query"].to_pylist(), table["document"].to_pylist(), asked)
        counts = {"judge_asked": int(np.count_nonzero(asked)), "judge_masked": int(np.count_nonzero(answers))}
        return false & ~asked | answers, counts

    def _hard_negatives(self, table: pa.Table, rows: NDArray[np.int64]) -> pa.Array:
        """Return each pair's hard negatives from the source, followed by the mined ones that are not among them."""
        from_source, mined = table["negatives"].combine_chunks(), self.negatives.mined[rows]
        there = mined >= 0
        if not there.any():
            return from_source
        texts = iter(self.pairs["document"].take(mined[there]).to_pylist())
        both = zip(from_source.to_pylist(), there.sum(axis=1).tolist(), strict=True)
        lists = [list(dict.fromkeys([*negatives, *islice(texts, count)])) for negatives, count in both]
        return pa.array(lists, type=from_source.type)


def _scores(pairs: pa.Table, batch: pa.RecordBatch) -> pa.Array:
    """Return a teacher's scores for a batch of ``pairs``, NaN for hard negatives that were mined."""
    given, counts = pairs["scores"].to_pylist(), batch["negatives"].value_lengths().to_pylist()
    lists = [own + [nan] * (1 + count - len(own)) if own else [] for own, count in zip(given, counts, strict=True)]
    return pa.array(lists, pa.list_(pa.float32()))


def _filled(name: str) -> Callable[[pa.Table, pa.RecordBatch], pa.Array]:
    """Return a function that takes a column of pairs; domains that are packed with others may have nothing there."""
    return lambda pairs, _: pc.fill_null(pairs[name], SAYS_NOTHING[name]).combine_chunks()


_FURTHER = {"scores": _scores, "weight": _filled("weight"), "metadata": _filled("metadata")}
"""How columns that only some domains have are made for a batch of pairs."""


def _same(values: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Which of the values ``(B,)`` are the same, ``(B, B)``."""
    codes = values.combine_chunks().dictionary_encode().indices.to_numpy()
    same: NDArray[np.bool_] = codes[:, None] == codes
    return same


def _similarities(vectors: PairVectors, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    similarities: NDArray[np.float32] = vectors.queries(rows) @ vectors.documents(rows).T
    return similarities


def mask_of(false: NDArray[np.bool_], known: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the mask ``(B, B)`` of documents j that must not be negatives of query i; the diagonal is never masked.

    ``false[i, j]`` marks false negatives that the surrogate found (``Negatives.false``), ``known[i, j]`` marks known
    positives (``KnownPositives``; Contextual Document Embeddings, eq. 4).
    """
    mask = false | known
    np.fill_diagonal(mask, False)
    return mask


def reasons_of(
    mask: NDArray[np.bool_], known: NDArray[np.bool_], relevant: NDArray[np.bool_], document_class: NDArray[np.int32]
) -> NDArray[np.uint8]:
    """Return why each masked cell is masked, ``(M,)``, row after row, as places in ``REASONS``.

    A cell has the first reason that holds. ``duplicate``: document j is a duplicate of i's own. ``judged``: only a
    judgement says that document j answers query i, which is what ``relevant`` marks. ``known_positive``: document j is
    paired with query i, or with a duplicate of it, in some training pair. ``score``: none of these, so that the
    surrogate or the judge masks document j.
    """
    cells = np.full(mask.shape, REASONS.index("score"), np.uint8)
    # Later ones overrule earlier ones.
    np.putmask(cells, known, REASONS.index("known_positive"))
    np.putmask(cells, relevant, REASONS.index("judged"))
    np.putmask(cells, document_class[:, None] == document_class, REASONS.index("duplicate"))
    return cells[mask]


def masked_by(reasons: NDArray[np.uint8], batch: int) -> dict[str, float]:
    """Return the share of a batch's negatives that are masked for each reason."""
    counts = np.bincount(reasons, minlength=len(REASONS)).tolist()
    return {name: count / (batch * (batch - 1)) for name, count in zip(REASONS, counts, strict=True)}


def rows_mostly_masked(mask: NDArray[np.bool_]) -> int:
    """Count the queries of a batch with more than half of their negatives masked; they hardly learn anything."""
    return int(np.count_nonzero(2 * mask.sum(axis=1) > len(mask) - 1))


@dataclass(frozen=True, kw_only=True)
class Hardness:
    """Mean similarity of a batch's negatives: of all, and of those that are not masked.

    ``masked_share`` is the share of negatives that are masked.
    """

    hardness: float
    unmasked_hardness: float
    masked_share: float


def measure(similarities: NDArray[np.float32], mask: NDArray[np.bool_]) -> Hardness:
    """Measure a batch's hardness from its query-document similarities ``(B, B)`` (eq. 2, as a mean).

    The diagonal does not count; ``mask`` never includes it.
    """
    batch = len(similarities)
    negatives, masked = batch * (batch - 1), int(np.count_nonzero(mask))
    of_all = float(similarities.sum(dtype=np.float64) - similarities.trace(dtype=np.float64))
    of_masked = float(similarities[mask].sum(dtype=np.float64))
    return Hardness(
        hardness=of_all / negatives,
        unmasked_hardness=(of_all - of_masked) / (negatives - masked) if masked < negatives else 0.0,
        masked_share=masked / negatives,
    )


def measure_rows(
    similarities: NDArray[np.float32], mask: NDArray[np.bool_]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return each row's mean similarity to its unmasked negatives, 0 if none, and the share masked, ``(B,)``."""
    masked, negatives = np.count_nonzero(mask, axis=1), len(mask) - 1
    sums = (similarities * ~mask).sum(axis=1, dtype=np.float64) - similarities.diagonal()
    means = np.where(masked < negatives, sums / np.maximum(negatives - masked, 1), 0.0)
    return means.astype(np.float32), (masked / negatives).astype(np.float32)
