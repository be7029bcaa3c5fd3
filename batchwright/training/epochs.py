"""Packed epochs."""

from batchwright.core.errors import InputError
from batchwright.formats.shards import Manifest


def batches_of_epoch(manifest: Manifest, epoch: int) -> range:
    """Return the numbers of a packed epoch's batches; epochs count from 0.

    Raises:
        InputError: there is no such epoch.
    """
    if not 0 <= epoch < len(manifest.epochs):
        raise InputError(
            f"epoch {epoch} of the shards was asked for, but they hold epochs 0 to {len(manifest.epochs) - 1}; "
            "train for fewer epochs, or raise pack.epochs and run the stage 'pack' again"
        )
    found = manifest.epochs[epoch]
    return range(found.first_batch, found.first_batch + found.batches)
