"""Folders in the layout of BEIR. A pair is a judgement above zero."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from formats.beir import BeirFolder
from formats.errors import InputError
from pipelines.ingest.sources.base import Part, Row, Source, faulty
from pipelines.ingest.sources.files import not_empty


class BeirSource(Source):
    """``path`` is the folder; rows are counted from 1 in ``qrels/SPLIT.tsv``, its header left out.

    Judgements of 0 and less say what is not a pair, and are no rows.
    """

    kind: Literal["beir"]
    path: str
    domain: str
    split: str = "train"

    @property
    def label(self) -> str:
        return str(Path(self.path, "qrels", f"{self.split}.tsv"))

    def parts(self) -> list[Part]:
        for file in (Path(self.path, "corpus.jsonl"), Path(self.path, "queries.jsonl"), Path(self.label)):
            if not file.is_file():
                raise InputError(
                    f"{file}: no such file; a BEIR folder has corpus.jsonl, queries.jsonl, qrels/SPLIT.tsv"
                )
        return [Part(self.label)]

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
    """Texts of the wanted ids; only these are held in memory."""
    return {key: text for key, text in records if key in wanted}
