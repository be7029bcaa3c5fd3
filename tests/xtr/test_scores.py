"""The streaming scores against loops, against one grid of all similarities, and on cases worked out by hand."""

import math
import weakref
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sentence_transformers.multi_vector_encoder.scoring.xtr import xtr_scores
from torch import Tensor
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.xtr import dense, grouped
from tests.xtr.reference import looped, random_tokens, tokens
from trainers.xtr.scores import Tokens, score

EXACT = {"atol": 1e-14, "rtol": 0.0}
seeds = st.integers(0, 10**6)
some_k = st.one_of(st.none(), st.integers(1, 30))


def random_case(seed: int, queries: int = 3, documents: int = 5) -> tuple[Tokens, Tokens]:
    generator = torch.Generator().manual_seed(seed)
    return random_tokens(generator, queries, 4), random_tokens(generator, documents, 4)


def retain(text: Tokens) -> Tokens:
    return Tokens(text.vectors.clone().requires_grad_(), text.mask)


@settings(max_examples=60, deadline=None)
@given(seed=seeds, k=some_k, elements=st.sampled_from([1, 7, 60, 10**6]))
def test_any_chunks_give_the_scores_of_the_loops_and_the_grid(seed: int, k: int | None, elements: int) -> None:
    queries, documents = random_case(seed)
    expected = looped(queries, documents, k)
    torch.testing.assert_close(dense(queries, documents, k), expected, **EXACT)
    torch.testing.assert_close(score(queries, documents, k, elements).values, expected, **EXACT)


