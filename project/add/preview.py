"""What a source holds: pairs and rejected rows among its first ones, and how many texts each model cuts."""

import itertools
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from batchwright.core.errors import InputError
from batchwright.formats.models import ModelVersion, locate_model
from pipelines.ingest.normalise import Pair, RowError, normalise
from pipelines.ingest.params import IngestParams
from pipelines.ingest.sources import AnySource
from pipelines.ingest.sources.base import is_ours
from pipelines.ingest.sources.chats import has_more, is_chat
from pipelines.ingest.sources.labels import NO_MATCH, number_of
from pipelines.ingest.sources.split_names import known_split
from project.add.columns import Table
from project.add.kinds import Entry
from project.add.values import are_texts, filled
from project.add.words import words

LEFT_OUT = "left out"
_READ_AS = {
    "negatives": "hard negatives",
    "scores": "a teacher's scores",
    "split": "the split",
    "group": "the group, whose pairs stay in one split",
    "weight": "the pair's weight in the loss",
}
ROWS, MEASURED, SHOWN, WIDTH = 20_000, 1_000, 5, 100
"""The most rows that are read, texts that are measured, pairs that are shown, and characters of a shown text."""


@dataclass(frozen=True, kw_only=True)
class Preview:
    """The first pairs of a source, the reasons for which others are none, and how many ``rows`` they come from."""

    pairs: list[Pair]
    rejected: Counter[str]
    rows: int
    more: bool

    @property
    def repeated(self) -> int:
        """How many of the pairs occurred before."""
        return len(self.pairs) - len({(pair.query, pair.document) for pair in self.pairs})


def preview(source: AnySource) -> Preview:
    """Read the first ``ROWS`` rows.

    Raises:
        InputError: the source cannot be read.
    """
    pairs: list[Pair] = []
    rejected: Counter[str] = Counter()
    rows = (row for part in source.parts() for row in source.rows(part))
    places = set()
    for row in itertools.islice(rows, ROWS):
        places.add((row.source, row.number))
        try:
            pairs.append(normalise(row))
        except RowError as error:
            rejected[str(error)] += 1
    return Preview(pairs=pairs, rejected=rejected, rows=len(places), more=next(rows, None) is not None)


