"""Parameters of the stage ``embed``."""

from typing import Annotated, Literal

from pydantic import Field

from batchwright.core.names import Name
from batchwright.core.params import Params, with_kind
from batchwright.formats.models import ModelVersion, Prefixes


class EncoderParams(ModelVersion):
    """Vectors computed by a sentence-transformers model."""

    kind: Literal["model"] = "model"
    name: str
    """``package:NAME`` for an installed Python package, a folder such as ``raw/models/mine``, or a name on the hub."""
    max_length: int = Field(default=256, gt=0)
    """Maximum number of tokens per text; longer texts are cut."""
    batch_size: int = Field(default=64, gt=0)
    """Texts per forward pass; affects speed, memory and the last bits of the vectors."""
    prefixes: Prefixes | None = None
    """Prefixes to put before texts, by domain and side; null: the model's own prompts, as in ``start_models``. ``{}``
    puts none."""


class LexicalParams(Params):
    """Vectors computed from words, or letters and pairs of letters where scripts have no spaces."""

    dimensions: int = Field(default=256, gt=0)
    """Width of the vectors after the truncated SVD."""
    sample: int = Field(default=100_000, gt=0)
    """Maximum number of texts, per domain and side, to fit the vocabulary, its weights and the SVD on."""


class TfidfParams(LexicalParams):
    """TF-IDF with logarithmic counts, reduced by a truncated SVD."""

    kind: Literal["tfidf"]


class Bm25Params(LexicalParams):
    """BM25 as in Lucene, reduced by a truncated SVD."""

    kind: Literal["bm25"]
    k1: float = Field(default=1.5, ge=0)
    """How much repeating a word in a text raises its weight; at 0, only its presence counts."""
    b: float = Field(default=0.75, ge=0, le=1)
    """How strongly long texts are discounted, from 0 (not at all) to 1 (in proportion to their length)."""


class FileParams(Params):
    """Vectors provided by the user."""

    kind: Literal["file"] = "file"
    path: str
    """A Parquet file with columns ``text`` and ``vector``, or a glob pattern such as ``raw/vectors/*.parquet``."""


AnyVectors = Annotated[
    EncoderParams | TfidfParams | Bm25Params | FileParams,
    Field(discriminator="kind"),
    with_kind(lambda entry: "file" if "path" in entry else "model"),
]


class EmbedParams(Params):
    """Group ``embed``."""

    models: dict[Name, AnyVectors] = Field(min_length=1)
    """The vectors to compute, under the names that ``filter.vectors`` and ``cluster.vectors`` refer to."""
