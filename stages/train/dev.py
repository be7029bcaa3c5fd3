"""Scores a model in training on the dev queries."""

from dataclasses import asdict, dataclass
from pathlib import Path

from batchwright.core.fingerprint import fingerprint
from stages.scoring.collection import Collection
from stages.scoring.measures import average, score_queries
from stages.scoring.retrieval import model_system


@dataclass(frozen=True)
class DevScores:
    """A ``trainers.common.train_job.DevMeasure``: averages over the queries of ``collection``."""

    collection: Collection

    @property
    def fingerprint(self) -> str:
        """See ``DevMeasure``."""
        return fingerprint(asdict(self.collection))

    def __call__(self, folder: Path) -> dict[str, float]:
        """See ``DevMeasure``."""
        scored = score_queries(self.collection, model_system(folder)(self.collection))
        return average(scored, scored)
