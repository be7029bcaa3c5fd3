"""Which keys of ``params.yaml`` its schema does not know, or misses, and which values it refuses."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from batchwright.core.terminal import hint
from stages.params.values import refusal

GROUPS = {
    "ingest": "IngestParams",
    "filter": "FilterParams",
    "cluster": "ClusterParams",
    "pack": "PackParams",
    "start_models.NAME": "StartModel",
    "train.common": "Common",
    "mine.NAME": "Mining",
    "evaluate": "EvaluateParams",
}
"""Models in the schema whose keys are often written into another group."""
LIKENESS = 0.8
"""Least likeness of a name to the one that was meant, as ``difflib`` measures it."""
Schema = Mapping[str, Any]
Groups = Mapping[str, Mapping[str, Any]]


def of_keys(params: Mapping[str, Any], schema: Schema) -> Iterator[str]:
    """Yield which keys are unknown or missing and which values are refused, in all groups that are there."""
    known = schema["properties"]
    for group in params:
        if group not in known:  # a group that is not like any of ours may be read by stages of others
            missing = [name for name in known if name not in params]
            yield from (f"unknown group '{group}'; did you mean '{meant}'?" for meant in close(str(group), missing))
    ours = {name: params[name] for name in known if name in params}
    yield from _of_values(ours, [{**schema, "required": []}], schema["$defs"], "")


def _of_values(values: Any, schemas: Sequence[Schema], models: Mapping[str, Schema], place: str) -> Iterator[str]:
    """Yield what is wrong with ``values``, which may be of any of ``schemas``."""
    forms = [form for schema in schemas for form in _forms(schema, values, models)]
    maps = [form for form in forms if form.get("type") == "object"]
    if values is None and maps and place.count(".") < 2:  # a group of which nothing is set
        return
    if reason := refusal(values, forms):
        yield f"parameter '{place}': {reason}"
    elif isinstance(values, list) and (items := [form["items"] for form in forms if "items" in form]):
        for number, value in enumerate(values):
            yield from _of_values(value, items, models, f"{place}.{number}")
    elif isinstance(values, dict) and maps:
        yield from _of_map(values, maps, models, place)


def _of_map(
    values: Mapping[Any, Any], maps: Sequence[Schema], models: Mapping[str, Schema], place: str
) -> Iterator[str]:
    known = sorted({name for form in maps for name in form.get("properties", ())})
    for key, value in values.items():
        name = f"{place}.{key}".lstrip(".")
        inner = [_value(form, str(key)) for form in maps]
        if not any(inner):
            yield f"unknown parameter '{name}'{_elsewhere(str(key), models) or hint(str(key), known)}"
        elif True not in inner:
            yield from _of_values(value, [schema for schema in inner if isinstance(schema, dict)], models, name)
    for key in maps[0].get("required", ()) if len(maps) == 1 else ():
        if key not in values:
            yield f"parameter '{place}.{key}' is missing"


def _elsewhere(key: str, models: Mapping[str, Schema]) -> str:
    """The end of a message about a key that is known, but in other groups; empty if it is in none."""
    groups = [group for group, model in GROUPS.items() if key in models[model]["properties"]]
    return f"; it belongs to {' or '.join(groups)}" if groups else ""


def _value(form: Schema, key: str) -> Schema | bool:
    """What a key of a map holds: a schema, anything if true, nothing if false, since there is no such key."""
    value: Schema | bool = form.get("properties", {}).get(key) or form.get("additionalProperties", True)
    return value


def _forms(schema: Schema, values: Any, models: Mapping[str, Schema]) -> Iterator[Schema]:
    """Yield the forms that ``values`` may have: one if they name their kind."""
    tag = schema.get("discriminator", {})
    kind = values.get(tag.get("propertyName")) if isinstance(values, dict) else None
    if "$ref" in schema:
        yield from _forms(models[schema["$ref"].rpartition("/")[2]], values, models)
    elif isinstance(kind, str) and kind in tag.get("mapping", {}):
        yield from _forms({"$ref": tag["mapping"][kind]}, values, models)
    elif choices := [*schema.get("anyOf", ()), *schema.get("oneOf", ())]:
        for choice in choices:
            yield from _forms(choice, values, models)
    else:
        yield schema


def of_runs(groups: Groups, schema: Schema) -> Iterator[str]:
    """Yield which runs have no known variant, no group for it, or parameters of other variants."""
    models = schema["$defs"]
    groups_of_training = models["TrainParams"]["properties"]
    variants = {
        name: {key for form in _forms(group, None, models) for key in form.get("properties", ())}
        for name, group in groups_of_training.items()
        if name != "common"
    }
    of_variants = set().union(*variants.values())
    for run, settings in entries(groups, "runs"):
        variant = settings.get("variant")
        if variant in variants:
            if "train" in groups and variant not in groups["train"]:
                yield f"runs.{run}: its variant needs the group 'train.{variant}', which may be {{}}"
            for key in settings:
                if key in of_variants - variants[variant] - set(models["Common"]["properties"]):
                    yield f"unknown parameter 'runs.{run}.{key}' of the variant {variant}{hint(key, variants[variant])}"
        elif isinstance(variant, str):
            yield f"runs.{run}.variant: there is no '{variant}'{hint(variant, variants)}"


def close(name: str, known: Sequence[str]) -> list[str]:
    """The known name that must have been meant, if there is one."""
    return difflib.get_close_matches(name, known, n=1, cutoff=LIKENESS)


def entries(groups: Groups, group: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """A group's entries by name."""
    yield from ((name, entry(groups[group], name)) for name in groups.get(group, ()))


def entry(group: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A group's entry, empty if it is none; whoever reads it says what is wrong."""
    found = group.get(name)
    return found if isinstance(found, dict) else {}
