"""Look at a file or a folder of pairs, show what it holds, and name it in ``params.yaml``."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from ruamel.yaml import YAML

from batchwright.core.atomic import atomic_file
from batchwright.core.errors import InputError
from batchwright.core.params import PARAMS_FILE
from pipelines.files import find_files
from pipelines.ingest.sources import AnySource
from pipelines.ingest.sources.csv import delimiter_of, likely_delimiter
from project.add.columns import guess_columns
from project.add.kinds import Entry, guess_kind, not_read
from project.add.lengths import cut_shares
from project.add.look import Look, look_at
from project.add.peek import peek
from project.add.watched import bring_in

WIDTH = 100


def add(
    path: Path,
    *,
    query: str | None,
    document: str | None,
    negatives: list[str] | None,
    domain: str | None,
    domain_column: str | None,
    look: bool,
) -> str:
    """Return what there is to see; columns and domains that are given overrule guesses, and ``look`` changes nothing.

    Raises:
        InputError: the file cannot be read, or it is not clear what its columns are.
    """
    if domain and domain_column:
        raise InputError("--domain and --domain-column exclude each other; leave out one of the two")
    named = {key: value for key, value in (("domain", domain), ("domain_column", domain_column)) if value}
    columns = {
        key: value for key, value in (("query", query), ("document", document), ("negatives", negatives)) if value
    }
    params = _read()
    entry = _entry(path, named, columns)
    found = look_at(_source(entry))
    if not found.pairs:
        raise InputError(f"{path}: no row is a pair; the first reason: {next(iter(found.rejected), 'it is empty')}")
    shown = _show(found, entry, params) + _others(not_read(path, entry))
    if look:
        return f"{shown}\n\nNothing was written."
    entry |= guess_kind(bring_in(path))
    if entry in (params["ingest"]["sources"] or []):
        return f"{shown}\n\n{PARAMS_FILE} names it already. Next: dvc repro"
    _write(params, entry)
    return f"{shown}\n\nWritten to {PARAMS_FILE}. Next: dvc repro"


def _entry(path: Path, named: Entry, columns: Entry) -> Entry:
    entry = guess_kind(path)
    if entry["kind"] == "csv":
        file = find_files(entry["path"])[0]
        if (delimiter := likely_delimiter(file)) != delimiter_of(file):
            entry["delimiter"] = delimiter
    if entry["kind"] != "beir":
        entry["columns"] = guess_columns(peek(entry), columns, str(path))
    return entry | (named or {"domain": path.name.partition(".")[0]})


def _source(entry: Entry) -> AnySource:
    try:
        source: AnySource = TypeAdapter(AnySource).validate_python(entry)
    except ValidationError as error:
        raise InputError(f"{entry}: {error.errors()[0]['msg']}") from None
    return source


def _show(found: Look, entry: Entry, params: dict[str, Any]) -> str:
    rows = len(found.pairs) + sum(found.rejected.values())
    lines = [f"{entry['kind']}: {', '.join(f'{key} {value}' for key, value in entry.items() if key != 'kind')}", ""]
    for pair in found.pairs[:: max(len(found.pairs) // 5, 1)][:5]:
        lines += [f"  query     {_short(pair.query)}", f"  document  {_short(pair.document)}", ""]
    counts = f"{rows:,} rows" + (", and more" if found.more else "")
    lines.append(f"{counts}: {len(found.pairs):,} pairs, {found.repeated:,} of them repeated")
    lines += [f"  rejected: {reason} ({count:,})" for reason, count in found.rejected.most_common()]
    for side in ("query", "document"):
        texts = [getattr(pair, side) for pair in found.pairs]
        words = sorted(len(text.split()) for text in texts)
        lines.append(f"{side}: {words[len(words) // 2]} words (median), {words[-1]:,} at most")
        cut = {name: share for name, share in cut_shares(texts, params).items() if share > 0.005}
        lines += [f"  {share:.0%} are cut at {name}" for name, share in cut.items()]
    return "\n".join(lines)


def _others(names: Sequence[str]) -> str:
    return (
        f"\nnot read: {len(names):,} files of other kinds, such as {names[0]}; add them by themselves" if names else ""
    )


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"


def _yaml() -> YAML:
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 4096
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def _read() -> dict[str, Any]:
    """Read ``params.yaml`` with its comments."""
    if not PARAMS_FILE.is_file():
        raise InputError(f"{PARAMS_FILE}: no such file in {Path.cwd()}; run from the project folder")
    params: dict[str, Any] = _yaml().load(PARAMS_FILE.read_text(encoding="utf-8"))
    return params


def _write(params: dict[str, Any], entry: Entry) -> None:
    """Add a source, and keep all comments."""
    text = io.StringIO()
    if sources := params["ingest"]["sources"]:
        sources.append(entry)  # a new list would lose the comments
    else:
        params["ingest"]["sources"] = [entry]
    _yaml().dump(params, text)
    with atomic_file(PARAMS_FILE) as temporary:
        temporary.write_text(text.getvalue(), encoding="utf-8")
