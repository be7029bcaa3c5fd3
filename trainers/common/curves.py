"""The curves of a training, which grow by the row while it runs: the loss, and what it measures now and then."""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from batchwright.core.files import append_tsv, write_tsv
from trainers.common.distributed import rank
from trainers.common.job import Job, TrainJob
from trainers.common.passes import float32_products
from trainers.common.step_loop import Row

Record = Callable[[Path, Row], None]
"""Adds a row, which has a ``step``, to a curve."""
_DEV = "dev "


class Curves:
    """Records a training, and measures its model every ``evaluate_every`` of its ``steps``, and after the last one.

    ``save``, which all ranks call at once, writes the model into rank 0's folder. Nothing is measured if the job has no
    ``dev`` or on ranks other than 0. Training is not affected, since measuring has no random state.
    """

    def __init__(self, job: TrainJob, steps: int, save: Callable[[int, Path], None], record: Record) -> None:
        self._job, self._steps, self._save, self._record = job, steps, save, record
        every = job.common.evaluate_every
        self._due = {steps, *range(0, steps, every)} if job.dev and every else set()

    def before(self, step: int) -> Row:
        """Measure the model before a step, if that is due; return columns of the step's row."""
        return columns(_DEV, self._measure(step))

    def record(self, row: Row) -> None:
        """Add a step's row to the curve of the loss, and what was measured before it to that of quality."""
        for quality in measured(_DEV, [row]):
            self._record(self._job.dev_curve, quality)
        self._record(self._job.curve, _loss(row))

    def write(self, rows: Sequence[Row]) -> None:
        """Measure the model after the last step, and write both curves, that of quality possibly without any row."""
        last, quality = self._measure(self._steps), measured(_DEV, rows)
        if rank() > 0:
            return
        if last:
            quality.append({"step": self._steps, **last})
            self._record(self._job.dev_curve, quality[-1])
        write_tsv(self._job.dev_curve, quality)
        write_tsv(self._job.curve, list(map(_loss, rows)))

    def _measure(self, step: int) -> Row:
        if step not in self._due or not self._job.dev:
            return {}
        with tempfile.TemporaryDirectory(dir=self._job.scratch) as folder, float32_products(tf32=False):
            self._save(step, Path(folder))
            return {} if rank() > 0 else dict(sorted(self._job.dev(Path(folder)).items()))


def _loss(row: Row) -> Row:
    return {key: value for key, value in row.items() if not key.startswith(_DEV)}


def columns(prefix: str, measures: Mapping[str, float | int]) -> Row:
    """Return what is measured before a step as columns of the step's row, so that checkpoints keep it."""
    return {f"{prefix}{name}": value for name, value in measures.items()}


def measured(prefix: str, rows: Sequence[Row]) -> list[Row]:
    """Return what was measured before steps: a row for each of these, named by the number of steps until then."""
    return [
        {"step": int(row["step"]) - 1, **measures}
        for row in rows
        if (measures := {key.removeprefix(prefix): value for key, value in row.items() if key.startswith(prefix)})
    ]


@contextmanager
def recording(job: Job, *curves: Path) -> Iterator[Record]:
    """Yield a function that adds rows to ``curves``, which are empty at first; ranks other than 0 record nothing.

    A resumed training records the rows that it had again. The curves of a training that fails stay as they are. In
    TensorBoard, the measures of all curves but the first have the curve's name before theirs: ``dev/ndcg_at_10``.
    """
    if rank() > 0:
        yield lambda _curve, _row: None
        return
    for curve in curves:
        curve.unlink(missing_ok=True)
    board = _tensorboard(job)
    prefixes = {curve: curve.stem.removeprefix(f"{curves[0].stem}-") + "/" for curve in curves[1:]}

    def record(curve: Path, row: Row) -> None:
        append_tsv(curve, row)
        if board:
            for name in row.keys() - {"step"}:
                tag = prefixes.get(curve, "") + name.replace("@", "_at_")  # TensorBoard does not allow @
                board.add_scalar(tag, float(row[name]), int(row["step"]))
            board.flush()

    try:
        yield record
    finally:
        if board:
            board.close()


def _tensorboard(job: Job) -> Any:
    """A writer of event files, named after the job and what decides its result; None if nobody wants them."""
    if job.tensorboard is None:
        return None
    from tensorboardX import SummaryWriter

    folder = job.tensorboard / f"{job.name}-{job.scratch.name[:8]}"
    shutil.rmtree(folder, ignore_errors=True)  # a resumed run logs its first rows again
    return SummaryWriter(str(folder))
