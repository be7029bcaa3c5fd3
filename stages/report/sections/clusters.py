"""Clusters: how close their sizes are to ``cluster_size``."""

from collections.abc import Mapping

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from batchwright.core.params import load_params
from batchwright.core.paths import CLUSTERS, RESULTS
from batchwright.formats.clusters import Clusters, read_draws
from stages.cluster.params import ClusterParams
from stages.report import charts
from stages.report.records import Record, read_record
from stages.report.section import Section, show_chart, show_table, side_by_side
from stages.report.sections.counts import read_ingested
from stages.report.table import Table


class ClusterCount(Record):
    """One domain in ``results/cluster.json``."""

    clusters: int


def section() -> Section:
    """Return a histogram of cluster sizes and a table of their extremes."""
    sizes = {name: draws[0].sizes for name, draws in read_clusterings().items()}
    wanted = load_params("cluster", ClusterParams).cluster_size
    everywhere = np.concatenate(list(sizes.values()))
    histogram = charts.chart(
        lambda axes: _draw_sizes(axes, everywhere, wanted), "Histogram of the number of pairs per cluster."
    )
    return Section(
        id="clusters",
        title="Clusters",
        intro="The closer the cluster sizes are to the dashed line, the less packing has to mix neighbouring clusters. "
        "The triangles on the axis mark the smallest and the largest cluster.",
        parts=[side_by_side(show_chart(histogram), show_table(_extremes(sizes, wanted), "Cluster sizes"))],
    )


def count_clusters() -> int:
    """Return the number of clusters in all domains."""
    return sum(count.clusters for count in _read_counts().values())


def read_clusterings() -> dict[str, list[Clusters]]:
    """Read the clusterings of each domain."""
    domains = read_ingested().domains
    return {name: read_draws(CLUSTERS, name, domains[name].train) for name in _read_counts()}


def _read_counts() -> dict[str, ClusterCount]:
    return read_record(dict[str, ClusterCount], RESULTS / "cluster.json", made_by="cluster")


def _extremes(sizes: Mapping[str, NDArray[np.int64]], wanted: int) -> Table:
    """Return a table of the smallest and the largest cluster, each with the first domain that has one of that size."""
    smallest = min(sizes, key=lambda domain: sizes[domain].min())
    largest = max(sizes, key=lambda domain: sizes[domain].max())
    rows = [
        ["cluster_size", f"{wanted:,}"],
        [f"Smallest, in {smallest}", f"{sizes[smallest].min():,}"],
        [f"Largest, in {largest}", f"{sizes[largest].max():,}"],
    ]
    return Table(header=[f"{sum(len(own) for own in sizes.values()):,} clusters", "Pairs"], rows=rows)


def _draw_sizes(axes: Axes, sizes: NDArray[np.int64], wanted: int) -> None:
    axes.set(xlabel="pairs per cluster", ylabel="clusters")
    axes.hist(sizes, bins=charts.bins(sizes), color=charts.colour("contextual"), alpha=0.65, histtype="stepfilled")
    on_axis = axes.get_xaxis_transform()
    ink = mpl.rcParams["text.color"]
    axes.axvline(wanted, color=ink, linewidth=1, linestyle="--")
    axes.text(wanted, 1.01, f"cluster_size {wanted:,}", transform=on_axis, ha="center", va="bottom")
    axes.plot([sizes.min(), sizes.max()], [0, 0], "^", color=ink, clip_on=False, transform=on_axis)
