"""What queries and documents have of their own, prompts and lengths: alike in training, search and elsewhere."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentence_transformers import MultiVectorEncoder, SentenceTransformer

from batchwright.formats.lengths import Lengths
from batchwright.formats.models import Prefix
from batchwright.formats.shards import ShardSet
from batchwright.retrievers import ModelInfo, load_retriever
from batchwright.retrievers.common.model_folder import load_model
from batchwright.training.batches import BatchReader
from tests.train.toys import toy_batch, toy_job, toy_rows, write_toy_model, write_toy_shards
from trainers.variants import VARIANTS, build_learner, train

PROMPTS = {"query": "query: ", "document": "document: "}
LENGTHS = Lengths(query=5, document=8)
LONG = "w1 w2 w3 w4 w5 w6 w7 w8 w9"
CUT = {"query": "w1 w2", "document": "w1 w2 w3 w4 w5"}
"""What is read of ``LONG`` after a prompt and between [CLS] and [SEP]."""


def start_model(folder: Path) -> Path:
    """A model that puts the prompt for queries before all texts, unless it is told a side."""
    start = write_toy_model(folder)
    file = start / "config_sentence_transformers.json"
    changes = {"prompts": PROMPTS, "default_prompt_name": "query"}
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))
    return start


@pytest.fixture(params=VARIANTS)
def trained(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path / "scratch"))
    shards = write_toy_shards(tmp_path / "shards", [toy_batch(toy_rows(8))])
    own: dict[str, Any] = {"context_documents": 3, "pool_prefix": False} if request.param == "cde" else {}
    given = {"prefixes": {"default": PROMPTS}, "max_length": LENGTHS.model_dump(), **own}
    job = toy_job(tmp_path / "out", start_model(tmp_path / "toy"), shards, request.param, **given)
    train(job)
    assert ModelInfo.read(job.model).max_length == LENGTHS
    return job.model


def test_a_trained_model_reads_each_side_with_its_own_prompt_and_length_wherever_it_is_loaded(trained: Path) -> None:
    saved = json.loads((trained / "config_sentence_transformers.json").read_text())
    assert (saved["prompts"], saved["default_prompt_name"]) == (PROMPTS, None)
    retriever: Any = load_retriever(trained)
    index = retriever.index([LONG, CUT["document"], f"{CUT['document']} w7", "w9"])
    vectors = index.tokens if (tokens := hasattr(index, "tokens")) else index.vectors
    elsewhere: Any = (
        MultiVectorEncoder(str(trained), device="cpu")
        if tokens
        else SentenceTransformer(str(trained), device="cpu", trust_remote_code=True)
    )
    scores = [index.search([query], 4)[1] for query in (LONG, CUT["query"], f"{CUT['query']} w7")]
    assert np.array_equal(scores[0], scores[1]) and np.array_equal(scores[0], scores[2])
    if tokens:  # sentence-transformers scores the prompt's token, too
        assert np.diff(np.unique(vectors.owners, return_index=True)[1]).tolist() == [5, 5, 5]
        assert len(elsewhere.encode_query(LONG)) == 3 and len(elsewhere.encode_document(LONG)) == 6
        return
    assert np.array_equal(vectors[0], vectors[1]) and np.array_equal(vectors[0], vectors[2])
    if hasattr(retriever, "encode_queries"):
        ours = retriever.encode_queries([LONG, "w1"])
        assert np.allclose(ours, elsewhere.encode_query([LONG, "w1"], normalize_embeddings=True), atol=1e-6)
        assert np.allclose(
            vectors[[0, 3]], elsewhere.encode_document([LONG, "w9"], normalize_embeddings=True), atol=1e-6
        )
    same = elsewhere.encode_query([LONG, CUT["query"]])
    assert np.allclose(same[0], same[1], atol=1e-6)


@pytest.mark.parametrize("variant", VARIANTS)
def test_training_cuts_each_side_to_its_length(tmp_path: Path, variant: str) -> None:
    rows = [row | {"query": LONG, "document": LONG} for row in toy_rows(8)]
    shards = write_toy_shards(tmp_path / "shards", [toy_batch(rows)])
    own: dict[str, Any] = {"context_documents": 3, "context_dropout": 0} if variant == "cde" else {}
    job = toy_job(
        tmp_path / "out", write_toy_model(tmp_path / "toy"), shards, variant, max_length=LENGTHS.model_dump(), **own
    )
    read = build_learner(job).prepare(BatchReader(ShardSet.open(shards), job.info.prefixes, 0).read(0, slice(0, 8)))
    texts = read if variant in ("biencoder", "seed_encoder") else read[0]
    context = read[1] if variant == "cde" else None
    for groups, length in ((texts.queries, LENGTHS.query), (texts.documents, LENGTHS.document)):
        assert {group.features["input_ids"].shape[1] for group in groups} == {length}
    if context:
        assert {group.features["input_ids"].shape[1] for group in context.groups} == {LENGTHS.document}


def test_a_start_model_is_scored_with_each_sides_own_prompt(tmp_path: Path) -> None:
    start = start_model(tmp_path / "toy")
    prefixes = {"default": Prefix(query="query: ")}
    ModelInfo.model_validate({"variant": "biencoder", "max_length": 16, "prefixes": prefixes}).write(start)
    model, retriever = load_model(start, 16, "cpu"), load_retriever(start)
    expected = model.encode(["w1 w2", "query: w1 w2"], normalize_embeddings=True)
    index: Any = retriever.index(["w1 w2"])
    assert np.allclose([index.vectors[0], index.retriever.encode_queries(["w1 w2"])[0]], expected, atol=1e-6)
    assert np.abs(expected[0] - expected[1]).max() > 1e-3
