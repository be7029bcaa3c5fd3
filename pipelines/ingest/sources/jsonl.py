"""JSON Lines, plain or compressed: one object per line."""

import itertools
from collections.abc import Iterable, Iterator
from typing import Literal, TextIO

from batchwright.core.untrusted_text import RepeatedKeyError, parse_json
from pipelines.ingest.sources.base import Part, Row, faulty
from pipelines.ingest.sources.columns import FileSource
from pipelines.ingest.sources.files import not_empty, open_text

_PROBED_ROWS = 1000

Line = tuple[int, dict[str, object] | Row]


class JsonlSource(FileSource):
    """JSON Lines, plain or compressed: one object per line, blank lines skipped. Rows are numbered by line."""

    kind: Literal["jsonl"]

    def rows(self, part: Part) -> Iterator[Row]:
        with open_text(part.name) as text:
            for number, values in self._checked(part.name, not_empty(part.name, read_objects(part.name, text))):
                yield values if isinstance(values, Row) else self.to_row(part.name, number, values)

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
