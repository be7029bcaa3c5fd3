"""Collects the rejects of all parts and of all domains."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipelines.ingest.candidates import REJECTED
from pipelines.ingest.domain import read_rejects
from pipelines.ingest.read import PartRead

_ORDER = ["source", "row", "entry", "part", "reason", "text"]


def collect_rejected(
    parts: Sequence[tuple[int, PartRead]], of_domains: Iterable[tuple[Path, Sequence[int]]]
) -> pa.Table:
    """Return all rejects as ``REJECTED`` with the columns ``entry`` and ``part``, in order of source and row.

    ``of_domains`` are the folders that ``write_domain`` wrote to, each with the numbers of the domain's parts.
    """
    entries = np.array([entry for entry, _ in parts])
    found = [_with_origin(part.rejects(), np.array([number]), entries) for number, (_, part) in enumerate(parts)]
    for folder, numbers in of_domains:
        rejected = read_rejects(folder)
        found.append(_with_origin(rejected, np.array(numbers)[rejected["part"].to_numpy()], entries))
    return pa.concat_tables(found).sort_by([(key, "ascending") for key in _ORDER])


def _with_origin(rejected: pa.Table, parts: NDArray[np.int64], entries: NDArray[np.int64]) -> pa.Table:
    columns = rejected.select(REJECTED.names)
    for name, values in (("entry", entries[parts]), ("part", parts)):
        columns = columns.append_column(name, pa.array(np.broadcast_to(values, len(rejected)).astype(np.int32)))
    return columns
