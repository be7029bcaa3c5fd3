"""The curve of retrieval quality by step: the model in training is saved, loaded and scored as its users would."""

import tempfile
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path

from batchwright.core.results import read_json, write_json, write_tsv
from trainers.common.checkpoint import Row
from trainers.common.distributed import rank
from trainers.common.train_job import TrainJob


class DevCurve:
    """Measures a model every ``evaluate_every`` of its ``steps``, before the first and after the last one.

    ``save`` writes the model after a number of steps into a folder; ``record`` gets each row. Measures are kept in the
    job's scratch folder, so that a resumed run goes on with them. Nothing is measured if the job has no ``dev`` or on
    ranks other than 0. Training is not affected, since it has no random state.
    """

    def __init__(
        self, job: TrainJob, steps: int, save: Callable[[int, Path], None], record: Callable[[Row], None]
    ) -> None:
        self._job, self._save, self._record = job, save, record
        every = job.common.evaluate_every
        due = {0, steps, *range(0, steps, every)} if job.dev and every and rank() == 0 else set()
        self._due = deque(sorted(due))
        self._rows: list[Row] = []

    def measure(self, step: int) -> None:
        """Measure the model after ``step`` steps, if that is due; what was measured before is read."""
        while self._due and self._due[0] <= step:
            due = self._due.popleft()
            if not self._file(due).exists():
                write_json(self._file(due), self._measure(due))
            self._rows.append({"step": due, **read_json(self._file(due), made_by="train")})
            self._record(self._rows[-1])

    def write(self, curve: Path) -> None:
        """Write one row per step that was measured, possibly none, and remove the measures from scratch."""
        write_tsv(curve, self._rows)
        for row in self._rows:
            self._file(int(row["step"])).unlink()

    def _measure(self, step: int) -> Mapping[str, float]:
        assert self._job.dev
        with tempfile.TemporaryDirectory(dir=self._job.scratch) as folder:
            self._save(step, Path(folder))
            return self._job.dev(Path(folder))

    def _file(self, step: int) -> Path:
        return self._job.scratch / f"dev-{step}.json"
