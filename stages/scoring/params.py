"""Parameters of the evaluation stage."""

from pydantic import Field

from batchwright.core.params import Params


class HeldOutParams(Params):
    """Group ``evaluate.held_out``."""

    queries: int = Field(gt=0)
    """Maximum number of held-out queries, drawn by hash from all domains."""
    documents: int = Field(gt=0)
    """Number of documents to search: all relevant ones, filled up to this number with others drawn by hash."""


class EvaluateParams(Params):
    """Group ``evaluate``."""

    held_out: HeldOutParams
    """Size of the collection built from the held-out pairs."""
    beir: list[str] = []
    """BEIR folders, such as ``raw/beir/scifact``; models are evaluated on their test splits as well."""
