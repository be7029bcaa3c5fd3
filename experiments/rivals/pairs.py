"""Sets of pairs as the rivals see them: training pairs with surrogate vectors, and held-out queries."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from batchwright.formats.vectors import PairVectors
from experiments.rivals.held_out import HeldOut, collect, held_out_rows
from experiments.rivals.surrogate import surrogate_vectors


@dataclass(frozen=True, kw_only=True, eq=False)
class Training:
    """Training pairs: ``queries``, ``documents`` and ``domains`` have N entries each.

    ``vectors`` are the surrogate's; ``current`` returns those of the model in training as it is when it is called.
    """

    queries: list[str]
    documents: list[str]
    domains: NDArray[np.str_]
    vectors: PairVectors
    current: Callable[[], PairVectors] | None = None

    def __len__(self) -> int:
        return len(self.queries)

    def by_domain(self) -> dict[str, NDArray[np.int64]]:
        """The rows of each domain, in the order of the domains' names."""
        return {str(name): np.flatnonzero(self.domains == name) for name in np.unique(self.domains)}


@dataclass(frozen=True, kw_only=True)
class PairSet:
    """A set to train and to test on; ``seconds`` is the time that the surrogate's vectors of all its pairs took."""

    name: str
    training: Training
    held_out: HeldOut
    seconds: float


def read_set(name: str, files: Sequence[Path], vectors: Path, limit: int | None) -> PairSet:
    """Read Parquet files with the columns query, document, domain and, perhaps, group as one set.

    ``limit`` keeps the first pairs of each file. Vectors are read from the folder ``vectors``, or made there.
    """
    tables = [_read(file).slice(0, limit) for file in files]
    found = [surrogate_vectors(vectors / f"{file.stem}.npz", table) for file, table in zip(files, tables, strict=True)]
    pairs = pa.concat_tables(tables)
    both = np.concatenate([of_file.queries for of_file in found] + [of_file.documents for of_file in found])
    test = held_out_rows(pairs)
    rows = np.flatnonzero(~test)
    training = Training(
        queries=pairs["query"].take(rows).to_pylist(),
        documents=pairs["document"].take(rows).to_pylist(),
        domains=np.array(pairs["domain"].take(rows).to_pylist()),
        vectors=PairVectors(vectors=both, rows=np.stack([rows, rows + len(pairs)])),
    )
    seconds = sum(of_file.seconds for of_file in found)
    return PairSet(name=name, training=training, held_out=collect(pairs, test), seconds=seconds)


def _read(file: Path) -> pa.Table:
    table = pq.read_table(file)
    if "group" not in table.column_names:
        table = table.append_column("group", pa.array([""] * len(table)))
    return table.select(["query", "document", "domain", "group"])
