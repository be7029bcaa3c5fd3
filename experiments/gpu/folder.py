"""What is carried to the GPU: each text once, and numbers for the rest: pairs, batches, masks, test collections."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from batchwright.core.errors import InputError
from batchwright.core.files import read_json, write_json
from batchwright.formats.negatives import Relation

Kind = Literal["held out", "unseen", "beir"]
"""Queries of domains that are trained on, of domains that are not, and of BEIR collections."""
Numbers = NDArray[np.int32]
TOKENIZER = "tokenizer"
LEVEL = 19
"""Of zstd."""
PAGE = 1 << 24
"""Bytes of text that are compressed together."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Test:
    """A collection: ``documents`` ``(N,)`` and ``queries`` ``(Q,)`` are numbers of texts.

    ``relevant`` ``(R, 3)`` holds the place of a query, the place of a document, and its relevance.
    """

    name: str
    kind: Kind
    documents: Numbers
    queries: Numbers
    relevant: Numbers


@dataclass(frozen=True, kw_only=True, eq=False)
class Order:
    """The batches of a policy: ``rows`` ``(n, B)`` are numbers of pairs.

    ``masked`` are the cells ``B * i + j`` that the surrogate masks, batch after batch; ``starts`` ``(n + 1,)`` is where
    those of each batch begin.
    """

    rows: Numbers
    starts: NDArray[np.int64]
    masked: Numbers


@dataclass(frozen=True, kw_only=True, eq=False)
class Carried:
    """All that a training needs. ``queries`` and ``documents`` ``(N,)`` are the numbers of the pairs' texts.

    ``query_class`` and ``document_class`` ``(N,)``: duplicates have the same class. ``domain`` ``(N,)`` are places in
    ``domains``. ``about`` counts what was taken and what was left out.
    """

    texts: Sequence[str]
    queries: Numbers
    documents: Numbers
    query_class: Numbers
    document_class: Numbers
    domain: Numbers
    domains: Sequence[str]
    orders: Mapping[str, Order]
    tests: Sequence[Test]
    about: Mapping[str, Any]

    @property
    def batch_size(self) -> int:
        """B, the pairs of a batch."""
        return int(next(iter(self.orders.values())).rows.shape[1])

    def masks(self) -> "Masks":
        """What masks batches."""
        return Masks(self)

    def write(self, folder: Path) -> None:
        """Write all but the tokenizer."""
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / "texts", text=self.texts)
        names = ("queries", "documents", "query_class", "document_class", "domain")
        _write(folder / "pairs", **{name: getattr(self, name) for name in names})
        for name, order in self.orders.items():
            _write(folder / f"rows-{name}", row=order.rows.ravel())
            _write(folder / f"starts-{name}", start=order.starts)
            _write(folder / f"masked-{name}", cell=order.masked)
        _write(
            folder / "tests",
            name=[test.name for test in self.tests],
            kind=[test.kind for test in self.tests],
            documents=[test.documents for test in self.tests],
            queries=[test.queries for test in self.tests],
            relevant=[test.relevant.ravel() for test in self.tests],
        )
        about = {**self.about, "batch_size": self.batch_size, "domains": self.domains, "orders": list(self.orders)}
        write_json(folder / "about.json", about)

    @classmethod
    def read(cls, folder: Path) -> "Carried":
        """Read what ``write`` wrote.

        Raises:
            InputError: there is no such folder.
        """
        about = read_json(folder / "about.json", made_by="experiments.gpu.carry")
        pairs, tests = _read(folder / "pairs"), _read(folder / "tests")
        return cls(
            texts=_read(folder / "texts")["text"].to_pylist(),
            **{name: pairs[name].to_numpy() for name in pairs.column_names},
            domains=about["domains"],
            orders={name: _order(folder, name, about["batch_size"]) for name in about["orders"]},
            tests=[
                Test(
                    name=row["name"],
                    kind=row["kind"],
                    documents=np.array(row["documents"], np.int32),
                    queries=np.array(row["queries"], np.int32),
                    relevant=np.array(row["relevant"], np.int32).reshape(-1, 3),
                )
                for row in tests.to_pylist()
            ],
            about=about,
        )


class Masks:
    """Masks of batches: documents known to answer a query or equal to its own, and those that the surrogate masks."""

    def __init__(self, carried: Carried) -> None:
        self._carried = carried
        self._known = Relation(carried.query_class, carried.document_class)

    def of(self, order: Order, number: int) -> NDArray[np.bool_]:
        """The mask ``(B, B)`` of a batch of ``order``."""
        rows = order.rows[number]
        mask = self._known.among(self._carried.query_class[rows], self._carried.document_class[rows])
        mask.ravel()[order.masked[order.starts[number] : order.starts[number + 1]]] = True
        np.fill_diagonal(mask, False)
        return mask


def _order(folder: Path, name: str, batch_size: int) -> Order:
    return Order(
        rows=_read(folder / f"rows-{name}")["row"].to_numpy().reshape(-1, batch_size),
        starts=_read(folder / f"starts-{name}")["start"].to_numpy(),
        masked=_read(folder / f"masked-{name}")["cell"].to_numpy(),
    )


def _write(file: Path, /, **columns: Any) -> None:
    """Write a Parquet file; sorted numbers are written as differences."""
    table = pa.table({key: pa.array(values) for key, values in columns.items()})
    encoding = {key: "DELTA_BINARY_PACKED" for key in ("start", "cell") if key in columns}
    pq.write_table(
        table,
        file.with_suffix(".parquet"),
        compression="zstd",
        compression_level=LEVEL,
        use_dictionary=False,
        column_encoding=encoding or None,
        data_page_size=PAGE,
        write_statistics=False,
    )


def _read(name: Path) -> pa.Table:
    file = name.with_suffix(".parquet")
    if not file.exists():
        raise InputError(f"{file}: no such file; run experiments.gpu.carry again")
    return pq.read_table(file)
