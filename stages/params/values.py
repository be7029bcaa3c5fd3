"""Which values of ``params.yaml`` its schema refuses: in the words of the stages, but before the first of them runs."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from batchwright.core.terminal import hint

TYPES: dict[str, Any] = {
    "array": list,
    "boolean": bool,
    "integer": int,
    "null": None,
    "number": float,
    "object": dict,
    "string": str,
}
"""Types of Python by their names in JSON schemas."""
LIMITS = {
    "minimum": "ge",
    "exclusiveMinimum": "gt",
    "maximum": "le",
    "exclusiveMaximum": "lt",
    "minLength": "min_length",
    "maxLength": "max_length",
    "minItems": "min_length",
    "minProperties": "min_length",
    "pattern": "pattern",
}
"""Names of limits in pydantic by those in JSON schemas."""
KEYS = {"const", "enum", "type", *LIMITS}
"""What a form says of a value, but not of what is in it."""


def refusal(value: Any, forms: Sequence[Mapping[str, Any]]) -> str:
    """Say why a value has none of the forms that it may have, whatever is in it; empty if it has one.

    Pydantic decides, as in the stages: ``1e-3``, which YAML takes for a word, is a number there, too.
    """
    types = {form.get("type") for form in forms}
    if isinstance(value, bool) and "boolean" not in types and types & {"integer", "number"}:  # not 1 or 0
        value = str(value).lower()
    kinds = [str(form["const"]) for form in forms if "const" in form]
    if isinstance(value, str) and kinds and len(kinds) == len(forms) and value not in kinds:
        return f"unknown value '{value}'{hint(value, kinds)}"
    reasons: dict[str, None] = {}
    for form in forms:
        try:
            _validator(json.dumps({key: form[key] for key in KEYS & form.keys()})).validate_python(value)
        except ValidationError as error:
            if form.get("type") != "null":  # of which the stages say nothing either
                reasons[error.errors()[0]["msg"]] = None
        else:
            return ""
    first, *others = reasons
    either = ", or ".join([first, *(reason.removeprefix("Input should be ") for reason in others)])
    return f"{either} (found {value!r})"


@cache
def _validator(form: str) -> TypeAdapter[Any]:
    """What checks a value against a form of a JSON schema, but nothing that is in the value."""
    schema = json.loads(form)
    kind: Any = TYPES.get(schema.get("type"), Any)
    if choices := schema.get("enum") or [schema[key] for key in ("const",) if key in schema]:
        kind = Literal[tuple(choices)]
    limits = {LIMITS[key]: limit for key, limit in schema.items() if key in LIMITS}
    if kind is float:
        limits["allow_inf_nan"] = False
    return TypeAdapter(Annotated[kind, Field(**limits)])
