"""What every kind of source is: parts that workers read one by one, each yielding raw rows.

Most are tables (``TableSource``) in files (``FileSource``).
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Self

import pyarrow as pa
from pydantic import Field, model_validator

from batchwright.core.errors import InputError
from batchwright.core.params import Params
from batchwright.core.terminal import nearest
from batchwright.core.untrusted_arrow import printed, values_of
from batchwright.formats.pairs import Split
from batchwright.formats.shards.manifest import COLUMNS
from pipelines.files import find_files
from pipelines.ingest.sources.chats import first_exchange, is_chat
from pipelines.ingest.sources.labels import Labels
from pipelines.ingest.sources.split_names import split_named

NO_QUERY = object()
"""The query of a row that is only a document."""
_OURS = re.compile("|".join([*(set(COLUMNS) - {"id"}), "split", "label", "anchor", "positive", r"negative_\d+"]))
"""Names of columns of pairs, shards, exports and datasets for trainers, but for ids, by which sources know their rows.
"""
MISCOUNTED = "not one score for each document and negative"


class Row(NamedTuple):
    """A raw row: values as they are in the source, and the ``fault`` because of which it is no pair whatever they are.

    ``source`` is its file; ``number`` counts from 1 and is the line number in text files, so that an editor finds it.
    Rows of a corpus have the query ``NO_QUERY``.
    ``scores`` are a teacher's, of the document and of each of ``negatives``; none if it has not scored them.
    ``split`` is what the source says, if it says one.
    """

    source: str
    number: int
    query: object
    document: object
    domain: object
    negatives: list[object] = []
    fault: str | None = None
    scores: Sequence[object] = ()
    split: Split | None = None
    group: object = None
    weight: object = None
    metadata: Mapping[str, object] = {}


def faulty(source: str, number: int, text: str, fault: str) -> Row:
    """Make a row that could not be read; ``text`` is shown with the reject."""
    return Row(source, number, text, None, None, fault=fault)


class Part(NamedTuple):
    """What one worker reads at a time: a file, or a piece of one, such as a row group."""

    name: str
    piece: int = 0


class Source(Params, ABC):
    """An entry of ``ingest.sources``."""

    @property
    @abstractmethod
    def label(self) -> str:
        """The source's name in results and messages."""

    def files(self) -> list[str]:
        """List the files that it reads; none if they are not in a folder, as those of the hub."""
        return []

    @abstractmethod
    def parts(self) -> list[Part]:
        """List all parts, in an order that does not depend on the machine.

        Raises:
            InputError: there is nothing to read.
        """

    def read_for(self, part: Part) -> list[str]:
        """List the files that decide what is in a part; none if that cannot be told from files, as on the hub."""
        return [part.name]

    @abstractmethod
    def rows(self, part: Part) -> Iterator[Row]:
        """Read the rows of a part.

        Raises:
            InputError: the part cannot be read, lacks a column or has no rows.
        """


class Columns(Params):
    """Names of a table's columns."""

    query: str = Field(default="query", min_length=1)
    """The column that holds the query."""
    document: str = "document"
    """The column that holds the document that answers the query; a list of documents becomes a pair for each. If it is
    that of queries, too, it holds chats, such as ``[{role: user, content: ...}, {role: assistant, content: ...}]``:
    the first turn of a user is the query, the answer after it the document, and later turns are left out."""
    negatives: list[str] = []
    """Columns of hard negatives, each with a text or a list of texts per row; empty texts are ignored."""
    scores: list[str] = []
    """Columns of a teacher's scores, each with a number or a list of numbers per row; together one for each document
    and then one for each hard negative, such as ``[scores]`` or ``[pos_scores, neg_scores]``."""
    split: str | None = None
    """The column that says each row's split, instead of ``held_out`` and ``dev``: train, dev or test, or a usual name
    of theirs, such as validation. A query or group in several goes to test with all its pairs, or else to dev."""
    group: str | None = None
    """The column of what each row belongs to, such as an article or a customer. All pairs of a group are in the same
    split, and so are groups that share a query; shares are of groups. Equal values are one group in all sources; rows
    without one are split by their queries."""
    weight: str | None = None
    """The column of positive numbers that multiply a pair's term in the loss of ``train``; 1 where there is none."""
    metadata: list[str] = []
    """Columns that go with their pairs as text, into shards and exports. Of equal pairs, those of the first count."""


