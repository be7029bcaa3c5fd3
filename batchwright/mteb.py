"""Trained models as ``mteb.evaluate`` takes them, for MTEB's retrieval and reranking tasks, NanoBEIR among them.

``pip install 'batchwright[mteb]'`` brings what this needs.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mteb.models.model_meta import ModelMeta

from batchwright.core.errors import InputError
from batchwright.formats.lengths import length_of
from batchwright.formats.models import model_hash
from batchwright.retrievers.common.model_folder import ModelInfo
from batchwright.retrievers.common.retriever import Index, load_retriever

if TYPE_CHECKING:
    from datasets import Dataset

_BLOCK = 256  # queries whose whole ranking is in memory at once


class MtebModel:
    """Searches with the model in ``folder``: mteb's ``SearchProtocol``.

    ``mteb.evaluate(MtebModel("models/cde"), mteb.get_tasks(tasks=["NanoSciFactRetrieval"]))``
    """

    def __init__(self, folder: Path | str) -> None:
        self._retriever = load_retriever(folder)
        self._index: Index | None = None
        self._ids: list[str] = []
        self.mteb_model_meta = _meta(Path(folder))

    def index(self, corpus: "Dataset", **_: Any) -> None:
        """Index documents; mteb's further arguments say nothing about what is found."""
        self._ids = [str(row["id"]) for row in corpus]
        self._index = self._retriever.index([_text(row) for row in corpus])

    def search(
        self, queries: "Dataset", *, top_k: int, top_ranked: Mapping[str, Sequence[str]] | None = None, **_: Any
    ) -> dict[str, dict[str, float]]:
        """Find ``top_k`` documents for each query, or rank those of ``top_ranked``, the task of a reranker.

        Raises:
            InputError: nothing was indexed, or the queries carry instructions, which these models do not read.
        """
        if self._index is None:
            raise InputError("mteb searches before it has indexed a corpus; call index first")
        if "instruction" in queries.column_names:
            raise InputError("this task gives instructions with its queries; models trained here do not read them")
        found = {}
        for start in range(0, len(queries), _BLOCK):
            block = queries.select(range(start, min(start + _BLOCK, len(queries))))
            depth = len(self._ids) if top_ranked else top_k
            indices, scores = self._index.search(list(block["text"]), depth)
            for query, own, values in zip(block["id"], indices.tolist(), scores.tolist(), strict=True):
                wanted = set(top_ranked.get(query, ())) if top_ranked else None
                ranked = {self._ids[number]: value for number, value in zip(own, values, strict=True)}
                kept = {key: value for key, value in ranked.items() if wanted is None or key in wanted}
                found[str(query)] = dict(list(kept.items())[:top_k])
        return found


def _text(row: Mapping[str, Any]) -> str:
    """A document as mteb's own encoders read it: its title, then its text."""
    return f"{row.get('title') or ''} {row['text']}".strip()


def _meta(folder: Path) -> ModelMeta:
    """Name, hash and settings, by which mteb keeps results apart."""
    info = ModelInfo.read(folder)
    changes = {"name": f"batchwright/{folder.resolve().name}", "revision": model_hash(folder)}
    return ModelMeta.create_empty({**changes, "max_tokens": length_of(info.max_length), "open_weights": True})
