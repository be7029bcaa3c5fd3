"""Jobs: everything a training process needs to know, wherever it runs."""

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from batchwright.core import runtime
from batchwright.core.fingerprint import code_fingerprint
from batchwright.core.room import check_disk, check_memory
from batchwright.core.storage import Storage

Report = Callable[[Mapping[str, float | int], Storage | None], None]
"""Called on every rank after a checkpoint, with the last row of the curve, and on rank 0 with the checkpoint."""


def report_nothing(row: Mapping[str, float | int], checkpoint: Storage | None) -> None:
    """For trainings that nobody follows but their curves."""


@dataclass(frozen=True, kw_only=True)
class Job(ABC):
    """A training job. It can be pickled, and all paths are absolute, since each worker runs in its own folder.

    ``name`` appears in progress bars and file names. ``batch_size`` is the number of rows in a batch over all workers.
    Workers on several machines must share the file system that the paths are on. ``storage`` keeps what a resumed run
    goes on with. ``tracker`` is one of ``trainers.common.trackers``.
    """

    name: str
    seed: int
    batch_size: int
    model: Path
    scratch: Path
    storage: Storage
    device: Literal["cpu", "cuda"]
    tracker: str | None = None
    report: Report = report_nothing

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """The parameters, as a tracker shows them."""


def job_storage(name: str, scratch: Path) -> Storage:
    """Return where the job keeps its checkpoints; its name is as unique as that of its scratch folder.

    Raises:
        InputError: ``BATCHWRIGHT_STORAGE`` is nowhere.
    """
    return Storage.at(runtime.storage() or scratch) / f"{name}-{scratch.name}"


def check_room(weights: float, storage: Storage, model: Path, besides: float = 0) -> None:
    """Check disk for the model and for three checkpoints: weights and AdamW's two moments, in float32.

    Memory must do for ``weights``, gradients and moments of every worker here, in bytes, and what each holds
    ``besides``.

    Raises:
        InputError: there is too little.
    """
    what = f"training a model of {weights / 1e9:.1f} GB"
    if training_device() == "cpu" and runtime.ray_address() == "local":
        check_memory((4 * weights + besides) * max(runtime.train_workers().fewest, 1), what)
    if not storage.names():  # or it has found room before
        place = storage.local or Path(tempfile.gettempdir())  # object storage is written from there
        check_disk({place: 9 * weights, model.parent: weights}, what)


def training_device() -> Literal["cpu", "cuda"]:
    """The device that training processes use."""
    return "cuda" if runtime.train_gpus(int(torch.cuda.is_available())) else "cpu"


def training_code() -> str:
    """Fingerprint of all code that can affect the result of training."""
    return code_fingerprint(Path(__file__).parents[1])
