"""Parameters of the embedding stage."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from formats.params import Params
from formats.prefixes import Prefixes


class EncoderParams(Params):
    """One encoder and how it reads texts."""

    kind: Literal["model"] = "model"
    name: str
    """As ``formats.models.locate_model`` takes it."""
    revision: str | None = None
    max_length: int = Field(gt=0)
    """Tokens; longer texts are cut."""
    batch_size: int = Field(gt=0)
    """Texts in one forward pass: a parameter, since it decides a vector's last bits."""
    prefixes: Prefixes = Prefixes()


class LexicalParams(Params):
    """What all vectors made of words share."""

    dimensions: int = Field(default=256, gt=0)
    """Width after the truncated SVD."""
    sample: int = Field(default=100_000, gt=0)
    """Texts of each side of a domain, at most, that words, their weights and the SVD are fitted on."""


class TfidfParams(LexicalParams):
    """TF-IDF with logarithmic counts."""

    kind: Literal["tfidf"]


class Bm25Params(LexicalParams):
    """BM25 as Lucene has it."""

    kind: Literal["bm25"]
    k1: float = Field(default=1.5, ge=0)
    """How slowly repetitions of a word saturate; at 0 none counts."""
    b: float = Field(default=0.75, ge=0, le=1)
    """How far a long text needs more repetitions."""


class FileParams(Params):
    """Vectors brought by the user."""

    kind: Literal["file"]
    path: str
    """A Parquet file or a glob pattern: columns ``text`` and ``vector``."""


def _model_by_default(entry: Any) -> Any:
    return {"kind": "model", **entry} if isinstance(entry, dict) else entry


AnyVectors = Annotated[
    EncoderParams | TfidfParams | Bm25Params | FileParams,
    Field(discriminator="kind"),
    BeforeValidator(_model_by_default),
]


class EmbedParams(Params):
    """Group ``embed``: kinds of vectors by the names under which later stages ask for them."""

    models: dict[str, AnyVectors] = Field(min_length=1)
