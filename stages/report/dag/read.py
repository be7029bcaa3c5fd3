"""Read the stages of ``dvc.yaml`` and expand their loops."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from batchwright.core.errors import InputError
from batchwright.core.messages import hint

Group = Mapping[str, Mapping[str, Any]] | Sequence[str]
"""What a stage may loop over: entries by name (``foreach``), or names (``matrix``)."""

Item = dict[str, str]
"""The values of a loop's placeholders in one of its runs."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A stage. ``many`` says whether it is a loop; ``reads`` lists the paths that each of its runs reads."""

    name: str
    many: bool
    reads: list[list[str]]
    writes: list[str]


def read_stages(file: Path, groups: Mapping[str, Group]) -> list[Stage]:
    """Return the stages in a ``dvc.yaml``, except loops over nothing.

    Raises:
        InputError: the file is missing, is not a pipeline, or loops over something that is not in ``groups``.
    """
    try:
        stages = yaml.safe_load(file.read_text(encoding="utf-8"))["stages"]
        found = [_stage(name, entry, groups) for name, entry in stages.items()]
    except FileNotFoundError:
        raise InputError(f"{file}: no such file; run from the project's folder") from None
    except (yaml.YAMLError, UnicodeDecodeError, TypeError, KeyError, AttributeError):
        raise InputError(f"{file}: not a pipeline; expected YAML with 'stages'") from None
    return [stage for stage in found if stage.reads]


def _stage(name: str, entry: Mapping[str, Any], groups: Mapping[str, Group]) -> Stage:
    command = entry.get("do", entry)
    written = [*command.get("outs", []), *command.get("metrics", []), *command.get("plots", [])]
    items = list(_items(name, entry, groups))
    return Stage(
        name=name,
        many="matrix" in entry or "foreach" in entry,
        reads=[[_path(dep, item) for dep in command.get("deps", [])] for item in items],
        writes=[_path(out, item) for item in items for out in written],
    )


def _items(name: str, entry: Mapping[str, Any], groups: Mapping[str, Group]) -> Iterator[Item]:
    """Yield one item for each run of the stage."""
    if "foreach" in entry:
        for key, values in _group(name, entry["foreach"], groups).items():
            yield {"key": key} | {f"item.{field}": str(value) for field, value in values.items()}
    elif "matrix" in entry:
        axes = [_group(name, values, groups) for values in entry["matrix"].values()]
        for chosen in product(*axes):
            yield {f"item.{axis}": str(value) for axis, value in zip(entry["matrix"], chosen, strict=True)}
    else:
        yield {}


def _group(name: str, values: Any, groups: Mapping[str, Group]) -> Any:
    """Return the group that ``${group}`` names; return values that are written out as they are."""
    if not isinstance(values, str):
        return values
    group = values.strip("${}")
    if group not in groups:
        raise InputError(
            f"dvc.yaml: '{name}' loops over '{group}', which the report does not read{hint(group, groups)}"
        )
    return groups[group]


def _path(entry: str | Mapping[str, Any], item: Item) -> str:
    """Return the path of an entry with or without settings; placeholders that the item does not fill are wildcards."""
    path = entry if isinstance(entry, str) else next(iter(entry))
    for name, value in item.items():
        path = path.replace(f"${{{name}}}", value)
    return re.sub(r"\$\{[^}]*\}", "*", path)
