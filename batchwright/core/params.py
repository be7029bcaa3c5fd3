"""Reads ``params.yaml`` into typed groups; an unknown key is an error that suggests the closest known one."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from batchwright.core.errors import InputError
from batchwright.core.terminal import hint

PARAMS_FILE = Path("params.yaml")

_MALFORMED = (yaml.YAMLError, ValueError, LookupError, AttributeError, ArithmeticError)
"""What PyYAML raises: its own errors, and those of Python for a scalar that its tag does not fit."""

P = TypeVar("P", bound=BaseModel)
Place = tuple[list[str], list[str]]
"""The keys that lead to a parameter, and the names that are valid for the last key."""

Language = Literal[
    "arabic",
    "armenian",
    "basque",
    "catalan",
    "czech",
    "danish",
    "dutch",
    "english",
    "esperanto",
    "estonian",
    "finnish",
    "french",
    "german",
    "greek",
    "hindi",
    "hungarian",
    "indonesian",
    "irish",
    "italian",
    "lithuanian",
    "nepali",
    "norwegian",
    "persian",
    "polish",
    "portuguese",
    "romanian",
    "russian",
    "serbian",
    "sesotho",
    "spanish",
    "swedish",
    "tamil",
    "turkish",
    "yiddish",
]
"""Languages whose words BM25 can stem."""


class Params(BaseModel):
    """Base of every parameter group: frozen, without unknown keys, and documented by the literals under its fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)

    @model_validator(mode="before")
    @classmethod
    def _no_truth_values(cls, values: Any) -> Any:
        """Make words of yes and no where numbers are meant, so that they are refused, and not 1 and 0."""
        if not isinstance(values, dict):
            return values
        return {name: _spelt(value) if _is_number(cls, name) else value for name, value in values.items()}


@cache
def _is_number(model: type[BaseModel], name: Any) -> bool:
    """Whether a field may hold numbers, but no truth value."""
    types = _types(model.model_fields[name].annotation) if name in model.model_fields else []
    return bool not in types and (int in types or float in types)


