"""Settings of tabular sources: which columns hold query, document, hard negatives and domain."""

from collections.abc import Iterable, Mapping
from typing import Self

from pydantic import model_validator

from batchwright.core.errors import InputError
from batchwright.core.messages import nearest
from batchwright.core.params import Params
from pipelines.files import find_files
from pipelines.ingest.sources.base import Part, Row, Source


class Columns(Params):
    """Names of a table's columns."""

    query: str = "query"
    """The column that holds the query."""
    document: str = "document"
    """The column that holds the document that answers the query."""
    negatives: list[str] = []
    """Columns of hard negatives, each with a text or a list of texts per row; empty texts are ignored."""


class TableSource(Source):
    """A table with one pair per row."""

    columns: Columns = Columns()
    """Which columns to read."""
    domain: str | None = None
    """The domain of all rows; set either this or ``domain_column``."""
    domain_column: str | None = None
    """The column that names each row's domain; set either this or ``domain``."""

    @model_validator(mode="after")
    def _one_domain(self) -> Self:
        if (self.domain is None) == (self.domain_column is None):
            raise ValueError("give either 'domain' (a name) or 'domain_column'")
        return self

    @property
    def wanted_columns(self) -> list[str]:
        """The columns to read, without repetition."""
        named = [self.columns.query, self.columns.document, *self.columns.negatives, self.domain_column]
        return list(dict.fromkeys(name for name in named if name is not None))

    def check_columns(self, name: str, found: Iterable[str]) -> None:
        """Raise InputError if the table ``name`` lacks a column or has it twice."""
        known = list(found)
        for wanted in self.wanted_columns:
            if known.count(wanted) > 1:
                raise InputError(f"{name}: has two columns '{wanted}'; rename one")
            if wanted not in known:
                close = nearest(wanted, known)
                hint = f" (did you mean '{close}'?)" if close else ""
                raise InputError(f"{name}: no column '{wanted}'{hint}; columns found: {', '.join(known) or 'none'}")

    def to_row(self, name: str, number: int, values: Mapping[str, object]) -> Row:
        """Make row ``number`` of the table ``name`` from its values by column."""
        negatives: list[object] = []
        for column in self.columns.negatives:
            value = values.get(column)
            negatives.extend(value if isinstance(value, list) else [value])
        return Row(
            source=name,
            number=number,
            query=values.get(self.columns.query),
            document=values.get(self.columns.document),
            domain=self.domain if self.domain_column is None else values.get(self.domain_column),
            negatives=[value for value in negatives if value is not None and str(value).strip()],
        )


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
