"""Folders in the layout of BEIR: ``corpus.jsonl``, ``queries.jsonl`` and judgements in ``qrels/SPLIT.tsv``.

A pair is a judgement above zero; other judgements say what is not a pair, and are no rows.
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from formats.errors import InputError
from pipelines.ingest.sources.base import Part, Row, Source, faulty
from pipelines.ingest.sources.files import not_empty, open_text
from pipelines.ingest.sources.jsonl import read_objects


class _Judgement(NamedTuple):
    line: int
    query: str
    document: str


class BeirSource(Source):
    """``path`` is the folder; documents are title and text. Rows are numbered by line of the judgements."""

    kind: Literal["beir"]
    path: str
    domain: str
    split: str = "train"

    @property
    def label(self) -> str:
        return self._qrels

    @property
    def _qrels(self) -> str:
        return str(Path(self.path, "qrels", f"{self.split}.tsv"))

    def parts(self) -> list[Part]:
        for file in (Path(self.path, "corpus.jsonl"), Path(self.path, "queries.jsonl"), Path(self._qrels)):
            if not file.is_file():
                raise InputError(
                    f"{file}: no such file; a BEIR folder has corpus.jsonl, queries.jsonl, qrels/SPLIT.tsv"
                )
        return [Part(self._qrels)]

    def rows(self, part: Part) -> Iterator[Row]:
        judgements = list(not_empty(part.name, self._judgements()))
        positive = [judgement for judgement in judgements if isinstance(judgement, _Judgement)]
        queries = self._texts("queries.jsonl", {judgement.query for judgement in positive})
        documents = self._texts("corpus.jsonl", {judgement.document for judgement in positive})
        for judgement in judgements:
            if isinstance(judgement, Row):
                yield judgement
            elif judgement.query not in queries:
                yield faulty(part.name, judgement.line, judgement.query, "query id is not in queries.jsonl")
            elif judgement.document not in documents:
                yield faulty(part.name, judgement.line, judgement.document, "document id is not in corpus.jsonl")
            else:
                texts = queries[judgement.query], documents[judgement.document]
                yield Row(part.name, judgement.line, *texts, self.domain)

    def _judgements(self) -> Iterator[_Judgement | Row]:
        """Positive judgements, and lines that are none at all."""
        with open_text(self._qrels) as text:
            for fields in (lines := csv.reader(text, delimiter="\t", quoting=csv.QUOTE_NONE)):
                if (lines.line_num == 1 and fields[-1:] == ["score"]) or not fields:
                    continue
                try:
                    query, document, score = fields
                    if float(score) > 0:
                        yield _Judgement(lines.line_num, query, document)
                except ValueError:
                    yield faulty(self._qrels, lines.line_num, "\t".join(fields), "not query-id, corpus-id and score")

    def _texts(self, name: str, wanted: set[str]) -> dict[str, object]:
        """Texts of the wanted ids, title first; only these are held in memory."""
        file = str(Path(self.path, name))
        found: dict[str, object] = {}
        with open_text(file) as text:
            for number, values in not_empty(file, read_objects(file, text)):
                if isinstance(values, Row):
                    raise InputError(f"{file}: line {number}: {values.fault}; correct the line")
                if (key := str(values.get("_id"))) in wanted:
                    found[key] = _join(values.get("title"), values.get("text"))
        return found


def _join(title: object, text: object) -> object:
    if isinstance(title, str) and isinstance(text, str) and title:
        return f"{title}\n{text}"
    return text
