"""One domain as packing reads it: its training pairs, their vectors and the data for masks."""

from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from batchwright.formats.negatives import Negatives
from batchwright.formats.positives import KnownPositives, Relation, judged
from batchwright.formats.shards import SHARD_SCHEMA, pack_mask, pack_reasons
from batchwright.formats.vectors import PairVectors
from stages.pack.hardness import measure, measure_rows
from stages.pack.judge import Judge
from stages.pack.masks import mask_of, masked_by, reasons_of, rows_mostly_masked

_GIVEN = pa.schema(list(SHARD_SCHEMA)[:5])
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
        table = self.pairs.take(rows).cast(_GIVEN)
        own = _same(table["domain"])
        similarities = _similarities(self.vectors, rows) * own
        scores = similarities if self.surrogate is self.vectors else _similarities(self.surrogate, rows)
        query_class, document_class = self.negatives.query_class[rows], self.negatives.document_class[rows]
        known, relevant, irrelevant = (each.among(query_class, document_class) for each in self.relations)
        false, counts = self._false(table, rows, scores, known | irrelevant | ~own)
        mask = mask_of(false, known)
        columns = {name: table[name].combine_chunks() for name in table.column_names}
        reasons = reasons_of(mask, known, relevant, document_class)
        hardness, masked_share = measure_rows(similarities, mask)
        columns |= {"negatives": self._hard_negatives(table, rows), "mask": pa.array(pack_mask(mask))}
        columns |= {"reasons": pa.array(pack_reasons(reasons, mask), pa.binary()), "hardness": pa.array(hardness)}
        columns |= {"masked_share": pa.array(masked_share), "cluster": pa.array(clusters)}
        shares = {f"masked_{reason}": share for reason, share in masked_by(reasons, len(mask)).items()}
        counts |= {"rows_mostly_masked": rows_mostly_masked(mask)}
        record_batch = pa.record_batch([columns[name] for name in SHARD_SCHEMA.names], schema=SHARD_SCHEMA)
        return record_batch, {**asdict(measure(similarities, mask)), **shares, **counts}

    @cached_property
    def relations(self) -> tuple[Relation, ...]:
        """Known positives, and what only judgements say: which documents answer a query, and which do not."""
        return KnownPositives(self.negatives), *(judged(self.negatives, relevant=each) for each in (True, False))

    def _false(
        self, table: pa.Table, rows: NDArray[np.int64], scores: NDArray[np.float32], certain: NDArray[np.bool_]
    ) -> tuple[NDArray[np.bool_], dict[str, int]]:
        """Return which cells that are not ``certain`` hold false negatives, and the judge's counts if there is one."""
        sums = self.surrogate.sums(rows)
        likeness = sums @ sums.T
        false = self.negatives.false(rows, scores, likeness) & ~certain
        if self.judge is None:
            return false, {}
        asked = self.judge.in_doubt(self.negatives, rows, scores, likeness) & ~certain
        answers = self.judge.answers(table["query"].to_pylist(), table["document"].to_pylist(), asked)
        counts = {"judge_asked": int(np.count_nonzero(asked)), "judge_masked": int(np.count_nonzero(answers))}
        return false & ~asked | answers, counts

    def _hard_negatives(self, table: pa.Table, rows: NDArray[np.int64]) -> pa.Array:
        """Return each pair's hard negatives from the source, followed by the mined ones that are not among them."""
        given, mined = table["negatives"].combine_chunks(), self.negatives.mined[rows]
        found = mined >= 0
        if not found.any():
            return given
        texts = iter(self.pairs["document"].take(mined[found]).to_pylist())
        both = zip(given.to_pylist(), found.sum(axis=1).tolist(), strict=True)
        lists = [list(dict.fromkeys([*of_pair, *(next(texts) for _ in range(count))])) for of_pair, count in both]
        return pa.array(lists, type=given.type)


def _same(values: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Which of the values ``(B,)`` are the same, ``(B, B)``."""
    codes = values.combine_chunks().dictionary_encode().indices.to_numpy()
    same: NDArray[np.bool_] = codes[:, None] == codes
    return same


def _similarities(vectors: PairVectors, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    similarities: NDArray[np.float32] = vectors.queries(rows) @ vectors.documents(rows).T
    return similarities
