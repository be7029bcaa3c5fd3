"""Search with contexts drawn from the collection, domain by domain."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from batchwright.core.errors import InputError
from batchwright.formats.models import Prefix
from batchwright.retrievers import ModelInfo, load_retriever
from batchwright.retrievers.cde.retriever import ContextualIndex, ContextualRetriever, load_contextual, save_contextual
from tests.cde.encoders import FORMS, encoder, sentence_model
from trainers.cde import Params
from trainers.cde.start import start_from

DOCUMENTS = ["one two", "three", "four five six", "seven", "eight nine", "ten", "six one", "two two"]
DOMAINS = ["birds", "fish"] * 4
QUERIES = ["one", "two three", "nine"]


@pytest.fixture(params=FORMS)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    made = encoder(documents=3, form=request.param)
    return save(SentenceTransformer(modules=[made], device="cpu"), tmp_path / "cde")


def save(model: SentenceTransformer, folder: Path) -> Path:
    save_contextual(model, folder, Prefix())
    ModelInfo(variant="cde", max_length=16).write(folder)
    return folder


def index(folder: Path, domains: list[str] | None = None) -> ContextualIndex:
    made = load_retriever(folder).index(DOCUMENTS, domains)
    assert isinstance(made, ContextualIndex)
    return made


def with_context_of(folder: Path, corpus: list[str], texts: list[str]) -> NDArray[np.float32]:
    model = load_contextual(folder)
    model[0].fit_context(corpus)
    return model.encode(texts, normalize_embeddings=True)


def test_each_text_is_read_with_its_domains_context(folder: Path) -> None:
    made = index(folder, DOMAINS)
    for name, first in (("birds", 0), ("fish", 1)):
        own = DOCUMENTS[first::2]
        assert np.allclose(made.vectors[first::2], with_context_of(folder, own, own), atol=1e-5)
        _, scores = made.search(QUERIES, len(DOCUMENTS), [name] * 3)
        expected = with_context_of(folder, own, QUERIES) @ made.vectors.T
        assert np.allclose(scores, -np.sort(-expected, axis=1), atol=1e-5)


@pytest.mark.parametrize("domains", [None, ["moss"] * 3])
def test_a_query_of_no_known_domain_is_read_with_the_whole_collections_context(
    folder: Path, domains: list[str] | None
) -> None:
    made = index(folder, DOMAINS)
    _, scores = made.search(QUERIES, len(DOCUMENTS), domains)
    expected = with_context_of(folder, DOCUMENTS, QUERIES) @ made.vectors.T
    assert np.allclose(scores, -np.sort(-expected, axis=1), atol=1e-5)


def test_several_indexes_of_one_model_can_be_searched(folder: Path) -> None:
    retriever = load_retriever(folder)
    assert isinstance(retriever, ContextualRetriever)
    first = retriever.index(DOCUMENTS[:4])
    before = first.search(QUERIES, 4)
    retriever.index(DOCUMENTS[4:]).search(QUERIES, 4)
    for found, expected in zip(first.search(QUERIES, 4), before, strict=True):
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("documents", [0, 1, 16, 64, 512])
def test_before_training_it_ranks_as_its_start_model(tmp_path: Path, documents: int) -> None:
    info = ModelInfo(variant="biencoder", max_length=16)
    sentence_model().save(str(tmp_path / "start"), create_model_card=False)
    info.write(tmp_path / "start")
    made = start_from(tmp_path / "start", Params(temperature=0.1, context_documents=documents), info)
    folder = save(SentenceTransformer(modules=[made], device="cpu"), tmp_path / "cde")
    ranked, scores = index(folder, DOMAINS).search(QUERIES, 5, ["birds"] * 3)
    expected, same = load_retriever(tmp_path / "start").index(DOCUMENTS).search(QUERIES, 5)
    assert np.array_equal(ranked, expected)
    assert np.allclose(scores, same, atol=1e-6)


def test_a_folder_with_damaged_prompts_is_refused(folder: Path) -> None:
    file = folder / "config_sentence_transformers.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"prompts": ["query: "]}))
    with pytest.raises(InputError, match="cannot be loaded"):
        load_retriever(folder)
