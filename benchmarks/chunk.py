"""What a training step costs by how many texts go through the model at once.

``python -m benchmarks.chunk [SIZE ...]`` runs a biencoder's step on batches of docstrings and functions of SymPy, 128
pairs each, with all-MiniLM-L6-v2 and without an optimiser. It prints, for each size, the median of processor time on
one thread, and the memory at its peak above that of the loaded model. Each size has a process of its own.
"""

import resource
import statistics
import time
from functools import partial
from multiprocessing import get_context

import numpy as np
import torch
from torch.nn import functional

from batchwright.core.command import new_parser
from batchwright.formats.models import locate_model
from batchwright.retrievers.common.model_folder import load_model
from benchmarks.passes import MODEL, batches
from trainers.common.embed import embed, preprocess
from trainers.common.gradient_cache import CachedForward
from trainers.common.passes.chunk import Chunk
from trainers.common.passes.groups import Group, group_texts
from trainers.common.passes.precision import training_pass


def main() -> None:
    """Print one line per size."""
    parser = new_parser("benchmarks.chunk", str(__doc__), "python -m benchmarks.chunk 128 32")
    parser.add_argument("sizes", type=int, nargs="*", default=[128, 64, 32, 16, 8])
    parser.add_argument("--length", type=int, default=32)
    parser.add_argument("--batches", type=int, default=3)
    arguments = parser.parse_args()
    for size in arguments.sizes:
        with get_context("spawn").Pool(1) as pool:
            seconds, mib = pool.apply(_measure, (size, arguments.length, arguments.batches))
        print(f"{size:5} texts at once: {seconds:6.2f} s a step, {mib:6.0f} MiB", flush=True)


def _measure(size: int, length: int, count: int) -> tuple[float, float]:
    torch.set_num_threads(1)
    model = load_model(locate_model(MODEL), length, "cpu").train()
    read, before, seconds = partial(preprocess, model), _peak(), []

    def run(side: int, group: Group) -> torch.Tensor:
        with training_pass("float32", [side], group.numbers, model.device):
            return embed(model, group.features)

    for sides in batches(None, count + 1):
        start = time.thread_time()
        groups = [group_texts(read, texts, np.arange(len(texts)), size) for texts in sides]
        forwards = [CachedForward(partial(run, side), own, Chunk(size)) for side, own in enumerate(groups)]
        leaves = [each.output.requires_grad_() for each in forwards]
        loss = functional.cross_entropy(leaves[0] @ leaves[1].T / 0.05, torch.arange(len(leaves[0])))
        for each, gradient in zip(forwards, torch.autograd.grad(loss, leaves), strict=True):
            each.backward(gradient)
        seconds.append(time.thread_time() - start)
        model.zero_grad()
    return statistics.median(seconds[1:]), _peak() - before


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


if __name__ == "__main__":
    main()
