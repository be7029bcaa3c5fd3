"""CDE models on disk: sentence-transformers folders that include the code of their module."""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self, cast

import numpy as np
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from batchwright.core.arguments import check_texts
from batchwright.formats.lengths import MaxLength, limit_length
from batchwright.formats.models import SIDES, Prefix, Prefixes, Side, loading
from batchwright.formats.prompts import CONFIGURATION, own_prefixes
from batchwright.retrievers.cde.context import Context
from batchwright.retrievers.cde.contextual_encoder import ContextualEncoder
from batchwright.retrievers.cde.released import read_released
from batchwright.retrievers.common.dense import cut, encode, products, search
from batchwright.retrievers.common.model_folder import ModelInfo, is_released, save_model
from batchwright.retrievers.common.retriever import Given, Ranking

CODE = ("contextual_encoder.py", "attention.py", "context.py", "folder.py", "prefixes.py", "sequence.py")


def load_contextual(folder: Path, device: str | None = None, name: str | None = None) -> SentenceTransformer:
    """Load a folder, also a released one, with this project's code, not with the code in the folder.

    ``name`` is for messages.

    Raises:
        InputError: the folder is damaged.
    """
    what = f"model '{name or folder}'"
    with loading(what):
        if is_released(folder):
            prefix = own_prefixes(folder, what).default
            encoder = read_released(what, folder, Prefixes(default=prefix).texts())
            prompts: dict[str, str] = {side: prefix.of(side) for side in SIDES}
        else:
            encoder = ContextualEncoder.load(str(folder), local_files_only=True)
            prompts = json.loads((folder / CONFIGURATION).read_text(encoding="utf-8"))["prompts"]
        return SentenceTransformer(modules=[encoder], prompts=prompts, device=device)


def limit_stages(what: str, encoder: ContextualEncoder, max_length: MaxLength) -> None:
    """Let both stages cut texts.

    Raises:
        InputError: one reads fewer tokens, or cannot cut queries and documents differently.
    """
    for stage in (encoder.first, encoder.second):
        limit_length(what, stage, max_length)


def save_contextual(model: SentenceTransformer, folder: Path, prefix: Prefix) -> None:
    """Write ``folder``, which sentence-transformers can load even if this project is not installed."""
    save_model(model, folder, prefix)
    for name in CODE:
        shutil.copy(Path(__file__).with_name(name), folder)
    file = folder / "modules.json"
    modules = json.loads(file.read_text(encoding="utf-8"))
    modules[0]["type"] = f"{Path(CODE[0]).stem}.{ContextualEncoder.__name__}"
    file.write_text(json.dumps(modules, indent=2), encoding="utf-8")


Contexts = Mapping[str | None, Context]
"""The context of each domain, drawn from its documents; that of None is drawn from all documents."""


class ContextualRetriever:
    """A ``batchwright.retrievers.Retriever`` whose contexts are drawn from the documents it indexes.

    As in training, a text's context comes from the text's own domain.
    """

    def __init__(self, folder: Path, info: ModelInfo) -> None:
        self.model = load_contextual(folder)
        self.encoder = cast(ContextualEncoder, self.model[0])
        limit_stages(f"model '{folder}'", self.encoder, info.max_length)
        self.info = info

    def index(self, documents: Sequence[str], domains: Sequence[str] | None = None) -> "ContextualIndex":
        """See ``batchwright.retrievers.Retriever``."""
        texts = self.info.prefixes.put_before(documents, "document", domains)
        groups = {None: np.arange(len(texts)), **_rows(domains, len(texts))}
        contexts = {
            name: self.encoder.draw_context([texts[row] for row in rows], prompt="")
            for name, rows in groups.items()
            if len(rows)
        }
        return ContextualIndex(self, contexts, self.encode(texts, domains, contexts, "document"))

    def score(
        self, queries: Sequence[str], documents: Sequence[Sequence[str]], domain: str | None = None
    ) -> NDArray[np.float32]:
        """See ``batchwright.retrievers.Retriever``; the context is drawn from these documents."""
        given, of = Given.of(queries, documents), None if domain is None else [domain]
        index = self.index(given.texts, of and of * len(given.texts))
        domains = of and of * len(queries)
        texts = self.info.prefixes.put_before(queries, "query", domains)
        vectors = self.encode(texts, domains, index.contexts, "query")
        return products(vectors[given.owners], index.vectors[given.places])

    def encode(
        self, texts: Sequence[str], domains: Sequence[str] | None, contexts: Contexts, side: Side
    ) -> NDArray[np.float32]:
        """Encode texts, which must include their prefix, as unit vectors ``(N, d)``.

        A text whose domain has no context takes that of all documents, and none if there are none.

        Raises:
            InputError: ``texts`` is no list of texts.
        """
        check_texts("texts", texts)
        vectors = np.empty((len(texts), self.encoder.get_embedding_dimension()), np.float32)
        for name, rows in _rows(domains, len(texts)).items():
            self.encoder.context = contexts.get(name, contexts.get(None))
            vectors[rows] = encode(self.model, [texts[row] for row in rows], side)
        return vectors


@dataclass(frozen=True)
class ContextualIndex:
    """Documents as unit ``vectors`` ``(N, d)`` float32, encoded with ``contexts``; queries are cut to ``dimension``."""

    retriever: ContextualRetriever
    contexts: Contexts
    vectors: NDArray[np.float32]
    dimension: int | None = None

    def cut(self, dimension: int) -> Self:
        """Return an index of vectors cut to ``dimension``."""
        return replace(self, vectors=cut(self.vectors, dimension), dimension=dimension)

    def search(self, queries: Sequence[str], k: int, domains: Sequence[str] | None = None) -> Ranking:
        """See ``batchwright.retrievers.Index``."""
        texts = self.retriever.info.prefixes.put_before(queries, "query", domains)
        device = self.retriever.model.device
        vectors = cut(self.retriever.encode(texts, domains, self.contexts, "query"), self.dimension)
        return search(vectors, self.vectors, k, device)


def _rows(domains: Sequence[str] | None, count: int) -> dict[str | None, NDArray[np.int64]]:
    """The rows of each domain's texts."""
    if domains is None:
        return {None: np.arange(count)}
    return {name: np.flatnonzero(np.array(domains) == name) for name in sorted(set(domains))}
