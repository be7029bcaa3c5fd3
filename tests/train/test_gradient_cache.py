"""The gradient cache against one big batch."""

from functools import partial
from typing import cast

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from batchwright.retrievers.common.model_folder import load_model
from batchwright.training.losses import Terms, compare, info_nce
from tests.train.toys import WORDS, toy_rows, write_toy_model
from trainers.common.gradient_cache import CachedForward
from trainers.common.memory import Memory
from trainers.common.passes import drawing, sent, set_dropout
from trainers.common.sentence_learner import embed
from trainers.common.texts import Cut, Group, group_texts

SIDES = ("query", "document")
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> SentenceTransformer:
    return load_model(write_toy_model(tmp_path_factory.mktemp("model") / "toy"), 16, "cpu")


ALL = ("query_to_document", "document_to_query", "query_to_query", "document_to_document")
COSINES = partial(compare, temperature=0.1)
"""The plain loss, and one with all that it may have."""
LOSSES = {
    "plain": COSINES,
    "all": partial(
        COSINES,
        objective=partial(info_nce, terms=Terms(directions=ALL, hardness_strength=5)),
        dimensions={4: 0.5, 16: 1.0},
    ),
}


@pytest.mark.parametrize(("dropout", "loss"), [(0.0, "plain"), (0.0, "all"), (0.1, "plain")])
@settings(max_examples=8, deadline=None)
@given(st.integers(2, 11), st.integers(1, 6))
def test_any_group_size_gives_the_gradient_of_one_big_batch(
    model: SentenceTransformer, dropout: float, loss: str, size: int, most: int
) -> None:
    """With dropout, what each group draws is its own."""
    set_dropout(model.train(), dropout)
    whole, cached = (
        _gradient(model, _texts(size), most if dropout else size, loss),
        _cached_gradient(model, _texts(size), most, loss),
    )
    assert torch.cosine_similarity(whole, cached, dim=0) > 0.99999
    assert abs(whole.norm() / cached.norm() - 1) < 1e-4


def test_texts_that_fit_at_once_run_once(model: SentenceTransformer) -> None:
    calls = []
    hook = model[0].register_forward_hook(lambda *_: calls.append(1))
    for most in (6, 1):
        calls.clear()
        groups = _grouped(model, _texts(6), most)
        _cached_gradient(model.train(), _texts(6), most)
        fit = [len(side) == 1 or sum(group.tokens for group in side) <= 16 * most for side in groups]
        assert len(calls) == sum(len(side) * (1 if once else 2) for side, once in zip(groups, fit, strict=True))
        assert all(fit) == (most == 6)
    hook.remove()


def test_two_stages_chain_through_a_leaf() -> None:
    torch.manual_seed(0)
    first = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)).double()
    second = nn.Linear(8, 3).double()
    context, texts = torch.randn(6, 4).double(), torch.randn(5, 4).double()

    def embed_first(group: Group) -> Tensor:
        with drawing([int(group.numbers[0])], CPU):
            return cast(Tensor, first(group.features["rows"]))

    def read(context_vectors: Tensor, chunk: Tensor) -> Tensor:
        summary = context_vectors.mean(dim=0).expand(len(chunk), -1)
        return second(torch.cat([summary, chunk], dim=1)).tanh()

    whole = torch.empty_like(context)
    for group in _pairs(context):
        whole[sent(group.places, CPU)] = embed_first(group)
    read(whole, texts).pow(2).sum().backward()
    expected = _flat_gradient(first, second)

    stage_one = CachedForward(embed_first, _pairs(context), Memory(2))
    leaf = stage_one.output.requires_grad_()
    stage_two = CachedForward(lambda group: read(leaf, group.features["rows"]), _pairs(texts), Memory(2))
    stage_two.backward(2 * stage_two.output)
    stage_one.backward(cast(Tensor, leaf.grad))
    assert torch.allclose(_flat_gradient(first, second), expected, atol=1e-12)


def _pairs(rows: Tensor) -> list[Group]:
    """Groups of two rows, out of order."""
    places = torch.split(torch.arange(len(rows)).flip(0), 2)
    return [Group({"rows": rows[each]}, each.numpy(), each.numpy(), Cut(tokens=2)) for each in places]


def _texts(size: int) -> list[list[str]]:
    """Queries and documents of all lengths."""
    rows = toy_rows(size)
    return [[f"{row[side]} {' '.join(WORDS[: place % 5])}" for place, row in enumerate(rows)] for side in SIDES]


def _loss(queries: Tensor, documents: Tensor, loss: str) -> Tensor:
    size = len(queries)
    absent = torch.zeros(size, 0, dtype=torch.bool)
    masked = torch.zeros(size, size, dtype=torch.bool)
    return LOSSES[loss](queries, documents, masked, queries.new_zeros(size, 0, queries.shape[1]), absent).loss


def _gradient(model: SentenceTransformer, sides: list[list[str]], most: int, loss: str) -> Tensor:
    """All groups with gradient at once."""
    vectors = []
    for side, groups in enumerate(_grouped(model, sides, most)):
        own = torch.cat([_embed(model, side, group) for group in groups])
        vectors.append(own[sent(np.concatenate([group.places for group in groups]).argsort(), CPU)])
    _loss(*vectors, loss).backward()
    return _flat_gradient(model)


def _cached_gradient(model: SentenceTransformer, sides: list[list[str]], most: int, loss: str = "plain") -> Tensor:
    cached = [
        CachedForward(partial(_embed, model, side), groups, Memory(16 * most))
        for side, groups in enumerate(_grouped(model, sides, most))
    ]
    leaves = [each.output.requires_grad_() for each in cached]
    for each, gradient in zip(cached, torch.autograd.grad(_loss(*leaves, loss), leaves), strict=True):
        each.backward(gradient)
    return _flat_gradient(model)


def _grouped(model: SentenceTransformer, sides: list[list[str]], most: int) -> list[list[Group]]:
    cut = Cut(tokens=16 * most)
    return [group_texts(model.preprocess, texts, np.arange(len(texts)), cut) for texts in sides]


def _embed(model: SentenceTransformer, side: int, group: Group) -> Tensor:
    with drawing([side, int(group.numbers[0])], CPU):
        return embed(model, group.features)


def _flat_gradient(*models: nn.Module) -> Tensor:
    parameters = [parameter for model in models for parameter in model.parameters()]
    flat = torch.cat([each.grad.flatten() for each in parameters if each.grad is not None])
    for model in models:
        model.zero_grad()
    return flat
