"""Which stage needs what which other one makes."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import networkx as nx

from batchwright.core.errors import InputError
from stages.report.dag.read import Stage

Edge = tuple[str, str]


def graph_of(stages: Sequence[Stage]) -> nx.DiGraph:
    """Stages by name, each an attribute ``stage``, and an edge for every dependency."""
    graph = nx.DiGraph()
    for stage in stages:
        graph.add_node(stage.name, stage=stage)
    for source in stages:
        for target in stages:
            if source != target and any(_needs(paths, source) for paths in target.reads):
                graph.add_edge(source.name, target.name)
    return graph


def cut_circles(graph: nx.DiGraph) -> list[Edge]:
    """Take the edges out of ``graph`` that lead back to an earlier stage, and return them.

    Some runs of a loop may need what another stage made of earlier runs, as training on mined negatives does. Such a
    circle begins with the stage that has runs which need nothing of the circle.

    Raises:
        InputError: there is no such stage.
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
    """Whether one path is the other or a folder around it."""
    both = zip(Path(out).parts, Path(path).parts, strict=False)
    return all(fnmatchcase(left, right) or fnmatchcase(right, left) for left, right in both)
