"""What is checked in all of ``params.yaml`` before any stage runs: a typo in ``runs`` need not wait for training."""

import difflib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from batchwright.core.errors import InputError
from batchwright.core.names import POLICIES, check_names
from batchwright.core.params import PARAMS_FILE, read_params
from batchwright.core.paths import MODELS, SHARDS, START_MODELS
from batchwright.core.terminal import hint

SCHEMA = Path(__file__).with_name("schema.json")
"""The JSON schema of ``params.yaml``, which ``python -m docs.parameters`` writes; editors read it, too."""
LIKENESS = 0.8
"""Least likeness of a name to one that was meant, as ``difflib`` measures it."""
_DIGITS = re.compile(r"\d+")
Schema = Mapping[str, Any]
Groups = Mapping[str, Mapping[str, Any]]


def main() -> str:
    """Check names, keys and references in ``params.yaml``."""
    check_params(PARAMS_FILE)
    return "names, keys and references in params.yaml are fine"


def check_params(file: Path) -> None:
    """Check the names that DVC puts into commands and paths, all keys, and what groups say of each other.

    Values are checked by the stage that reads them, and a missing group is reported by it. Without a file, nothing is
    checked.

    Raises:
        InputError: a name cannot be one, or is taken; a key is unknown or missing; a group refers to what another does
            not have, or needs more of it; or the file is not YAML.
    """
    if not file.exists():
        return
    params, schema = read_params(file), json.loads(SCHEMA.read_bytes())
    check_names(params, file)
    groups = {name: entries for name, entries in params.items() if isinstance(entries, dict)}
    for problems in (
        _of_keys(params, schema),
        _of_runs(groups, schema),
        _of_references(groups),
        _of_sizes(groups, schema),
    ):
        if lines := [f"{file}: {problem}" for problem in problems]:
            raise InputError("\n".join(lines))


def _of_keys(params: Mapping[str, Any], schema: Schema) -> Iterator[str]:
    known = schema["properties"]
    for group in params:
        if group not in known:  # a group that is not like any of ours may be read by stages of others
            yield from (
                f"unknown group '{group}'; did you mean '{meant}'?"
                for meant in _meant(str(group), [name for name in known if name not in params])
            )
    ours = {name: params[name] for name in known if name in params}
    yield from _of_values(ours, [{**schema, "required": []}], schema["$defs"], "")


def _of_values(values: Any, schemas: Sequence[Schema], models: Mapping[str, Schema], place: str) -> Iterator[str]:
    """Yield which keys of ``values``, which may be of any of ``schemas``, are unknown or missing."""
    forms = [form for schema in schemas for form in _forms(schema, values, models)]
    if isinstance(values, list) and (items := [form["items"] for form in forms if "items" in form]):
        for number, value in enumerate(values):
            yield from _of_values(value, items, models, f"{place}.{number}")
    elif isinstance(values, dict) and (maps := [form for form in forms if form.get("type") == "object"]):
        known = sorted({name for form in maps for name in form.get("properties", ())})
        for key, value in values.items():
            name = f"{place}.{key}".lstrip(".")
            inner = [_value(form, str(key)) for form in maps]
            if any(inner):
                yield from _of_values(value, [schema for schema in inner if isinstance(schema, dict)], models, name)
            else:
                yield f"unknown parameter '{name}'{hint(str(key), known)}"
        for key in maps[0].get("required", ()) if len(maps) == 1 else ():
            if key not in values:
                yield f"parameter '{place}.{key}' is missing"


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


def _of_runs(groups: Groups, schema: Schema) -> Iterator[str]:
    """Yield which runs have no known variant, no group for it, or parameters of other variants."""
    models = schema["$defs"]
    groups_of_training = models["TrainParams"]["properties"]
    variants = {
        name: {key for form in _forms(group, None, models) for key in form.get("properties", ())}
        for name, group in groups_of_training.items()
        if name != "common"
    }
    of_variants = set().union(*variants.values())
    for run, settings in _entries(groups, "runs"):
        variant = settings.get("variant")
        if variant in variants:
            if "train" in groups and variant not in groups["train"]:
                yield f"runs.{run}: its variant needs the group 'train.{variant}', which may be {{}}"
            for key in settings:
                if key in of_variants - variants[variant] - set(models["Common"]["properties"]):
                    yield f"unknown parameter 'runs.{run}.{key}' of the variant {variant}{hint(key, variants[variant])}"
        elif isinstance(variant, str):
            yield f"runs.{run}.variant: there is no '{variant}'{hint(variant, variants)}"


