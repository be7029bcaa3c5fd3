"""The number of steps in a training run; step ``i`` reads training batch ``i``."""

from batchwright.core.errors import InputError
from batchwright.formats.shards import Manifest
from trainers.common.params import Common


def planned_steps(manifest: Manifest, common: Common) -> int:
    """The number of steps that ``train.common`` requests.

    Raises:
        InputError: the shards hold fewer epochs or batches than requested, or no batches at all.
    """
    packed = len(manifest.epochs)
    if common.epochs > packed:
        raise InputError(f"epochs is {common.epochs}, but the shards hold {packed}; lower it, or raise pack.epochs")
    available = sum(epoch.batches for epoch in manifest.epochs[: common.epochs])
    if common.steps is not None and common.steps > available:
        raise InputError(
            f"steps is {common.steps}, but {common.epochs} epoch(s) of the shards hold {available} "
            "batches; lower it, or raise epochs and pack.epochs"
        )
    if available == 0:
        raise InputError(
            "the shards hold no batches; add pairs or lower pack.batch_size, and run the stage 'pack' again"
        )
    return common.steps or available


def epoch_of(manifest: Manifest, step: int) -> int:
    """The epoch, counted from 1, that batch ``step`` belongs to."""
    return sum(epoch.first_batch <= step for epoch in manifest.epochs)
