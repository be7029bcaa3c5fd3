"""Settings of sources that are tables: which columns hold query, document, hard negatives and domain."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Self

from pydantic import model_validator

from formats.errors import InputError
from pipelines.ingest.sources.base import Part, Row, Source
from pipelines.ingest.sources.files import find_files


class TableSource(Source):
    """Column names; the domain is a constant or comes from ``domain_column``.

    A column of ``negatives`` holds a text or a list of texts; empty ones count as none.
    """

    query: str = "query"
    document: str = "document"
    negatives: list[str] = []
    domain: str | None = None
    domain_column: str | None = None

    @model_validator(mode="after")
    def _one_domain(self) -> Self:
        if (self.domain is None) == (self.domain_column is None):
            raise ValueError("give either 'domain' (a name) or 'domain_column'")
        return self

    @property
    def columns(self) -> list[str]:
        """The columns that are read, each once."""
        named = [self.query, self.document, *self.negatives, *([self.domain_column] if self.domain_column else [])]
        return list(dict.fromkeys(named))

    def check_columns(self, name: str, found: Iterable[str]) -> None:
        """Raise InputError where the table ``name`` lacks a column."""
        known = list(found)
        for wanted in self.columns:
            if wanted not in known:
                close = difflib.get_close_matches(wanted, known, n=1, cutoff=0.5)
                hint = f" (did you mean '{close[0]}'?)" if close else ""
                raise InputError(f"{name}: no column '{wanted}'{hint}; columns found: {', '.join(known) or 'none'}")

    def to_row(self, name: str, number: int, values: Mapping[str, object]) -> Row:
        """Row ``number`` of the table ``name``, from its values by column."""
        negatives: list[object] = []
        for column in self.negatives:
            value = values.get(column)
            negatives.extend(value if isinstance(value, list) else [value])
        return Row(
            source=name,
            number=number,
            query=values.get(self.query),
            document=values.get(self.document),
            domain=self.domain if self.domain_column is None else values.get(self.domain_column),
            negatives=[value for value in negatives if value is not None and value != ""],
        )


class FileSource(TableSource):
    """Tables in files; ``path`` is a file or a glob pattern."""

    path: str

    @property
    def label(self) -> str:
        return self.path

    def parts(self) -> list[Part]:
        return [Part(file) for file in find_files(self.path)]
