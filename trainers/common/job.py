"""Jobs: everything a training process needs to know, wherever it runs."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from batchwright.core.fingerprint import code_fingerprint
from batchwright.core.runtime import train_gpus


@dataclass(frozen=True, kw_only=True)
class Job(ABC):
    """A training job. It can be pickled, and all paths are absolute, since each worker runs in its own folder.

    ``name`` appears in progress bars and file names. ``batch_size`` is the number of rows in a batch over all workers.
    Workers on several machines must share the file system that the paths are on. ``tracker`` is one of
    ``trainers.common.trackers``.
    """

    name: str
    seed: int
    batch_size: int
    model: Path
    scratch: Path
    device: Literal["cpu", "cuda"]
    tracker: str | None = None

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """The parameters, as a tracker shows them."""


def training_device() -> Literal["cpu", "cuda"]:
    """The device that training processes use."""
    return "cuda" if train_gpus(int(torch.cuda.is_available())) else "cpu"


def training_code() -> str:
    """Fingerprint of all code that can affect the result of training."""
    return code_fingerprint(Path(__file__).parents[1])
