"""What the documents of a batch stand for, and where it comes from."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchwright.core.errors import InputError
from batchwright.formats.shards import ShardSet
from batchwright.formats.shards.batch import stands_for
from tests.train.toys import toy_batch, toy_rows, write_toy_shards


@given(st.lists(st.integers(0, 4), min_size=2, max_size=12), st.integers(12, 10**6))
def test_the_documents_of_a_batch_stand_for_all_of_their_domain(groups: list[int], documents: int) -> None:
    found = stands_for(np.array(groups), documents)
    for row, own in enumerate(groups):
        assert all(found[row, place] == 1 for place, group in enumerate(groups) if group == own)
        if len(set(groups)) > 1:
            assert found[row].sum() == pytest.approx(documents, rel=1e-5)


def test_a_batch_of_more_rows_than_documents_stands_for_itself() -> None:
    assert (stands_for(np.arange(8), 5) == 1).all()


@pytest.fixture
def shards(tmp_path: Path) -> ShardSet:
    """Two epochs of one batch of 8 pairs: the second epoch is hard, by ``write_batches``."""
    rows = toy_rows(8)
    batches = [toy_batch([row | {"cluster": place // 4} for place, row in enumerate(rows)]) for _ in range(2)]
    return ShardSet.open(write_toy_shards(tmp_path / "shards", batches, epochs=2))


def test_only_hard_epochs_have_groups(shards: ShardSet) -> None:
    random, hard = (shards.stands_for(epoch, shards.batch(epoch)) for epoch in range(2))
    documents = shards.manifest.documents["toys"]
    assert np.array_equal(random, stands_for(np.arange(8), documents))
    assert np.array_equal(hard, stands_for(np.repeat([0, 1], 4), documents))


def test_older_shards_do_not_say_it(shards: ShardSet) -> None:
    shards.manifest.model_copy(update={"documents": {}}).write(shards.folder)
    old = ShardSet.open(shards.folder)
    with pytest.raises(
        InputError, match=r"does not say how many documents .toys. has, which .*; run the stage 'pack' again"
    ):
        old.stands_for(0, old.batch(0))
