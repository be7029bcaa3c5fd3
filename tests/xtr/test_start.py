"""The model that XTR training starts from: tokens that are left out, and the width of its vectors."""

from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import cast

import numpy as np
import pytest
import torch
from sentence_transformers import MultiVectorEncoder

from batchwright.core.errors import InputError
from batchwright.formats.models import Prefix, Prefixes
from batchwright.formats.shards import ShardSet
from batchwright.retrievers import ModelInfo, load_retriever
from batchwright.retrievers.common.model_folder import load_model
from batchwright.retrievers.xtr.model import Task, encode_tokens, load_token_model, save_token_model
from batchwright.retrievers.xtr.prefixes import begin_with
from batchwright.retrievers.xtr.retriever import TokenRetriever
from batchwright.training.batches import BatchReader
from tests.tiny_models import WIDTH, save_bert, save_t5
from tests.train.toys import describe, retrieve, toy_batch, toy_job, toy_rows, write_toy_model, write_toy_shards
from trainers.variants import train
from trainers.xtr.learner import TokenLearner, embed_tokens
from trainers.xtr.start import start_from

PLAIN = ModelInfo(variant="biencoder", max_length=16)
XTR = ModelInfo(variant="xtr", max_length=16)


@pytest.mark.parametrize(("save", "marks"), [(save_bert, ["[CLS]", "[SEP]"]), (save_t5, ["</s>"])])
def test_marks_that_the_tokenizer_adds_are_no_tokens(
    tmp_path: Path, save: Callable[[Path], Path], marks: list[str]
) -> None:
    start = save(tmp_path / "made")
    save_token_model(start_from(start, PLAIN, "cpu"), tmp_path / "model", Prefix())
    model = MultiVectorEncoder(str(tmp_path / "model"), device="cpu")
    texts = ["one two", f"{model.tokenizer.unk_token} three", "", marks[-1]]
    words = [model.tokenizer(text, add_special_tokens=False)["input_ids"] for text in (*texts[:3], "")]
    for task, encode in (("query", model.encode_query), ("document", model.encode_document)):
        found = encode_tokens(model, texts, cast(Task, task))
        assert found.ids.tolist() == list(chain(*words)) and found.lengths.tolist() == list(map(len, words))
        assert [len(each) for each in encode(texts)] == found.lengths.tolist(), "sentence-transformers alone"
        assert np.isfinite(found.vectors).all()


def test_vectors_are_those_of_the_start_model(tmp_path: Path) -> None:
    start = save_bert(tmp_path / "made")
    output = load_model(start, 16).encode(["one two three"], output_value="token_embeddings")[0]
    expected = torch.nn.functional.normalize(output, dim=1)[1:-1].numpy()
    found = encode_tokens(start_from(start, PLAIN, "cpu"), ["one two three"], "query").vectors
    assert np.allclose(found, expected, atol=1e-6)


def test_a_projection_nearly_preserves_similarities_and_is_a_new_part(tmp_path: Path) -> None:
    shards = write_toy_shards(tmp_path / "shards", [toy_batch(toy_rows(8))])
    start = write_toy_model(tmp_path / "start")
    new = TokenLearner(toy_job(tmp_path / "job", start, shards, "xtr", width=WIDTH - 1))
    kept = TokenLearner(toy_job(tmp_path / "job", start, shards, "xtr"))
    wide, narrow = (encode_tokens(each.model.eval(), ["w1 w2 w3"], "query").vectors for each in (kept, new))
    assert (wide.shape[1], narrow.shape[1]) == (WIDTH, WIDTH - 1)
    assert np.abs(wide @ wide.T - narrow @ narrow.T).max() < 0.5
    assert [each.shape for each in new.fresh] == [(WIDTH - 1, WIDTH)] and not kept.fresh


def test_a_width_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    start = save_bert(tmp_path / "made")
    with pytest.raises(InputError, match=r"has 16 dimensions; lower train\.xtr\.width from 17, or remove it"):
        start_from(start, PLAIN, "cpu", WIDTH + 1)
    save_token_model(start_from(start, PLAIN, "cpu", 8), tmp_path / "model", Prefix())
    assert start_from(tmp_path / "model", XTR, "cpu", 8).get_embedding_dimension() == 8
    with pytest.raises(InputError, match=r"its token vectors have 8 dimensions; remove train\.xtr\.width \(4\)"):
        start_from(tmp_path / "model", XTR, "cpu", 4)


