"""Changes: what differs from the last run that was committed. The section is not there if nothing does."""

import json
from collections.abc import Mapping
from typing import Any

import yaml

from batchwright.core.params import PARAMS_FILE
from batchwright.core.paths import RESULTS
from stages.report.last_run import LOCK, Content, flat, inputs, read_committed, read_now
from stages.report.section import Section, show_long_table
from stages.report.table import NONE, Table

Values = Mapping[str, Any]
_WORDS = frozenset({0, 1, 2})


def section() -> Section | None:
    """Return tables of the scores, counts, parameters and inputs that differ, if there is something to compare with."""
    tables = compare(read_committed(), read_now())
    if not tables:
        return None
    return Section(
        id="changes",
        title="What changed since the last run",
        intro="Compared with what git's last commit has of results, params.yaml and dvc.lock.",
        parts=[show_long_table(table, caption) for caption, table in tables.items()],
    )


def compare(before: Content, now: Content) -> dict[str, Table]:
    """Return a table for each kind of thing that differs, by caption; none if there is nothing to compare with."""
    if not before:
        return {}
    found = {
        "nDCG@10": _numbers(_scores(before), _scores(now)),
        "Parameters": _words(*(dict(flat(_yaml(content, str(PARAMS_FILE)))) for content in (before, now))),
        "Data and batches": _numbers(_counts(before), _counts(now)),
        "Changed inputs, which made stages run again": _inputs(before.get(str(LOCK), ""), now.get(str(LOCK), "")),
    }
    return {caption: table for caption, table in found.items() if table.rows}


def _scores(content: Content) -> Values:
    """nDCG@10 by collection and system."""
    files = [name for name in content if name.startswith((f"{RESULTS}/baselines.json", f"{RESULTS}/evaluate/"))]
    return {
        f"{system}, {collection.replace('_', '-')}": measures["ndcg@10"]
        for name in sorted(files)
        for collection, systems in json.loads(content[name]).items()
        for system, measures in systems.items()
    }


def _counts(content: Content) -> Values:
    """Every number that the stages before training tell, by its place."""
    kinds = ("ingest.json", "filter.json", "cluster.json", "pack/", "mine/")
    files = [name for name in content if name.startswith(tuple(f"{RESULTS}/{kind}" for kind in kinds))]
    return {
        f"{name.removeprefix(f'{RESULTS}/').removesuffix('.json')}: {key}": value
        for name in sorted(files)
        for key, value in flat(json.loads(content[name]))
        if isinstance(value, int | float)
    }


def _yaml(content: Content, name: str) -> Any:
    return yaml.safe_load(content.get(name, "")) or {}


def _numbers(before: Values, now: Values) -> Table:
    """One row per number that differs, with the difference."""
    rows = []
    for key in dict.fromkeys([*now, *before]):
        old, new = before.get(key), now.get(key)
        if old != new:
            change = NONE if old is None or new is None else f"{'+' if new > old else ''}{_show(new - old)}"
            rows.append([key, _show(old), _show(new), change])
    return Table(header=["", "Last run", "This run", "Change"], rows=rows)


def _words(before: Values, now: Values) -> Table:
    """One row per value that differs."""
    keys = [key for key in dict.fromkeys([*now, *before]) if before.get(key) != now.get(key)]
    rows = [[key, _show(before.get(key)), _show(now.get(key))] for key in keys]
    return Table(header=["", "Last run", "This run"], rows=rows, words=_WORDS)


def _inputs(before: str, now: str) -> Table:
    """One row per stage with inputs that differ or are new."""
    old, new = inputs(before), inputs(now)
    rows = []
    for stage, own in new.items():
        known = old.get(stage)
        changed = [path for path, digest in own.items() if known is not None and known.get(path) != digest]
        if changed or known is None:
            rows.append([stage, ", ".join(changed) or "a new stage"])
    rows += [[stage, "no longer there"] for stage in old if stage not in new]
    return Table(header=["Stage", "Inputs"], rows=rows, words=_WORDS)


def _show(value: Any) -> str:
    if value is None:
        return NONE
    if isinstance(value, float):
        return f"{value:,.4f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else json.dumps(value)
