"""Parameters of the evaluation stage."""

from pydantic import Field

from formats.params import Params


class HeldOutParams(Params):
    """Size of the collection made from the held-out pairs; both are drawn by hash over all domains."""

    queries: int = Field(gt=0)
    documents: int = Field(gt=0)
    """Relevant documents are all in, others fill up."""


class EvaluateParams(Params):
    """Group ``evaluate``."""

    held_out: HeldOutParams
    beir: list[str] = []
    """BEIR folders."""
