"""The curves of a training: the loss by step, and retrieval quality, of the model as its users would load it."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from batchwright.core.files import write_tsv
from trainers.common.checkpoint import Row
from trainers.common.distributed import rank
from trainers.common.measured import columns, measured
from trainers.common.passes.precision import float32_products
from trainers.common.recorder import Record
from trainers.common.train_job import TrainJob

_PREFIX = "dev "


class Curves:
    """Records a training, and measures its model every ``evaluate_every`` of its ``steps``, and after the last one.

    ``save`` writes the model after a number of steps into a folder. Nothing is measured if the job has no ``dev`` or on
    ranks other than 0. Training is not affected, since measuring has no random state.
    """

    def __init__(self, job: TrainJob, steps: int, save: Callable[[int, Path], None], record: Record) -> None:
        self._job, self._steps, self._save, self._record = job, steps, save, record
        every = job.common.evaluate_every
        self._due = {steps, *range(0, steps, every)} if job.dev and every and rank() == 0 else set()

    def before(self, step: int) -> Row:
        """Measure the model before a step, if that is due; return columns of the step's row."""
        return columns(_PREFIX, self._measure(step))

    def record(self, row: Row) -> None:
        """Add a step's row to the curve of the loss, and what was measured before it to that of quality."""
        for found in measured(_PREFIX, [row]):
            self._record(self._job.dev_curve, found)
        self._record(self._job.curve, _loss(row))

    def write(self, curve: Sequence[Row]) -> None:
        """Measure the model after the last step, and write both curves, that of quality possibly without any row."""
        rows = measured(_PREFIX, curve)
        if last := self._measure(self._steps):
            rows.append({"step": self._steps, **last})
            self._record(self._job.dev_curve, rows[-1])
        write_tsv(self._job.dev_curve, rows)
        write_tsv(self._job.curve, list(map(_loss, curve)))

    def _measure(self, step: int) -> Row:
        if step not in self._due or not self._job.dev:
            return {}
        with tempfile.TemporaryDirectory(dir=self._job.scratch) as folder, float32_products(tf32=False):
            self._save(step, Path(folder))
            return dict(sorted(self._job.dev(Path(folder)).items()))


def _loss(row: Row) -> Row:
    return {key: value for key, value in row.items() if not key.startswith(_PREFIX)}
