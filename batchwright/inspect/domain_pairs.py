"""A domain's training pairs, as rows that batches, mined texts and judgements are about."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from batchwright.core.errors import InputError
from batchwright.core.fingerprint import text_keys
from batchwright.core.spill import Words, find_keys, key_words, sort_keys
from batchwright.formats.negatives import Negatives, Relation
from batchwright.inspect.artifacts import Artifacts


class DomainPairs:
    """The training pairs of a domain, by row: ``negatives`` is what the filter says, ``ids`` are those of the pairs."""

    def __init__(self, artifacts: Artifacts, domain: str) -> None:
        pairs = artifacts.columns(domain, "id", "document", "negatives", "split")
        pairs = pairs.filter(pc.equal(pairs["split"], "train"))
        self.negatives: Negatives = artifacts.negatives(domain, len(pairs))
        self.ids: pa.Array = pairs["id"].combine_chunks()
        self._unseen = np.ones(len(pairs), bool)
        self._from_source: pa.ChunkedArray = pairs["negatives"]
        self._judged = Relation(*self.negatives.judged.T)
        self._sorted_ids = np.array(self.ids.to_pylist(), "S32")
        words = key_words(text_keys(pairs["document"].to_pylist()))
        self._order = sort_keys(words)
        self._words: Words = words[:, self._order]

    def rows(self, batch: pa.RecordBatch) -> NDArray[np.int64]:
        """Return the rows of a batch's pairs.

        Raises:
            InputError: one is not there any more.
        """
        wanted = np.array(batch["id"].to_pylist(), "S32")
        rows = np.searchsorted(self._sorted_ids, wanted)
        if (np.append(self._sorted_ids, b"")[rows] != wanted).any():
            raise InputError("the pairs are no longer those of these batches; run the stage 'pack' again")
        return rows

    def mined(self, batch: pa.RecordBatch, rows: NDArray[np.int64]) -> Iterator[tuple[int, int, int, str]]:
        """Yield place in the batch, row, the row that a hard negative is the document of, and its text.

        Only for pairs that were in no batch before, and without the source's own negatives and those that were judged.
        The row of a text that no pair has any more is -1.
        """
        chosen = np.flatnonzero(self._unseen[rows])
        self._unseen[rows] = False
        listed = batch["negatives"].take(pa.array(chosen)).to_pylist()
        sources = self._from_source.take(pa.array(rows[chosen])).to_pylist()
        cells = [
            (int(place), text)
            for place, texts, source in zip(chosen, listed, sources, strict=True)
            for text in dict.fromkeys(texts)
            if text not in source
        ]
        places = find_keys(self._words, text_keys(text for _, text in cells))
        others = np.append(self._order, -1)[places]
        for (place, text), other in zip(cells, others.tolist(), strict=True):
            row = int(rows[place])
            if other < 0 or self.undecided(np.array([row]), np.array([other])).all():
                yield place, row, other, text

    def key(self, row: int, other: int) -> tuple[int, int]:
        """Return the class of a row's query and that of another one's document."""
        return int(self.negatives.query_class[row]), int(self.negatives.document_class[other])

    def undecided(self, rows: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which documents nobody has judged for the queries of ``rows``; both are broadcast."""
        return ~self._judged.contains(self.negatives.query_class[rows], self.negatives.document_class[others])
