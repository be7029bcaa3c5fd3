"""The plain biencoder: one encoder for queries and documents, one vector per text, masked InfoNCE."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal, Self

from pydantic import PositiveFloat

from batchwright.core.errors import InputError
from batchwright.retrievers.common.model_folder import ModelInfo, is_static
from batchwright.training.losses import static_temperature
from trainers.common.job import TrainJob
from trainers.common.params import Common, VariantParams
from trainers.common.sentence_learner import SentenceLearner

AUTO_IS_FOR = "temperature: auto is for static models from scratch with negatives_stand_for: domain"


class Params(VariantParams):
    """Group ``train.biencoder``."""

    temperature: PositiveFloat | Literal["auto"] = 0.05  # type: ignore[assignment]  # a number once it is settled
    """Divides the scores before the cross-entropy is computed. ``auto``, for static models from scratch with
    ``negatives_stand_for: domain``: about the best for as many documents as their domains have, .07 for 7,000, less for
    more (with ``training_documents: false``; seen on 600 to 32,000)."""

    def check(self, name: str, common: Common) -> None:
        """See ``VariantParams``."""
        if self.temperature == "auto" and common.negatives_stand_for != "domain":
            raise InputError(f"train {name}: {AUTO_IS_FOR}; set that, or a number")

    def settled(self, name: str, start: Path, documents: Callable[[], Iterable[int]]) -> Self:
        """See ``VariantParams``."""
        if self.temperature != "auto":
            return self
        if not (is_static(start) and ModelInfo.read(start).random):
            raise InputError(f"train {name}: {AUTO_IS_FOR}, and {start} is none; set a number")
        return self.model_copy(update={"temperature": static_temperature(documents())})


def build_learner(job: TrainJob) -> SentenceLearner:
    """Load the start model, ready for training."""
    return SentenceLearner(job)
