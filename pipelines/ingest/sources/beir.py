"""BEIR folders; each positive judgement is a pair."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from batchwright.core.errors import InputError
from batchwright.formats.beir import BeirFolder
from pipelines.ingest.sources.base import Part, Row, Source, faulty
from pipelines.ingest.sources.files import not_empty


class BeirSource(Source):
    """A folder in BEIR's layout: each judgement above zero is a pair, others are skipped.

    Rows are numbered from 1 in ``qrels/SPLIT.tsv``, not counting the header.
    """

    kind: Literal["beir"]
    path: str
    """The folder that contains ``corpus.jsonl``, ``queries.jsonl`` and ``qrels``."""
    domain: str
    """The domain of all its pairs."""
    split: str = "train"
    """The split to read, from ``qrels/SPLIT.tsv``."""

    @property
    def label(self) -> str:
        return str(Path(self.path, "qrels", f"{self.split}.tsv"))

    def files(self) -> list[str]:
        return [str(Path(self.path, "corpus.jsonl")), str(Path(self.path, "queries.jsonl")), self.label]

    def parts(self) -> list[Part]:
        for file in self.files():
            if not Path(file).is_file():
                raise InputError(
                    f"{file}: no such file; a BEIR folder has corpus.jsonl, queries.jsonl, qrels/SPLIT.tsv"
                )
        return [Part(self.label)]

    def read_for(self, part: Part) -> list[str]:  # noqa: ARG002 (a folder is one part)
        return self.files()

    def rows(self, part: Part) -> Iterator[Row]:
        folder = BeirFolder(Path(self.path))
        judged = not_empty(part.name, enumerate(folder.judgments(self.split), start=1))
        positive = [(number, query, document) for number, (query, document, relevance) in judged if relevance > 0]
        queries = _texts(folder.queries(), {query for _, query, _ in positive})
        documents = _texts(folder.documents(), {document for _, _, document in positive})
        for number, query, document in positive:
            if query not in queries:
                yield faulty(part.name, number, query, "query id is not in queries.jsonl")
            elif document not in documents:
                yield faulty(part.name, number, document, "document id is not in corpus.jsonl")
            else:
                yield Row(part.name, number, queries[query], documents[document], self.domain)


def _texts(records: Iterable[tuple[str, str]], wanted: set[str]) -> dict[str, str]:
    """The texts of the wanted ids; only these are kept in memory."""
    return {key: text for key, text in records if key in wanted}
