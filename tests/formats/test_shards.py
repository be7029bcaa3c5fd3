"""Shards and their manifest: any damage is found, and the error names the file."""

import json
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow.fs import copy_files

from batchwright.core.errors import InputError
from batchwright.core.fingerprint import file_sha256
from batchwright.core.storage import Storage
from batchwright.formats.shards import (
    ANNOTATED_SCHEMA,
    NAMES,
    REASONS,
    SCORED_ANNOTATED_SCHEMA,
    SHARD_SCHEMA,
    UNKNOWN,
    EpochSummary,
    Manifest,
    Shard,
    ShardSet,
    extended,
    read_reasons,
    shard_name,
    unscored,
    write_shard,
)
from batchwright.formats.shards.manifest import COLUMNS
from batchwright.formats.shards.shard_set import SCHEMAS

BATCHES_PER_SHARD = (3, 1, 2)


def batch(number: int, size: int = 4) -> pa.RecordBatch:
    rows = [
        {
            "id": f"{number}-{row}",
            "query": f"query {number} {row}",
            "document": "document " * (row + 1),
            "domain": "tests",
            "negatives": ["hard one"] * row,
            "mask": bytes([number]),
            "reasons": bytes([REASONS.index("judged")] * number.bit_count()),
            "hardness": 0.5,
            "masked_share": number.bit_count() / 3,
            "cluster": row,
        }
        for row in range(size)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=SHARD_SCHEMA)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shards = []
    for index, count in enumerate(BATCHES_PER_SHARD):
        file = tmp_path / shard_name(index, len(BATCHES_PER_SHARD))
        first = sum(BATCHES_PER_SHARD[:index])
        write_shard(file, [batch(first + number) for number in range(count)])
        size = file.stat().st_size
        shards.append(Shard(name=file.name, sha256=file_sha256(file), bytes=size, rows=4 * count, batches=count))
    summary = EpochSummary(
        first_batch=0,
        batches=6,
        left_over={"tests": 1},
        repeated=0,
        met_before=0.0,
        hardness=0.5,
        unmasked_hardness=0.4,
        masked_share=0.1,
        masked_by={"score": 0.1},
    )
    Manifest(
        policy="contextual",
        batch_size=4,
        rows=24,
        batches=6,
        seed=1,
        parameters={"epochs": 1},
        models={"clusters": "abc"},
        epochs=[summary],
        shards=shards,
    ).write(tmp_path)
    return tmp_path


