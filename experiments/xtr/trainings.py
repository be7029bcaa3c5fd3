"""Trains XTR and ColBERT alike and searches with the result; what was measured once is kept."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.utils.rnn import pad_sequence

from batchwright.core.results import read_json, write_json
from batchwright.retrievers.common.info import ModelInfo
from batchwright.retrievers.xtr.encode import TokenVectors, encode_tokens
from batchwright.retrievers.xtr.impute import collect
from batchwright.retrievers.xtr.index import TokenIndex
from batchwright.retrievers.xtr.model import load_token_model
from batchwright.retrievers.xtr.rank import search_tokens
from experiments.common.small_models import BASE, fetched
from experiments.common.workspace import Workspace
from stages.scoring.collection import Collection
from stages.scoring.measures import DEPTH, score_queries
from stages.scoring.params import HeldOutParams
from trainers.xtr.scores import Tokens, score

ALL = "all"


class Setting(NamedTuple):
    """One training: ``score`` is ``xtr`` or ``colbert``, to which ``k`` is nothing."""

    score: str
    k: int
    learning_rate: float
    temperature: float
    seed: int

    @property
    def name(self) -> str:
        """Names the file that keeps what was measured."""
        k = f"k{self.k}-" if self.score == "xtr" else ""
        return f"{self.score}-{k}lr{self.learning_rate:g}-t{self.temperature:g}-seed{self.seed}"


class Measured(NamedTuple):
    """nDCG@10 ``{way of search: {query: value}}``; candidates and imputed share ``{number of tokens: mean}``."""

    ndcg: dict[str, dict[str, float]]
    candidates: dict[str, float]
    imputed: dict[str, float]


class Trainings:
    """Trainings from ``start`` on random batches of some ``domains`` of ``data``, each measured once.

    A seed draws its own batches. Measurements are kept in ``kept`` and read from there if there are any: name another
    folder for other data, steps or code. ``folder`` is empty and for work in progress.
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
        batch: int,
        asked: HeldOutParams,
    ) -> None:
        self._workspace = Workspace(folder, data, domains, 1.0, asked)
        self._kept, self._start, self._steps, self._batch = kept, start, steps, batch
        self._packed: int | None = None

    def measure(self, setting: Setting, ways: Sequence[int]) -> Measured:
        """Train, and search all tokens and by each number of retrieved tokens in ``ways``."""
        file = self._kept / f"{setting.name}.json"
        if not file.exists():
            self._prepare(setting)
            model = self._workspace.train("xtr", "random")
            write_json(file, _search(model, self._workspace.collections["home"], ways)._asdict())
        return Measured(**read_json(file, made_by="the experiment"))

    def _prepare(self, setting: Setting) -> None:
        """Set the parameters of a setting, and pack its seed's batches."""
        changes = {
            "base.seed": setting.seed,
            "cluster.vectors": "minilm",
            "filter.vectors": "minilm",
            "pack.batch_size": self._batch,
            "train.common.steps": self._steps,
            "train.common.learning_rate": setting.learning_rate,
            "train.xtr": {"temperature": setting.temperature, "score": setting.score},
            "start_models.model": fetched(self._start),
        }
        if setting.score == "xtr":
            changes["train.xtr.k"] = setting.k
        self._workspace.set_params(BASE, changes)
        if self._packed is None:
            for stage in ("fetch model", "filter", "cluster"):
                self._workspace.run(stage)
        if self._packed != setting.seed:
            self._workspace.run("pack random")
            self._packed = setting.seed


def _search(folder: Path, collection: Collection, ways: Sequence[int]) -> Measured:
    model = load_token_model(folder, ModelInfo.read(folder).max_length)
    documents = encode_tokens(model, [each.text for each in collection.documents], "document")
    queries = encode_tokens(model, [each.text for each in collection.queries], "query")
    index = TokenIndex.build(documents.vectors, documents.lengths, "")
    found = Measured({ALL: _ndcg(collection, _search_all(queries, documents))}, {}, {})
    for tokens in ways:
        found.ndcg[str(tokens)] = _ndcg(collection, search_tokens(index, queries, DEPTH, tokens)[0])
        retrieved = [
            collect(similarities, index.owners_of(numbers))
            for similarities, numbers in index.retrieve(queries.vectors, queries.lengths, tokens)
        ]
        found.candidates[str(tokens)] = round(float(np.mean([len(each.documents) for each in retrieved])), 1)
        found.imputed[str(tokens)] = round(float(np.mean([each.imputed_share for each in retrieved])), 4)
    return found


def _ndcg(collection: Collection, ranked: NDArray[np.int64]) -> dict[str, float]:
    return {query: round(each["ndcg@10"], 6) for query, each in score_queries(collection, ranked).items()}


def _search_all(queries: TokenVectors, documents: TokenVectors) -> NDArray[np.int64]:
    """Documents ranked by the mean of maxima over all of their tokens."""
    with torch.no_grad():
        values = score(_padded(queries), _padded(documents), None).values
    return values.argsort(dim=1, descending=True, stable=True)[:, :DEPTH].numpy()


def _padded(texts: TokenVectors) -> Tokens:
    lengths = torch.from_numpy(texts.lengths)
    vectors = pad_sequence(list(torch.split(torch.from_numpy(texts.vectors), lengths.tolist())), batch_first=True)
    return Tokens(vectors, torch.arange(vectors.shape[1]) < lengths[:, None])