def _of_references(groups: Groups) -> Iterator[str]:
    """Yield which entries refer to what is likely misspelt: no group makes it, but something of nearly that name.

    A name that is like none may be of what others make, or what is pulled or imported later.
    """
    names = {name: [str(entry) for entry in groups.get(name, ())] for name in ("mine", "teach", "tune", "runs")}
    shards = [*POLICIES, *names["mine"], *names["teach"], *names["tune"]]
    starts = [f"{START_MODELS}/{name}" for group in ("start_models", "pretrain") for name in groups.get(group, ())]
    models = [*starts, *(f"{MODELS}/{name}" for name in names["runs"])]
    vectors = list(_entry(groups.get("embed", {}), "models"))
    for group in ("filter", "cluster"):
        yield from _misspelt(f"{group}.vectors", groups.get(group, {}).get("vectors"), vectors)
    for group, key, known in [
        ("runs", "batches", shards),
        ("runs", "start", models),
        ("mine", "model", models),
        ("teach", "batches", shards),
        ("teach", "model", models),
        ("tune", "run", names["runs"]),
    ]:
        for name, settings in _entries(groups, group):
            value = settings.get(key)
            if not _exists(SHARDS / value if known is shards and isinstance(value, str) else value):
                yield from _misspelt(f"{group}.{name}.{key}", value, known)


def _misspelt(place: str, name: Any, known: Collection[str]) -> Iterator[str]:
    if isinstance(name, str) and name not in known:
        yield from (f"{place}: nothing makes '{name}'; did you mean '{meant}'?" for meant in _meant(name, known))


def _meant(name: str, known: Collection[str]) -> Iterator[str]:
    """Yield the known name of which this must be a misspelling, if there is one; another number is another name."""
    for meant in difflib.get_close_matches(name, known, n=1, cutoff=LIKENESS):
        if _DIGITS.sub("", meant) != _DIGITS.sub("", name):
            yield meant


def _exists(path: Any) -> bool:
    try:
        return any(Path(f"{path}{ending}").exists() for ending in ("", ".dvc"))
    except (OSError, ValueError):  # no name of a file
        return False


def _of_sizes(groups: Groups, schema: Schema) -> Iterator[str]:
    """Yield which runs need more seeds or epochs than are packed, or dev queries, where there are none."""
    of_all = _entry(groups.get("train", {}), "common")
    pack = schema["$defs"]["PackParams"]["properties"]
    for run, settings in _entries(groups, "runs"):
        common = {**of_all, **settings}
        wanted = {
            "seeds": _number(settings.get("seeds"), 1),
            "epochs": _number(common.get("epochs"), 1) + _number(common.get("skip_epochs"), 0),
        }
        for name, number in wanted.items():
            packed = _number(groups.get("pack", {}).get(name), pack[name]["default"])
            if "pack" in groups and settings.get("batches") in POLICIES and number > packed:
                yield f"runs.{run} needs {number} {name}, but pack.{name} is {packed}; raise it"
    if "ingest" in groups and not (groups["ingest"].get("dev") or _may_say_splits(groups["ingest"].get("sources"))):
        for place in _measures_on_dev_queries(groups):
            yield f"{place} measures on dev queries, of which there are none; set ingest.dev, such as to 0.02"


def _number(value: Any, default: int) -> int:
    return value if isinstance(value, int) else default


def _measures_on_dev_queries(groups: Groups) -> Iterator[str]:
    yield from (f"tune.{name}" for name in groups.get("tune", ()))
    of_all = _entry(groups.get("train", {}), "common").get("evaluate_every")
    for run, settings in _entries(groups, "runs"):
        if settings.get("evaluate_every", of_all):
            yield f"runs.{run}.evaluate_every"


def _may_say_splits(sources: Any) -> bool:
    """Whether a source may bring dev queries of its own: it has a column for splits, or may be a BEIR folder."""
    entries = [source for source in sources if isinstance(source, dict)] if isinstance(sources, list) else []
    return any("split" in _entry(source, "columns") or _may_be_folder(source) for source in entries)


def _may_be_folder(source: Mapping[str, Any]) -> bool:
    kind = source.get("kind")
    return kind in ("beir", "arrow") if kind else "path" in source and not Path(str(source["path"])).suffix


def _entries(groups: Groups, group: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield from ((name, _entry(groups[group], name)) for name in groups.get(group, ()))


def _entry(group: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A group's entry, empty if it is none; whoever reads it says what is wrong."""
    entry = group.get(name)
    return entry if isinstance(entry, dict) else {}
