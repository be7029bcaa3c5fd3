"""Random state as a function of seed and step, so that a resumed run draws the same numbers as an uninterrupted one."""

import os

import numpy as np
import torch

from trainers.common.distributed import rank


def seed_start(seed: int) -> None:
    """Seed all ranks alike before a model is built, and use deterministic kernels where available."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS is deterministic only with this
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # filling is slow
    torch.manual_seed(seed)


def seed_step(seed: int, step: int) -> None:
    """Seed the random draws of a step, such as dropout; each step and rank draws differently."""
    torch.manual_seed(int(np.random.SeedSequence([seed, step, rank()]).generate_state(1)[0]))