def describe(rows: Preview, entry: Entry, params: dict[str, Any]) -> str:
    """Return some pairs, counts, reasons of rejects, and how long the texts are."""
    count = len(rows.pairs) + sum(rows.rejected.values())
    shown = {key: value for key, value in entry.items() if key not in ("kind", "columns", "labels")}
    lines = [f"{entry['kind']}: {', '.join(f'{key} {value}' for key, value in shown.items())}", ""]
    for pair in rows.pairs[:: max(len(rows.pairs) // SHOWN, 1)][:SHOWN]:
        lines += [f"  query     {_short(pair.query)}", f"  document  {_short(pair.document)}", ""]
    counts = f"{rows.rows:,} rows" + (", and more" if rows.more else "")
    lines.append(f"{counts}: {len(rows.pairs):,} pairs, {rows.repeated:,} of them repeated")
    lines += [f"  rejected: {reason} ({number:,})" for reason, number in rows.rejected.most_common()]
    most = float(
        (params.get("ingest") or {}).get("max_reject_rate", IngestParams.model_fields["max_reject_rate"].default)
    )
    if (share := (rows.rejected.total() - rows.rejected[NO_MATCH]) / count) > most:
        lines.append(
            f"  {share:.0%} are more than ingest.max_reject_rate, so ingest will stop; correct them, or raise it"
        )
    if splits := Counter(pair.split for pair in rows.pairs if pair.split):
        lines.append(f"splits: {', '.join(f'{number:,} {split}' for split, number in splits.most_common())}")
    if groups := {pair.group for pair in rows.pairs if pair.group}:
        lines.append(f"groups: {len(groups):,}, each in one split")
    lines += _torn(rows.pairs)
    for side in ("query", "document"):
        texts = [getattr(pair, side) for pair in rows.pairs]
        lengths = sorted(len(text.split()) for text in texts)
        lines.append(f"{side}: {lengths[len(lengths) // 2]} words (median), {lengths[-1]:,} at most")
        cut = {name: share for name, share in _cut_shares(texts, params).items() if share > 0.005}
        lines += [f"  {share:.0%} are cut at {name}" for name, share in cut.items()]
    return "\n".join(lines)


def _torn(pairs: Sequence[Pair]) -> list[str]:
    """Say how many groups and queries have rows of several splits, which ingest does not tear apart."""
    lines = []
    for plural, key in (("groups", "group"), ("queries", "query")):
        stated: dict[str, set[str | None]] = {}
        for pair in pairs:
            stated.setdefault(getattr(pair, key), set()).add(pair.split)
        stated.pop("", None)
        if torn := sum({"test", "dev"} & splits != set() and len(splits) > 1 for splits in stated.values()):
            lines.append(f"  {torn:,} {plural} have rows of several splits: all rows of one go to test, or else to dev")
    return lines


def describe_columns(table: Table, entry: Entry) -> list[str]:
    """Return a line for each column: what it is read as, or that it is left out."""
    names = {column: " ".join(column.split()) for column in table}
    width = max(map(len, names.values()), default=0)
    roles = {column: _role(column, values, entry) for column, values in table.items()}
    left = [column for column, role in roles.items() if role.startswith(LEFT_OUT) and not is_ours(column)]
    keep = [f"to keep columns that are left out beside the pairs: --metadata {shlex.join(left)}"] if left else []
    return [*(f"column {names[column]:{width}}  {role}" for column, role in roles.items()), *keep]


def _role(column: str, values: Sequence[object], entry: Entry) -> str:
    columns, label = entry["columns"], entry.get("labels", {})
    if column == label.get("column"):
        rule = f"at least {label['at_least']:g}" if "at_least" in label else " or ".join(map(str, label["positive"]))
        return f"labels: rows with {rule} are pairs, the others are left out"
    if column in (columns["query"], columns["document"]):
        return _of_side(column, values, columns)
    sides = {**columns, "domain": entry.get("domain_column")}.items()
    read = [_READ_AS.get(side, side) for side, what in sides if column in (what if isinstance(what, list) else [what])]
    if read:
        return f"read as {', and '.join(read)}"
    only = {known_split(value) for value in values}
    if words(column)[-1:] == ["split"] and len(only) == 1 and None not in only:
        return f"{LEFT_OUT} (only {only.pop()} so far; --split-column {shlex.quote(column)} reads it)"
    kind, option = _kind(values), shlex.quote(column)
    hints = {
        "domain": f"--domain-column {option} makes a domain of each of them",
        "group": f"--group {option} keeps each of them in one split",
    }
    hint = hints.get(words(column)[-1]) if words(column) and kind not in ("empty", "lists") else None
    return f"{LEFT_OUT} ({kind}; {hint})" if hint else f"{LEFT_OUT} ({kind})"


def _of_side(column: str, values: Sequence[object], columns: Entry) -> str:
    if columns["query"] == columns["document"] and (chats := [value for value in values if is_chat(value)]):
        more = sum(map(has_more, chats))
        left = f"; {more:,} of the first {len(chats):,} chats go on, which is left out" if more else ""
        return f"read as chats: the first turn of a user is the query, the answer after it the document{left}"
    if column == columns["query"]:
        return "read as query"
    lists = any(isinstance(value, list) for value in values)
    return "read as document" + (", a pair for each of a list" if lists else "")


def _kind(values: Sequence[object]) -> str:
    """What a column holds, in a word."""
    if not filled(values):
        return "empty"
    if are_texts(values):
        return "texts"
    if any(isinstance(value, list) for value in values):
        return "lists"
    return "numbers" if all(number_of(value) is not None for value in filled(values)) else "other values"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"


def _cut_shares(texts: Sequence[str], params: dict[str, Any]) -> dict[str, float]:
    """Return the share of ``texts`` that each model of ``params.yaml`` cuts off at its ``max_length``.

    Models without a tokenizer on this machine are left out.
    """
    shares = {}
    for group, name, model in _models(params):
        try:
            file = locate_model(model["name"], version_of(model)) / "tokenizer.json"
        except InputError:
            continue
        if file.is_file():
            tokenizer = Tokenizer.from_file(str(file))
            tokenizer.no_truncation()
            tokenizer.no_padding()
            lengths = np.array([len(encoding.ids) for encoding in tokenizer.encode_batch(list(texts[:MEASURED]))])
            given = model["max_length"]
            limit = max(map(int, given.values() if isinstance(given, dict) else [given]))
            shares[f"{group}.{name}.max_length ({limit} tokens)"] = float(np.mean(lengths > limit))
    return shares


def version_of(model: Mapping[str, Any]) -> ModelVersion:
    """Return the version of a model that an entry of ``params.yaml`` names."""
    return ModelVersion(**{name: model[name] for name in ModelVersion.model_fields if name in model})


def _models(params: dict[str, Any]) -> list[tuple[str, str, Entry]]:
    groups = {"embed.models": params.get("embed", {}).get("models", {}), "start_models": params.get("start_models", {})}
    return [
        (group, name, model)
        for group, models in groups.items()
        for name, model in models.items()
        if "name" in model and model.get("max_length")
    ]
