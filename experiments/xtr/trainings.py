"""Trains XTR and ColBERT alike and searches with the result; what was measured once is kept."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.utils.rnn import pad_sequence

from batchwright.core.files import read_json, write_json
from batchwright.retrievers.common.model_folder import ModelInfo
from batchwright.retrievers.xtr.index import TokenIndex
from batchwright.retrievers.xtr.model import TokenVectors, encode_tokens, load_token_model
from batchwright.retrievers.xtr.rank import collect, rank_all
from experiments.common.small_models import BASE
from experiments.common.workspace import Workspace
from stages.scoring.collection import DEPTH, Collection, HeldOutParams, score_queries
from trainers.xtr.scores import Tokens, score

ALL = "all"
WAYS = (10, 100, 1000, 4000)
"""Tokens that a query token retrieves in search, k'."""


class Setting(NamedTuple):
    """One training: ``score`` is ``xtr`` or ``colbert``, to which ``k`` is nothing; ``batch`` is a number of pairs."""

    score: str
    k: int
    learning_rate: float
    temperature: float
    batch: int
    seed: int

    @property
    def name(self) -> str:
        """Names the file that keeps what was measured."""
        k = f"k{self.k}-" if self.score == "xtr" else ""
        return f"{self.score}-{k}lr{self.learning_rate:g}-t{self.temperature:g}-b{self.batch}-seed{self.seed}"


class Measured(NamedTuple):
    """nDCG@10 ``{way of search: {query: value}}``; candidates and imputed share ``{number of tokens: mean}``."""

    ndcg: dict[str, dict[str, float]]
    candidates: dict[str, float]
    imputed: dict[str, float]


class Trainings:
    """Trainings from ``start`` on random batches of some ``domains`` of ``data``, each measured once.

    A seed draws its own batches. Measurements are kept in ``kept`` and read from there if there are any: name another
    folder for other data, sizes, steps or code. ``folder`` is empty and for work in progress.
    """

    def __init__(
        self,
        folder: Path,
        data: Path,
        domains: Sequence[str],
        kept: Path,
        *,
        start: str,
        steps: int,
        sizes: HeldOutParams,
    ) -> None:
        self._workspace = Workspace(folder, data, domains, 1.0, sizes)
        self.held_out = self._workspace.held_out
        self._kept, self._start, self._steps = kept, start, steps
        self._packed: tuple[int, int] | None = None

    def measure(self, setting: Setting, queries: int | None = None) -> Measured:
        """Train, and search all tokens and by each number of retrieved tokens in ``WAYS``, for the first ``queries``
        by id, or all."""
        file = self._kept / f"{setting.name}.json"
        if not file.exists():
            write_json(file, _search(self.train(setting), _first(self.held_out, queries))._asdict())
        return Measured(**read_json(file, made_by="the experiment"))

    def train(self, setting: Setting) -> Path:
        """Train, and return the model's folder, which the next training replaces."""
        self._prepare(setting)
        return self._workspace.train("xtr", "random")

    def _prepare(self, setting: Setting) -> None:
        """Set the parameters of a setting, and pack its batches."""
        changes = {
            "base.seed": setting.seed,
            "cluster.vectors": "tfidf",
            "filter": {"vectors": "tfidf", "likeness": "auto"},
            "pack.batch_size": setting.batch,
            "train.common.steps": self._steps,
            "train.common.learning_rate": setting.learning_rate,
            "train.common.precision": "bfloat16",
            "train.xtr": {"temperature": setting.temperature, "score": setting.score},
            "start_models.model": {"name": self._start, "max_length": 64},
        }
        if setting.score == "xtr":
            changes["train.xtr.k"] = setting.k
        self._workspace.set_params(BASE, changes)
        if self._packed is None:
            for stage in ("fetch model", "filter", "cluster"):
                self._workspace.run(stage)
        if self._packed != (setting.batch, setting.seed):
            self._workspace.run("pack random")
            self._packed = setting.batch, setting.seed


def _first(collection: Collection, queries: int | None) -> Collection:
    """The same collection for its first queries by id."""
    kept = set(sorted(query.id for query in collection.queries)[:queries])
    places = [place for place, query in enumerate(collection.queries) if query.id in kept]
    return replace(
        collection,
        queries=[collection.queries[place] for place in places],
        relevant={key: judged for key, judged in collection.relevant.items() if key in kept},
        own=[collection.own[place] for place in places] if collection.own else [],
    )


def _search(folder: Path, collection: Collection) -> Measured:
    model = load_token_model(folder, ModelInfo.read(folder).max_length)
    documents = encode_tokens(model, [each.text for each in collection.documents], "document")
    queries = encode_tokens(model, [each.text for each in collection.queries], "query")
    index = TokenIndex.build(documents.vectors, documents.lengths, "")
    ranked: dict[int, list[NDArray[np.int64]]] = {way: [] for way in WAYS}
    candidates: dict[int, list[int]] = {way: [] for way in WAYS}
    imputed: dict[int, list[float]] = {way: [] for way in WAYS}
    for similarities, numbers in index.retrieve(queries.vectors, queries.lengths, max(WAYS)):
        for way in WAYS:  # the nearest come first
            retrieved = collect(similarities[:, :way], index.owners_of(numbers[:, :way]))
            candidates[way].append(len(retrieved.documents))
            imputed[way].append(retrieved.imputed_share)
            ranked[way].append(rank_all(retrieved, index.present, DEPTH)[0])
    return Measured(
        {ALL: _ndcg(collection, _search_all(queries, documents))}
        | {str(way): _ndcg(collection, np.array(ranked[way])) for way in WAYS},
        {str(way): round(float(np.mean(candidates[way])), 1) for way in WAYS},
        {str(way): round(float(np.mean(imputed[way])), 4) for way in WAYS},
    )


def _ndcg(collection: Collection, ranked: NDArray[np.int64]) -> dict[str, float]:
    return {query: round(each["ndcg@10"], 6) for query, each in score_queries(collection, ranked).items()}


def _search_all(queries: TokenVectors, documents: TokenVectors) -> NDArray[np.int64]:
    """Documents ranked by the mean of maxima over all of their tokens."""
    with torch.no_grad():
        values = score(_padded(queries), _padded(documents), None).values
    return values.argsort(dim=1, descending=True, stable=True)[:, :DEPTH].numpy()


def _padded(texts: TokenVectors) -> Tokens:
    vectors = pad_sequence(list(torch.split(torch.from_numpy(texts.vectors), texts.lengths.tolist())), batch_first=True)
    return Tokens(vectors, np.arange(vectors.shape[1]) < texts.lengths[:, None])
