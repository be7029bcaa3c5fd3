"""Parameters of the embedding stage."""

from pydantic import Field

from formats.params import Params
from formats.prefixes import Prefixes


class EncoderParams(Params):
    """One encoder and how it reads texts."""

    name: str
    """As ``formats.models.locate_model`` takes it."""
    revision: str | None = None
    max_length: int = Field(gt=0)
    """Tokens; longer texts are cut."""
    batch_size: int = Field(gt=0)
    """Texts in one forward pass: a parameter, since it decides a vector's last bits."""
    prefixes: Prefixes = Prefixes()


class EmbedParams(Params):
    """Group ``embed``: the encoders by the names under which later stages ask for their vectors."""

    models: dict[str, EncoderParams] = Field(min_length=1)
