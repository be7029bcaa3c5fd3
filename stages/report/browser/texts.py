"""Texts of the page: each is stored once, without line breaks, and cut if it is long."""

from collections.abc import Iterable, Sequence
from typing import Any


class Texts:
    """Numbers pairs and texts as they come."""

    def __init__(self) -> None:
        self._pairs: dict[tuple[str, str], int] = {}
        self._texts: dict[str, int] = {}
        self._queries: list[int] = []
        self._documents: list[int] = []

    def add(self, domain: str, ids: Sequence[str], queries: Iterable[str], documents: Iterable[str]) -> list[int]:
        """Return the numbers of pairs, given by their domain, ids and texts."""
        numbers = []
        for key, query, document in zip(ids, queries, documents, strict=True):
            number = self._pairs.setdefault((domain, key), len(self._pairs))
            if number == len(self._queries):
                self._queries.append(self._number(query))
                self._documents.append(self._number(document))
            numbers.append(number)
        return numbers

    def cut(self, length: int) -> dict[str, Any]:
        """Return all texts, cut to ``length`` characters, and the numbers of each pair's texts."""
        texts = [text if len(text) <= length else text[: length - 1] + "…" for text in self._texts]
        return {"texts": texts, "query": self._queries, "document": self._documents}

    def _number(self, text: str) -> int:
        return self._texts.setdefault(" ".join(text.split()), len(self._texts))
