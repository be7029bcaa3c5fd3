"""The Beam pipeline: reads and normalises each part, groups equal ids and keeps one pair of each.

Elements are record batches. Workers write to the folders of ``Scratch``, under file names that depend on the data
alone, so a worker that repeats its work overwrites the same files.
"""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import apache_beam as beam
import pyarrow as pa

from batchwright.core.atomic import atomic_file
from pipelines.beam import guarded, pipeline, progress, raise_errors, save, saved
from pipelines.ingest.candidates import sift
from pipelines.ingest.deduplicate import buckets, deduplicate
from pipelines.ingest.params import IngestParams
from pipelines.ingest.sources.base import Part

_CHUNK_ROWS = 8192
_PART_ROWS = 65536


@dataclass(frozen=True)
class Scratch:
    """Where the workers write their results; ``folder`` must be accessible to all of them."""

    folder: Path

    @property
    def pairs(self) -> Path:
        """Unique pairs: one Arrow file per bucket, sorted by domain and id, with one domain per record batch."""
        return self.folder / "pairs"

    @property
    def rejects(self) -> Path:
        """Rejects, as Arrow files."""
        return self.folder / "rejects"

    @property
    def rows(self) -> Path:
        """Row counts of the parts."""
        return self.folder / "rows"

    @property
    def errors(self) -> Path:
        """Messages of the errors that stop the stage."""
        return self.folder / "errors"


Element = tuple[int, int, Part]  # index of the entry, index of the part, part


def ingest(params: IngestParams, scratch: Scratch) -> None:
    """Read all sources into ``scratch``.

    Raises:
        InputError: a source cannot be read; the message reports the errors of all sources.
    """
    parts = [(entry, part) for entry, source in enumerate(params.sources) for part in source.parts()]
    elements = [(entry, number, part) for number, (entry, part) in enumerate(parts)]
    read = guarded(partial(_read, params, scratch), scratch.errors)
    with progress(len(elements), "ingest", "part", lambda: len(saved(scratch.rows))), pipeline() as graph:
        _ = (
            graph
            | "Parts" >> beam.Create(elements)
            | "Read" >> beam.FlatMap(read).with_output_types(tuple[str, pa.RecordBatch])
            | "Same ids together" >> beam.GroupByKey()
            | "Deduplicate" >> beam.MapTuple(partial(_deduplicate, scratch))
        )
    raise_errors(scratch.errors)


def _read(params: IngestParams, scratch: Scratch, element: Element) -> Iterator[tuple[str, pa.RecordBatch]]:
    entry, number, part = element
    rows = params.sources[entry].rows(part)
    total = 0
    for chunk in itertools.count():
        raw = list(itertools.islice(rows, _CHUNK_ROWS))
        if not raw:
            break
        total += len(raw)
        pairs, rejects = sift(raw, entry, number)
        yield from buckets(pairs)
        if len(rejects):
            _write(scratch.rejects / f"{number}-{chunk}.arrow", [rejects])
    save({"entry": entry, "part": number, "rows": total}, scratch.rows)


def _deduplicate(scratch: Scratch, bucket: str, candidates: Iterable[pa.RecordBatch]) -> None:
    unique, duplicates = deduplicate(pa.Table.from_batches(candidates))
    _write(scratch.pairs / f"{bucket}.arrow", _by_domain(unique))
    if len(duplicates):
        _write(scratch.rejects / f"{bucket}.arrow", duplicates.to_batches())


def _by_domain(pairs: pa.Table) -> Iterator[pa.RecordBatch]:
    """Split pairs, which must be sorted by domain, into record batches of one domain each."""
    ends = pa.compute.run_end_encode(pairs["domain"].combine_chunks()).run_ends.to_pylist()
    for start, end in itertools.pairwise([0, *ends]):
        yield from pairs.slice(start, end - start).combine_chunks().to_batches(_PART_ROWS)


def _write(file: Path, batches: Iterable[pa.RecordBatch]) -> None:
    """Write an Arrow file, uncompressed so that it can be memory-mapped."""
    batches = iter(batches)
    first = next(batches)
    with atomic_file(file, durable=False) as temporary, pa.ipc.new_file(temporary, first.schema) as writer:
        for batch in itertools.chain([first], batches):
            writer.write_batch(batch)
