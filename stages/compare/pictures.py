"""The tables behind the pictures of ``dvc plots show``: one line per ``name``, one field per ``domain``."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

POINTS = 50
"""A line of hardness has about so many points."""

Row = dict[str, Any]


def quality(scores: Mapping[tuple[str, str], Mapping[str, float]]) -> list[Row]:
    """Return the mean nDCG@10 of every system; a system has one bar for each collection."""
    several = len({collection for collection, _ in scores}) > 1
    return [
        {"name": f"{system} on {collection}" if several else system, "ndcg@10": mean(by_query)}
        for (collection, system), by_query in scores.items()
    ]


def learning(curves: Mapping[str, Sequence[Mapping[str, str]]]) -> list[Row]:
    """Return the dev curves of all runs as one table."""
    return [
        {"name": run, "step": int(row["step"]), "ndcg@10": float(row["ndcg@10"])}
        for run, curve in curves.items()
        for row in curve
    ]


def hardness(batches: Mapping[str, Sequence[Mapping[str, str]]]) -> list[Row]:
    """Return the hardness of each policy's batches as they follow one another in a domain, in means of neighbours."""
    return [
        {"name": policy, "domain": domain, "batch": number, "hardness": value}
        for policy, rows in batches.items()
        for domain, own in groupby(sorted(rows, key=lambda row: row["domain"]), key=lambda row: row["domain"])
        for number, value in _thinned([float(row["hardness"]) for row in own])
    ]


def mean(by_query: Mapping[str, float]) -> float:
    """Return the mean over queries."""
    return sum(by_query.values()) / len(by_query)


def _thinned(values: Sequence[float]) -> Iterator[tuple[int, float]]:
    """Yield the number of the first of some neighbours, from 1, and their mean."""
    size = -(-len(values) // POINTS)
    for start in range(0, len(values), size):
        chunk = values[start : start + size]
        yield start + 1, sum(chunk) / len(chunk)
