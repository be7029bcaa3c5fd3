"""Random state before training. Each pass of a model that draws has its own (``drawing``)."""

import os

import torch


def seed_start(seed: int) -> None:
    """Seed all ranks alike before a model is built, and use deterministic kernels where available."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS is deterministic only with this
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # filling is slow
    torch.manual_seed(seed)
