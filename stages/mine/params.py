"""Parameters of mining hard negatives with a trained model."""

from pydantic import Field, model_validator

from batchwright.core.names import NamedPath
from batchwright.core.params import Params


class Mining(Params):
    """Group ``mine.NAME``."""

    model: NamedPath
    """The folder of a trained model, such as ``models/biencoder``."""
    count: int = Field(gt=0)
    """Hard negatives per query."""
    depth: int = Field(gt=0)
    """Number of the model's top ranks to choose from."""

    @model_validator(mode="after")
    def _enough_ranks(self) -> "Mining":
        if self.depth < self.count:
            raise ValueError(f"{self.count} negatives cannot come from {self.depth} ranks")
        return self