def damage(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(bytes(content))


def test_batches_are_numbered_across_shards_and_equal_what_was_written(folder: Path) -> None:
    shards = ShardSet.open(folder)
    shards.verify()
    assert len(shards) == 6
    for number in range(6):
        read = shards.batch(number)
        assert read.schema.equals(SHARD_SCHEMA, check_metadata=True)
        assert read.equals(batch(number))


def test_some_columns_of_all_batches_are_read_in_order(folder: Path) -> None:
    read = list(ShardSet.open(folder).columns("id", "cluster"))
    assert [each.to_pydict() for each in read] == [
        {"id": [f"{number}-{row}" for row in range(4)], "cluster": [0, 1, 2, 3]} for number in range(6)
    ]


def test_every_masked_cell_has_a_reason(folder: Path) -> None:
    shards = ShardSet.open(folder)
    assert read_reasons(shards.batch(0)).tolist() == [[-1] * 4] * 4
    assert read_reasons(shards.batch(5)).tolist() == [[2, -1, 2, -1]] * 4


def test_shards_of_the_first_format_are_read_as_those_of_the_second_with_reasons_unknown(folder: Path) -> None:
    new = [ShardSet.open(folder).batch(number) for number in range(6)]
    old = [batch(number).select(SCHEMAS[1].names).cast(SCHEMAS[1]) for number in range(6)]
    manifest = Manifest.read(folder).model_dump()
    manifest["shards"] = [write_shard(folder / "train-00000-of-00001.arrow", old).model_dump()]
    (folder / "manifest.json").write_text(json.dumps(manifest | {"format": 1}))
    shards = ShardSet.open(folder)
    for number, before in enumerate(new):
        read = shards.batch(number)
        assert read.schema.equals(SHARD_SCHEMA, check_metadata=True)
        assert read.select(SCHEMAS[1].names) == before.select(SCHEMAS[1].names)
        reasons = read_reasons(read)
        np.testing.assert_array_equal(reasons >= 0, read_reasons(before) >= 0)
        assert {NAMES[code] for code in reasons[reasons >= 0]} <= {UNKNOWN}
        off = (reasons >= 0) & ~np.eye(4, dtype=bool)
        np.testing.assert_allclose(read["masked_share"].to_numpy(), off.sum(axis=1) / 3)
        assert np.isnan(read["hardness"].to_numpy()).all()
    columns = list(shards.columns("cluster", "id"))
    assert [each.schema.names for each in columns] == [["cluster", "id"]] * 6
    assert columns[5]["id"] == new[5]["id"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=r"columns are \['id', .*'mask'\], expected \[.*'cluster'\]"):
        shards.open(folder).batch(0)


def test_one_record_batch_is_one_training_batch(folder: Path) -> None:
    for file, count in zip(sorted(folder.glob("*.arrow")), BATCHES_PER_SHARD, strict=True):
        reader = pa.ipc.open_file(file)
        assert [reader.get_batch(number).num_rows for number in range(reader.num_record_batches)] == [4] * count


def test_missing_and_truncated_shards_are_reported_on_opening(folder: Path) -> None:
    file = folder / "train-00001-of-00003.arrow"
    content = file.read_bytes()
    file.write_bytes(content[:-7])
    with pytest.raises(
        InputError, match=rf"00001-of-00003\.arrow: expected {len(content)} bytes, found {len(content) - 7};"
    ):
        ShardSet.open(folder)
    file.unlink()
    with pytest.raises(InputError, match=r"00001-of-00003\.arrow: no such file; run the stage 'pack' again"):
        ShardSet.open(folder)


def test_verifying_finds_a_single_flipped_bit(folder: Path) -> None:
    damage(folder / "train-00002-of-00003.arrow")
    with pytest.raises(InputError, match=r"00002-of-00003\.arrow: content differs from the manifest's sha256"):
        ShardSet.open(folder).verify()


def test_a_shard_that_is_not_an_arrow_file_is_reported(folder: Path) -> None:
    file = folder / "train-00000-of-00003.arrow"
    file.write_bytes(b"x" * file.stat().st_size)
    with pytest.raises(InputError, match=r"00000-of-00003\.arrow"):
        ShardSet.open(folder).batch(0)


def test_a_batch_that_does_not_decompress_is_reported(folder: Path) -> None:
    file = folder / "train-00001-of-00003.arrow"
    content = bytearray(file.read_bytes())
    frame = content.index(b"\x28\xb5\x2f\xfd")
    content[frame : frame + 4] = b"none"
    file.write_bytes(bytes(content))
    with pytest.raises(InputError, match=r"00001-of-00003\.arrow: damaged"):
        ShardSet.open(folder).batch(3)


def test_a_shard_with_other_columns_is_refused(folder: Path) -> None:
    file = folder / "train-00000-of-00003.arrow"
    other = pa.record_batch({"text": ["a"]})
    with pa.ipc.new_file(file, other.schema) as writer:
        writer.write_batch(other)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["shards"][0]["bytes"] = file.stat().st_size
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=r"columns are \['text'\], expected"):
        ShardSet.open(folder).batch(0)
    with pytest.raises(InputError, match=r"columns are \['text'\], expected"):
        ShardSet.open(folder).domains()