class TableSource(Source):
    """A table with one pair per row, or one for each document of a row's list."""

    columns: Columns = Columns()
    """Which columns to read."""
    labels: Labels | None = None
    """Which rows are pairs; null means all."""
    domain: str | None = None
    """The domain of all rows, best one for all that is searched together; set either this or ``domain_column``."""
    domain_column: str | None = None
    """The column that names each row's domain, as text or as a whole number; set either this or ``domain``."""

    @model_validator(mode="after")
    def _one_domain(self) -> Self:
        if (self.domain is None) == (self.domain_column is None):
            raise ValueError("give either 'domain' (a name) or 'domain_column'")
        return self

    def as_corpus(self) -> Self:
        """The same source, of which only documents are read."""
        return self.model_copy(update={"columns": Columns.model_construct(query="", document=self.columns.document)})

    @property
    def wanted_columns(self) -> list[str]:
        """The columns to read, without repetition."""
        columns, label = self.columns, self.labels.column if self.labels else None
        named = [columns.query, columns.document, *columns.negatives, *columns.scores, self.domain_column, label]
        named += [columns.split, columns.group, columns.weight, *columns.metadata]
        return list(dict.fromkeys(name for name in named if name))

    def check_columns(self, name: str, columns: Iterable[str]) -> None:
        """Raise InputError if the table ``name`` lacks a column or has it twice, or metadata has a name of ours."""
        known = list(columns)
        check_metadata_names(name, self.columns.metadata)
        for wanted in self.wanted_columns:
            if known.count(wanted) > 1:
                raise InputError(f"{name}: has two columns '{wanted}'; rename one")
            if wanted not in known:
                close = nearest(wanted, known)
                hint = f" (did you mean '{close}'?)" if close else ""
                raise InputError(f"{name}: no column '{wanted}'{hint}; columns found: {', '.join(known) or 'none'}")

    def to_rows(self, name: str, number: int, values: Mapping[str, object]) -> Iterator[Row]:
        """Make row ``number`` of the table ``name`` from its values by column: one for each of its documents."""
        negatives, scores = (
            [_text_of(each) for column in columns for each in _listed(values.get(column))]
            for columns in (self.columns.negatives, self.columns.scores)
        )
        query, documents = values.get(self.columns.query), values.get(self.columns.document)
        if self.columns.query == self.columns.document and is_chat(documents):
            query, documents = first_exchange(documents)
        if isinstance(documents, list):
            documents = [document for document in documents if document not in (None, "")] or [None]
        documents = _listed(documents)
        if len(scores) < len(documents) + len(negatives):  # columns of hard negatives may be empty
            negatives = [negative for negative in negatives if negative is not None]
        scored = any(score is not None and score != "" for score in scores)
        fault = self.labels.fault(values.get(self.labels.column)) if self.labels else None
        if scored and len(scores) != len(documents) + len(negatives):
            fault = fault or MISCOUNTED
        split = None
        if self.columns.split:
            split = split_named(name, number, self.columns.split, values.get(self.columns.split))
        for place, document in enumerate(documents):
            yield Row(
                source=name,
                number=number,
                query=query if self.columns.query else NO_QUERY,
                document=_text_of(document),
                domain=self.domain if self.domain_column is None else values.get(self.domain_column),
                negatives=negatives,
                fault=fault,
                scores=[scores[place], *scores[len(documents) :]] if scored and fault is None else (),
                split=split,
                group=values.get(self.columns.group) if self.columns.group else None,
                weight=values.get(self.columns.weight) if self.columns.weight else None,
                metadata={column: values.get(column) for column in self.columns.metadata},
            )

    def batch_rows(self, name: str, batch: pa.RecordBatch, first: int) -> Iterator[Row]:
        """Yield the rows of ``batch``, which starts at row number ``first`` of the table ``name``."""
        texts = [*self.columns.metadata, self.columns.group, self.domain_column]
        columns = values_of(name, printed(batch.select(self.wanted_columns), texts), first)
        for number, values in enumerate(zip(*columns, strict=True), start=first):
            yield from self.to_rows(name, number, dict(zip(self.wanted_columns, values, strict=True)))


def is_ours(column: str) -> bool:
    """Whether metadata cannot have this name."""
    return _OURS.fullmatch(column) is not None


def check_metadata_names(name: str, columns: Iterable[str]) -> None:
    """Raise InputError if metadata of the table ``name`` would have the name of a column of ours."""
    for column in filter(is_ours, columns):
        raise InputError(
            f"{name}: the column '{column}' cannot be metadata, since shards or exports have a column of this name; "
            "rename it in the file, or take it out of columns.metadata"
        )


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def _text_of(value: object) -> object:
    """Return the text of an object that has one, preceded by its title, as passages in lists often are."""
    if not isinstance(value, dict) or "text" not in value:
        return value
    title, text = value.get("title"), value["text"]
    return f"{title} {text}" if title and isinstance(title, str) and text and isinstance(text, str) else text


class FileSource(TableSource):
    """Tables in files."""

    path: str
    """A file, or a glob pattern such as ``raw/pairs/**/*.parquet``."""

    @property
    def label(self) -> str:
        return self.path

    def files(self) -> list[str]:
        return find_files(self.path)

    def parts(self) -> list[Part]:
        return [Part(file) for file in self.files()]
