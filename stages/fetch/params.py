"""Parameters of start models."""

from pydantic import Field

from batchwright.core.params import Params
from batchwright.formats.prefixes import Prefixes


class StartModel(Params):
    """Group ``start_models.NAME``."""

    name: str
    """``package:NAME`` of an installed Python package, a folder such as ``raw/models/mine``, or a name on the hub."""
    revision: str | None = None
    """Commit, tag or branch on the hub; null means the main branch as it is when the model is fetched."""
    max_length: int = Field(ge=2)
    """Tokens that are read of each text, in training, evaluation and search; longer texts are cut."""
    prefixes: Prefixes = Prefixes()
    """What to put before texts, by domain and side."""