def test_a_failed_write_of_a_shard_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(pa.ArrowInvalid):
        write_shard(tmp_path / "train-00000-of-00001.arrow", [batch(0), pa.record_batch({"text": ["a"]})])
    assert not list(tmp_path.iterdir())


def test_the_manifest_is_read_back(folder: Path) -> None:
    manifest = Manifest.read(folder)
    assert manifest.epochs[0].left_over == {"tests": 1}
    manifest.write(folder / "again")
    assert Manifest.read(folder / "again") == manifest


def test_a_missing_damaged_or_foreign_manifest_is_reported(folder: Path) -> None:
    with pytest.raises(InputError, match=r"manifest\.json: no such file; run the stage 'pack' first"):
        ShardSet.open(folder / "nowhere")
    (folder / "manifest.json").write_text("{")
    with pytest.raises(InputError, match=r"manifest\.json: not valid JSON"):
        ShardSet.open(folder)
    (folder / "manifest.json").write_text('{"batches": 1}')
    with pytest.raises(InputError, match=r"manifest\.json: not a valid manifest of this version"):
        ShardSet.open(folder)


@pytest.fixture
def remote(folder: Path, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Storage:
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path / "scratch"))
    storage = Storage.at(bucket) / "shards"
    copy_files(str(folder), storage.path, destination_filesystem=storage.filesystem)
    return storage


def test_shards_in_object_storage_are_copied_when_they_are_read_and_only_once(remote: Storage, tmp_path: Path) -> None:
    shards = pickle.loads(pickle.dumps(ShardSet.open(str(remote))))
    assert shards.batch(3).equals(batch(3))
    assert len(list((tmp_path / "scratch").rglob("*.arrow"))) == 1
    shards.verify()
    remote.remove(*(shard.name for shard in shards.manifest.shards))
    again = ShardSet.open(str(remote))
    assert [again.batch(number) for number in range(6)] == [batch(number) for number in range(6)]
    damage(again.folder / shard_name(1, 3))
    with pytest.raises(InputError, match="differs from the manifest's sha256; delete it, and it is copied again"):
        again.verify()


def test_what_is_not_whole_in_object_storage_is_refused(folder: Path, remote: Storage, tmp_path: Path) -> None:
    damage(folder / shard_name(1, 3))
    copy_files(str(folder), remote.path, destination_filesystem=remote.filesystem)
    shards = ShardSet.open(str(remote))
    with pytest.raises(InputError, match=r"s3://.*train-00001-of-00003\.arrow: content differs"):
        shards.batch(3)
    assert not list((tmp_path / "scratch").rglob("*.arrow"))
    remote.remove("manifest.json")
    with pytest.raises(InputError, match=r"s3://.*/shards/manifest.json: cannot be read"):
        ShardSet.open(str(remote))


def test_the_card_explains_every_column() -> None:
    assert list(COLUMNS) == SCORED_ANNOTATED_SCHEMA.names


@pytest.mark.parametrize("there", [[], ["scores"]])
def test_columns_that_only_some_shards_have_come_and_go(there: list[str]) -> None:
    plain, scores = batch(3), pa.array([[0.5] * (1 + row) for row in range(4)])
    before = extended(plain, scores=scores) if there else plain
    weighted = extended(before, weight=pa.array([1.0, 2, 3, 4]))
    schema = SCORED_ANNOTATED_SCHEMA if there else ANNOTATED_SCHEMA
    assert weighted.schema.equals(schema, check_metadata=True)
    assert weighted["weight"].to_pylist() == [1, 2, 3, 4] and weighted["metadata"].to_pylist() == ["{}"] * 4
    assert weighted.select(before.schema.names) == before.replace_schema_metadata(schema.metadata)
    assert unscored(weighted).schema.equals(ANNOTATED_SCHEMA, check_metadata=True)
    assert unscored(weighted)["weight"].to_pylist() == [1, 2, 3, 4]
    assert extended(unscored(weighted), scores=scores)["scores"].to_pylist() == scores.to_pylist()
