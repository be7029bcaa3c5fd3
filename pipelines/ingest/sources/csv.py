"""CSV and TSV with a header line, plain or compressed."""

import csv
from collections.abc import Iterator
from typing import Any, Literal, TextIO

from pydantic import Field

from batchwright.core.errors import InputError
from batchwright.core.untrusted_text import Records
from pipelines.ingest.sources.base import Part, Row, faulty
from pipelines.ingest.sources.columns import FileSource
from pipelines.ingest.sources.csv_shape import delimiter_of, dialect, quote_of
from pipelines.ingest.sources.files import not_empty, open_text


class CsvSource(FileSource):
    """CSV and TSV with a header line, plain or compressed; rows are numbered by the line they begin on."""

    kind: Literal["csv"]
    delimiter: str | None = Field(default=None, min_length=1, max_length=1)
    """The character between fields; null means a tab in files named ``.tsv`` and a comma in all others."""
    quote: str | None = Field(default=None, max_length=1)
    """The character around fields; empty if quotation marks are ordinary characters. null means a quotation mark,
    unless fields are separated by tabs, each of the first 1,000 lines has as many as the header, and some field begins
    with a quotation mark but is not quoted."""

    def rows(self, part: Part) -> Iterator[Row]:
        with open_text(part.name) as text:
            records = self._records(part.name, text)
            _, header, _ = next(records, (1, None, ""))
            if header is None:
                raise InputError(f"{part.name}: has no readable header line; put the column names in the first line")
            self.check_columns(part.name, header)
            for number, fields, raw in not_empty(part.name, records):
                if fields is None:
                    yield faulty(part.name, number, raw, "not valid CSV")
                elif len(fields) != len(header):
                    yield faulty(part.name, number, raw, "more or fewer fields than the header")
                else:
                    yield self.to_row(part.name, number, dict(zip(header, fields, strict=True)))

    def _records(self, file: str, text: TextIO) -> Iterator[tuple[int, list[str] | None, str]]:
        """Yield first line number, fields (None if malformed) and raw text of each record that is not blank."""
        records = Records(file, text, **self._dialect(file))
        while True:
            try:
                fields = next(records, None)
            except csv.Error as error:
                if "unexpected end of data" in str(error):
                    raise InputError(
                        f"{file}: line {records.first}: a quotation mark is opened and never closed; close it, or set "
                        "quote: '' if quotation marks are ordinary characters"
                    ) from None
                yield records.first, None, "".join(records.raw)
                continue
            if fields is None:
                return
            if fields:
                yield records.first, fields, "".join(records.raw)

    def _dialect(self, file: str) -> dict[str, Any]:
        delimiter = self.delimiter or delimiter_of(file)
        quote = quote_of(file, delimiter) if self.quote is None else self.quote
        return dialect(delimiter, quote)
