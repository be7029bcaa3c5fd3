"""Length and cost of the short tour, compared with the greedy one and a random order, on generated centroids.

``python -m benchmarks.tour [--sizes 10000 100000] [--repeats N] [--greedy-up-to K] [--output FILE]``

Lengths are sums of 1 - cosine. The greedy tour takes O(K^2) time: minutes at 100,000 centroids. Every line is measured
in a separate process, so that its peak memory, which includes the centroids, is its own.
"""

import multiprocessing
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from batchwright.core.command import new_parser
from batchwright.core.files import write_tsv
from stages.pack.tour import short_tour, tour_length
from stages.pack.tour.greedy import greedy_tour

WIDTH = 384
CENTROIDS_A_TOPIC = 40
TOPICS_A_FIELD = 25
SEED = 17
BARS = {10_000: 2, 100_000: 60, 1_000_000: 900}
"""Seconds allowed on two cores."""


def main() -> None:
    """Print one line per kind and number of centroids, and write them as a TSV file."""
    parser = new_parser("benchmarks.tour", str(__doc__), "python -m benchmarks.tour --sizes 10000")
    parser.add_argument("--sizes", nargs="+", type=int, default=[10_000, 100_000])
    parser.add_argument("--repeats", type=int, default=3, help="measurements; their median is reported")
    parser.add_argument("--greedy-up-to", type=int, default=10_000)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    rows = []
    for count in arguments.sizes:
        for kind in KINDS:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                rows.append(pool.apply(_measure, (kind, count, arguments.repeats, count <= arguments.greedy_up_to)))
            if len(rows) == 1:
                print("  ".join(f"{name:>13}" for name in rows[0]))
            print("  ".join(f"{value:>13}" for value in rows[-1].values()), flush=True)
    if arguments.output:
        write_tsv(arguments.output, rows)


def topics(count: int) -> NDArray[np.float32]:
    """Centroids grouped in topics, and topics in fields; within a topic, the cosine is about .7."""
    rng = np.random.default_rng(SEED)
    number = max(1, count // CENTROIDS_A_TOPIC)
    fields = rng.standard_normal((max(1, number // TOPICS_A_FIELD), WIDTH), dtype=np.float32)
    centres = rng.standard_normal((number, WIDTH), dtype=np.float32) + fields[rng.integers(len(fields), size=number)]
    centroids = rng.standard_normal((count, WIDTH), dtype=np.float32)
    for rows in np.array_split(centroids, count // 10_000 + 1):
        rows += centres[rng.integers(number, size=len(rows))]
    return centroids


def unstructured(count: int) -> NDArray[np.float32]:
    """Random directions: no neighbour is much nearer than the others, which is the worst case for a search."""
    centroids: NDArray[np.float32] = np.random.default_rng(SEED).standard_normal((count, WIDTH), dtype=np.float32)
    return centroids


KINDS: dict[str, Callable[[int], NDArray[np.float32]]] = {"topics": topics, "unstructured": unstructured}


def _measure(kind: str, count: int, repeats: int, with_greedy: bool) -> dict[str, Any]:
    centroids = KINDS[kind](count)
    faiss.normalize_L2(centroids)
    start = int(np.random.default_rng(SEED).integers(count))
    seconds = []
    for _ in range(repeats):
        tour, took = _timed(short_tour, centroids, start)
        seconds.append(took)
    mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    length = tour_length(centroids, tour)
    over_greedy, greedy_seconds = "-", "-"
    if with_greedy:
        greedy, took = _timed(greedy_tour, centroids, start)
        over_greedy, greedy_seconds = f"{length / tour_length(centroids, greedy):.4f}", f"{took:.2f}"
    shuffled = np.random.default_rng(SEED).permutation(count)
    return {
        "kind": kind,
        "centroids": count,
        "over random": f"{length / tour_length(centroids, shuffled):.4f}",
        "over greedy": over_greedy,
        "greedy s": greedy_seconds,
        "tour s": f"{statistics.median(seconds):.2f}",
        "bar s": BARS.get(count, "-"),
        "peak MiB": mib,
    }


def _timed(
    tour: Callable[[NDArray[np.float32], int], NDArray[np.int64]], centroids: NDArray[np.float32], start: int
) -> tuple[NDArray[np.int64], float]:
    begin = time.perf_counter()
    return tour(centroids, start), time.perf_counter() - begin


if __name__ == "__main__":
    main()
