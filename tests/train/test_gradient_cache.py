"""The gradient cache against one big batch."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from batchwright.retrievers.common.sentence_model import load_model
from batchwright.training.losses import compare
from tests.train.toys import toy_rows, write_toy_model
from trainers.common.embed import embed, preprocess
from trainers.common.gradient_cache import CachedForward


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> SentenceTransformer:
    return load_model(write_toy_model(tmp_path_factory.mktemp("model") / "toy"), 16, "cpu")


@pytest.mark.parametrize("dropout", [False, True])
@settings(max_examples=8, deadline=None)
@given(st.integers(2, 11), st.integers(1, 6))
def test_any_chunk_size_gives_the_gradient_of_one_big_batch(
    model: SentenceTransformer, dropout: bool, size: int, chunk: int
) -> None:
    model.train(dropout)
    queries, documents = _texts(size)
    # Dropout draws once per chunk, so the big batch runs as the same chunks, kept in one graph.
    whole = _gradient(model, lambda texts: _attached(model, texts, chunk if dropout else size), queries, documents)
    cached = _cached_gradient(model, queries, documents, chunk)
    assert torch.cosine_similarity(whole, cached, dim=0) > 0.99999
    assert abs(whole.norm() / cached.norm() - 1) < 1e-4


def test_one_chunk_runs_once_and_gives_the_same_bits(model: SentenceTransformer) -> None:
    model.train()
    queries, documents = _texts(6)
    calls = []
    hook = model[0].register_forward_hook(lambda *_: calls.append(1))
    cached = _cached_gradient(model, queries, documents, chunk=6)
    hook.remove()
    assert len(calls) == 2
    assert torch.equal(cached, _gradient(model, lambda texts: _attached(model, texts, 6), queries, documents))


def test_two_stages_chain_through_a_leaf() -> None:
    torch.manual_seed(0)
    first = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)).double()
    second = nn.Linear(8, 3).double()
    context, texts = torch.randn(6, 4).double(), torch.randn(5, 4).double()

    def read(context_vectors: Tensor, chunk: Tensor) -> Tensor:
        summary = context_vectors.mean(dim=0).expand(len(chunk), -1)
        return second(torch.cat([summary, chunk], dim=1)).tanh()

    torch.manual_seed(1)
    whole = torch.cat([first(chunk) for chunk in context.split(2)])
    read(whole, texts).pow(2).sum().backward()
    expected = _flat_gradient(first, second)

    torch.manual_seed(1)
    stage_one = CachedForward(first, context.split(2))
    leaf = stage_one.output.requires_grad_()
    stage_two = CachedForward(lambda chunk: read(leaf, chunk), texts.split(2))
    stage_two.backward(2 * stage_two.output)
    stage_one.backward(leaf.grad)
    assert torch.allclose(_flat_gradient(first, second), expected, atol=1e-12)


def _texts(size: int) -> tuple[list[str], list[str]]:
    rows = toy_rows(size)
    return [str(row["query"]) for row in rows], [str(row["document"]) for row in rows]


def _loss(queries: Tensor, documents: Tensor) -> Tensor:
    size = len(queries)
    absent = torch.zeros(size, 0, dtype=torch.bool)
    masked = torch.zeros(size, size, dtype=torch.bool)
    return compare(queries, documents, masked, queries.new_zeros(size, 0, queries.shape[1]), absent, 0.1).loss


def _chunks(model: SentenceTransformer, texts: list[str], chunk: int) -> list[dict[str, Tensor]]:
    return [preprocess(model, texts[start : start + chunk]) for start in range(0, len(texts), chunk)]


def _attached(model: SentenceTransformer, texts: list[str], chunk: int) -> Tensor:
    return torch.cat([embed(model, features) for features in _chunks(model, texts, chunk)])


def _gradient(
    model: SentenceTransformer, forward: Callable[[list[str]], Tensor], queries: list[str], documents: list[str]
) -> Tensor:
    torch.manual_seed(3)
    _loss(forward(queries), forward(documents)).backward()
    return _flat_gradient(model)


def _cached_gradient(model: SentenceTransformer, queries: list[str], documents: list[str], chunk: int) -> Tensor:
    torch.manual_seed(3)
    sides = [
        CachedForward(lambda features: embed(model, features), _chunks(model, texts, chunk))
        for texts in (queries, documents)
    ]
    leaves = [side.output.requires_grad_() for side in sides]
    for side, gradient in zip(sides, torch.autograd.grad(_loss(*leaves), leaves), strict=True):
        side.backward(gradient)
    return _flat_gradient(model)


def _flat_gradient(*models: nn.Module) -> Tensor:
    parameters = [parameter for model in models for parameter in model.parameters()]
    flat = torch.cat([each.grad.flatten() for each in parameters if each.grad is not None])
    for model in models:
        model.zero_grad()
    return flat
