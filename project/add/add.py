"""Look at a file, a folder or a dataset of pairs, show what it holds, and name it in ``params.yaml``."""

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import SingleQuotedScalarString

from batchwright.core.atomic import atomic_file
from batchwright.core.errors import InputError
from batchwright.core.params import PARAMS_FILE, read_params
from batchwright.core.paths import RAW_PAIRS, unwatched
from batchwright.core.terminal import hint
from pipelines.files import find_files
from pipelines.ingest.sources import AnySource
from pipelines.ingest.sources.csv import delimiter_of, likely_delimiter
from pipelines.ingest.sources.labels import NO_MATCH
from project.add.columns import Table, guess_columns
from project.add.estimate import estimate
from project.add.kinds import Entry, guess_kind, not_read
from project.add.labels import guess_labels
from project.add.peek import peek, text_in_header
from project.add.preview import describe, describe_columns, preview
from project.add.remote import dataset, fetched, is_url
from project.add.texts import check_texts

_OF_ROWS = ("query", "document", "domain_column", "label", "split_column", "group", "weight")
"""Options that name a column of the pairs; the first two are of texts."""
_CURES = {
    "UTF-8": "convert the file to UTF-8",
    "domain is too long": "give it a shorter one with --domain",
    NO_MATCH: "correct --positive or --at-least",
}
"""What to do if no row is a pair, by what the reason says."""


def add(path: str, *, look: bool, split: str | None = None, config: str | None = None, **options: Any) -> str:
    """Return what there is to see; ``look`` changes nothing, and other options overrule guesses.

    Raises:
        InputError: the file cannot be read, or it is not clear what its columns are.
    """
    _check(options)
    given = {name: value for name, value in options.items() if value is not None and value is not False}
    params = _read()
    if on_hub := dataset(path, split, config):
        return _add(params, Path(on_hub["name"]), on_hub, given, look)
    if config is not None:
        raise InputError(f"{path}: --config is for datasets of the hub, hf://datasets/OWNER/NAME; leave it out")
    if is_url(path):
        with fetched(path, look=look) as file:
            return _add(params, file, _of_split(file, split), given, look)
    local = _in_project(Path(path))
    return _add(params, local, _of_split(local, split), given, look)


def _of_split(path: Path, split: str | None) -> Entry:
    """Guess what ``path`` is, and take the split that is asked for.

    Raises:
        InputError: it has no splits.
    """
    entry = guess_kind(path)
    if split is None:
        return entry
    if entry["kind"] not in ("beir", "huggingface"):
        raise InputError(
            f"{path}: --split is for datasets of the hub or of save_to_disk, and for BEIR folders; leave it out, or "
            "add the files of the split by themselves"
        )
    return entry | {"split": split}


def _add(params: dict[str, Any], path: Path, kind: Entry, given: Entry, look: bool) -> str:
    entry, table = _entry(path, kind, given)
    rows = preview(_source(entry))
    if not rows.pairs:
        reason = next(iter(rows.rejected), "no judgement is above 0" if entry["kind"] == "beir" else "it is empty")
        convert = next((f"; {cure}" for what, cure in _CURES.items() if what in reason), "")
        raise InputError(f"{path}: no row is a pair; the first reason: {reason}{convert}")
    shown = "\n".join([describe(rows, entry, params), *describe_columns(table, entry), *not_read(path, entry)])
    entry = _quoted(entry, str(path))
    if look:
        return f"{shown}\n\nNothing was written."
    if "revision" not in entry:  # which is on the hub
        place = {key: value for key, value in guess_kind(_bring_in(path)).items() if key in ("path", "name")}
        entry = _quoted(entry | place, str(path))
    sources = params["ingest"]["sources"] or []
    if entry in sources:
        return f"{shown}\n\n{PARAMS_FILE} names it already. Next: dvc repro"
    domain = _of_domain(entry, sources, given)
    _write(params, entry)
    told = filter(None, [domain, estimate(params, rows.pairs, rows.more)])
    return "\n".join([shown, "", *told, f"Written to {PARAMS_FILE}. Next: dvc repro"])


def _of_domain(entry: Entry, sources: list[Entry], given: Entry) -> str:
    """Say what to do if a source that got a domain of its own is searched together with others; empty if it did not."""
    others = [name for source in sources if (name := source.get("domain")) and name != entry.get("domain")]
    if not others or {"domain", "domain_column"} & given.keys():
        return ""
    return (
        f"It is a domain of its own: '{entry['domain']}'. If it is searched together with '{others[-1]}', give "
        f"both one domain in {PARAMS_FILE}"
    )


def _check(options: Mapping[str, Any]) -> None:
    for one, other in (("domain", "domain_column"), ("positive", "at_least")):
        if options[one] is not None and options[other] is not None:
            raise InputError(f"{_flag(one)} and {_flag(other)} exclude each other; leave out one of the two")
    for name in ("positive", "at_least"):
        if options[name] is not None and options["label"] is None:
            raise InputError(f"{_flag(name)} needs the column of labels; say --label COLUMN, too")


def _flag(option: str) -> str:
    return f"--{option.replace('_', '-')}"


