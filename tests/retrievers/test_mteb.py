"""Models in mteb: scored by it as they are scored here, offline, on a task in memory."""

from pathlib import Path
from typing import Any

import mteb
import numpy as np
import pytest
from datasets import Dataset
from mteb.abstasks.retrieval import AbsTaskRetrieval
from mteb.abstasks.task_metadata import TaskMetadata
from sentence_transformers import SentenceTransformer

from batchwright.core.errors import InputError
from batchwright.mteb import MtebModel
from batchwright.retrievers import load_retriever
from stages.scoring.collection import Collection, Text, average, score_queries
from stages.scoring.retrieval import model_system
from tests.train.toys import toy_batch, toy_job, toy_rows, write_toy_model, write_toy_shards
from trainers.variants import VARIANTS, train

ROWS = toy_rows(40, seed=3)
ASKED = 15


def named(number: int) -> str:
    """A document's id: of equal scores mteb prefers the last id, the retrievers the first number."""
    return f"d{99 - number}"


class ToyRetrieval(AbsTaskRetrieval):
    """Toy queries and documents; ``top_ranked`` makes it a task of reranking."""

    metadata = TaskMetadata(
        name="ToyRetrieval",
        description="Toys",
        dataset={"path": "none/none", "revision": "1"},
        type="Retrieval",
        category="t2t",
        modalities=["text"],
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        main_score="ndcg_at_10",
    )

    top_ranked: dict[str, list[str]] | None = None

    def load_data(self, **_: Any) -> None:
        corpus = [
            {"id": named(n), "title": str(row["document"]).split()[0], "text": str(row["document"]).partition(" ")[2]}
            for n, row in enumerate(ROWS)
        ]
        queries = [{"id": f"q{n}", "text": str(row["query"])} for n, row in enumerate(ROWS[:ASKED])]
        split = {
            "corpus": Dataset.from_list(corpus),
            "queries": Dataset.from_list(queries),
            "relevant_docs": {f"q{n}": {named(n): 1} for n in range(ASKED)},
            "top_ranked": self.top_ranked,
        }
        self.dataset = {"default": {"test": split}}
        self.data_loaded = True


def train_toy(variant: str, folder: Path, monkeypatch: pytest.MonkeyPatch, **params: Any) -> Path:
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(folder / "scratch"))
    start = write_toy_model(folder / "toy")
    shards = write_toy_shards(folder / "shards", [toy_batch(toy_rows(8))])
    job = toy_job(folder / "out", start, shards, variant, **params)
    train(job)
    return job.model


@pytest.fixture(params=VARIANTS)
def model(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    own = {"context_documents": 3} if request.param == "cde" else {}
    return train_toy(request.param, tmp_path, monkeypatch, **own)


def evaluate(model: MtebModel | SentenceTransformer, task: AbsTaskRetrieval) -> dict[str, float]:
    results = mteb.evaluate(model, task, cache=None, show_progress_bar=False, co2_tracker=False)
    return results.task_results[0].scores["test"][0]


def test_mteb_finds_the_scores_that_evaluation_finds(model: Path) -> None:
    collection = Collection(
        name="toys",
        queries=[Text(id=f"q{n}", text=str(row["query"]), domain="") for n, row in enumerate(ROWS[:ASKED])],
        documents=[Text(id=named(n), text=str(row["document"]), domain="") for n, row in enumerate(ROWS)],
        relevant={f"q{n}": {named(n): 1} for n in range(ASKED)},
    )
    scored = score_queries(collection, model_system(model)(collection))
    found = evaluate(MtebModel(model), ToyRetrieval())
    assert found["ndcg_at_10"] == pytest.approx(average(scored, scored)["ndcg@10"], abs=1e-4)


def test_mteb_reads_texts_with_a_context_of_other_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = train_toy("cde", tmp_path, monkeypatch, context_documents=3, context="sequence", context_bias=None)
    queries, documents = ([str(row[side]) for row in ROWS] for side in ("query", "document"))
    found = []
    for context in ([], queries[ASKED:]):
        model = SentenceTransformer(str(folder), trust_remote_code=True)
        if context:
            model[0].fit_context(context)
        asked = model.encode_query(queries[:ASKED], normalize_embeddings=True)
        scores = asked @ model.encode_document(documents, normalize_embeddings=True).T
        ranks = (scores > scores.diagonal()[:, None]).sum(axis=1)
        found.append(evaluate(model, ToyRetrieval())["ndcg_at_10"])
        assert found[-1] == pytest.approx(np.where(ranks < 10, 1 / np.log2(ranks + 2), 0).mean(), abs=1e-4)
    assert found[0] != found[1]


def test_a_task_of_reranking_ranks_the_given_documents_alone(model: Path) -> None:
    task = ToyRetrieval()
    task.top_ranked = {f"q{n}": [named(n + 1), named(n), named(n + 5)] for n in range(ASKED)}
    queries, documents = ([str(row[side]) for row in ROWS] for side in ("query", "document"))
    indices, _ = load_retriever(model).index(documents).search(queries[:ASKED], len(documents))
    first = [next(d for d in row if d in (n, n + 1, n + 5)) for n, row in enumerate(indices.tolist())]
    found = evaluate(MtebModel(model), task)
    assert found["recall_at_3"] == 1
    assert found["recall_at_1"] == pytest.approx(np.mean([n == best for n, best in enumerate(first)]), abs=1e-5)


def test_tasks_with_instructions_are_refused(tmp_path: Path) -> None:
    model = MtebModel(write_toy_model(tmp_path / "toy"))
    corpus = Dataset.from_list([{"id": "d", "text": "w1"}])
    model.index(corpus)
    with pytest.raises(InputError, match="instructions"):
        model.search(Dataset.from_list([{"id": "q", "text": "w1", "instruction": "w2"}]), top_k=1)


def test_models_are_told_apart_by_their_weights(tmp_path: Path) -> None:
    one, other = (MtebModel(write_toy_model(tmp_path / name)).mteb_model_meta for name in ("one", "other"))
    assert one.name == "batchwright/one" and one.revision == other.revision != "no_revision_available"
