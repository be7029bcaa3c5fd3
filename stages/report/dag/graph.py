"""The dependencies between stages."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import networkx as nx

from batchwright.core.errors import InputError
from stages.report.dag.read import Stage

Edge = tuple[str, str]


def graph_of(stages: Sequence[Stage]) -> nx.DiGraph:
    """Return a graph of stage names, each with its stage as attribute ``stage``, and an edge for every dependency."""
    graph = nx.DiGraph()
    for stage in stages:
        graph.add_node(stage.name, stage=stage)
    for source in stages:
        for target in stages:
            if source != target and any(_needs(paths, source) for paths in target.reads):
                graph.add_edge(source.name, target.name)
    return graph


def cut_circles(graph: nx.DiGraph) -> list[Edge]:
    """Remove the edges that lead back to an earlier stage from ``graph``, and return them.

    Later runs of a loop may need what another stage makes from its earlier runs: training on mined negatives does. Such
    a cycle starts at the stage that has a run which needs nothing from the cycle.

    Raises:
        InputError: a cycle has no such stage.
    """
    cut: list[Edge] = []
    while circle := next((found for found in nx.strongly_connected_components(graph) if len(found) > 1), None):
        members = [stage for name, stage in graph.nodes(data="stage") if name in circle]
        first = next((stage.name for stage in members if _can_start(stage, members)), None)
        if first is None:
            raise InputError(f"dvc.yaml: stages depend on each other: {', '.join(stage.name for stage in members)}")
        edges = [(source, first) for source in graph.predecessors(first) if source in circle]
        graph.remove_edges_from(edges)
        cut += edges
    return cut


def _can_start(stage: Stage, circle: Sequence[Stage]) -> bool:
    return any(not any(_needs(paths, source) for source in circle) for paths in stage.reads)


def _needs(paths: Iterable[str], source: Stage) -> bool:
    return any(_meet(out, path) for out in source.writes for path in paths)


def _meet(out: str, path: str) -> bool:
    """Return whether the two paths are equal or one contains the other."""
    both = zip(Path(out).parts, Path(path).parts, strict=False)
    return all(fnmatchcase(left, right) or fnmatchcase(right, left) for left, right in both)
