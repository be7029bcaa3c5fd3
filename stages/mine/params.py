"""Parameters of the stage ``mine``."""

from typing import Annotated, Literal

from pydantic import AfterValidator, model_validator

from batchwright.core.names import BM25, WatchedPath, check_instead, check_path
from batchwright.core.paths import START_MODELS
from stages.negatives.choice import Choice


def _watched(miner: str) -> str:
    if miner != BM25 and not check_path(miner).startswith(f"{START_MODELS}/"):
        raise ValueError(
            f"a miner to join is '{BM25}' or a model in {START_MODELS}: of the others, DVC watches only 'model'"
        )
    return miner


class Mining(Choice):
    """Group ``mine.NAME``."""

    model: WatchedPath
    """The folder of a trained model or a start model, such as ``models/biencoder``, whose ranks and scores count."""
    name: Literal["bm25"] | None = None
    """BM25 instead of a model, with ``model: raw/models``."""
    join: list[Annotated[str, AfterValidator(_watched)]] = []
    """Further miners, which take turns with the model: ``bm25``, or models in ``models/start``. Each counts ranks and
    scores of its own; what is too high for one is taken from none."""

    @model_validator(mode="after")
    def _one_of_both(self) -> "Mining":
        check_instead(self.model, self.name)
        return self

    @property
    def miners(self) -> list[str]:
        """The model or BM25, and what is joined with it, each once."""
        return list(dict.fromkeys([self.name or self.model, *self.join]))
