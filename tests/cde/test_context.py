"""Fitting a context to a corpus, and saving it."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from batchwright.retrievers.cde.contextual_encoder import ContextualEncoder, Form
from batchwright.retrievers.cde.folder import CONTEXT
from tests.cde.encoders import FORMS, encoder

CORPUS = ["one two", "three", "four five six", "seven", "eight nine", "ten", "six one", "two two"]
TEXTS = ["one", "two three"]
each_form = pytest.mark.parametrize("form", FORMS)


def model(
    documents: int = 5, kind: str = "learned", form: Form = "gated"
) -> tuple[SentenceTransformer, ContextualEncoder]:
    made = encoder(kind, documents, form=form)
    prompts = {"query": "search_query: ", "document": "search_document: "}
    return SentenceTransformer(modules=[made], prompts=prompts, device="cpu"), made


@pytest.mark.parametrize("documents", [5, 8, 20])
def test_documents_are_drawn_as_mteb_draws_them(documents: int) -> None:
    _, made = model(documents)
    made.fit_context(CORPUS)
    drawn = np.random.default_rng(42).choice(CORPUS, size=documents, replace=len(CORPUS) < documents)
    assert made.context is not None
    assert made.context.texts == [f"search_document: {text}" for text in drawn]


def test_encoding_reads_the_vectors_that_stage_one_gives() -> None:
    outer, made = model()
    made.fit_context(CORPUS)
    assert made.context is not None
    with torch.no_grad():
        vectors = torch.tensor(made.first.encode(made.context.texts))
        features = made.preprocess(["search_query: one"])
        expected = made({**features, "context": made.prepare(vectors)})["sentence_embedding"]
    assert np.allclose(outer.encode_query(["one"]), expected, atol=1e-5)


@each_form
def test_encoding_uses_the_context_and_stage_one_runs_once(form: Form) -> None:
    outer, made = model(form=form)
    calls = []
    made.first.register_forward_hook(lambda *_: calls.append(1))
    without = outer.encode_document(TEXTS)
    made.fit_context(CORPUS)
    within = outer.encode_document(TEXTS)
    assert np.abs(within - without).max() > 1e-2
    made.fit_context(CORPUS)
    assert np.array_equal(outer.encode_document(TEXTS), within)
    assert len(calls) == 1, "neither refitting to the same corpus nor encoding more texts runs stage 1"
    made.fit_context(CORPUS, seed=1)
    assert np.abs(outer.encode_document(TEXTS) - within).max() > 1e-4
    assert len(calls) == 2
    made.clear_context()
    assert np.array_equal(outer.encode_document(TEXTS), without)


def test_a_sequence_without_bias_is_saved_without_one(tmp_path: Path) -> None:
    made = encoder(form="sequence", bias=None)
    SentenceTransformer(modules=[made], device="cpu").save(str(tmp_path), create_model_card=False)
    loaded = ContextualEncoder.load(str(tmp_path))
    assert (loaded.form, loaded.bias, loaded.documents) == ("sequence", None, 5)
    assert torch.equal(loaded.null, made.null)


@pytest.mark.parametrize("stage", ["first", "second"])
def test_the_context_follows_the_weights(stage: str) -> None:
    outer, made = model()
    made.fit_context(CORPUS)
    before = outer.encode_document(TEXTS)
    with torch.no_grad():
        for parameter in getattr(made, stage).parameters():
            parameter.mul_(1.5)
    after = outer.encode_document(TEXTS)
    assert np.abs(after - before).max() > 1e-3
    made.clear_context()
    made.fit_context(CORPUS)
    assert np.array_equal(outer.encode_document(TEXTS), after)


@each_form
def test_the_fitted_context_is_saved(tmp_path: Path, form: Form) -> None:
    outer, made = model(form=form)
    made.fit_context(CORPUS)
    outer.save(str(tmp_path / "fitted"), create_model_card=False)
    loaded = ContextualEncoder.load(str(tmp_path / "fitted"))
    again = SentenceTransformer(modules=[loaded], prompts=outer.prompts, device="cpu")
    assert np.array_equal(again.encode_query(TEXTS), outer.encode_query(TEXTS))
    made.clear_context()
    outer.save(str(tmp_path / "fitted"), create_model_card=False)
    assert not (tmp_path / "fitted" / CONTEXT).exists()


def test_another_models_context_is_read_with_this_models_weights(tmp_path: Path) -> None:
    for kind in ("learned", "rotary"):
        outer, made = model(kind=kind)
        made.fit_context(CORPUS)
        outer.save(str(tmp_path / kind), create_model_card=False)
    expected = outer.encode_query(TEXTS)
    shutil.copy(tmp_path / "learned" / CONTEXT, tmp_path / "rotary" / CONTEXT)
    again = SentenceTransformer(modules=[ContextualEncoder.load(str(tmp_path / "rotary"))], prompts=outer.prompts)
    assert np.allclose(again.encode_query(TEXTS), expected, atol=1e-6)


def test_a_folder_of_an_older_version_is_refused(tmp_path: Path) -> None:
    outer, _ = model()
    outer.save(str(tmp_path), create_model_card=False)
    file = tmp_path / ContextualEncoder.config_file_name
    file.write_text(json.dumps(json.loads(file.read_text()) | {"context_reads_text": True}))
    with pytest.raises(ValueError, match=r"an older version of Batchwright trained it.*train it again"):
        ContextualEncoder.load(str(tmp_path))


def test_an_empty_corpus_is_refused() -> None:
    with pytest.raises(ValueError, match="the corpus is empty"):
        model()[1].fit_context([])
