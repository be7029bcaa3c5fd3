"""Parameters of the evaluation stage."""

from pydantic import Field

from batchwright.core.params import Params


class HeldOutParams(Params):
    """Group ``evaluate.held_out``."""

    queries: int = Field(gt=0)
    """The most held-out queries to ask, drawn by hash from all domains."""
    documents: int = Field(gt=0)
    """Documents to search: all that are relevant, filled up to this number with others drawn by hash."""


class EvaluateParams(Params):
    """Group ``evaluate``."""

    held_out: HeldOutParams
    """The size of the collection that is made of the held-out pairs."""
    beir: list[str] = []
    """BEIR folders, such as ``raw/beir/scifact``, whose test splits to evaluate on as well."""
