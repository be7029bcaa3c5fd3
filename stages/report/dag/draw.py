"""Lay out stages from left to right, each to the right of those that it depends on."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

import networkx as nx

from stages.report.dag.graph import Edge, cut_circles, graph_of
from stages.report.dag.read import Stage

_BOX = (108.0, 44.0)
_STEP = (142.0, 88.0)
_MARGIN = 8.0
_CAPTION = 26.0

Point = tuple[float, float]
Node = str | tuple[str, str, str]
"""A stage, or the slot that an arrow occupies in a layer that it passes through: source, target, layer."""


@dataclass(frozen=True, kw_only=True)
class Arrow:
    """A line through ``points`` with a head at its end (``ahead``), at its start (``back``) or at both."""

    points: list[Point]
    ahead: bool
    back: bool


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """The layout of a drawing; boxes are centred on their points."""

    size: Point
    box: Point
    boxes: list[tuple[Stage, Point]]
    arrows: list[Arrow]


def draw(stages: Iterable[Stage]) -> Drawing:
    """Arrange stages in layers, with an arrow for every dependency that is not implied by others.

    Raises:
        InputError: stages depend on each other in a cycle, and none of them can run first.
    """
    graph = graph_of(list(stages))
    returns = cut_circles(graph)
    ahead = set(nx.transitive_reduction(graph).edges)
    back = {(target, source) for source, target in returns}
    paths = _paths(graph, ahead | back)
    slots = nx.DiGraph(edge for path in paths.values() for edge in pairwise(path))
    slots.add_nodes_from(graph)
    points = _place(slots)
    right, bottom = (max(values) for values in zip(*points.values(), strict=True))
    return Drawing(
        size=(right + _BOX[0] / 2 + _MARGIN, bottom + _BOX[1] / 2 + _CAPTION),
        box=_BOX,
        boxes=[(stage, points[name]) for name, stage in graph.nodes(data="stage")],
        arrows=[
            Arrow(points=[points[node] for node in path], ahead=edge in ahead, back=edge in back)
            for edge, path in paths.items()
        ],
    )


def _paths(graph: nx.DiGraph, edges: Iterable[Edge]) -> dict[Edge, list[Node]]:
    """Return each edge's path: its two stages and, between them, a free slot in every layer that it passes."""
    edges = sorted(edges)  # networkx returns them in the order of a set
    layered = nx.DiGraph([*graph.edges, *edges])
    layered.add_nodes_from(graph)
    layers = {node: layer for layer, nodes in enumerate(nx.topological_generations(layered)) for node in nodes}
    return {
        (source, target): [
            source,
            *((source, target, str(layer)) for layer in range(layers[source] + 1, layers[target])),
            target,
        ]
        for source, target in edges
    }


def _place(slots: nx.DiGraph) -> dict[Node, Point]:
    """Place layers from left to right, each centred, with slots in the order of their predecessors."""
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
