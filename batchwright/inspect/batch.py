"""A training batch, or one of its rows, as a person looks at it."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from batchwright.core.errors import InputError
from batchwright.formats.metadata import metadata_of
from batchwright.formats.shards import NAMES, ShardSet, read_reasons
from batchwright.inspect.artifacts import Artifacts
from batchwright.inspect.evidence import Evidence, gather

HARDEST = 10
"""Unmasked negatives that are shown."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A pair of the batch; ``own_score`` is the surrogate's score of the pair itself, if it is known.

    ``weight`` multiplies its term in the loss, ``metadata`` is what its source says of it beside, and ``negatives`` are
    its own hard negatives.
    """

    row: int
    id: str
    query: str
    document: str
    cluster: int
    hardness: float
    masked_share: float
    own_score: float | None
    weight: float = 1.0
    metadata: dict[str, str] = field(default_factory=dict)
    negatives: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """The document of one row as a negative of the query of another; ``why`` says why it is masked, if it is."""

    query: int
    document: int
    reason: str | None = None
    why: str | None = None
    score: float | None = None


@dataclass(frozen=True, kw_only=True)
class BatchView:
    """A batch, or what concerns its row ``focus``: ``rows`` then are this row and those that its cells name.

    ``hardness`` is the mean over unmasked negatives, ``masked_by`` counts cells. ``hardest`` are the unmasked cells
    that score highest, empty without the surrogate's vectors; ``missing`` says what could not be looked up.
    """

    shards: str
    batch: int
    epoch: int
    domain: str
    size: int
    clusters: int
    hardness: float
    masked_share: float
    masked_by: dict[str, int]
    focus: int | None
    rows: list[Row]
    masked: list[Cell]
    hardest: list[Cell]
    missing: list[str]


def view_batch(shards: ShardSet, artifacts: Artifacts, number: int, focus: int | None = None) -> BatchView:
    """Look at batch ``number``, or at its row ``focus``.

    Raises:
        InputError: there is no such batch or row.
    """
    _check(number, len(shards), "batch", "batches", shards)
    batch = shards.batch(number)
    if focus is not None:
        _check(focus, batch.num_rows, "row", "rows", shards)
    evidence, reasons = gather(shards, artifacts, batch), read_reasons(batch)
    of_view = slice(None) if focus is None else slice(focus, focus + 1)
    masked = [
        _masked(evidence, NAMES[reasons[query, document]], query, document)
        for query, document in _cells(reasons >= 0, of_view)
    ]
    hardest = _hardest(evidence, reasons < 0, of_view)
    named = {row for cell in [*masked, *hardest] for row in (cell.query, cell.document)} | {focus}
    rows = [row for row in _rows(batch, evidence) if focus is None or row.row in named]
    share, unmasked = (np.array(batch[name].to_pylist(), np.float32) for name in ("masked_share", "hardness"))
    return BatchView(
        shards=str(shards.folder),
        batch=number,
        epoch=shards.manifest.epoch_of(number),
        domain=shards.domain_of(batch),
        size=batch.num_rows,
        clusters=len(set(batch["cluster"].to_pylist())),
        hardness=mean_hardness(unmasked, share),
        masked_share=round(float(share.mean()), 6),
        masked_by=dict(Counter(NAMES[code] for code in reasons[reasons >= 0])),
        focus=focus,
        rows=rows,
        masked=masked,
        hardest=hardest,
        missing=evidence.missing,
    )


def mean_hardness(hardness: NDArray[np.float32], masked_share: NDArray[np.float32]) -> float:
    """Return the mean similarity of a batch's unmasked negatives, given the means and masked shares of its rows."""
    left = 1 - masked_share.astype(np.float64)
    return round(float(hardness @ left / max(left.sum(), 1e-9)), 6)


def _check(number: int, count: int, what: str, many: str, shards: ShardSet) -> None:
    if not 0 <= number < count:
        raise InputError(f"no {what} {number}: {shards.folder} has {many} 0 to {count - 1}")


def _rows(batch: pa.RecordBatch, evidence: Evidence) -> list[Row]:
    scores = evidence.surrogate.scores.diagonal().tolist() if evidence.surrogate else [None] * batch.num_rows
    names = ("id", "query", "document", "cluster", "hardness", "masked_share", "negatives")
    metadata = metadata_of(batch)
    weights = batch["weight"].to_pylist() if "weight" in batch.schema.names else [1.0] * batch.num_rows
    return [
        Row(
            row=place,
            id=name,
            query=query,
            document=document,
            cluster=cluster,
            hardness=round(hardness, 4),
            masked_share=round(share, 6),
            own_score=_rounded(scores[place]),
            weight=round(weights[place], 6),
            metadata=metadata[place],
            negatives=negatives,
        )
        for place, (name, query, document, cluster, hardness, share, negatives) in enumerate(
            zip(*(batch[name].to_pylist() for name in names), strict=True)
        )
    ]


def _cells(chosen: NDArray[np.bool_], rows: slice) -> list[list[int]]:
    """Return rows and columns of the ``chosen`` cells in these rows."""
    row, column = np.nonzero(chosen[rows])
    return np.stack([row + (rows.start or 0), column], axis=1).tolist()  # type: ignore[no-any-return]


def _masked(evidence: Evidence, reason: str, query: int, document: int) -> Cell:
    score = float(evidence.surrogate.scores[query, document]) if evidence.surrogate else None
    why = evidence.why(reason, query, document)
    return Cell(query=query, document=document, reason=reason, why=why, score=_rounded(score))


def _hardest(evidence: Evidence, left: NDArray[np.bool_], rows: slice) -> list[Cell]:
    """Return the unmasked cells in these rows that the surrogate scores highest, best first."""
    if not evidence.surrogate:
        return []
    negatives = (left & ~np.eye(len(left), dtype=bool))[rows]
    scores = np.where(negatives, evidence.surrogate.scores[rows], -np.inf)
    most = min(HARDEST, int(np.count_nonzero(negatives)))
    best = np.sort(np.argpartition(-scores, most - 1, axis=None)[:most]) if most else np.empty(0, np.int64)
    best = best[np.argsort(-scores.ravel()[best], kind="stable")]
    cells = [divmod(int(place), len(left)) for place in best]
    first = rows.start or 0
    return [Cell(query=row + first, document=other, score=round(float(scores[row, other]), 4)) for row, other in cells]


def _rounded(score: float | None) -> float | None:
    return None if score is None else round(score, 4)
