"""How the cost of clustering grows with the number of pairs, on generated vectors.

``python -m benchmarks.scale [--pairs 10000 100000 1000000] [--cluster-size 128] [--flat]``

Every size runs in a process of its own. ``--flat`` clusters each size once more without cells.
"""

import stages  # noqa: F401, I001  (keeps libraries quiet)

import argparse
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formats.vectors import PairVectors, blocks
from stages.cluster.methods import METHODS
from stages.cluster.methods.balance import cells
from stages.cluster.params import ClusterParams
from stages.cluster.side_sums import side_sums

WIDTH = 384
PAIRS_A_TOPIC = 100
TOPICS_A_FIELD = 50
SEED = 17


def main() -> None:
    """Print a line a size, with its ratios to the line before."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale")
    parser.add_argument("--pairs", nargs="+", type=int, default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--cluster-size", type=int, default=128)
    parser.add_argument("--flat", action="store_true")
    arguments = parser.parse_args()
    print("     pairs      way  hardness   seconds    growth   peak MiB", flush=True)
    before: dict[bool, tuple[int, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for pairs in arguments.pairs:
            file = Path(folder) / f"{pairs}.npy"
            _generate(file, pairs)
            for flat in (False, True) if arguments.flat else (False,):
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    hardness, seconds, mib = pool.apply(_measure, (file, arguments.cluster_size, flat))
                size, earlier = before.get(flat, (pairs, seconds))
                before[flat] = pairs, seconds
                growth = f"{seconds / earlier:.1f}x / {pairs / size:.0f}x"
                way = "flat" if flat else "cells"
                print(f"{pairs:10,} {way:>8} {hardness:9.4f} {seconds:9.1f} {growth:>12} {mib:8,}", flush=True)
            file.unlink()


def _generate(file: Path, pairs: int) -> None:
    """Unit vectors, queries first: fields of topics of pairs, and noise, float16."""
    rng = np.random.default_rng(SEED)
    topics = max(1, pairs // PAIRS_A_TOPIC)
    fields = _units(rng, max(1, topics // TOPICS_A_FIELD))
    centres = fields[rng.integers(len(fields), size=topics)] + 0.8 * _units(rng, topics)
    vectors = np.lib.format.open_memmap(file, mode="w+", dtype=np.float16, shape=(2 * pairs, WIDTH))
    for block in blocks(pairs):
        count = len(range(*block.indices(pairs)))
        common = centres[rng.integers(topics, size=count)] + 0.8 * _units(rng, count)
        for start in (0, pairs):
            found = common + 0.9 * _units(rng, count)
            vectors[start + block.start : start + block.start + count] = found / np.linalg.norm(
                found, axis=1, keepdims=True
            )
    vectors.flush()


def _units(rng: np.random.Generator, count: int) -> NDArray[np.float32]:
    found: NDArray[np.float32] = rng.standard_normal((count, WIDTH), dtype=np.float32)
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    return found


def _measure(file: Path, cluster_size: int, flat: bool) -> tuple[float, float, int]:
    both = np.load(file, mmap_mode="r")
    pairs = len(both) // 2
    vectors = PairVectors(vectors=both, rows=np.arange(2 * pairs).reshape(2, pairs))
    params = ClusterParams(vectors="any", cluster_size=cluster_size, iterations=5)
    if flat:
        cells.MOST_CLUSTERS = pairs
        params = params.model_copy(update={"resident_pairs": pairs})
    start = time.perf_counter()
    assignment = METHODS["balanced"](vectors, params, SEED)
    seconds = time.perf_counter() - start
    mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    k = pairs // cluster_size
    sums = side_sums(vectors, assignment, int(assignment.max()) + 1)[:k]
    within = np.einsum("kd,kd->", sums[:, 0], sums[:, 1], dtype=np.float64)
    within -= vectors.scores()[assignment < k].sum(dtype=np.float64)
    return float(within / (k * cluster_size * (cluster_size - 1))), seconds, mib


if __name__ == "__main__":
    main()
