"""The pipeline as a drawing: stages of ``dvc.yaml`` from left to right."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise, product
from pathlib import Path
from statistics import fmean
from typing import Any

import networkx as nx
import yaml

from formats.errors import InputError

_BOX = (108.0, 44.0)
_STEP = (142.0, 88.0)
_MARGIN = 8.0
_CAPTION = 26.0

Point = tuple[float, float]
Node = str | tuple[str, str, str]
"""A stage, or the slot of a layer that an arrow passes through: source, target, layer."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """``many`` is a stage that runs in a loop; placeholders that stay in paths are ``*``."""

    name: str
    many: bool
    reads: list[str]
    writes: list[str]


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """Boxes are centred on their points; an arrow is a line through points."""

    size: Point
    box: Point
    boxes: list[tuple[Stage, Point]]
    arrows: list[list[Point]]


def read_stages(file: Path, loops: Mapping[str, Mapping[str, Any]]) -> list[Stage]:
    """The stages that a ``dvc.yaml`` lists, but for loops over nothing; raises InputError where there are none.

    ``loops`` are the parameter groups that a stage with ``foreach`` may loop over.
    """
    try:
        stages = yaml.safe_load(file.read_text(encoding="utf-8"))["stages"]
        found = [_stage(name, entry, loops) for name, entry in stages.items()]
        return [stage for stage in found if stage.writes]
    except FileNotFoundError:
        raise InputError(f"{file}: no such file; run from the project's folder") from None
    except (yaml.YAMLError, UnicodeDecodeError, TypeError, KeyError, AttributeError):
        raise InputError(f"{file}: not a pipeline; expected YAML with 'stages'") from None


def draw(stages: Iterable[Stage]) -> Drawing:
    """Layers of stages, and an arrow for every dependency that others do not imply.

    Raises:
        InputError: stages depend on each other in a circle.
    """
    graph = _graph(list(stages))
    paths = _paths(graph)
    slots = nx.DiGraph(edge for path in paths for edge in pairwise(path))
    slots.add_nodes_from(graph)
    points = _place(slots)
    right, bottom = (max(values) for values in zip(*points.values(), strict=True))
    return Drawing(
        size=(right + _BOX[0] / 2 + _MARGIN, bottom + _BOX[1] / 2 + _CAPTION),
        box=_BOX,
        boxes=[(stage, points[name]) for name, stage in graph.nodes(data="stage")],
        arrows=[[points[node] for node in path] for path in paths],
    )


def _stage(name: str, entry: dict[str, Any], loops: Mapping[str, Mapping[str, Any]]) -> Stage:
    command = entry.get("do", entry)
    written = [*command.get("outs", []), *command.get("metrics", []), *command.get("plots", [])]
    items: list[Any] = [{}]
    if "foreach" in entry:
        items = [{"key": key, "item": item} for key, item in loops[entry["foreach"].strip("${}")].items()]
    return Stage(
        name=name,
        many="matrix" in entry or "foreach" in entry,
        reads=list(_paths_of(command.get("deps", []), items)),
        writes=list(_paths_of(written, items)),
    )


def _paths_of(entries: list[str | dict[str, Any]], items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Paths with or without settings, for each item; a matrix's placeholders are wildcards."""
    for item, entry in product(items, entries):
        path = entry if isinstance(entry, str) else next(iter(entry))
        for field, value in item.get("item", {}).items():
            path = path.replace(f"${{item.{field}}}", str(value))
        yield re.sub(r"\$\{[^}]*\}", "*", path.replace("${key}", item.get("key", "")))


def _graph(stages: list[Stage]) -> nx.DiGraph:
    graph = nx.DiGraph()
    for stage in stages:
        graph.add_node(stage.name, stage=stage)
    for source in stages:
        for target in stages:
            if source != target and any(_meet(out, dep) for out in source.writes for dep in target.reads):
                graph.add_edge(source.name, target.name)
    if not nx.is_directed_acyclic_graph(graph):
        raise InputError(f"dvc.yaml: stages depend on each other: {', '.join(nx.find_cycle(graph)[0])}")
    return graph


def _meet(out: str, dep: str) -> bool:
    """Whether one path is the other or a folder around it."""
    both = zip(Path(out).parts, Path(dep).parts, strict=False)
    return all(fnmatchcase(left, right) or fnmatchcase(right, left) for left, right in both)


def _paths(graph: nx.DiGraph) -> list[list[Node]]:
    """An arrow's stages, with a free slot between them in every layer that it passes."""
    layers = {node: layer for layer, nodes in enumerate(nx.topological_generations(graph)) for node in nodes}
    return [
        [source, *((source, target, str(layer)) for layer in range(layers[source] + 1, layers[target])), target]
        for source, target in sorted(nx.transitive_reduction(graph).edges)  # networkx keeps them in a set's order
    ]


def _place(slots: nx.DiGraph) -> dict[Node, Point]:
    """Layers from left to right, each centred, its slots in the order of what leads to them."""
    rows: dict[Node, float] = {}
    columns: dict[Node, int] = {}
    for column, layer in enumerate(nx.topological_generations(slots)):
        heights = {node: fmean([rows[left] for left in slots.predecessors(node)] or [0.0]) for node in layer}
        for place, node in enumerate(sorted(layer, key=lambda node: (heights[node], str(node)))):
            rows[node], columns[node] = place - (len(layer) - 1) / 2, column
    top = min(rows.values())
    return {
        node: (_MARGIN + _BOX[0] / 2 + columns[node] * _STEP[0], _MARGIN + _BOX[1] / 2 + (row - top) * _STEP[1])
        for node, row in rows.items()
    }
