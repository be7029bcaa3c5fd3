"""What XTR's scores cost in training, compared with holding all similarities, and in search, compared with ColBERT.

``python -m benchmarks.xtr [--batches ...] [--lengths Q D] [--k K] [--repeats N] [--output FILE]``

``streaming`` is this project's score, ``dense`` its definition with all similarities at once, ``library``
``xtr_scores`` of sentence-transformers, and ``pylate`` PyLate's score, if it is installed (``pip install --no-deps
pylate``). Each scores random unit vectors of 128 dimensions with a cross-entropy on top, forward and backward, in a
separate process, whose peak memory above its start is printed. The bar: streaming handles a batch for which dense
needs 8 times the memory, in at most 1.3 times its time.

``python -m benchmarks.xtr --search`` times two ways to score the documents that a query's tokens retrieve: by
imputation, and by gathering their vectors.
"""

import importlib.util
import multiprocessing
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from sentence_transformers.multi_vector_encoder.scoring.xtr import xtr_scores
from torch import Tensor
from torch.nn import functional

from batchwright.core.command import new_parser
from batchwright.core.files import write_tsv
from batchwright.retrievers.xtr.rank import colbert_operations, collect, xtr_operations
from trainers.xtr.scores import Tokens, score

WIDTH = 128
TEMPERATURE = 0.05


def dense(queries: Tokens, documents: Tokens, k: int | None) -> Tensor:
    """Scores ``(B, N)`` from one grid of all similarities, differentiable by autograd."""
    grid = torch.einsum("bqd,nld->bqnl", queries.vectors, documents.vectors)
    grid = grid.masked_fill(~torch.from_numpy(documents.mask).to(grid.device), -torch.inf)
    pool = int(documents.mask.sum())
    last = (
        grid.flatten(2).topk(min(k or pool, pool), dim=2).values[:, :, -1] if pool else grid.new_zeros(grid.shape[:2])
    )
    maxima = grid.max(dim=3).values
    retrieved = (maxima >= last[:, :, None]) & (maxima > -torch.inf)
    retrieved &= torch.from_numpy(queries.mask).to(grid.device)[:, :, None]
    return maxima.masked_fill(~retrieved, 0).sum(dim=1) / retrieved.sum(dim=1).clamp(min=1)


def _pylate(queries: Tokens, documents: Tokens, k: int) -> Tensor:
    return cast(Tensor, importlib.import_module("pylate.scores.xtr").XTRScores(k)(*grouped(queries, documents)))


def grouped(queries: Tokens, documents: Tokens) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """As other libraries take them: each query's documents are a group, here of one."""
    masks = (torch.from_numpy(each.mask).to(each.vectors.device) for each in (queries, documents))
    query_mask, document_mask = masks
    return queries.vectors, documents.vectors[:, None], query_mask, document_mask[:, None]


Way = Callable[[Tokens, Tokens, int], Tensor]

WAYS: dict[str, Way] = {
    "streaming": lambda queries, documents, k: score(queries, documents, k).values,
    "dense": dense,
    "library": lambda queries, documents, k: xtr_scores(*grouped(queries, documents), top_k=k),
    "pylate": _pylate,
}
INSTALLED = [way for way in WAYS if way != "pylate" or importlib.util.find_spec("pylate")]


def main() -> None:
    """Print one line per batch size and way."""
    parser = new_parser("benchmarks.xtr", str(__doc__), "python -m benchmarks.xtr --batches 32 64")
    parser.add_argument("--batches", nargs="+", type=int, default=[32, 64, 128])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=INSTALLED)
    parser.add_argument("--lengths", nargs=2, type=int, default=[32, 64])
    parser.add_argument("--k", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--search", action="store_true")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    if arguments.search:
        _search()
        return
    rows: list[dict[str, Any]] = []
    for batch in arguments.batches:
        for way in arguments.ways:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                given = (way, batch, arguments.lengths, arguments.k, arguments.repeats)
                rows.append(pool.apply(_measure, given))
            print("batch {batch:5} {way:10} {seconds:8.3f} s {mib:7} MiB".format(**rows[-1]), flush=True)
    if arguments.output:
        write_tsv(arguments.output, rows)


def _measure(way: str, batch: int, lengths: tuple[int, int], k: int, repeats: int) -> dict[str, Any]:
    """Memory and median processor time; wall time would include other programs."""
    generator = torch.Generator().manual_seed(0)
    queries, documents = (random_texts(batch, length, generator) for length in lengths)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        score_and_back(WAYS[way], queries, documents, k)
        seconds.append(time.process_time() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "batch": batch,
        "way": way,
        "seconds": round(statistics.median(seconds), 4),
        "mib": (peak - before) // 1024,
    }


def random_texts(texts: int, length: int, generator: torch.Generator) -> Tokens:
    """Return texts of random unit vectors on the generator's device."""
    there = generator.device
    vectors = torch.randn(texts, length, WIDTH, generator=generator, device=there)
    return Tokens(functional.normalize(vectors, dim=-1).requires_grad_(), np.ones((texts, length), np.bool_))


def score_and_back(score_all: Way, queries: Tokens, documents: Tokens, k: int) -> None:
    """Score all documents for each query, and backpropagate a cross-entropy."""
    scores = score_all(queries, documents, k)
    torch.autograd.backward(
        functional.cross_entropy(scores / TEMPERATURE, torch.arange(len(scores), device=scores.device))
    )


def _search(tokens: int = 16, k: int = 100, length: int = 55, documents: int = 20_000) -> None:
    """The paper's table 1, measured: 16 query tokens retrieve 100 tokens each; documents have 55 tokens, width 128."""
    generator = np.random.default_rng(0)
    corpus = generator.normal(size=(documents, length, WIDTH)).astype(np.float32)
    query = generator.normal(size=(tokens, WIDTH)).astype(np.float32)
    owners = generator.integers(0, documents, (tokens, k))
    similarities = -np.sort(-generator.random((tokens, k), dtype=np.float32))
    candidates = np.unique(owners)

    def gather() -> None:
        (query @ corpus[candidates].reshape(-1, WIDTH).T).reshape(tokens, -1, length).max(axis=2).mean(axis=0)

    times = {}
    for name, run in (("gathering", gather), ("imputing", lambda: collect(similarities, owners).scores())):
        run()
        spent = []
        for _ in range(20):
            start = time.process_time()
            run()
            spent.append(time.process_time() - start)
        times[name] = statistics.median(spent)
        print(f"{name:10} {1000 * times[name]:8.2f} ms per query, {len(candidates)} candidates")
    counted = colbert_operations(tokens, k, length, WIDTH) / xtr_operations(tokens, k, 2.5)
    print(f"imputing is {times['gathering'] / times['imputing']:.0f} times as fast; by the paper's count {counted:.1f}")


if __name__ == "__main__":
    main()