def _spelt(value: Any) -> Any:
    """Truth values as words, also in a list and in values of a group."""
    if isinstance(value, dict):
        return {key: _spelt(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_spelt(each) for each in value]
    return str(value).lower() if isinstance(value, bool) else value


def _types(annotation: Any) -> list[Any]:
    """All types that an annotation names."""
    return [annotation, *(each for inner in get_args(annotation) for each in _types(inner))]


class Base(Params):
    """Group ``base``: settings that all stages share."""

    seed: int = Field(default=17, ge=0, lt=2**32)
    """Seed of all random numbers; it determines clusters, batches and initial weights."""
    language: Language | None = "english"
    """The language of the texts, for BM25 only: it compares stems, and leaves out stop words where it knows some. null
    compares whole words, for languages that are not here, or several."""


def with_kind(choose: Callable[[dict[str, Any]], str | None]) -> BeforeValidator:
    """Give an entry that names no ``kind`` the one that ``choose`` finds for it, if any."""

    def completed(entry: Any) -> Any:
        if not isinstance(entry, dict) or "kind" in entry:
            return entry
        kind = choose(entry)
        return {"kind": kind, **entry} if kind else entry

    return BeforeValidator(completed)


def load_params(group: str, model: type[P], file: Path = PARAMS_FILE) -> P:
    """Read the group ``group`` of ``file``, such as ``train.cde``, as ``model``.

    Raises:
        InputError: the file, the group or a key is missing, a key is unknown, or a value is invalid.
    """
    values = _group(read_params(file), group, file)
    try:
        return model.model_validate(values)
    except RecursionError:
        raise InputError(f"{file}: '{group}' contains itself; write it out without & and *") from None
    except ValidationError as error:
        found = [(_place(detail, model), detail) for detail in error.errors()]
        whole = {tuple(keys[:end]) for (keys, _), _ in found for end in range(len(keys))}
        # Where something else was meant than a group, such as a number, what is wrong in the group tells more.
        lines = [_explain(detail, group, *place) for place, detail in _united(found) if tuple(place[0]) not in whole]
        raise InputError(f"{file}: " + f"\n{file}: ".join(lines)) from None


class _Loader(yaml.SafeLoader):
    """Refuses a key that is there twice, of which YAML takes the last without a word, and endless numbers."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if twice := [name for name in names if names.count(name) > 1 and name != "<<"]:
            raise yaml.constructor.ConstructorError(None, None, f"key '{twice[0]}' is there twice", node.start_mark)
        return super().construct_mapping(node, deep)

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        number: int = super().construct_yaml_int(node)
        str(number)  # ValueError if it is too long to be shown, which YAML itself sees in decimal numbers only
        return number


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)


def read_params(file: Path) -> dict[str, Any]:
    """Read all groups as they stand there.

    Raises:
        InputError: the file is missing, or is not YAML with groups.
    """
    try:
        values = yaml.load(file.read_text(encoding="utf-8"), _Loader)
    except FileNotFoundError:
        raise InputError(f"{file}: no such file in {Path.cwd()}; run from the project folder") from None
    except _MALFORMED as error:
        raise InputError(f"{file}: not valid YAML: {error}") from None
    except RecursionError:
        raise InputError(f"{file}: is nested too deeply") from None
    if not isinstance(values, dict):
        raise InputError(f"{file}: expected groups of parameters, found {type(values).__name__}")
    return values


def _group(values: dict[str, Any], group: str, file: Path) -> Any:
    found: Any = values
    for name in group.split("."):
        if not isinstance(found, dict) or name not in found:
            known = [str(key) for key in found] if isinstance(found, dict) else []
            raise InputError(f"{file}: no parameter group '{group}'{hint(name, known)}")
        found = found[name]
    return {} if found is None else found


def _united(found: Iterable[tuple[Place, ErrorDetails]]) -> Iterator[tuple[Place, ErrorDetails]]:
    """Make one error of those that say of one value what each of its alternative forms should be.

    Where one form was meant, such as a group of numbers, only what is wrong in it counts.
    """
    by_key: dict[tuple[str, ...], list[tuple[Place, ErrorDetails]]] = {}
    for place, detail in found:
        by_key.setdefault(tuple(place[0]), []).append((place, detail))
    for errors in by_key.values():
        depth = max(len(detail["loc"]) for _, detail in errors)
        (place, first), *others = (error for error in errors if len(error[1]["loc"]) == depth)
        forms = [detail["msg"].removeprefix("Input should be ") for _, detail in others]
        yield place, {**first, "msg": ", or ".join([first["msg"], *forms])}


def _explain(detail: ErrorDetails, group: str, place: Sequence[str], known: Sequence[str]) -> str:
    key = ".".join([group, *place])
    if detail["type"] == "extra_forbidden":
        return f"unknown parameter '{key}'{hint(place[-1], known)}"
    if detail["type"] == "missing":
        return f"parameter '{key}' is missing"
    if detail["type"] == "union_tag_not_found":
        return f"parameter '{key}.{_tag_name(detail)}' is missing"
    if detail["type"] == "union_tag_invalid":
        tags = [tag.strip(" '") for tag in detail["ctx"]["expected_tags"].split(",")]
        tag = detail["ctx"]["tag"]
        return f"parameter '{key}.{_tag_name(detail)}': unknown value '{tag}'{hint(tag, tags)}"
    return f"parameter '{key}': {detail['msg'].removeprefix('Value error, ')} (found {detail['input']!r})"


def _tag_name(detail: ErrorDetails) -> str:
    """The key that selects one of a parameter's alternative forms."""
    return str(detail["ctx"]["discriminator"]).strip("'")


def _place(detail: ErrorDetails, model: type[BaseModel]) -> Place:
    """Find where an error is in the file.

    Pydantic's location also contains what a union may hold, which are no keys in the file.
    """
    location = detail["loc"]
    schema = model.model_json_schema()
    definitions = schema.get("$defs", {})
    keys: list[str] = []
    names: list[str] = []
    for at, part in enumerate(location, start=1):
        tagged = schema.get("discriminator", {}).get("mapping", {}).get(part)
        if tagged:
            schema = definitions[tagged.rpartition("/")[2]]
            continue
        unknown = detail["type"] == "extra_forbidden" and at == len(location)
        named = part in schema.get("properties", {}) or schema.get("additionalProperties") or part == "[key]"
        if isinstance(part, str) and not (named or unknown):
            continue
        keys.append(str(part))
        names = sorted(schema.get("properties", {}))
        inner = schema.get("properties", {}).get(part) or schema.get("items") or schema.get("additionalProperties")
        schema = _group_of(inner if isinstance(inner, dict) else {}, definitions)  # true allows anything
    return keys, names


def _group_of(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Resolve the schema of a group that is a reference, has alternative forms, or is optional."""
    for choice in [schema, *schema.get("anyOf", [])]:
        if "discriminator" in choice:
            tagged: dict[str, Any] = choice
            return tagged
        if "$ref" in choice:
            found: dict[str, Any] = definitions[choice["$ref"].rpartition("/")[2]]
            return found
    return schema
