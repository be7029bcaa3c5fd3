"""The curve of retrieval quality by step: the model in training is saved, loaded and scored as its users would."""

import tempfile
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path

from batchwright.core.errors import InputError
from batchwright.core.results import read_json, write_json, write_tsv
from batchwright.core.seal import faults
from trainers.common.checkpoint import Row
from trainers.common.distributed import rank
from trainers.common.train_job import TrainJob

_FILE = "measures.json"


class DevCurve:
    """Measures a model every ``evaluate_every`` of its ``steps``, before the first and after the last one.

    ``save`` writes the model after a number of steps into a folder; ``record`` gets each row. Measures are kept beside
    the job's checkpoints, so that a resumed run goes on with them. Nothing is measured if the job has no ``dev`` or on
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
        """Measure the model after ``step`` steps, if that is due; what was measured before is read.

        Raises:
            InputError: what was measured before is damaged.
        """
        while self._due and self._due[0] <= step:
            due = self._due.popleft()
            self._rows.append({"step": due, **(self._kept(due) or self._measured(due, step))})
            self._record(self._rows[-1])

    def write(self, curve: Path) -> None:
        """Write one row per step that was measured, possibly none, and remove the kept measures."""
        write_tsv(curve, self._rows)
        self._job.storage.remove(*[_name(int(row["step"])) for row in self._rows])

    def _kept(self, due: int) -> Mapping[str, float] | None:
        if _name(due) not in self._job.storage.names():
            return None
        with self._job.storage.fetch(_name(due)) as folder:
            return None if any(faults(folder)) else read_json(folder / _FILE, made_by="train")

    def _measured(self, due: int, step: int) -> Mapping[str, float]:
        assert self._job.dev
        if due < step:
            kept = self._job.storage
            raise InputError(f"{kept / _name(due)}: missing or damaged; delete {kept}, and run it again to train anew")
        with tempfile.TemporaryDirectory(dir=self._job.scratch) as folder:
            self._save(due, Path(folder))
            measures = dict(sorted(self._job.dev(Path(folder)).items()))  # as they are read
        with self._job.storage.publish(_name(due)) as kept_in:
            write_json(kept_in / _FILE, measures)
        return measures


def _name(step: int) -> str:
    return f"dev-{step}"
