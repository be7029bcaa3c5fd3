"""Parameters of the stage ``mine``."""

from typing import Annotated

from pydantic import AfterValidator

from batchwright.core.names import NamedPath, check_path
from batchwright.core.paths import START_MODELS
from stages.negatives.choice import Choice

BM25 = "bm25"


def _watched(miner: str) -> str:
    if miner != BM25 and not check_path(miner).startswith(f"{START_MODELS}/"):
        raise ValueError(
            f"a miner to join is '{BM25}' or a model in {START_MODELS}: of the others, DVC watches only 'model'"
        )
    return miner


def _folder(model: str) -> str:
    if model == BM25:
        raise ValueError(f"'{BM25}' is no folder, which DVC could watch; name a model, and join '{BM25}'")
    return model


class Mining(Choice):
    """Group ``mine.NAME``."""

    model: Annotated[NamedPath, AfterValidator(_folder)]
    """The folder of a trained model or a start model, such as ``models/biencoder``, whose ranks and scores count."""
    join: list[Annotated[str, AfterValidator(_watched)]] = []
    """Further miners, which take turns with the model: ``bm25``, or models in ``models/start``. Each counts ranks and
    scores of its own; what is too high for one is taken from none."""

    @property
    def miners(self) -> list[str]:
        """The model, and what is joined with it, each once."""
        return list(dict.fromkeys([self.model, *self.join]))
