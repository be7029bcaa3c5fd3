"""Jobs: everything a training process needs to know, wherever it runs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

import batchwright
from batchwright.core.fingerprint import files_fingerprint
from batchwright.core.runtime import train_gpus


@dataclass(frozen=True, kw_only=True)
class Job:
    """Picklable; all paths are absolute, since workers run in folders of their own.

    ``name`` stands in progress bars and file names. ``batch_size`` counts the rows of a batch over all workers.
    Workers on several machines must share the file system that the paths lie on.
    """

    name: str
    seed: int
    batch_size: int
    model: Path
    scratch: Path
    device: Literal["cpu", "cuda"]


def training_device() -> Literal["cpu", "cuda"]:
    """The device that a training process computes on."""
    return "cuda" if train_gpus(int(torch.cuda.is_available())) else "cpu"


def training_code() -> str:
    """Fingerprint of all code that may decide the result of a training."""
    return files_fingerprint([Path(__file__).parents[1], Path(str(batchwright.__file__)).parent])
