"""Reading training batches, and planning the number of steps."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchwright.core.errors import InputError
from batchwright.formats.models import Prefix, Prefixes
from batchwright.formats.shards import Manifest, ShardSet
from batchwright.formats.shards.shard_set import SCHEMAS
from batchwright.training.batches import BatchReader
from tests.train.toys import toy_batch, toy_rows, write_toy_shards
from trainers.common.job import planned_batches
from trainers.common.params import Common

PREFIXES = Prefixes(default=Prefix(query="query: ", document="document: "), domains={"other": Prefix(query="o: ")})


def reader(folder: Path, size: int = 9, hard_negatives: int = 2) -> BatchReader:
    rows = [row | {"domain": "other" if number == 1 else "toys"} for number, row in enumerate(toy_rows(size))]
    for number, row in enumerate(rows):
        row["negatives"] = [f"w{number} w{place}" for place in range(number % 4)]
    masked = np.random.default_rng(0).random((size, size)) < 0.5
    shards = write_toy_shards(folder / "shards", [toy_batch(rows, masked), toy_batch(rows)])
    return BatchReader(ShardSet.open(shards), PREFIXES, hard_negatives)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 9))
def test_the_rows_of_all_ranks_make_up_the_batch(tmp_path_factory: pytest.TempPathFactory, world: int) -> None:
    read = reader(tmp_path_factory.mktemp("batches")).read
    whole = read(0, slice(None))
    parts = [read(0, slice(rank, None, world)) for rank in range(world)]
    queries: list[str] = [""] * whole.size
    negatives = []
    for part in parts:
        queries[part.rows] = part.queries
        assert len(part.negatives) == part.negative_counts[part.rows].sum()
        assert np.array_equal(part.masked, whole.masked)
        negatives += part.negatives
    assert queries == whole.queries
    assert sorted(negatives) == sorted(whole.negatives)


def test_texts_get_the_prefix_of_their_domain(tmp_path: Path) -> None:
    batch = reader(tmp_path).read(0, slice(None))
    assert batch.queries[0].startswith("query: w")
    assert batch.queries[1].startswith("o: w")
    assert batch.documents[0].startswith("document: w")
    assert not batch.documents[1].startswith("document: ")
    assert batch.negatives == ["w1 w0", *(f"document: w{row} w{place}" for row, place in ROW_PLACES)]


ROW_PLACES = [(2, 0), (2, 1), (3, 0), (3, 1), (5, 0), (6, 0), (6, 1), (7, 0), (7, 1)]


def test_documents_of_the_batch_are_no_negatives_unless_they_should_be(tmp_path: Path) -> None:
    read = reader(tmp_path)
    alone = replace(read, in_batch=False).read(0, slice(None))
    assert alone.masked.all() and not read.read(0, slice(None)).masked.all()
    assert np.array_equal(alone.negative_counts, read.read(0, slice(None)).negative_counts)


def test_no_more_hard_negatives_than_requested_are_read(tmp_path: Path) -> None:
    batch = reader(tmp_path, hard_negatives=0).read(0, slice(None))
    assert batch.negatives == []
    assert batch.negative_counts.tolist() == [0] * 9


def test_scores_of_those_negatives_that_are_read_lie_beside_the_document_s(tmp_path: Path) -> None:
    given = [[3.0, 1, 2, 0], [], [5.0], [np.nan, 4]]
    rows = [
        row | {"negatives": ["w1", "w2", "w3"][: max(0, len(own) - 1)], "scores": own}
        for row, own in zip(toy_rows(4), given, strict=True)
    ]
    rows[1]["negatives"] = ["w1"]
    shards = ShardSet.open(write_toy_shards(tmp_path / "shards", [toy_batch(rows)]))
    for count in (0, 2, 9):
        taught = BatchReader(shards, PREFIXES, count, taught=True).read(0, slice(1, None)).taught
        assert taught is not None and taught.dtype == np.float32
        table = [[*own[: 1 + count], *[np.nan] * 4][: 1 + min(count, 3)] for own in given]
        np.testing.assert_array_equal(taught, np.array(table, np.float32))
    rows[0]["scores"] = [1.0, 2]
    shards = ShardSet.open(write_toy_shards(tmp_path / "damaged", [toy_batch(rows)]))
    with pytest.raises(InputError, match=r"damaged .scores are not one for each document and hard negative"):
        BatchReader(shards, PREFIXES, 2, taught=True).read(0, slice(None))


def test_shards_of_the_first_format_are_trained_on_as_well(tmp_path: Path) -> None:
    batch = toy_batch(toy_rows(4, negatives=1), np.eye(4, k=1, dtype=bool))
    old = write_toy_shards(tmp_path / "old", [batch.select(SCHEMAS[1].names).cast(SCHEMAS[1])])
    new = write_toy_shards(tmp_path / "new", [batch])
    one, other = (BatchReader(ShardSet.open(folder), PREFIXES, 1).read(0, slice(None)) for folder in (old, new))
    assert Manifest.read(old).format == 1
    assert (one.queries, one.documents, one.negatives) == (other.queries, other.documents, other.negatives)
    np.testing.assert_array_equal(one.masked, other.masked)


def test_the_message_names_a_damaged_shard(tmp_path: Path) -> None:
    batches = reader(tmp_path)
    file = tmp_path / "shards" / "train-00000-of-00002.arrow"
    file.write_bytes(b"\0" * file.stat().st_size)
    with pytest.raises(InputError, match=r"train-00000-of-00002.arrow: damaged .* run the stage 'pack' again"):
        batches.read(0, slice(None))


def test_a_batch_whose_size_differs_from_the_manifest_is_refused(tmp_path: Path) -> None:
    folder = write_toy_shards(tmp_path / "shards", [toy_batch(toy_rows(4)), toy_batch(toy_rows(3))])
    with pytest.raises(InputError, match="3 rows, the manifest says 4"):
        BatchReader(ShardSet.open(folder), PREFIXES, 0).read(1, slice(None))


def common(**changes: object) -> Common:
    values = {
        "epochs": 1,
        "mini_batch_size": 4,
        "learning_rate": 1e-3,
        "warmup_ratio": 0.1,
        "weight_decay": 0.0,
        "max_grad_norm": 1.0,
    }
    return Common.model_validate(values | changes)


def test_steps_follow_epochs_and_limit(tmp_path: Path) -> None:
    batches = [toy_batch(toy_rows(4, seed)) for seed in range(6)]
    shards = ShardSet.open(write_toy_shards(tmp_path / "shards", batches, epochs=2))
    assert planned_batches(shards, common()) == range(3)
    assert planned_batches(shards, common(epochs=2)) == range(6)
    assert planned_batches(shards, common(epochs=2, steps=5)) == range(5)
    assert planned_batches(shards, common(skip_epochs=1, steps=2)) == range(3, 5)
    assert [shards.manifest.epoch_of(step) for step in range(6)] == [0, 0, 0, 1, 1, 1]


def test_a_run_can_take_the_batches_of_some_domains(tmp_path: Path) -> None:
    names = ["a", "b", "c", "a", "b", "a"]
    batches = [toy_batch([row | {"domain": name} for row in toy_rows(4, seed)]) for seed, name in enumerate(names)]
    shards = ShardSet.open(write_toy_shards(tmp_path / "shards", batches, epochs=2))
    assert shards.domains() == names
    assert planned_batches(shards, common(domains=["b", "a"], epochs=2)) == [0, 1, 3, 4, 5]
    assert planned_batches(shards, common(domains=["a"], epochs=2, steps=2)) == [0, 3]
    assert planned_batches(shards, common(domains=["a"], skip_epochs=1)) == [3, 5]
    with pytest.raises(InputError, match="domains names 'd', but the shards hold batches of 'a', 'b', 'c'; correct it"):
        planned_batches(shards, common(domains=["a", "d"]))
    with pytest.raises(InputError, match=r"steps is 2, but 1 epoch\(s\) of the shards hold 1 batches of 'c'; lower"):
        planned_batches(shards, common(domains=["c"], steps=2))


def test_more_steps_or_epochs_than_packed_are_refused_with_advice(tmp_path: Path) -> None:
    shards = ShardSet.open(write_toy_shards(tmp_path / "shards", [toy_batch(toy_rows(4))]))
    with pytest.raises(InputError, match=r"epochs is 2, but the shards hold 1; lower it, or raise pack.epochs"):
        planned_batches(shards, common(epochs=2))
    with pytest.raises(InputError, match=r"steps is 5, but 1 epoch\(s\) of the shards hold 1 batches"):
        planned_batches(shards, common(steps=5))
