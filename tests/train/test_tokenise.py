"""Texts are read as the libraries read them, faster."""

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer
from torch import Tensor

from batchwright.formats.lengths import Lengths
from batchwright.formats.models import SIDES, Side
from batchwright.retrievers.common.model_folder import load_model
from tests.train.toys import WORDS, write_toy_model, write_toy_static
from trainers.common.tokenise import Tokenise

TEXTS = st.lists(st.lists(st.sampled_from([*WORDS, "?", "  ", "\n", "[SEP]"]), max_size=20).map(" ".join), min_size=1)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> SentenceTransformer:
    folder = write_toy_model(tmp_path_factory.mktemp("model") / "toy")
    return load_model(folder, Lengths(query=5, document=12), "cpu")


@settings(max_examples=15, deadline=None)
@given(st.lists(TEXTS, min_size=2, max_size=4))
def test_later_texts_are_read_as_the_first_ones(model: SentenceTransformer, batches: list[list[str]]) -> None:
    tokenise = Tokenise(model)
    for texts in batches:
        for side in SIDES:
            assert_same(tokenise(texts, side), dict(model.preprocess(texts, task=side)))


def test_the_library_reads_one_text_of_later_batches(
    model: SentenceTransformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    read = model.preprocess
    monkeypatch.setattr(model, "preprocess", lambda texts, **options: seen.append(len(texts)) or read(texts, **options))
    tokenise = Tokenise(model)
    for count in (3, 4, 5):
        tokenise([f"w1 w{number}" for number in range(count)], "query")
    assert seen == [3, 1, 1, 1]


@pytest.mark.parametrize("kind", ["static", "own inputs"])
def test_models_with_inputs_of_their_own_are_read_by_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    toy = write_toy_model(tmp_path / "toy")
    if kind == "static":
        write_toy_static(toy, tmp_path / "static", 0)
    model = load_model(tmp_path / "static" if kind == "static" else toy, 8, "cpu")
    read = model.preprocess
    if kind == "own inputs":  # such as a query that is filled up with masks
        monkeypatch.setattr(model, "preprocess", lambda texts, **_: {**read(texts), "places": torch.ones(len(texts))})
    tokenise = Tokenise(model)
    for texts in (["w1 w2"], ["w3", "w1 w4 w5"]):
        assert_same(tokenise(texts, "query"), dict(model.preprocess(texts, task="query")))


def assert_same(found: dict[str, object], expected: dict[str, object], side: Side | None = None) -> None:
    assert found.keys() == expected.keys(), side
    for key, each in expected.items():
        other = found[key]
        assert torch.equal(each, other) if isinstance(each, Tensor) and isinstance(other, Tensor) else each == other
