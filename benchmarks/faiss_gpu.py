"""Nearest neighbours, K-Means and clusters with FAISS, on the CPU and on a GPU: times, and whether results are equal.

``python -m benchmarks.faiss_gpu [--small] [--output FILE]``

Vectors are on the grid (``batchwright.core.grid``), so neighbours must have equal scores, and centroids and clusters be
the same. Without a GPU, or without the extra ``gpu``, it compares the CPU with itself and says so.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import torch  # before FAISS: both look for CUDA's libraries
from numpy.typing import NDArray

from batchwright.core import grid, neighbours
from batchwright.core.command import new_parser
from batchwright.core.files import write_tsv
from batchwright.formats.vectors import PairVectors
from stages.cluster.methods import METHODS
from stages.cluster.params import ClusterParams

Run = Callable[[], NDArray[Any]]


class Form(NamedTuple):
    """Sizes: vectors of ``width``, of which ``queries`` ask for the nearest ``k``, and pairs that are clustered."""

    vectors: int = 100_000
    width: int = 384
    queries: int = 10_000
    k: int = 50
    centroids: int = 512
    pairs: int = 20_000
    cluster_size: int = 64


SMALL = Form(vectors=2_000, width=32, queries=200, k=5, centroids=16, pairs=300, cluster_size=16)


def main() -> None:
    """Print one line per part as it ends."""
    parser = new_parser("benchmarks.faiss_gpu", str(__doc__), "python -m benchmarks.faiss_gpu --small")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    print(
        torch.cuda.get_device_name() if neighbours.on_gpu() else "no GPU for FAISS: the CPU beside itself", flush=True
    )
    rows = []
    for row in compare(SMALL if arguments.small else Form()):
        print("{part:10} CPU {cpu:8.3f} s, GPU {gpu:8.3f} s; same {same:.6f}".format(**row), flush=True)
        rows.append(row)
        if arguments.output:
            write_tsv(arguments.output, rows)


def compare(form: Form) -> Iterator[dict[str, Any]]:
    """Seconds of each part on the CPU and on the GPU, and the share of numbers that are the same."""
    for part, run in _parts(form).items():
        if neighbours.on_gpu():
            run()  # the first call makes room on the GPU
        gpu, on_gpu = _timed(run)
        with patch.object(neighbours, "on_gpu", lambda: False):
            cpu, on_cpu = _timed(run)
        yield {"part": part, "cpu": round(cpu, 3), "gpu": round(gpu, 3), "same": float((on_cpu == on_gpu).mean())}


def _parts(form: Form) -> dict[str, Run]:
    vectors = topics(form.vectors, form.width, 0)
    points = grid.rounded(vectors, grid.COARSE)
    pairs = PairVectors(
        vectors=np.concatenate([topics(form.pairs, form.width, 0), topics(form.pairs, form.width, 1)]).astype(
            np.float16
        ),
        rows=np.arange(2 * form.pairs).reshape(2, -1),
    )
    params = ClusterParams(vectors="generated", cluster_size=form.cluster_size)
    return {
        "neighbours": lambda: neighbours.knn(vectors[: form.queries], vectors, form.k, inner_product=True)[0],
        "K-Means": partial(neighbours.kmeans, points, form.centroids, iterations=10, seed=0),
        "clusters": lambda: METHODS["balanced"](pairs, params, 0),
    }


def topics(count: int, width: int, seed: int) -> NDArray[np.float32]:
    """Unit vectors ``(count, width)`` on the grid: one topic for 100 of them; those of a row have the same topic."""
    centres = np.random.default_rng(0).standard_normal((-(-count // 100), width))
    owners = np.random.default_rng(1).integers(0, len(centres), count)
    noise = np.random.default_rng([2, seed]).standard_normal((count, width))
    return grid.unit(centres[owners] + noise)


def _timed(run: Run) -> tuple[float, NDArray[Any]]:
    start = time.perf_counter()
    found = run()
    return time.perf_counter() - start, found


if __name__ == "__main__":
    main()
