"""Parameters of the false-negative filter."""

from pydantic import Field

from formats.params import Params


class FilterParams(Params):
    """Group ``filter``."""

    vectors: str
    """Which of ``embed.models`` is the surrogate f."""
    margin: float = Field(ge=0)
    """A document d' is a false negative of q where f(q, d') >= f(q, d) - margin."""
