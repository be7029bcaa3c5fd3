"""Shards: Arrow files of training batches, in a folder or in object storage; older formats are read as the newest."""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from batchwright.core.atomic import atomic_file, check
from batchwright.core.errors import InputError
from batchwright.core.fingerprint import file_sha256
from batchwright.core.runtime import scratch
from batchwright.core.storage import Storage, is_remote
from batchwright.formats.metadata import read_metadata
from batchwright.formats.pairs import ANNOTATED_PAIRS, SAYS_NOTHING
from batchwright.formats.shards.batch import NAMES, UNKNOWN, stands_for, unpack_mask
from batchwright.formats.shards.manifest import FILE, Format, Manifest, Shard

SHARD_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("query", pa.string(), nullable=False),
        pa.field("document", pa.string(), nullable=False),
        pa.field("domain", pa.string(), nullable=False),
        pa.field("negatives", pa.list_(pa.string()), nullable=False),
        pa.field("mask", pa.binary(), nullable=False),
        pa.field("reasons", pa.binary(), nullable=False),
        pa.field("hardness", pa.float32(), nullable=False),
        pa.field("masked_share", pa.float32(), nullable=False),
        pa.field("cluster", pa.int32(), nullable=False),
    ],
    metadata={"batchwright_format": "2"},
)
"""``mask`` is for ``unpack_mask``, ``reasons`` for ``read_reasons``. ``hardness`` is the row's mean similarity to its
unmasked negatives, 0 if there are none, ``masked_share`` the share of its negatives that are masked, and ``cluster``
the pair's cluster in the clustering that the batch was made from."""
SCORED_SCHEMA = SHARD_SCHEMA.append(pa.field("scores", pa.list_(pa.float32()), nullable=False)).with_metadata(
    {"batchwright_format": "3"}
)
"""With a teacher's ``scores`` of the pair's document and of each of its ``negatives``, in this order, NaN where it has
none; an empty list if it has none at all."""
ANNOTATED_SCHEMA, SCORED_ANNOTATED_SCHEMA = (
    pa.schema([*schema, *list(ANNOTATED_PAIRS)[-2:]], metadata={"batchwright_format": number})
    for schema, number in ((SHARD_SCHEMA, "4"), (SCORED_SCHEMA, "5"))
)
"""With each pair's ``weight`` in the loss, 1 if its source says none, and ``metadata``, which ``read_metadata`` reads.
"""
SCHEMAS: dict[Format, pa.Schema] = {
    1: pa.schema(list(SHARD_SCHEMA)[:6], metadata={"batchwright_format": "1"}),
    2: SHARD_SCHEMA,
    3: SCORED_SCHEMA,
    4: ANNOTATED_SCHEMA,
    5: SCORED_ANNOTATED_SCHEMA,
}
"""The columns of each format of shards; readers see those of the second or later."""
UNKNOWN_CLUSTER = -1
_SCORES = SCORED_SCHEMA.field("scores").type


def shard_name(index: int, total: int) -> str:
    """File name of a shard, in the pattern that dataset libraries recognise as the train split."""
    return f"train-{index:05d}-of-{total:05d}.arrow"


def write_shard(file: Path, batches: Sequence[pa.RecordBatch], *, compressed: bool = True) -> Shard:
    """Write training batches as one Arrow IPC file, zstd-compressed, atomically, and return its manifest entry.

    All must have the schema of the first one, which is one of ``SCHEMAS``. The file is fsynced with the artifact that
    it becomes a part of.
    """
    options = pa.ipc.IpcWriteOptions(compression="zstd" if compressed else None)
    with (
        atomic_file(file, durable=False) as temporary,
        pa.ipc.new_file(temporary, batches[0].schema, options=options) as writer,
    ):
        for batch in batches:
            writer.write_batch(batch)
    return Shard(
        name=file.name,
        sha256=file_sha256(file),
        bytes=file.stat().st_size,
        rows=sum(batch.num_rows for batch in batches),
        batches=len(batches),
    )


