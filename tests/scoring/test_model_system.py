"""How a model's retriever is asked."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from batchwright.retrievers.xtr.rank import TOKENS
from stages.scoring import retrieval
from stages.scoring.collection import Collection, EvaluateParams, Text
from stages.scoring.retrieval import model_system

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
    model_system(Path("model"), 7, tokens=40_000)(COLLECTION)
    assert asked == [((["who"], 7, ["birds"]), expected)]


def test_by_default_as_many_tokens_are_retrieved_as_by_the_model_alone() -> None:
    assert EvaluateParams().tokens == TOKENS
