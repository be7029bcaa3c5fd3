"""Parameters of start models."""

from pydantic import Field

from batchwright.formats.models import ModelVersion
from batchwright.formats.prefixes import Prefixes


class StartModel(ModelVersion):
    """Group ``start_models.NAME``."""

    name: str
    """``package:NAME`` for an installed Python package, a folder such as ``raw/models/mine``, or a name on the hub."""
    max_length: int = Field(ge=2)
    """Maximum number of tokens per text in training, evaluation and search; longer texts are truncated."""
    static_width: int | None = Field(default=None, gt=0)
    """Null copies the model. A number takes only its tokenizer, and makes a static model: one random vector of this
    width for each token; a text's vector is their mean."""
    prefixes: Prefixes = Prefixes()
    """Prefixes to put before texts, by domain and side."""
