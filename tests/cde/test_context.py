"""Fitting a context to a corpus, and saving it."""

from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from batchwright.retrievers.cde.contextual_encoder import CONTEXT, ContextualEncoder
from tests.cde.encoders import encoder

CORPUS = ["one two", "three", "four five six", "seven", "eight nine", "ten", "six one", "two two"]
TEXTS = ["one", "two three"]


def model(documents: int = 5) -> tuple[SentenceTransformer, ContextualEncoder]:
    made = encoder(documents=documents)
    return SentenceTransformer(
        modules=[made], prompts={"query": "search_query: ", "document": "search_document: "}
    ), made


@pytest.mark.parametrize("documents", [5, 8, 20])
def test_documents_are_drawn_as_mteb_draws_them(documents: int) -> None:
    _, made = model(documents)
    made.fit_context(CORPUS)
    drawn = np.random.default_rng(42).choice(CORPUS, size=documents, replace=len(CORPUS) < documents)
    expected = torch.cat([made.embed_context(made.preprocess([f"search_document: {text}"])) for text in drawn])
    assert made.fitted is not None
    torch.testing.assert_close(made.fitted, expected, atol=1e-5, rtol=1e-4)


def test_a_smaller_context_is_padded_with_nulls() -> None:
    outer, made = model(6)
    made.fit_context(CORPUS, size=2)
    assert made.fitted is not None and len(made.fitted) == 2
    few = outer.encode_document(TEXTS)
    made.fitted = torch.cat([made.fitted, made.null.detach().expand(4, -1)])
    assert np.allclose(outer.encode_document(TEXTS), few, atol=1e-5)


def test_encoding_uses_the_context_and_stage_one_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    outer, made = model()
    calls = []
    made.first.register_forward_hook(lambda *_: calls.append(1))
    without = outer.encode_document(TEXTS)
    made.fit_context(CORPUS)
    assert len(calls) == 1
    within = outer.encode_document(TEXTS)
    assert np.abs(within - without).max() > 1e-2
    made.fit_context(CORPUS)
    assert np.array_equal(outer.encode_document(TEXTS), within)
    assert len(calls) == 1, "neither refitting to the same corpus nor encoding texts runs stage 1"
    made.fit_context(CORPUS, seed=1)
    assert len(calls) == 2
    made.clear_context()
    assert np.array_equal(outer.encode_document(TEXTS), without)


def test_the_fitted_context_is_saved(tmp_path: Path) -> None:
    outer, made = model()
    made.fit_context(CORPUS)
    outer.save(str(tmp_path / "fitted"), create_model_card=False)
    loaded = ContextualEncoder.load(str(tmp_path / "fitted"))
    again = SentenceTransformer(modules=[loaded], prompts=outer.prompts)
    assert np.array_equal(again.encode_query(TEXTS), outer.encode_query(TEXTS))
    loaded.first.register_forward_hook(lambda *_: pytest.fail("stage 1 ran again"))
    loaded.fit_context(CORPUS)
    made.clear_context()
    outer.save(str(tmp_path / "fitted"), create_model_card=False)
    assert not (tmp_path / "fitted" / CONTEXT).exists()


def test_another_models_context_is_refused(tmp_path: Path) -> None:
    outer, made = model(8)
    made.fit_context(CORPUS)
    outer.save(str(tmp_path / "eight"), create_model_card=False)
    _, five = model(5)
    with pytest.raises(ValueError, match=r"context of shape \(8, 16\): this model takes at most 5 vectors"):
        five.load_context(tmp_path / "eight" / CONTEXT)
    assert five.fitted is None


def test_an_empty_corpus_is_refused() -> None:
    with pytest.raises(ValueError, match="the corpus is empty"):
        model()[1].fit_context([])
