"""Shards as a PyTorch dataset."""

from collections.abc import Sequence

from torch.utils.data import Dataset

from batchwright.formats.prefixes import Prefixes
from batchwright.formats.shards import ShardSet
from batchwright.training.batches import BatchReader, TrainBatch


class ShardBatches(Dataset[TrainBatch]):
    """The training batches of some packed epochs in their order; one item is one whole batch.

    ``epochs`` count from 0; without them, all. Load it with ``DataLoader(dataset, batch_size=None)``, and leave
    ``shuffle`` off: the order of the batches is part of what was packed. ``hard_negatives``, ``prefixes`` and
    ``whole_domain`` as in ``BatchReader``.

    Raises:
        InputError: there is no such epoch.
    """

    def __init__(
        self,
        shards: ShardSet,
        epochs: Sequence[int] | None = None,
        hard_negatives: int = 0,
        prefixes: Prefixes | None = None,
        whole_domain: bool = False,
    ) -> None:
        chosen = range(len(shards.manifest.epochs)) if epochs is None else epochs
        self._numbers = [number for epoch in chosen for number in shards.manifest.batches_of(epoch)]
        self._reader = BatchReader(shards, prefixes or Prefixes(), hard_negatives, whole_domain)

    def __len__(self) -> int:
        """Return the number of batches."""
        return len(self._numbers)

    def __getitem__(self, place: int) -> TrainBatch:
        """Read a batch from its shard."""
        return self._reader.read(self._numbers[place], slice(None))
