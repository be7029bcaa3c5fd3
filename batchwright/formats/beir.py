"""BEIR folders: ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/SPLIT.tsv``."""

import csv
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from batchwright.core.errors import InputError
from batchwright.core.terminal import shown
from batchwright.core.untrusted_text import Lines, Records, RepeatedKeyError, parse_json

MOST = 10_000
"""The highest relevance: pytrec_eval takes memory for each one below it, and overflows far above."""


@dataclass(frozen=True)
class BeirFolder:
    """A retrieval collection on disk; if a file is faulty, its reader raises InputError naming the file and line."""

    folder: Path

    def documents(self) -> Iterator[tuple[str, str]]:
        """Document ids and texts, each text preceded by its title; a document may have no more than a title."""
        return self._records("corpus.jsonl", ["title", "text"])

    def queries(self) -> Iterator[tuple[str, str]]:
        """Query ids and texts."""
        return self._records("queries.jsonl", ["text"])

    def answers(self) -> Iterator[tuple[str, list[str]]]:
        """Query ids and the strings that answer the query: ``answers`` of a record or of its ``metadata``, if any."""
        file = self.folder / "queries.jsonl"
        with self._open(file) as handle:
            for number, line in enumerate(handle, start=1):
                if not line.strip():
                    continue
                record = parse_json(line.removeprefix("\ufeff"))  # which ``queries`` has checked
                metadata = record.get("metadata")
                found = record.get("answers", metadata.get("answers") if isinstance(metadata, dict) else None) or []
                if not isinstance(found, list) or not all(isinstance(each, str) and each.strip() for each in found):
                    raise InputError(f"{file}, line {number}: 'answers' must be a list of texts; correct it")
                yield _id(record["_id"]), found

    def fields(self, name: str, wanted: Sequence[str]) -> Iterator[tuple[str, dict[str, object]]]:
        """Ids of the records of a file that was read before, and their ``wanted`` fields or those of ``metadata``."""
        with self._open(self.folder / name) as handle:
            for record in map(parse_json, filter(str.strip, handle)):
                within = record.get("metadata")
                every = (within if isinstance(within, dict) else {}) | record
                yield _id(record["_id"]), {field: every[field] for field in wanted if every.get(field) is not None}

    def judgments(self, split: str = "test") -> Iterator[tuple[str, str, float]]:
        """Query id, document id and relevance of each judgment; 0 or less means not relevant.

        Rows have three columns, or four as TREC has them, with one between query and document that says nothing.
        """
        file, seen = self.folder / "qrels" / f"{split}.tsv", dict[tuple[str, str], float]()
        header: list[str] | None = None
        with self._open(file) as handle:
            for number, row in enumerate(Records(str(file), handle, delimiter="\t"), start=1):
                if not "".join(row).strip():
                    continue
                relevance = _number(row[-1])
                if header is None:
                    named = relevance is None and row[-1].strip()[:1].isalpha()
                    header = row if named and len(row) in (3, 4) else []
                    if header:
                        _check_order(file, header)
                    if named:
                        continue
                if len(row) not in (3, 4) or relevance is None:
                    raise InputError(
                        f"{file}, line {number}: expected query id, document id and a number, tab-separated"
                    )
                if header and (row[0] == header[0] or row[-2] == header[-2]):
                    raise InputError(
                        f"{file}: the first line names what line {number} names, so it is no header; its last column "
                        "must be a number"
                    )
                if relevance > MOST:
                    raise InputError(
                        f"{file}, line {number}: {row[-1]} is above {MOST:,}, the highest relevance that is counted; "
                        "lower it, or put the relevance into the last column"
                    )
                if seen.setdefault((row[0], row[-2]), relevance) != relevance:
                    raise InputError(
                        f"{file}, line {number}: {shown(row[-2])} is judged twice for {shown(row[0])}, and not alike; "
                        "remove one of the lines"
                    )
                yield row[0], row[-2], relevance

    def _records(self, name: str, fields: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Ids, and the texts of ``fields`` joined; one of them at least must be there."""
        file, seen = self.folder / name, set[str]()
        with self._open(file) as handle:
            for number, line in enumerate(handle, start=1):
                if not line.strip():
                    continue
                try:
                    record = parse_json(line)
                    texts = [record[field] for field in fields if record.get(field) is not None]
                    key, text = _id(record["_id"]), _joined(texts)
                except RepeatedKeyError as error:
                    raise InputError(f"{file}, line {number}: {error}; keep one of them") from None
                except (ValueError, RecursionError, AttributeError, TypeError, KeyError):
                    wanted = " or ".join(f"'{field}'" for field in reversed(fields))
                    raise InputError(f"{file}, line {number}: expected a JSON object with '_id' and {wanted}") from None
                if key in seen:
                    raise InputError(f"{file}, line {number}: the id {shown(key)} is there twice; ids must be unique")
                seen.add(key)
                yield key, text

    @contextmanager
    def _open(self, file: Path) -> Iterator[TextIO]:
        try:
            with file.open("rb") as content, Lines(str(file), content, encoding="utf-8-sig") as handle:
                yield handle
        except (FileNotFoundError, NotADirectoryError):
            raise InputError(f"{file}: no such file; a BEIR folder holds corpus.jsonl, queries.jsonl, qrels/") from None
        except UnicodeDecodeError as error:
            raise InputError(f"{file}: not UTF-8 ({error.reason} at byte {error.start}); convert it") from None
        except csv.Error as error:
            raise InputError(f"{file}: not tab-separated values ({error})") from None


def _check_order(file: Path, header: Sequence[str]) -> None:
    """Raise InputError if names of columns say that these stand in another order, which numbers as ids would hide."""
    query, document = (
        re.compile(rf"\W*({names})", re.IGNORECASE) for names in ("q(uery|uestion|id)", "corpus|doc|pid")
    )
    if document.match(header[0]) or query.match(header[-2]) or document.match(header[-1]) or query.match(header[-1]):
        raise InputError(
            f"{file}: the first line names the columns {', '.join(map(shown, header))}; put them in the order query "
            "id, document id, relevance"
        )


def _id(value: object) -> str:
    if not isinstance(value, str | int):
        raise TypeError
    return str(value)


def _joined(texts: Sequence[object]) -> str:
    words = [text for text in texts if isinstance(text, str)]
    if not texts or len(words) < len(texts):
        raise TypeError
    return " ".join(filter(None, words)).strip()


def _number(cell: str) -> float | None:
    try:
        number = float(cell)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
