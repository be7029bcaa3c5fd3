"""Ranks on this machine."""

import os
from collections.abc import Callable

import torch
from torch import multiprocessing

WORLD = 2


def run_ranks(work: Callable[..., None], *arguments: object) -> None:
    """Call ``work`` with a rank and these arguments, in a process for each rank; all must succeed."""
    given = (dict(os.environ), work, *arguments)
    multiprocessing.start_processes(_run, given, nprocs=WORLD, start_method="forkserver")


def _run(rank: int, environment: dict[str, str], work: Callable[..., None], *arguments: object) -> None:
    os.environ |= environment  # where they are forked from, it is that of an earlier test
    torch.set_num_threads(1)
    work(rank, *arguments)
