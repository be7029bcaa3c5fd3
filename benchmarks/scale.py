"""How the cost of making batches grows with the number of pairs, measured on generated vectors.

``python -m benchmarks.scale [--pairs 10000 100000 1000000] [--batch 128] [--methods ...] [--output FILE]``

Prints the table of ``benchmarks.batches`` for each size, and how many times longer each method took than for the
previous size.
"""

import itertools
import tempfile
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from batchwright.core.command import new_parser
from batchwright.core.results import write_tsv
from batchwright.formats.negatives import Negatives
from batchwright.formats.vectors import PairVectors, blocks
from benchmarks.comparison import Row, compare, show
from benchmarks.methods import ALL
from stages.filter.params import FilterParams
from stages.filter.rules import thresholds

WIDTH = 384
PAIRS_A_TOPIC = 100
TOPICS_A_FIELD = 50
MARGIN = 0.05
SEED = 17


def main() -> None:
    """Print the tables, and write them as one TSV file."""
    parser = new_parser("benchmarks.scale", str(__doc__), "python -m benchmarks.scale --pairs 10000 100000")
    parser.add_argument("--pairs", nargs="+", type=int, default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--methods", nargs="+", choices=sorted(ALL), default=["random", "balanced"])
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    jobs = [(arguments.batch, method) for method in arguments.methods]
    sizes: list[list[Row]] = []
    with tempfile.TemporaryDirectory() as folder:
        for pairs in arguments.pairs:
            file = Path(folder) / f"{pairs}.npy"
            generate(file, pairs)
            sizes.append(compare(f"{pairs:,} pairs", partial(open_generated, file), jobs))
            show(sizes[-1])
            file.unlink()
    for smaller, larger in itertools.pairwise(sizes):
        for less, more in zip(smaller, larger, strict=False):
            times = f"{more.seconds / max(less.seconds, 0.01):.1f}"
            print(f"{more.method}: {more.data} took {times} times as long as {less.data}")
    if arguments.output:
        write_tsv(arguments.output, [asdict(row) for rows in sizes for row in rows])


def generate(file: Path, pairs: int) -> None:
    """Write unit vectors in float16, queries first: pairs in topics, topics in fields, and noise."""
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


def open_generated(file: Path) -> tuple[PairVectors, Negatives]:
    """Pairs of which no two texts are the same, so that only the score makes false negatives."""
    both = np.load(file, mmap_mode="r")
    pairs = len(both) // 2
    vectors = PairVectors(vectors=both, rows=np.arange(2 * pairs).reshape(2, pairs))
    scores = vectors.scores()
    classes = np.arange(pairs, dtype=np.int32)
    negatives = Negatives(
        scores=scores,
        thresholds=thresholds(scores, FilterParams(vectors="generated", margin=MARGIN)),
        query_class=classes,
        document_class=classes,
        kept=np.ones(pairs, dtype=bool),
        mined=np.empty((pairs, 0), dtype=np.int32),
    )
    return vectors, negatives


if __name__ == "__main__":
    main()
