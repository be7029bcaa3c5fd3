"""Look at a file or a folder of pairs, show what it holds, and name it in ``params.yaml``."""

import io
import os
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from ruamel.yaml import YAML

from batchwright.core.atomic import atomic_file
from batchwright.core.errors import InputError
from batchwright.core.params import PARAMS_FILE
from batchwright.core.paths import RAW_PAIRS, unwatched
from pipelines.files import find_files
from pipelines.ingest.sources import AnySource
from pipelines.ingest.sources.csv import delimiter_of, likely_delimiter
from project.add.guess import Entry, guess_columns, guess_kind, not_read, peek
from project.add.preview import describe, preview


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
    params = _read()
    domains = {"domain": domain, "domain_column": domain_column}
    columns = {"query": query, "document": document, "negatives": negatives}
    entry = _entry(path, _given(domains), _given(columns))
    rows = preview(_source(entry))
    if not rows.pairs:
        raise InputError(f"{path}: no row is a pair; the first reason: {next(iter(rows.rejected), 'it is empty')}")
    shown = describe(rows, entry, params)
    if others := not_read(path, entry):
        shown += f"\nnot read: {len(others):,} files of other kinds, such as {others[0]}; add them by themselves"
    if look:
        return f"{shown}\n\nNothing was written."
    entry |= guess_kind(_bring_in(path))
    if entry in (params["ingest"]["sources"] or []):
        return f"{shown}\n\n{PARAMS_FILE} names it already. Next: dvc repro"
    _write(params, entry)
    return f"{shown}\n\nWritten to {PARAMS_FILE}. Next: dvc repro"


def _given(options: dict[str, Any]) -> Entry:
    return {name: value for name, value in options.items() if value}


def _entry(path: Path, domain: Entry, columns: Entry) -> Entry:
    entry = guess_kind(path)
    if entry["kind"] == "csv":
        file = find_files(entry["path"])[0]
        if (delimiter := likely_delimiter(file)) != delimiter_of(file):
            entry["delimiter"] = delimiter
    if entry["kind"] != "beir":
        entry["columns"] = guess_columns(peek(entry), columns, str(path))
    return entry | (domain or {"domain": path.name.partition(".")[0]})


def _source(entry: Entry) -> AnySource:
    try:
        source: AnySource = TypeAdapter(AnySource).validate_python(entry)
    except ValidationError as error:
        raise InputError(f"{entry}: {error.errors()[0]['msg']}") from None
    return source


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


def _bring_in(path: Path) -> Path:
    """Return where DVC watches a file or a folder: where it is, or links in ``raw/pairs``, which this makes.

    Raises:
        InputError: something else has its name there.
    """
    if not unwatched(path, RAW_PAIRS):
        return Path(os.path.relpath(path))
    target = RAW_PAIRS / path.name
    files = [file for file in sorted(path.rglob("*")) if file.is_file()] if path.is_dir() else [path]
    for file in files:
        link = target / file.relative_to(path)
        if link.is_symlink() and link.resolve() == file.resolve():
            continue
        if link.exists() or link.is_symlink():
            raise InputError(f"{link}: is there already; rename {path}, or remove that one")
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(file.resolve())
    return target
