"""Folders on this machine and in object storage hold the same, and appear whole or not at all."""

import pickle
from pathlib import Path

import pytest

from batchwright.core.atomic import faults
from batchwright.core.errors import InputError
from batchwright.core.storage import Storage, check_disk


@pytest.fixture(params=["folder", "bucket"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return Storage.at(tmp_path if request.param == "folder" else request.getfixturevalue("bucket")) / "mine"


def test_what_was_published_is_fetched_as_it_was_until_it_is_removed(storage: Storage) -> None:
    assert storage.names() == []
    storage.remove("never")
    for content in (b"first", b"second"):
        with storage.publish("model") as folder:
            (folder / "weights").write_bytes(content)
        elsewhere = pickle.loads(pickle.dumps(storage))
        assert elsewhere.names() == ["model"]
        with elsewhere.fetch("model") as folder:
            assert (folder / "weights").read_bytes() == content
            assert not list(faults(folder))
    with storage.publish("other") as folder:
        (folder / "file").write_bytes(b"")
    storage.remove("model")
    assert storage.names() == ["other"]
    storage.delete()
    assert storage.names() == []


def test_a_failing_block_publishes_nothing(storage: Storage) -> None:
    with pytest.raises(KeyError), storage.publish("model") as folder:
        (folder / "weights").write_bytes(b"half")
        raise KeyError
    assert storage.names() == []


def test_a_folder_of_which_only_a_part_arrived_is_seen_to_be_damaged(bucket: str) -> None:
    storage = Storage.at(bucket)
    with storage.publish("model") as folder:
        (folder / "weights").write_bytes(b"all")
    (storage / "model" / "checksums.sha256").delete()  # it is written last
    with storage.fetch("model") as folder:
        assert list(faults(folder))


def test_storage_that_is_nowhere_is_reported() -> None:
    with pytest.raises(InputError, match="nonsense://bucket/folder: cannot be reached"):
        Storage.at("nonsense://bucket/folder")


def test_too_little_disk_is_refused_and_a_folder_need_not_be_there(tmp_path: Path) -> None:
    check_disk({tmp_path / "not/yet": 1}, "packing")
    with pytest.raises(InputError, match=r"packing needs about 1000000000.0 GB of disk in .*; free some, such as"):
        check_disk({tmp_path / "not/yet": 6e17, tmp_path: 4e17}, "packing")
