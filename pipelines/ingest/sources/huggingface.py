"""Hugging Face datasets, from the hub, the local cache or a folder written by ``save_to_disk``."""

from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from batchwright.core.errors import InputError
from pipelines.files import readable
from pipelines.ingest.sources.base import Part, Row, TableSource
from pipelines.ingest.sources.columnar import open_ipc

if TYPE_CHECKING:
    from datasets import Dataset

_PART_ROWS = 65536
_BATCH_ROWS = 4096
SAVED = ("dataset_dict.json", "dataset_info.json")
"""A folder that ``save_to_disk`` wrote holds one of these."""


class HuggingFaceSource(TableSource):
    """A dataset of the library ``datasets``; rows are numbered from 1."""

    kind: Literal["huggingface"] = "huggingface"
    name: str
    """A dataset on the Hugging Face hub, or a folder written by ``save_to_disk``."""
    config: str | None = None
    """The dataset's configuration, if it has several."""
    split: str = "train"
    """The split to read."""
    revision: str | None = None
    """Commit, tag or branch on the hub; null means the main branch."""

    @property
    def label(self) -> str:
        return "/".join(filter(None, [self.name, self.config, self.split]))

    def files(self) -> list[str]:
        return sorted(str(file) for file in Path(self.name).rglob("*") if file.is_file())

    def parts(self) -> list[Part]:
        dataset = self.load()
        self.check_columns(self.label, dataset.column_names)
        if len(dataset) == 0:
            raise InputError(f"{self.label}: has no rows; remove it from 'ingest.sources'")
        return [Part(self.label, piece) for piece in range(-(-len(dataset) // _PART_ROWS))]

    def read_for(self, part: Part) -> list[str]:  # noqa: ARG002 (the files hold all parts)
        return self.files()

    def rows(self, part: Part) -> Iterator[Row]:
        first = 1 + part.piece * _PART_ROWS
        with readable(self.label):
            for batch in self.batches(self.wanted_columns, first - 1, _PART_ROWS):
                yield from self.batch_rows(part.name, batch, first)
                first += len(batch)

    def batches(self, columns: list[str], start: int, count: int) -> Iterator[pa.RecordBatch]:
        """Read ``count`` rows, or as many as there are from the row ``start`` on."""
        dataset = self.load().select_columns(columns).with_format("arrow")
        stop = min(start + count, len(dataset))
        for first in range(start, stop, _BATCH_ROWS):
            table: pa.Table = dataset[first : min(first + _BATCH_ROWS, stop)]
            yield from table.to_batches()

    def load(self) -> "Dataset":
        """Load the dataset."""
        return _load(self.name, self.config, self.split, self.revision)


@lru_cache(maxsize=1)
def _load(name: str, config: str | None, split: str, revision: str | None) -> "Dataset":
    import datasets  # takes seconds to import, and most sources do not need it

    try:
        if not any(Path(name, file).is_file() for file in SAVED):
            return datasets.load_dataset(name, config, split=split, revision=revision)
        _check_decompressed(Path(name))
        saved = datasets.load_from_disk(name)
    except (InputError, MemoryError):
        raise
    except Exception as error:  # the library raises exceptions of all kinds about a damaged folder
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(
            f"dataset '{name}': cannot be loaded ({lines[0]}); check name, config, split and "
            "revision, the network and HF_TOKEN, or give a folder written by save_to_disk"
        ) from None
    if isinstance(saved, datasets.Dataset):
        return saved
    if split not in saved:
        raise InputError(
            f"dataset '{name}': no split '{split}'; set split, or --split of add, to one that it has: "
            f"{', '.join(saved)}"
        )
    return saved[split]


def _check_decompressed(folder: Path) -> None:
    """Raise InputError if compressed buffers of a file become too large; a file may have any name."""
    for file in filter(Path.is_file, sorted(folder.rglob("*"))):
        with suppress(OSError, pa.ArrowException), pa.memory_map(str(file)) as source:
            open_ipc(str(file), source)
