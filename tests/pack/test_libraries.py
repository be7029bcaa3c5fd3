"""Other libraries can read shards without this project."""

from pathlib import Path

import datasets
import pytest
from huggingface_hub import DatasetCard

from batchwright.formats.shards import ShardSet
from tests.pack.corpora import RunPack


def rows(folder: Path) -> list[dict[str, object]]:
    shards = ShardSet.open(folder)
    return [row for number in range(len(shards)) for row in shards.batch(number).to_pylist()]


@pytest.mark.parametrize("streaming", [False, True])
def test_datasets_opens_shards_as_they_are(corpus: Path, run_pack: RunPack, tmp_path: Path, streaming: bool) -> None:
    run_pack("contextual")
    folder = Path("data/shards/contextual").resolve()
    dataset = datasets.load_dataset(
        "arrow", data_files=f"{folder}/*.arrow", split="train", streaming=streaming, cache_dir=str(tmp_path / "cache")
    )
    assert list(dataset) == rows(folder)


def test_a_folder_of_shards_is_a_train_split(corpus: Path, run_pack: RunPack, tmp_path: Path) -> None:
    run_pack("contextual")
    folder = Path("data/shards/contextual").resolve()
    found = datasets.load_dataset("arrow", data_dir=str(folder), cache_dir=str(tmp_path / "cache"))
    assert list(found) == ["train"]
    assert found["train"].num_rows == len(rows(folder))


def test_the_card_makes_the_folder_a_data_set(corpus: Path, run_pack: RunPack, tmp_path: Path) -> None:
    run_pack("contextual")
    folder = Path("data/shards/contextual").resolve()
    found = datasets.load_dataset(str(folder), split="train", cache_dir=str(tmp_path / "cache"))
    assert list(found) == rows(folder)
    card = DatasetCard.load(folder / "README.md")
    assert card.data.pretty_name == "Batchwright batches, contextual"
    manifest = ShardSet.open(folder).manifest
    assert f"{manifest.rows} rows in {manifest.batches} training batches of 8" in card.text
    assert "$" not in card.content


def test_consecutive_batches_of_the_packed_size_are_the_training_batches(
    corpus: Path, run_pack: RunPack, tmp_path: Path
) -> None:
    run_pack("contextual")
    folder = Path("data/shards/contextual").resolve()
    dataset = datasets.load_dataset(
        "arrow", data_files=f"{folder}/*.arrow", split="train", cache_dir=str(tmp_path / "cache")
    ).select_columns(["query", "document"])
    shards = ShardSet.open(folder)
    for number, batch in enumerate(dataset.iter(batch_size=shards.manifest.batch_size)):
        assert batch == shards.batch(number).select(["query", "document"]).to_pydict()
