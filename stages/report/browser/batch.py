"""What the page carries of a batch: its pairs, what is masked and why, and its hardest negatives; texts only once."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchwright.formats.shards import REASONS

HARDEST = 3
"""Negatives that are named for each query."""
MOST_MASKED = 8
"""Masked documents that are named for each query; the others are counted."""


def describe(
    pairs: list[int], hardness: NDArray[np.float32], similarities: NDArray[np.float64], reasons: NDArray[np.int8]
) -> dict[str, Any]:
    """Return the rows of a batch as the page's scripts read them.

    ``pairs`` are the numbers of the rows' pairs, ``hardness`` ``(B,)`` is theirs, and ``reasons`` ``(B, B)`` says why
    each cell is masked, -1 if it is not.
    """
    return {
        "pairs": pairs,
        "hardness": np.rint(1000 * hardness).astype(int).tolist(),
        "hardest": hardest(similarities, reasons >= 0).ravel().tolist(),
        "masked": masked_documents(reasons),
        "reasons": np.bincount(reasons[reasons >= 0], minlength=len(REASONS)).tolist(),
    }


def hardest(similarities: NDArray[np.float64], mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return for each query its hardest negatives that are not masked: ``(B, HARDEST, 2)``.

    The last axis holds a document's row, or -1 if there are not so many, and the similarity in hundredths.
    """
    left = np.where(mask | np.eye(len(mask), dtype=bool), -np.inf, similarities)
    rows = np.argsort(-left, axis=1, kind="stable")[:, :HARDEST]
    best = np.take_along_axis(left, rows, axis=1)
    there = np.isfinite(best)
    named = np.full((len(mask), HARDEST, 2), -1, np.int64)
    named[:, : rows.shape[1], 0] = np.where(there, rows, -1)
    named[:, : rows.shape[1], 1] = np.rint(100 * np.where(there, best, 0))
    return named


def masked_documents(reasons: NDArray[np.int8]) -> dict[str, list[int]]:
    """Return, by row, for each query with masked documents: their number, then row and reason of the first of them."""
    listed = {}
    for row in np.flatnonzero((reasons >= 0).any(axis=1)).tolist():
        documents = np.flatnonzero(reasons[row] >= 0)
        first = documents[:MOST_MASKED]
        listed[str(row)] = [len(documents), *np.stack([first, reasons[row, first]], axis=1).ravel().tolist()]
    return listed


class Texts:
    """Numbers pairs and texts as they come; each text is stored once, without line breaks."""

    def __init__(self) -> None:
        self._pairs: dict[tuple[str, str], int] = {}
        self._texts: dict[str, int] = {}
        self._queries: list[int] = []
        self._documents: list[int] = []
        self._metadata: list[int] = []

    def add(
        self,
        domain: str,
        ids: Sequence[str],
        queries: Iterable[str],
        documents: Iterable[str],
        metadata: Iterable[Mapping[str, str]],
    ) -> list[int]:
        """Return the numbers of pairs, given by their domain, ids and texts."""
        numbers = []
        for key, query, document, said in zip(ids, queries, documents, metadata, strict=True):
            number = self._pairs.setdefault((domain, key), len(self._pairs))
            if number == len(self._queries):
                self._queries.append(self._number(query))
                self._documents.append(self._number(document))
                told = " · ".join(f"{name}: {text}" for name, text in said.items())
                self._metadata.append(self._number(told) if told else -1)
            numbers.append(number)
        return numbers

    def cut(self, length: int) -> dict[str, Any]:
        """Return all texts, cut to ``length`` characters, and the numbers of each pair's texts.

        Those of ``metadata``, which is there if any pair has some, are -1 for pairs that have none.
        """
        texts = [text if len(text) <= length else text[: length - 1] + "…" for text in self._texts]
        metadata = {"metadata": self._metadata} if max(self._metadata, default=-1) >= 0 else {}
        return {"texts": texts, "query": self._queries, "document": self._documents, **metadata}

    def _number(self, text: str) -> int:
        return self._texts.setdefault(" ".join(text.split()), len(self._texts))


def evenly(total: int, most: int) -> list[int]:
    """Return at most ``most`` of the numbers below ``total``, evenly spaced from the first one on."""
    count = min(total, most)
    return [number * total // count for number in range(count)]