@settings(max_examples=40, deadline=None)
@given(seed=seeds, k=some_k, elements=st.sampled_from([1, 60, 10**6]))
def test_the_gradient_is_that_of_the_grid(seed: int, k: int | None, elements: int) -> None:
    queries, documents = random_case(seed)
    weights = torch.randn(3, 5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    gradients = []
    for values in (lambda q, d: dense(q, d, k), lambda q, d: score(q, d, k, elements).values):
        leaves = retain(queries), retain(documents)
        (values(*leaves) * weights).sum().backward()
        gradients.append(torch.cat([leaf.vectors.grad.flatten() for leaf in leaves]))
    torch.testing.assert_close(gradients[1], gradients[0], **EXACT)


def test_the_gradient_is_that_of_finite_differences() -> None:
    queries, documents = (retain(each) for each in random_case(1))

    def values(q: Tensor, d: Tensor) -> Tensor:
        return score(Tokens(q, queries.mask), Tokens(d, documents.mask), 5, 40).values

    assert torch.autograd.gradcheck(values, (queries.vectors, documents.vectors))


class Held(TorchDispatchMode):
    """Records the peak number of bytes held by tensors made inside the block."""

    def __init__(self) -> None:
        super().__init__()
        self.most = self.now = 0
        self._seen: set[int] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        for each in made if isinstance(made, (tuple, list)) else [made]:
            if isinstance(each, Tensor):
                self._note(each.untyped_storage())
        return made

    def _note(self, storage: torch.UntypedStorage) -> None:
        if storage._cdata not in self._seen:
            self._seen.add(storage._cdata)
            self.now += storage.nbytes()
            self.most = max(self.most, self.now)
            weakref.finalize(storage, self._forget, storage._cdata, storage.nbytes())

    def _forget(self, key: int, size: int) -> None:
        self._seen.discard(key)
        self.now -= size


def held_at_most(way: Callable[[Tokens, Tokens], Tensor], gradient: bool = True) -> int:
    generator = torch.Generator().manual_seed(3)
    queries, documents = (retain(random_tokens(generator, 60, 20)) for _ in range(2))
    with Held() as held, torch.set_grad_enabled(gradient):
        total = way(queries, documents).sum()
        if gradient:
            total.backward()
    return held.most


def test_only_a_few_chunks_of_similarities_are_held_at_once() -> None:
    grid = 60 * 20 * 60 * 20 * 8

    def in_pieces(queries: Tokens, documents: Tokens) -> Tensor:
        parts = [(queries.vectors[row] @ documents.vectors.flatten(0, 1).T) for row in range(60)]
        return torch.stack([part.sum() for part in parts])

    assert held_at_most(lambda q, d: score(q, d, 30, 40_000).values) < grid / 3
    assert held_at_most(lambda q, d: dense(q, d, 30)) > grid
    assert held_at_most(in_pieces) > grid


def test_two_bytes_are_kept_for_each_query_token_and_document_if_there_is_a_gradient() -> None:
    queries, documents = (retain(random_tokens(torch.Generator().manual_seed(3), 60, 20)) for _ in range(2))
    kept = []
    for gradient in (True, False):
        with Held() as held, torch.set_grad_enabled(gradient):
            scores = score(queries, documents, None, 40_000)
            kept.append(held.now)
        del scores
    two_bytes = queries.mask.sum() * 60 * 2
    assert two_bytes <= kept[0] - kept[1] < 2 * two_bytes


def test_documents_without_any_token_score_0() -> None:
    queries, _ = random_case(5)
    empty = Tokens(torch.zeros(2, 0, queries.vectors.shape[2], dtype=torch.float64), np.zeros((2, 0), np.bool_))
    for k in (None, 3):
        assert score(queries, empty, k).values.tolist() == [[0.0, 0.0]] * 3


@settings(max_examples=30, deadline=None)
@given(seed=seeds, more=st.integers(0, 50))
def test_k_of_the_pool_size_or_more_is_colbert(seed: int, more: int) -> None:
    queries, documents = random_case(seed)
    similarities = torch.einsum("bqd,nld->bqnl", *(each.vectors for each in (queries, documents)))
    query_mask, document_mask = (torch.from_numpy(each.mask) for each in (queries, documents))
    maxima = similarities.masked_fill(~document_mask, -torch.inf).amax(dim=3) * query_mask[:, :, None]
    counts = query_mask.sum(dim=1, keepdim=True)
    expected = maxima.sum(dim=1) / counts
    found = score(queries, documents, int(documents.mask.sum()) + more)
    torch.testing.assert_close(found.values, expected, atol=1e-15, rtol=0.0)
    torch.testing.assert_close(score(queries, documents, None).values, found.values, atol=0.0, rtol=0.0)
    assert torch.equal(found.retrieving, counts.expand(3, 5))


@pytest.mark.parametrize(("k", "expected"), [(1, [0.5, 0]), (2, [0.5, -0.3]), (3, [0.5, -0.3]), (4, [0.5, -0.3])])
def test_retrieved_negative_similarities_count(k: int, expected: list[float]) -> None:
    documents = tokens([[0.5, 0], [-0.9, 0]], [[-0.3, 0], [-0.8, 0]])
    assert score(tokens([[1, 0]]), documents, k).values.tolist() == [expected]


def test_a_score_is_the_mean_over_query_tokens_that_retrieved() -> None:
    one = score(tokens([[1, 0]] * 3 + [[-1, 0]]), tokens([[0.5, 0]] * 3), 3)
    assert one.values.item() == pytest.approx(0.25, abs=1e-15) and one.retrieving.item() == 4
    two = score(tokens([[-0.5] * 8] * 4), tokens([[0.25] * 8] * 3, [[0.25] * 8] * 3), 6)
    assert two.values.tolist() == [[-1, -1]]


@settings(max_examples=40, deadline=None)
@given(seed=seeds, k=some_k, order=st.permutations(range(5)), padding=st.integers(0, 3))
def test_padding_changes_nothing_and_permuted_documents_permute_the_scores(
    seed: int, k: int | None, order: list[int], padding: int
) -> None:
    """Ties included: vectors are in eighths, so that sums are exact in any order."""
    queries, documents = (Tokens((each.vectors * 2).round() / 8, each.mask) for each in random_case(seed))
    expected = score(queries, documents, k)
    wider = [
        Tokens(functional.pad(each.vectors, (0, 0, 0, padding), value=9.0), np.pad(each.mask, ((0, 0), (0, padding))))
        for each in (queries, documents)
    ]
    torch.testing.assert_close(score(*wider, k).values, expected.values, **EXACT)
    permuted = score(queries, Tokens(documents.vectors[order], documents.mask[order]), k)
    torch.testing.assert_close(permuted.values, expected.values[:, order], **EXACT)
    assert torch.equal(permuted.retrieving, expected.retrieving[:, order])


@pytest.mark.parametrize("k", [None, 2])
def test_documents_and_queries_without_tokens_score_zero_and_get_no_gradient(k: int | None) -> None:
    queries, documents = (retain(each) for each in random_case(2))
    queries.mask[0] = documents.mask[1] = False
    found = score(queries, documents, k)
    assert found.values[0].tolist() == [0] * 5 and found.values[:, 1].tolist() == [0] * 3
    found.values.sum().backward()
    assert not queries.vectors.grad[0].any() and not documents.vectors.grad[1].any()
    documents.mask[:] = False
    assert not score(queries, documents, k).values.any()
    queries.mask[:] = False
    assert not score(queries, documents, k).values.any()


def test_a_positive_without_retrieved_tokens_gets_no_gradient() -> None:
    queries = retain(tokens([[1, 0], [1, 0]]))
    documents = retain(tokens([[0.1, 0]] * 2, [[0.9, 0]] * 2))
    scores = score(queries, documents, 2).values
    assert scores.tolist() == [[0, 0.9]]
    loss = functional.cross_entropy(scores, torch.tensor([0]))
    loss.backward()
    assert loss.item() == pytest.approx(math.log(1 + math.exp(0.9)), abs=1e-12)
    gradient = documents.vectors.grad[:, :, 0]  # two query tokens, each 1, send .35547 to the same maximum
    assert gradient[0].tolist() == [0, 0]
    assert gradient[1].tolist() == pytest.approx([2 * 0.35547, 0], abs=1e-5)


@pytest.mark.parametrize(
    ("k", "temperature", "expected"),
    [(None, 1.0, 1.1876), (None, 0.05, 5.2e-5), (1, 1.0, 2.4286), (1, 0.05, 20.386)],
)
def test_the_papers_failure_case(k: int | None, temperature: float, expected: float) -> None:
    """The positive is fairly similar to all query tokens; each negative is more similar to one of them."""
    positive = [[0.8] * 4] + [[0.0] * 4] * 3
    negatives = [[[0.95 * (row == peak) for row in range(4)]] + [[0.0] * 4] * 3 for peak in range(4)]
    scores = score(tokens(torch.eye(4).tolist()), tokens(positive, *negatives), k).values
    loss = functional.cross_entropy(scores / temperature, torch.tensor([0]))
    assert loss.item() == pytest.approx(expected, rel=1e-2 if expected < 1e-3 else 5e-5)


@pytest.mark.parametrize("k", [None, 7])
def test_bfloat16_is_accumulated_in_float32(k: int | None) -> None:
    generator = torch.Generator().manual_seed(4)
    queries, documents = (random_tokens(generator, 3, 200, 64) for _ in range(2))
    halves = [Tokens(each.vectors.bfloat16().requires_grad_(), each.mask) for each in (queries, documents)]
    found = score(*halves, k).values
    exact = score(*(Tokens(each.vectors.double(), each.mask) for each in halves), k).values
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), exact, atol=1e-6, rtol=0.0)
    found.sum().backward()
    assert halves[0].vectors.grad.dtype == torch.bfloat16


@settings(max_examples=30, deadline=None)
@given(seed=seeds, k=st.integers(1, 30))
def test_sentence_transformers_gives_the_same_scores(seed: int, k: int) -> None:
    queries, documents = random_case(seed)
    k = min(k, int(documents.mask.sum()))
    theirs = xtr_scores(*grouped(queries, documents), k)
    torch.testing.assert_close(score(queries, documents, k).values, theirs.double(), atol=1e-6, rtol=0.0)
