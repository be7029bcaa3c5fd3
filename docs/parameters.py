"""``python -m docs.parameters``: writes the schema of ``params.yaml`` for editors, and the reference for readers."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from batchwright.core.command import command
from stages.params.check import SCHEMA

REFERENCE = Path(__file__).with_name("parameters.md")
_INTRODUCTION = """\
# Parameters

`python -m docs.parameters` writes this page from the models that check `params.yaml`, and
`stages/params/schema.json`, with which editors complete and check it. Other keys and values are
refused before any stage does something.

"""
_TYPES = {"string": "text", "boolean": "`true` or `false`", "object": "map"}
_LIMITS = {
    "minimum": ">= {}",
    "exclusiveMinimum": "> {}",
    "maximum": "<= {}",
    "exclusiveMaximum": "< {}",
    "minLength": "length >= {}",
    "maxLength": "length <= {}",
    "pattern": "like `{}`",
}
Schema = dict[str, Any]


def contents() -> dict[Path, str]:
    """The content of each generated file."""
    from docs.schema import schema  # all stages and trainers, and PyTorch with them

    params = schema()
    return {SCHEMA: json.dumps(params, indent=2) + "\n", REFERENCE: _INTRODUCTION + tables(params)}


def main() -> str:
    """Write the schema and the reference."""
    for file, text in contents().items():
        file.write_text(text, encoding="utf-8")
    return f"{SCHEMA.name} and {REFERENCE.name} written"


class Section(NamedTuple):
    """The section with a model's table; other fields that take the same model link to it."""

    path: str
    kind: str
    level: int
    about: str

    @property
    def title(self) -> str:
        return f"`{self.path}`" + (f", kind `{self.kind}`" if self.kind else "")

    @property
    def link(self) -> str:
        anchor = re.sub(r"[^\w -]", "", self.title).replace(" ", "-").lower()
        return f"[`{self.kind or self.path}`](#{anchor})"


def tables(schema: Schema) -> str:
    """The table of the top level, then a section for each model in the schema."""
    models = {f"#/$defs/{name}": model for name, model in schema["$defs"].items()}
    sections: dict[str, Section] = {}
    _collect(schema, "", models, sections)
    parts = [_table(schema, sections)]
    for reference, section in sections.items():
        about = "" if section.kind else f"{section.about}\n\n"
        parts.append(f"{'#' * section.level} {section.title}\n\n{about}{_table(models[reference], sections)}")
    return "\n".join(parts)


def _collect(model: Schema, path: str, models: Mapping[str, Schema], sections: dict[str, Section]) -> None:
    """Add the sections of all models below ``model``, in the order of its fields."""
    for name, field in model["properties"].items():
        for place, kind, reference in _references(field, f"{path}.{name}" if path else name):
            if reference not in sections:
                sections[reference] = Section(place, kind, 3 if path else 2, _text(field))
                _collect(models[reference], place, models, sections)


def _references(field: Schema, path: str) -> Iterator[tuple[str, str, str]]:
    """Path, kind (if there are several) and reference of each model that ``field`` may hold."""
    if "$ref" in field:
        yield path, "", field["$ref"]
    kinds = {reference: kind for kind, reference in field.get("discriminator", {}).get("mapping", {}).items()}
    for choice in field.get("oneOf", []):
        yield path, kinds[choice["$ref"]], choice["$ref"]
    for choice in field.get("anyOf", []):
        yield from _references(choice, path)
    if "items" in field:
        yield from _references(field["items"], f"{path}[]")
    if isinstance(inner := field.get("additionalProperties"), dict):
        yield from _references(inner, f"{path}.NAME")


def _table(model: Schema, sections: Mapping[str, Section]) -> str:
    rows = [["parameter", "values", "default", "meaning"], ["---"] * 4]
    for name, field in sorted(model["properties"].items(), key=lambda each: each[0] != "kind"):
        default = "required" if name in model.get("required", []) else _default(field["default"])
        rows.append([f"`{name}`", _values(field, sections), default, _text(field).replace("|", "\\|")])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _values(field: Schema, sections: Mapping[str, Section]) -> str:
    """The values of a field; where null is the default, only that shows it."""
    if "anyOf" in field:
        choices = [choice for choice in field["anyOf"] if choice.get("type") != "null"]
        null = [] if len(choices) == len(field["anyOf"]) or field.get("default") is None else ["`null`"]
        return _either([*(_values(choice, sections) for choice in choices), *null])
    if field.get("type") == "array":
        return f"{'non-empty ' * ('minItems' in field)}list of {_values(field['items'], sections)}"
    if isinstance(inner := field.get("additionalProperties"), dict):
        return f"{'non-empty ' * ('minProperties' in field)}map of names to {_values(inner, sections)}"
    if "type" in field:
        return _scalar(field)
    return _either([sections[reference].link for _, _, reference in _references(field, "")])


def _scalar(field: Schema) -> str:
    if "const" in field or "enum" in field:
        return _either([f"`{value}`" for value in field.get("enum", [field.get("const")])])
    kind: str = _TYPES.get(field["type"]) or field["type"]
    limits = ", ".join(phrase.format(field[key]) for key, phrase in _LIMITS.items() if key in field)
    return f"{kind}{',' * (kind == 'text')} {limits}" if limits else kind


def _either(choices: list[str]) -> str:
    return " or ".join(filter(None, [", ".join(choices[:-1]), choices[-1]]))


def _default(value: Any) -> str:
    """A default as written in YAML; the defaults of a model are in the model's own table."""
    if isinstance(value, dict) and value:
        return "its defaults"
    if isinstance(value, str):
        return f"`{value if value.isidentifier() else repr(value)}`"
    return f"`{json.dumps(value)}`"


def _text(field: Schema) -> str:
    return " ".join(field["description"].split())


if __name__ == "__main__":
    command(
        "docs.parameters",
        "Writes the parameter reference, docs/parameters.md, and the JSON schema of params.yaml.",
        "python -m docs.parameters",
    )
