"""Names in ``params.yaml`` that become names of folders and words of commands."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator

from batchwright.core.errors import InputError
from batchwright.core.terminal import shown

BM25 = "bm25"
"""What ranks by words, among the names of models."""
NO_MODEL = "raw/models"
"""What DVC watches where something other than a model's folder counts: a folder that every project has."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", re.ASCII)
POLICIES = ("contextual", "random")
"""The batches that ``pack`` makes."""
RESERVED = {"runs": {"start"}, **{group: set(POLICIES) for group in ("mine", "teach", "tune")}}
"""What lies where a group's entries would: ``models/start``, and the shards of both policies."""
_BESIDE = ("-dev", "-examples", "-validation", "-length", "-ranks")
"""Ends of the names of further tables that a run, a pre-training or a list of tokens has in ``results``."""
_RULE = "use letters, digits, - and _, at most 100, the first a letter or digit"
_GROUPS = ("runs", "start_models", "pretrain", "mine", "teach", "tune", "tokens")


def check_name(name: str) -> str:
    """Return the name of a run, a model or a set of shards, if it can be that of a folder and a word of a command.

    Raises:
        ValueError: it cannot.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"{shown(name)} cannot be a name; {_RULE}")
    return name


def check_path(path: str) -> str:
    """Return a path, if it is relative and all of its parts are names.

    Raises:
        ValueError: it is not.
    """
    for part in path.split("/"):
        check_name(part)
    return path


def check_watched(path: str) -> str:
    """Return the path of a model that DVC watches.

    Raises:
        ValueError: it is ``BM25``, or no path of names.
    """
    if path == BM25:
        raise ValueError(f"'{BM25}' is no folder, which DVC could watch; write 'model: {NO_MODEL}' and 'name: {BM25}'")
    return check_path(path)


def check_instead(model: str, name: str | None) -> None:
    """Check that no ``model`` is watched where its ``name`` counts instead.

    Raises:
        ValueError: one is.
    """
    if name and model != NO_MODEL:
        raise ValueError(f"'name: {name}' counts instead of '{model}'; write 'model: {NO_MODEL}', or remove 'name'")


Name = Annotated[str, AfterValidator(check_name)]
NamedPath = Annotated[str, AfterValidator(check_path)]
WatchedPath = Annotated[str, AfterValidator(check_watched)]


def check_names(params: Mapping[str, Any], file: Path) -> None:
    """Check the names that DVC puts into commands and paths, before any of them is run.

    Raises:
        InputError: a name is none, or is taken.
    """
    # Whoever reads a group says what else is wrong with it.
    groups = {name: params[name] for name in _GROUPS if isinstance(params.get(name), dict | list)}
    for group, entries in groups.items():
        for name in entries:
            if not isinstance(name, str):
                raise InputError(f"{file}: {group}: YAML reads the name {name!r} as no text; put quotes around it")
    for group, name in _names(groups):
        try:
            check_name(name)
        except ValueError as error:
            raise InputError(f"{file}: {group}: {error}") from None
    names = {group: set(map(str, entries)) for group, entries in groups.items()}
    for group, name in ((group, name) for group, entries in names.items() for name in sorted(entries) if "." in name):
        raise InputError(f"{file}: {group}: '{name}' has a dot, which for DVC begins a parameter's name; use - or _")
    for group, name in _taken(names):
        raise InputError(f"{file}: {group}: '{name}' is taken; choose another name")


def _taken(names: dict[str, set[str]]) -> Iterator[tuple[str, str]]:
    """Yield names whose files would be those of another entry, or of ours."""
    for group, entries in names.items():
        beside = {name + kind for name in entries for kind in _BESIDE}
        yield from ((group, name) for name in sorted(entries & (beside | RESERVED.get(group, set()))))
    for group, other in (("pretrain", "start_models"), ("teach", "mine"), ("tune", "mine"), ("tune", "teach")):
        yield from ((group, name) for name in sorted(names.get(group, set()) & names.get(other, set())))


def _names(groups: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each name with the place where it stands."""
    for group, entries in groups.items():
        yield from ((group, str(name)) for name in entries)
        for name, entry in entries.items() if isinstance(entries, dict) else ():
            named = entry if isinstance(entry, dict) else {}
            yield from ((f"{group}.{name}", str(named[key])) for key in ("variant", "batches", "run") if key in named)
