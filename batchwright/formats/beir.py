"""BEIR folders: ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/SPLIT.tsv``."""

import csv
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from batchwright.core.errors import InputError


@dataclass(frozen=True)
class BeirFolder:
    """A retrieval collection on disk; if a file is faulty, its reader raises InputError naming the file and line."""

    folder: Path

    def documents(self) -> Iterator[tuple[str, str]]:
        """Document ids and texts, each text preceded by its title."""
        for record_id, record in self._records("corpus.jsonl"):
            yield record_id, f"{record.get('title') or ''} {record['text']}".strip()

    def queries(self) -> Iterator[tuple[str, str]]:
        """Query ids and texts."""
        for record_id, record in self._records("queries.jsonl"):
            yield record_id, record["text"]

    def judgments(self, split: str = "test") -> Iterator[tuple[str, str, int]]:
        """Query id, document id and relevance of each judgment; 0 or less means not relevant."""
        file = self.folder / "qrels" / f"{split}.tsv"
        with self._open(file) as handle:
            for number, row in enumerate(csv.reader(handle, delimiter="\t"), start=1):
                if number == 1 and row[-1:] and not row[-1].lstrip("-").isdecimal():
                    continue
                if len(row) != 3 or not row[2].lstrip("-").isdecimal():
                    raise InputError(
                        f"{file}, line {number}: expected query id, document id and a number, tab-separated"
                    )
                yield row[0], row[1], int(row[2])

    def _records(self, name: str) -> Iterator[tuple[str, dict[str, str]]]:
        file = self.folder / name
        with self._open(file) as handle:
            for number, line in enumerate(handle, start=1):
                try:
                    record = json.loads(line)
                    if not isinstance(record["text"], str):
                        raise TypeError
                    yield str(record["_id"]), {"text": record["text"], "title": record.get("title", "")}
                except (json.JSONDecodeError, TypeError, KeyError):
                    raise InputError(f"{file}, line {number}: expected a JSON object with '_id' and 'text'") from None

    @contextmanager
    def _open(self, file: Path) -> Iterator[TextIO]:
        try:
            with file.open(encoding="utf-8", newline="") as handle:
                yield handle
        except FileNotFoundError:
            raise InputError(f"{file}: no such file; a BEIR folder holds corpus.jsonl, queries.jsonl, qrels/") from None
        except UnicodeDecodeError as error:
            raise InputError(f"{file}: not UTF-8 ({error.reason} at byte {error.start}); convert it") from None
