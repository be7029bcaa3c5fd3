"""Shows a training while it runs: its curves grow by the row, and a tracker gets the same rows."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from batchwright.core.files import append_tsv
from trainers.common.checkpoint import Row
from trainers.common.distributed import rank
from trainers.common.job import Job
from trainers.common.trackers import open_tracker

Record = Callable[[Path, Row], None]
"""Adds a row, which has a ``step``, to a curve."""


@contextmanager
def recording(job: Job, *curves: Path) -> Iterator[Record]:
    """Yield a function that adds rows to ``curves``, which are empty at first; ranks other than 0 record nothing.

    A resumed training records the rows that it had again. The curves of a training that fails stay as they are.
    In a tracker, the measures of all curves but the first have the curve's name before theirs, as in
    ``dev/ndcg_at_10``; trackers do not allow @.
    """
    if rank() > 0:
        yield lambda _curve, _row: None
        return
    for curve in curves:
        curve.unlink(missing_ok=True)
    tracker = open_tracker(job)
    prefixes = {curve: curve.stem.removeprefix(f"{curves[0].stem}-") + "/" for curve in curves[1:]}

    def record(curve: Path, row: Row) -> None:
        append_tsv(curve, row)
        if tracker:
            prefix = prefixes.get(curve, "")
            measures = {f"{prefix}{key.replace('@', '_at_')}": float(row[key]) for key in row if key != "step"}
            tracker.log(int(row["step"]), measures)

    try:
        yield record
    finally:
        if tracker:
            tracker.close()
