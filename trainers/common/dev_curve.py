"""The curve of retrieval quality by step: the model in training is saved, loaded and scored as its users would."""

import contextlib
import io
import tempfile
from collections.abc import Callable
from pathlib import Path

from batchwright.core.results import read_json, write_json, write_tsv
from trainers.common.distributed import rank
from trainers.common.train_job import TrainJob


class DevCurve:
    """Measures a model every ``evaluate_every`` of its ``steps``, before the first and after the last one.

    ``save`` writes the model after a number of steps into a folder. Measures are kept in the job's scratch folder, so
    that a resumed run goes on with them. Nothing is measured if the job has no ``dev`` or on ranks other than 0.
    Training is not affected: each step seeds its own random draws.
    """

    def __init__(self, job: TrainJob, steps: int, save: Callable[[int, Path], None]) -> None:
        self._job, self._save = job, save
        every = job.common.evaluate_every
        self._due = {0, steps, *range(0, steps, every)} if job.dev and every and rank() == 0 else set()

    def measure(self, step: int) -> None:
        """Measure the model after ``step`` steps, if that is due and was not done before."""
        file = self._file(step)
        if self._job.dev is None or step not in self._due or file.exists():
            return
        with tempfile.TemporaryDirectory(dir=self._job.scratch) as folder:
            self._save(step, Path(folder))
            with contextlib.redirect_stderr(io.StringIO()):  # progress bars would tear that of the training apart
                measures = self._job.dev(Path(folder))
        write_json(file, measures)

    def write(self, curve: Path) -> None:
        """Write one row per step that was measured, possibly none, and remove the measures from scratch."""
        files = {step: self._file(step) for step in sorted(self._due)}
        write_tsv(curve, [{"step": step, **read_json(file, made_by="train")} for step, file in files.items()])
        for file in files.values():
            file.unlink()

    def _file(self, step: int) -> Path:
        return self._job.scratch / f"dev-{step}.json"