@dataclass(frozen=True)
class ShardSet:
    """A folder of shards with its manifest; batches are numbered consecutively across shards.

    Shards whose ``origin`` is object storage are copied to ``folder`` when they are first read.
    """

    folder: Path
    manifest: Manifest
    origin: Storage | None = None

    @classmethod
    def open(cls, folder: Path | str) -> "ShardSet":
        """Open a folder, or one in object storage, such as ``s3://bucket/shards``.

        Raises:
            InputError: the manifest is missing or invalid, or a shard is missing or of another size.
        """
        if is_remote(folder):
            origin = Storage.at(folder)
            copies = cached(origin)
            return cls(copies, Manifest.read(copies), origin)
        folder = Path(folder)
        manifest = Manifest.read(folder)
        for shard in manifest.shards:
            file = folder / shard.name
            size = file.stat().st_size if file.exists() else -1
            if size != shard.bytes:
                fault = "no such file" if size < 0 else f"expected {shard.bytes} bytes, found {size}"
                raise InputError(f"{file}: {fault}; run the stage 'pack' again")
        return cls(folder, manifest)

    def verify(self) -> None:
        """Compare every shard with its SHA-256 in the manifest.

        Raises:
            InputError: a shard differs; the message names the first one.
        """
        for shard in self.manifest.shards:
            if file_sha256(file := self._file(shard)) != shard.sha256:
                raise InputError(f"{file}: content differs from the manifest's sha256; {self._remedy}")

    def batch(self, index: int) -> pa.RecordBatch:
        """Read training batch ``index``, memory-mapped."""
        shard = int(np.searchsorted(self._ends, index, side="right"))
        first = int(self._ends[shard - 1]) if shard else 0
        with self._open(self.manifest.shards[shard], SCHEMAS[self.manifest.format].names) as reader:
            return self._completed(reader.get_batch(index - first))

    def stands_for(self, index: int, batch: pa.RecordBatch) -> NDArray[np.float32]:
        """Return how many of its domain's documents each document of training batch ``index`` stands for, ``(B, B)``.

        See ``batch.stands_for``; ``batch`` is what ``batch(index)`` returned.

        Raises:
            InputError: the shards were made by a version that did not count documents.
        """
        domain = self.domain_of(batch)
        hard = self.manifest.cluster_shares[domain][self.manifest.epoch_of(index)] > 0
        groups = batch["cluster"].to_numpy() if hard else np.arange(batch.num_rows)
        return stands_for(groups, self.documents(domain))

    def documents(self, domain: str) -> int:
        """The number of different documents of a domain.

        Raises:
            InputError: the shards were made by a version that did not count documents.
        """
        if domain not in self.manifest.documents:
            raise InputError(
                f"{self.folder}: does not say how many documents '{domain}' has, which negatives_stand_for: domain "
                "needs; run the stage 'pack' again"
            )
        return self.manifest.documents[domain]

    def columns(self, *names: str) -> Iterator[pa.RecordBatch]:
        """Read some columns of all training batches, in order; the other columns are not decompressed."""
        for shard in self.manifest.shards:
            with self._open(shard, names) as reader:
                for index in range(reader.num_record_batches):
                    yield self._completed(reader.get_batch(index)).select(names)

    def domains(self) -> list[str]:
        """The domain of each training batch, see ``domain_of``."""
        return [self.domain_of(batch) for batch in self.columns("domain")]

    @property
    def scored(self) -> bool:
        """Whether batches have a teacher's ``scores``."""
        return "scores" in SCHEMAS[self.manifest.format].names

    @property
    def annotated(self) -> bool:
        """Whether batches have the columns ``weight`` and ``metadata``."""
        return "metadata" in SCHEMAS[self.manifest.format].names

    @cached_property
    def metadata_names(self) -> list[str]:
        """Names of the sources' columns that any pair has as metadata, in the order in which they are met."""
        batches = self.columns("metadata") if self.annotated else ()
        return list(dict.fromkeys(name for batch in batches for row in read_metadata(batch[0]) for name in row))

    def domain_of(self, batch: pa.RecordBatch) -> str:
        """Return the domain of a training batch, or the name that small domains go by which share it."""
        own: str = batch["domain"][0].as_py()
        return self.manifest.packed_as(own) or own

    def _completed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return completed(batch, SHARD_SCHEMA) if self.manifest.format == 1 else batch

    @property
    def _remedy(self) -> str:
        return "delete it, and it is copied again" if self.origin else "run the stage 'pack' again"

    def _file(self, shard: Shard) -> Path:
        file = self.folder / shard.name
        if self.origin and not file.exists():
            copy_shard(self.origin, shard, file)
        return file

    @contextmanager
    def _open(self, shard: Shard, names: Sequence[str]) -> Iterator[pa.RecordBatchFileReader]:
        """Open a shard to read some of its columns."""
        file, schema = self._file(shard), SCHEMAS[self.manifest.format]
        check(file)
        kept = schema.names if self.manifest.format == 1 else names
        wanted = pa.ipc.IpcReadOptions(included_fields=[schema.get_field_index(name) for name in kept])
        try:
            with pa.memory_map(str(file)) as source:
                found = pa.ipc.open_file(source).schema
                if found != schema:
                    raise InputError(f"{file}: columns are {found.names}, expected {schema.names}")
                yield pa.ipc.open_file(source, options=wanted)
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{file}: damaged ({error}); {self._remedy}") from None

    def __len__(self) -> int:
        return self.manifest.batches

    @cached_property
    def _ends(self) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        return np.cumsum([shard.batches for shard in self.manifest.shards])


