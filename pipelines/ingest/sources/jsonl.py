"""JSON Lines: tables with one object per line, and BEIR folders, which are made of such files."""

import itertools
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Literal, Self, TextIO

from pydantic import Field

from batchwright.core.errors import InputError
from batchwright.core.params import Params
from batchwright.core.untrusted_text import RepeatedKeyError, parse_json
from batchwright.formats.beir import BeirFolder
from pipelines.files import not_empty, open_text
from pipelines.ingest.sources.base import NO_QUERY, FileSource, Part, Row, Source, check_metadata_names, faulty

_PROBED_ROWS = 1000

Said = dict[str, dict[str, object]]
"""Fields of records by their ids."""
Line = tuple[int, dict[str, object] | Row]


class JsonlSource(FileSource):
    """JSON Lines, plain or compressed: one object per line, blank lines skipped. Rows are numbered by line."""

    kind: Literal["jsonl"] = "jsonl"

    def rows(self, part: Part) -> Iterator[Row]:
        with open_text(part.name) as text:
            for number, values in self._checked(part.name, not_empty(part.name, read_objects(part.name, text))):
                yield from [values] if isinstance(values, Row) else self.to_rows(part.name, number, values)

    def _checked(self, file: str, lines: Iterable[Line]) -> Iterator[Line]:
        """Return the lines unchanged, after checking that every column occurs in the first ``_PROBED_ROWS`` rows."""
        lines = iter(lines)
        probed = list(itertools.islice(lines, _PROBED_ROWS))
        objects = [values for _, values in probed if isinstance(values, dict)]
        if objects:
            self.check_columns(file, dict.fromkeys(key for values in objects for key in values))
        return itertools.chain(probed, lines)


def read_objects(file: str, text: TextIO) -> Iterator[Line]:
    """Yield the line number and object of each line that is not blank, or a faulty row if it is not an object."""
    for number, line in enumerate(text, start=1):
        if not line.strip():
            continue
        try:
            values = parse_json(line)
        except (ValueError, RecursionError) as error:
            fault = str(error) if isinstance(error, RepeatedKeyError) else "not valid JSON"
            yield number, faulty(file, number, line.rstrip("\r\n"), fault)
            continue
        if isinstance(values, dict):
            yield number, values
        else:
            yield number, faulty(file, number, line.rstrip("\r\n"), "not a JSON object")


class BeirColumns(Params):
    """What is kept of a BEIR folder's records beside their texts."""

    metadata: list[str] = []
    """Fields of ``corpus.jsonl`` or else of ``queries.jsonl``, or of their ``metadata``, that go with the pairs as
    text."""


class BeirSource(Source):
    """A folder in BEIR's layout: each judgement above zero is a pair, others are skipped.

    Rows are numbered from 1 in ``qrels/SPLIT.tsv``, not counting the header.
    """

    kind: Literal["beir"]
    path: str
    """The folder that contains ``corpus.jsonl``, ``queries.jsonl`` and ``qrels``."""
    domain: str
    """The domain of all its pairs."""
    split: str = Field(default="train", min_length=1)
    """The split to read, from ``qrels/SPLIT.tsv``; a corpus needs none."""
    columns: BeirColumns = BeirColumns()
    """What is kept beside the texts."""

    def as_corpus(self) -> Self:
        """The same source, of which all documents are read, judged or not."""
        return self.model_copy(update={"split": "", "columns": BeirColumns()})

    @property
    def label(self) -> str:
        return str(Path(self.path, "qrels", f"{self.split}.tsv") if self.split else Path(self.path, "corpus.jsonl"))

    def files(self) -> list[str]:
        if not self.split:
            return [self.label]
        return [str(Path(self.path, "corpus.jsonl")), str(Path(self.path, "queries.jsonl")), self.label]

    def parts(self) -> list[Part]:
        for file in self.files():
            if not Path(file).is_file():
                raise InputError(
                    f"{file}: no such file; a BEIR folder has corpus.jsonl, queries.jsonl, qrels/SPLIT.tsv"
                )
        check_metadata_names(self.label, self.columns.metadata)
        return [Part(self.label)]

    def read_for(self, part: Part) -> list[str]:  # noqa: ARG002 (a folder is one part)
        return self.files()

    def rows(self, part: Part) -> Iterator[Row]:
        folder = BeirFolder(Path(self.path))
        if not self.split:
            every = not_empty(part.name, enumerate(folder.documents(), start=1))
            yield from (Row(part.name, number, NO_QUERY, text, self.domain) for number, (_, text) in every)
            return
        judged = not_empty(part.name, enumerate(folder.judgments(self.split), start=1))
        positive = [(number, query, document) for number, (query, document, relevance) in judged if relevance > 0]
        queries = _texts(folder.queries(), {query for _, query, _ in positive})
        documents = _texts(folder.documents(), {document for _, _, document in positive})
        of_query, of_document = self._metadata(folder, queries.keys(), documents.keys())
        for number, query, document in positive:
            if query not in queries:
                yield faulty(part.name, number, query, "query id is not in queries.jsonl")
            elif document not in documents:
                yield faulty(part.name, number, document, "document id is not in corpus.jsonl")
            else:
                metadata = of_query.get(query, {}) | of_document.get(document, {})
                yield Row(part.name, number, queries[query], documents[document], self.domain, metadata=metadata)

    def _metadata(self, folder: BeirFolder, queries: Collection[str], documents: Collection[str]) -> list[Said]:
        """Read what the records of these queries and documents say, by their ids."""
        names = self.columns.metadata
        if not names:
            return [{}, {}]
        lacking, found = set(names), list[Said]()
        for file, wanted in (("queries.jsonl", queries), ("corpus.jsonl", documents)):
            found.append({})
            for key, said in folder.fields(file, names):
                lacking -= said.keys()
                if key in wanted:
                    found[-1][key] = said
        for name in (name for name in names if name in lacking):
            raise InputError(
                f"{folder.folder / 'corpus.jsonl'}: no record has a field '{name}', nor has one of queries.jsonl; "
                "correct columns.metadata"
            )
        return found


def _texts(records: Iterable[tuple[str, str]], wanted: set[str]) -> dict[str, str]:
    """The texts of the wanted ids; only these are kept in memory."""
    return {key: text for key, text in records if key in wanted}
