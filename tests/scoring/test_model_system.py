"""How a model's retriever is asked."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from batchwright.core.runtime import scratch
from batchwright.formats.models import Prefix
from batchwright.retrievers import ModelInfo
from batchwright.retrievers.xtr.model import save_token_model
from batchwright.retrievers.xtr.rank import TOKENS
from stages.scoring import retrieval
from stages.scoring.collection import Collection, EvaluateParams, Text
from stages.scoring.retrieval import model_system
from tests.helpers import WORDS
from tests.tiny_models import save_bert
from tests.train.toys import describe
from trainers.xtr.start import start_from

COLLECTION = Collection(
    name="tests",
    queries=[Text(id="q", text="who", domain="birds")],
    documents=[Text(id="d", text="a bird", domain="fish")],
    relevant={"q": {"d": 1}},
)


@pytest.mark.parametrize(("variant", "expected"), [("xtr", {"tokens": 40_000}), ("biencoder", {})])
def test_the_number_of_tokens_is_for_models_that_retrieve_tokens(
    monkeypatch: pytest.MonkeyPatch, variant: str, expected: dict[str, int]
) -> None:
    asked: list[Any] = []

    def search(*values: object, **own: object) -> tuple[Any, Any]:
        asked.append((values, own))
        return np.zeros((1, 1), np.int64), None

    index = SimpleNamespace(search=search)
    retriever = SimpleNamespace(info=SimpleNamespace(variant=variant), index=lambda *_: index)
    monkeypatch.setattr(retrieval, "load_retriever", lambda _: retriever)
    model_system(Path("model"), EvaluateParams(tokens=40_000), 7)(COLLECTION)
    assert asked == [((["who"], 7, ["birds"]), expected)]


def test_large_collections_are_searched_on_disk_by_models_that_retrieve_tokens(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("batchwright.retrievers.xtr.index._ROTATIONS", 1)
    monkeypatch.setattr("batchwright.retrievers.xtr.index._LEARNED_FROM", 900)
    generator = np.random.default_rng(0)
    documents = [" ".join(each) for each in generator.choice(WORDS, (600, 5))]
    collection = replace(
        COLLECTION,
        queries=[Text(id=text, text=text, domain="") for text in documents[:20]],
        documents=[Text(id=text, text=text, domain="") for text in documents],
    )
    start = start_from(save_bert(tmp_path / "start"), ModelInfo(variant="biencoder", max_length=16), "cpu")
    save_token_model(start, tmp_path / "model", Prefix())
    folder = describe(tmp_path / "model")
    exact, compressed = (
        model_system(folder, EvaluateParams(exact_documents=count), 10)(collection) for count in (600, 599)
    )
    assert compressed.shape == (20, 10) and not np.array_equal(exact, compressed)
    assert (exact[:, 0] == compressed[:, 0]).mean() > 0.8
    assert list(scratch("tokens").iterdir()) == []


def test_by_default_as_many_tokens_are_retrieved_as_by_the_model_alone() -> None:
    assert EvaluateParams().tokens == TOKENS
