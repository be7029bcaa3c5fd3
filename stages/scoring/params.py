"""Parameters of the evaluation."""

from pydantic import Field

from batchwright.core.params import Params


class HeldOutParams(Params):
    """Groups ``evaluate.held_out`` and ``evaluate.dev``."""

    queries: int = Field(gt=0)
    """Maximum number of held-out queries, drawn by hash from all domains."""
    documents: int = Field(gt=0)
    """Number of documents to search: all relevant ones, filled up to this number with others drawn by hash."""


class RerankParams(Params):
    """Group ``evaluate.rerank``: BEIR truncated, as *Contextual Document Embeddings* does for small models."""

    first: str
    """Who finds the documents to rank: ``BM25``, or the folder of a start model, such as ``models/start/gtr``."""
    documents: int = Field(ge=1)
    """How many documents it finds for each query; no others are ranked."""


class EvaluateParams(Params):
    """Group ``evaluate``."""

    held_out: HeldOutParams
    """Size of the collection built from the pairs of the test split."""
    dev: HeldOutParams | None = None
    """Size of the collection built from the pairs of the dev split, which ``train.common.evaluate_every`` needs."""
    beir: list[str] = []
    """BEIR folders, such as ``raw/beir/scifact``; models are evaluated on their test splits as well."""
    rerank: RerankParams | None = None
    """Ranks only what a first model finds in a BEIR collection; null searches all of its documents."""
