"""What groups of ``params.yaml`` want of each other: models, batches and vectors that nothing makes, or too few."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from batchwright.core.names import BM25, NO_MODEL, POLICIES
from batchwright.core.paths import MODELS, PIPELINE, SHARDS, START_MODELS, VECTORS
from stages.params.keys import Groups, Schema, close, entries, entry


def of_references(groups: Groups) -> Iterator[str]:
    """Yield which entries refer to what nothing makes: no group of ours, no folder, no pointer or stage of DVC."""
    names = {group: list(map(str, groups.get(group, ()))) for group in ("mine", "teach", "tune", "runs")}
    shards = [*POLICIES, *names["mine"], *names["teach"], *names["tune"]]
    starts = [f"{START_MODELS}/{name}" for group in ("start_models", "pretrain") for name in groups.get(group, ())]
    models = [*starts, *(f"{MODELS}/{name}" for name in names["runs"])] if starts else []
    vectors = [str(name) for name in entry(groups.get("embed", {}), "models")]
    for group in ("filter", "cluster") if vectors else ():
        yield from _missing(f"{group}.vectors", groups.get(group, {}).get("vectors"), vectors, VECTORS)
    for group, key, known, folder in [
        ("runs", "batches", shards, SHARDS),
        ("runs", "start", models, Path()),
        ("mine", "model", models, Path()),
        ("teach", "batches", shards, SHARDS),
        ("teach", "model", models, Path()),
        ("tune", "run", names["runs"], MODELS),
    ]:
        for name, settings in entries(groups, group):
            yield from _missing(f"{group}.{name}.{key}", settings.get(key), known, folder)
            if key == "model" and settings.get(key) == NO_MODEL and not settings.get("name"):
                yield f"{group}.{name}: 'model: {NO_MODEL}' goes with a name, such as 'name: {BM25}'"
            if key == "start" and settings.get(key) == f"{MODELS}/{name}":
                yield f"{group}.{name}.{key}: it is the run's own model; name the one to start from"


def of_tokens(tokens: Any, groups: Groups) -> Iterator[str]:
    """Yield which of the list ``tokens`` are no runs of XTR."""
    runs = dict(entries(groups, "runs"))
    for name in _list(tokens):
        if name not in runs or runs[name].get("variant") != "xtr":
            yield f"tokens: '{name}' is no run of the variant xtr"


def _missing(place: str, name: Any, known: Sequence[str], folder: Path) -> Iterator[str]:
    if not (isinstance(name, str) and known) or name in known or _made_by_others(folder / name):
        return
    meant = [each for each in known if each.endswith(f"/{name}")] or close(name, known)
    hint = f"did you mean '{meant[0]}'?" if meant else f"known: {', '.join(known)}"
    yield f"{place}: nothing makes '{name}'; {hint}"


def _made_by_others(path: Path) -> bool:
    """Whether a folder is there, or will be: DVC has a pointer to it or around it, or a file of stages names it."""
    try:
        there = path.exists() or any(Path(f"{around}.dvc").is_file() for around in (path, *path.parents[:-1]))
    except (OSError, ValueError):  # no name of a file
        return False
    return there or any(str(path) in file.read_text(encoding="utf-8", errors="replace") for file in _stage_files())


def _stage_files() -> list[Path]:
    return [file for pattern in (PIPELINE.name, f"*/{PIPELINE}", f"*/*/{PIPELINE}") for file in Path().glob(pattern)]


def of_sizes(groups: Groups, schema: Schema) -> Iterator[str]:
    """Yield which runs need more seeds or epochs than are packed, or dev queries, where there are none."""
    of_all = entry(groups.get("train", {}), "common")
    pack = schema["$defs"]["PackParams"]["properties"]
    for run, settings in entries(groups, "runs"):
        common = {**of_all, **settings}
        wanted = {
            "seeds": _number(settings.get("seeds"), 1),
            "epochs": _number(common.get("epochs"), 1) + _number(common.get("skip_epochs"), 0),
        }
        for name, number in wanted.items():
            packed = _number(groups.get("pack", {}).get(name), pack[name]["default"])
            if "pack" in groups and settings.get("batches") in POLICIES and number > packed:
                yield f"runs.{run} needs {number} {name}, but pack.{name} is {packed}; raise it"
    measured = list(_measures_on_dev_queries(groups))
    if "ingest" in groups and not (groups["ingest"].get("dev") or _may_say_splits(groups["ingest"].get("sources"))):
        for place in measured:
            yield f"{place} measures on dev queries, of which there are none; set ingest.dev, such as to 0.02"
    if measured and "evaluate" in groups and not groups["evaluate"].get("dev"):
        yield f"{measured[0]} needs evaluate.dev, such as 'dev: {{queries: 400, documents: 1500}}'"


def _list(values: Any) -> list[Any]:
    return values if isinstance(values, list) else []


def _number(value: Any, default: int) -> int:
    return value if isinstance(value, int) else default


def _measures_on_dev_queries(groups: Groups) -> Iterator[str]:
    yield from (f"tune.{name}" for name in groups.get("tune", ()))
    of_all = entry(groups.get("train", {}), "common").get("evaluate_every")
    for run, settings in entries(groups, "runs"):
        if settings.get("evaluate_every", of_all):
            yield f"runs.{run}.evaluate_every"


def _may_say_splits(sources: Any) -> bool:
    """Whether a source may bring dev queries of its own: it has a column for splits, or may be a BEIR folder."""
    given = [source for source in _list(sources) if isinstance(source, dict)]
    return any("split" in entry(source, "columns") or _may_be_folder(source) for source in given)


def _may_be_folder(source: Mapping[str, Any]) -> bool:
    kind = source.get("kind")
    return kind in ("beir", "arrow") if kind else "path" in source and not Path(str(source["path"])).suffix
