"""Random state as a function of seed and step, so that a resumed training draws what an uninterrupted one does."""

import os

import numpy as np
import torch

from trainers.common.distributed import rank


def seed_start(seed: int) -> None:
    """Before a model is built: the same draws on all ranks, and deterministic kernels where there are any."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS is deterministic only with it
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # slow
    torch.manual_seed(seed)


def seed_step(seed: int, step: int) -> None:
    """Before a step: draws (dropout) of its own for each step and rank."""
    torch.manual_seed(int(np.random.SeedSequence([seed, step, rank()]).generate_state(1)[0]))