def cached(origin: Storage) -> Path:
    """Return the folder for copies of the shards in ``origin``, with their manifest; another manifest has another.

    Raises:
        InputError: there is no manifest.
    """
    with tempfile.TemporaryDirectory() as temporary:
        manifest = Path(temporary, FILE)
        origin.download(FILE, manifest)
        folder = scratch("shards", file_sha256(manifest)[:16]).resolve()
        with atomic_file(folder / FILE) as file:
            file.write_bytes(manifest.read_bytes())
    return folder


def copy_shard(origin: Storage, shard: Shard, file: Path) -> None:
    """Copy a shard to ``file``, whole or not at all.

    Raises:
        InputError: it is not there, or its content is not what the manifest says.
    """
    with atomic_file(file, durable=False) as temporary:
        origin.download(shard.name, temporary)
        if file_sha256(temporary) != shard.sha256:
            raise InputError(f"{origin / shard.name}: content differs from the manifest's sha256; copy it there again")


def unscored(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a training batch without a teacher's scores."""
    return completed(batch, SCHEMAS[format_with({*batch.schema.names} - {"scores"})])


def extended(batch: pa.RecordBatch, **columns: pa.Array) -> pa.RecordBatch:
    """Return a training batch with other values in ``columns``, which it may have lacked."""
    values = {name: batch[name] for name in batch.schema.names} | columns
    schema = SCHEMAS[format_with(values)]
    cast = [array.cast(schema.field(name).type) for name, array in values.items()]
    return completed(pa.RecordBatch.from_arrays(cast, names=list(values)), schema)


def format_with(columns: Iterable[str]) -> Format:
    """Return the first format that has all of these columns."""
    wanted = {*columns}
    return next(number for number, schema in SCHEMAS.items() if wanted <= {*schema.names})


def completed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a training batch with the columns of ``schema``, in which it has nothing if they were not there.

    What format 1 did not keep is NaN, ``UNKNOWN_CLUSTER``, or the reason ``UNKNOWN``.
    """
    there = batch.schema.names
    columns = [batch[name] if name in there else _absent(name, batch) for name in schema.names]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _absent(name: str, batch: pa.RecordBatch) -> pa.Array:
    """What stands in a column that a training batch lacks."""
    size, kind = batch.num_rows, SCORED_ANNOTATED_SCHEMA.field(name).type
    if name in ("reasons", "masked_share"):
        mask = unpack_mask(batch["mask"].to_pylist(), size)
        if name == "reasons":
            return pa.array([bytes([NAMES.index(UNKNOWN)]) * count for count in mask.sum(axis=1).tolist()], kind)
        negatives = mask & ~np.eye(size, dtype=bool)
        return pa.array((negatives.sum(axis=1) / max(size - 1, 1)).astype(np.float32))
    nothing = {"hardness": np.nan, "cluster": UNKNOWN_CLUSTER, **SAYS_NOTHING}[name]
    return pa.repeat(pa.scalar(nothing, kind), size)