def _entry(path: Path, entry: Entry, given: Entry) -> tuple[Entry, Table]:
    """Complete the entry of a source; return it and the first values of its columns; a BEIR folder has none."""
    table: Table = {}
    if entry["kind"] == "csv":
        entry |= _csv(entry, given)
    elif given.get("no_header"):
        raise InputError(f"{path}: --no-header is for CSV and TSV; leave it out")
    if entry["kind"] != "beir":
        table = peek(entry)
        ignored = given.get("ignore", [])
        named = [given.get(option, []) for option in (*_OF_ROWS, "negatives", "metadata")]
        _check_columns(path, table, [*ignored, *(name for each in named for name in _listed(each))])
        kept = {column: values for column, values in table.items() if column not in ignored}
        entry["columns"] = guess_columns(_without(kept, given), given, str(path))
        sides = entry["columns"]["query"], entry["columns"]["document"]
        check_texts(table, entry["columns"], given, str(path))
        if both := [column for column in given.get("negatives", []) if column in sides]:
            raise InputError(f"{path}: column '{both[0]}' is a query or document already; take it out of --negatives")
        taken = [*(name for each in entry["columns"].values() for name in _listed(each)), given.get("domain_column")]
        if labels := guess_labels(kept, taken, given, str(path)):
            entry["labels"] = labels
    elif columns := [name for name in (*_OF_ROWS, "negatives", "ignore") if name in given]:
        raise InputError(f"{path}: is a BEIR folder, which has no columns; leave out {_flag(columns[0])}")
    elif "metadata" in given:
        entry["columns"] = {"metadata": given["metadata"]}
    domain = {name: given[name] for name in ("domain", "domain_column") if name in given}
    name = Path(os.path.abspath(path)).name  # noqa: PTH100 (DVC may have made the file a link to its cache)
    return entry | (domain or {"domain": name.strip(".").partition(".")[0]}), table


def _without(table: Table, given: Entry) -> Table:
    """Leave out the columns that are said to be none of texts."""
    others = {given.get(name) for name in _OF_ROWS[2:]}
    return {column: values for column, values in table.items() if column not in others}


def _listed(names: str | list[str]) -> list[str]:
    return [names] if isinstance(names, str) else names


def _csv(entry: Entry, given: Entry) -> Entry:
    """Return how a CSV file is to be read.

    Raises:
        InputError: its first line looks like data, and nobody says that it is, or which columns it names.
    """
    settings: Entry = {"header": False} if given.get("no_header") else {}
    file = find_files(entry["path"])[0]
    if (delimiter := likely_delimiter(file)) != delimiter_of(file):
        settings["delimiter"] = delimiter
    text = None if {"query", "document"} <= given.keys() else text_in_header(entry | settings)
    if text is not None:
        raise InputError(
            f"{file}: the first line looks like data, such as '{text[:60]}'; add --no-header if it is, or say which "
            "columns it names: --query and --document"
        )
    return settings


def _check_columns(path: Path, table: Table, named: list[str]) -> None:
    for column in named:
        if column not in table:
            raise InputError(f"{path}: no column '{column}'{hint(column, table)}")


def _source(entry: Entry) -> AnySource:
    try:
        source: AnySource = TypeAdapter(AnySource).validate_python(entry)
    except ValidationError as error:
        found = error.errors()[0]
        what = f"{found['loc'][-1]}: {found['msg']} (found {found['input']!r})"
        raise InputError(f"{entry.get('path') or entry.get('name')}: {what}") from None
    return source


def _quoted(value: Any, name: str) -> Any:
    """Return an entry whose texts, such as no and 12:30, are quoted where YAML 1.1 reads something else.

    Raises:
        InputError: a text cannot be written.
    """
    if isinstance(value, dict):
        return {key: _quoted(item, name) for key, item in value.items()}
    if isinstance(value, list):
        return [_quoted(item, name) for item in value]
    if not isinstance(value, str):
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InputError(f"{name}: the name {value!r} is not UTF-8; convert the file, or rename it") from None
    try:
        same = yaml.safe_load(value) == value
    except (yaml.YAMLError, ValueError):
        same = False
    return value if same else SingleQuotedScalarString(value)


def _in_project(path: Path) -> Path:
    """Return a path in the project as relative, however it was named, since it is written into ``params.yaml``."""
    whole = Path(os.path.abspath(path))  # noqa: PTH100 (a link to a file is a name of its own)
    whole = whole.parent.resolve() / whole.name
    return whole.relative_to(Path.cwd()) if whole.is_relative_to(Path.cwd()) else path


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
    if not isinstance((read_params(PARAMS_FILE).get("ingest") or {}).get("sources", []), list):
        raise InputError(f"{PARAMS_FILE}: ingest.sources is no list; write sources: [] into the group ingest")
    params: dict[str, Any] = _yaml().load(PARAMS_FILE.read_text(encoding="utf-8"))
    params["ingest"] = params.get("ingest") or {}
    params["ingest"].setdefault("sources", [])
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
        if link.resolve() == file.resolve():
            continue
        if link.exists() or link.is_symlink():
            raise InputError(f"{link}: is there already; rename {path}, or remove that one")
        link.parent.mkdir(parents=True, exist_ok=True)
        whole = file.resolve()
        own = whole.is_relative_to(Path.cwd().resolve())  # so that it leads to the file in every clone
        link.symlink_to(os.path.relpath(whole, link.parent.resolve()) if own else whole)
    return target
