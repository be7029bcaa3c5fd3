"""Shards as a PyTorch dataset."""

from pathlib import Path
from typing import Any

import pytest
from torch.utils.data import DataLoader

from batchwright.core.errors import InputError
from batchwright.formats.models import Prefix, Prefixes
from batchwright.formats.shards import unpack_mask
from batchwright.training.batches import ShardBatches
from batchwright.training.sentence_transformers import shard_dataset
from tests.training.toys import BATCHES, SIZE, write_shards


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    ("epochs", "numbers"), [(None, range(8)), ([1], range(4, 8)), ([1, 0], [*range(4, 8), *range(4)])]
)
def test_a_loader_yields_the_batches_of_the_epochs_in_order(tmp_path: Path, workers: int, epochs, numbers) -> None:
    shards = write_shards(tmp_path / "shards")
    dataset = ShardBatches(shards, epochs, hard_negatives=2)
    start = "forkserver" if workers else None  # a fork may hang among the threads that other tests have left behind
    loaded = list(DataLoader(dataset, batch_size=None, num_workers=workers, multiprocessing_context=start))
    assert len(dataset) == len(loaded)
    assert [batch.index for batch in loaded] == list(numbers)
    for batch in loaded:
        packed = shards.batch(batch.index)
        assert batch.queries == packed["query"].to_pylist()
        assert batch.documents == packed["document"].to_pylist()
        assert batch.negatives == [text for own in packed["negatives"].to_pylist() for text in own[:2]]
        assert (batch.masked == unpack_mask(packed["mask"].to_pylist(), SIZE)).all()


def test_prefixes_are_put_before_the_texts(tmp_path: Path) -> None:
    prefixes = Prefixes(default=Prefix(query="query: ", document="document: "))
    batch = ShardBatches(write_shards(tmp_path / "shards"), prefixes=prefixes)[0]
    assert all(text.startswith("query: ") for text in batch.queries)
    assert all(text.startswith("document: ") for text in batch.documents)


def test_a_loader_that_would_join_batches_fails(tmp_path: Path) -> None:
    dataset = ShardBatches(write_shards(tmp_path / "shards"))
    with pytest.raises(TypeError, match="TrainBatch"):
        next(iter(DataLoader(dataset, batch_size=2)))


def test_an_epoch_that_was_not_packed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="epoch 2 of the shards was asked for, but they hold epochs 0 to 1"):
        ShardBatches(write_shards(tmp_path / "shards"), [1, 2])
    assert len(ShardBatches(write_shards(tmp_path / "others"), [0])) == BATCHES


@pytest.mark.parametrize("count", [-1, 1.5, True, None])
def test_numbers_of_hard_negatives_that_cannot_be_are_refused(tmp_path: Path, count: Any) -> None:
    shards = write_shards(tmp_path / "shards")
    for read in (ShardBatches, shard_dataset):
        with pytest.raises(InputError, match=f"hard_negatives is {count}; pass a whole number of at least 0"):
            read(shards, hard_negatives=count)


def test_scores_that_no_teacher_gave_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no teacher's scores; run the stage 'teach', or leave out taught"):
        ShardBatches(write_shards(tmp_path / "shards"), taught=True)