@pytest.mark.parametrize("score", ["xtr", "colbert"])
def test_texts_without_tokens_train_and_are_found_last(tmp_path: Path, score: str) -> None:
    rows = toy_rows(8)
    rows[1]["query"], rows[2]["document"], rows[3]["document"] = "", "", "[SEP]"
    empty = [row | {"query": "", "document": ""} for row in toy_rows(8, 1)]
    shards = write_toy_shards(tmp_path / "shards", [toy_batch(rows), toy_batch(empty)])
    job = toy_job(tmp_path / "job", write_toy_model(tmp_path / "start"), shards, "xtr", k=5, score=score)
    learner = TokenLearner(job)
    outcome = learner.backward(
        learner.prepare(BatchReader(ShardSet.open(shards), PLAIN.prefixes, 0).read(1, slice(0, 8)))
    )
    assert float(outcome.loss) == pytest.approx(np.log(8)), "without tokens, all scores are 0"
    train(job)
    found, scores = retrieve(job.model, ["w1 w2", ""], ["", "w1 w2", "[CLS] [SEP]"], 3)
    assert found[0, 0] == 1 and sorted(found[1].tolist()) == [0, 1, 2]
    assert np.isfinite(scores).all() and (scores[1] == 0).all()


@pytest.mark.parametrize("save", [save_bert, save_t5])
def test_tokens_of_prefixes_are_read_but_count_as_little_as_those_that_the_tokenizer_adds(
    tmp_path: Path, save: Callable[[Path], Path]
) -> None:
    prefixes = Prefixes(
        default=Prefix(query="one: ", document="two "), domains={"d": Prefix(query="one: four ", document="")}
    )
    info = PLAIN.model_copy(update={"prefixes": prefixes, "max_length": 64})
    save_token_model(start_from(save(tmp_path / "made"), info, "cpu"), tmp_path / "model", prefixes.default)
    describe(tmp_path / "model", prefixes=prefixes.model_dump(), max_length=64)
    retriever = load_retriever(tmp_path / "model")
    assert isinstance(retriever, TokenRetriever)
    tokenizer = retriever.model.tokenizer

    def ids(*texts: str) -> list[int]:
        return [each for text in texts for each in tokenizer(text, add_special_tokens=False)["input_ids"]]

    texts, domains = ["two three", "one", "", "four one: five"], ["", "", "", "d"]
    for found in (retriever.encode_queries(texts, domains), retriever.encode_documents(texts, domains)):
        assert found.ids.tolist() == ids(*texts)
    assert retriever.encode_documents(["one: five", "two"], ["d", ""]).ids.tolist() == ids("five", "two")
    bare = load_token_model(tmp_path / "model", 64)
    assert len(encode_tokens(bare, ["one: two three"], "query").ids) == len(ids("one: two three"))
    alone = encode_tokens(bare, ["two three"], "query").vectors
    assert np.abs(retriever.encode_queries(["two three"]).vectors - alone).max() > 1e-3, "the prefix is read"


def test_prefixes_are_recognised_behind_padding() -> None:
    ids = torch.tensor([[0, 0, 2, 5, 6, 7], [2, 5, 6, 7, 8, 0], [2, 6, 5, 5, 6, 0], [2, 5, 9, 0, 0, 0], [0] * 6])
    found = begin_with(ids, [[2, 5, 6], [2, 5]], 0).int().tolist()
    assert found == [[0, 0, 1, 1, 1, 0], [1, 1, 1, 0, 0, 0], [0] * 6, [1, 1, 0, 0, 0, 0], [0] * 6]


def test_training_leaves_out_what_search_leaves_out(tmp_path: Path) -> None:
    shards = write_toy_shards(tmp_path / "shards", [toy_batch(toy_rows(8))])
    start, prefix = write_toy_model(tmp_path / "start"), {"query": "query: ", "document": "document: "}
    job = toy_job(tmp_path / "job", start, shards, "xtr", prefixes={"default": prefix})
    learner = TokenLearner(job)
    batch = BatchReader(ShardSet.open(shards), job.info.prefixes, 0).read(0, slice(0, 8))
    assert all(text.startswith("query: ") for text in batch.queries)
    features = learner.model.preprocess(batch.queries, task="query")
    vectors = embed_tokens(learner.model, features, "query", features["input_ids"].shape[1])
    counts = (vectors.detach() != 0).any(dim=2).sum(dim=1)
    assert counts.tolist() == [len(text.split()) - 1 for text in batch.queries]
