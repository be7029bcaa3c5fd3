"""Which of the packed batches a training run reads."""

from batchwright.core.errors import InputError
from batchwright.formats.shards import Manifest
from trainers.common.params import Common


def planned_batches(manifest: Manifest, common: Common) -> range:
    """The numbers of the batches that ``train.common`` requests, one a step.

    Raises:
        InputError: the shards hold fewer epochs or batches than requested, or no batches at all.
    """
    packed, skipped = len(manifest.epochs), common.skip_epochs
    if skipped + common.epochs > packed:
        wanted = f"epochs is {common.epochs}" + (f" after skip_epochs {skipped}" if skipped else "")
        raise InputError(f"{wanted}, but the shards hold {packed}; lower it, or raise pack.epochs")
    first, available = (
        sum(epoch.batches for epoch in epochs)
        for epochs in (manifest.epochs[:skipped], manifest.epochs[skipped:][: common.epochs])
    )
    if common.steps is not None and common.steps > available:
        raise InputError(
            f"steps is {common.steps}, but {common.epochs} epoch(s) of the shards hold {available} "
            "batches; lower it, or raise epochs and pack.epochs"
        )
    if available == 0:
        raise InputError(
            "the shards hold no batches; add pairs or lower pack.batch_size, and run the stage 'pack' again"
        )
    return range(first, first + (common.steps or available))


def epoch_of(manifest: Manifest, batch: int) -> int:
    """The epoch, counted from 1, that a batch belongs to."""
    return sum(epoch.first_batch <= batch for epoch in manifest.epochs)
