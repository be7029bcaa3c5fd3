"""Masked InfoNCE and hinge loss against plain double loops, and their options against sentence-transformers."""

import math
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sentence_transformers.sentence_transformer.losses import (
    DistillKLDivLoss,
    MarginMSELoss,
    MatryoshkaLoss,
    MultipleNegativesRankingLoss,
)
from sentence_transformers.util import cos_sim, pairwise_cos_sim
from torch import Tensor, nn
from torch.nn import functional

from batchwright.training.losses import Distill, Terms, compare, distillation, hinge, info_nce


def oracle(
    q: NDArray[np.float64],
    d: NDArray[np.float64],
    masked: NDArray[np.bool_],
    n: NDArray[np.float64],
    absent: NDArray[np.bool_],
    temperature: float,
    stands_for: float,
) -> tuple[float, float]:
    total, right = 0.0, 0
    for i in range(len(q)):
        own = float(q[i] @ d[i]) / temperature
        others = [float(q[i] @ d[j]) / temperature for j in range(len(d)) if j != i and not masked[i, j]]
        mine = [float(q[i] @ n[i, k]) / temperature for k in range(n.shape[1]) if not absent[i, k]]
        counted = stands_for * sum(map(math.exp, others)) + sum(map(math.exp, [own, *mine]))
        total -= own - math.log(counted)
        right += all(own > other for other in others + mine)
    return total / len(q), right / len(q)


def random_case(seed: int, size: int, negatives: int) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)

    def unit(*shape: int) -> Tensor:
        return functional.normalize(torch.randn(*shape, 5, generator=generator, dtype=torch.float64), dim=-1)

    masked = torch.rand(size, size, generator=generator) < 0.4
    absent = torch.rand(size, negatives, generator=generator) < 0.4
    return unit(size), unit(size), masked, unit(size, negatives), absent


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(0, 4), st.floats(0.02, 2.0), st.floats(1, 1e6))
def test_info_nce_equals_a_double_loop(
    seed: int, size: int, negatives: int, temperature: float, stands_for: float
) -> None:
    q, d, masked, n, absent = random_case(seed, size, negatives)
    each = torch.full((size, size), stands_for, dtype=torch.float64).fill_diagonal_(1)
    outcome = compare(q, d, masked, n, absent, temperature, stands_for=each)
    case = (each.numpy() for each in (q, d, masked, n, absent))
    loss, accuracy = oracle(*case, temperature, stands_for)
    assert math.isclose(outcome.loss.item(), loss, rel_tol=1e-9, abs_tol=1e-9)
    assert math.isclose(outcome.accuracy.item(), accuracy, abs_tol=1e-6)


def test_random_batches_estimate_the_loss_over_all_documents() -> None:
    # The mean over batches of a query's summed exponentials is the sum over all documents.
    generator = torch.Generator().manual_seed(5)
    documents = functional.normalize(torch.randn(600, 4, generator=generator, dtype=torch.float64), dim=-1)
    query, own, others = documents[:1] + 0.3, documents[:1], documents[1:]
    exact = torch.logsumexp(query @ documents.T, dim=1) - query @ own.T
    masked, nothing = torch.zeros(16, 16, dtype=torch.bool), torch.zeros(16, 0, dtype=torch.bool)
    found = {}
    for stands_for in (1.0, 599 / 15):
        losses = []
        for _ in range(300):
            drawn = others[torch.randperm(599, generator=generator)[:15]]
            scores = (query @ torch.cat([own, drawn]).T).expand(16, 16).clone()
            scores[1:] = torch.eye(16, dtype=torch.float64)[1:] * 50  # the other rows are as good as solved
            each = torch.full((16, 16), stands_for, dtype=torch.float64).fill_diagonal_(1)
            losses.append(16 * float(info_nce(scores, masked, nothing.double(), each).loss))
        found[stands_for] = float(np.mean(losses))
    assert math.isclose(found[599 / 15], float(exact), rel_tol=0.01)
    assert found[1.0] < float(exact) / 2


def test_a_document_masked_for_all_other_queries_gets_gradient_only_from_its_own() -> None:
    q, d, masked, n, absent = random_case(1, 6, 2)
    masked[:] = False
    masked[:, 3] = True
    d.requires_grad_()
    outcome = compare(q, d, masked, n, absent, 0.1)
    without_own = outcome.loss - (-(q[3] @ d[3]) / 0.1 + torch.logsumexp(_row(q, d, n, absent, 3), 0)) / 6
    (gradient,) = torch.autograd.grad(without_own, d)
    assert gradient[3].abs().max() < 1e-12
    assert gradient[0].abs().max() > 1e-6


def test_a_masked_pair_sends_no_gradient() -> None:
    q, d, masked, n, absent = random_case(2, 4, 1)
    masked[:] = True
    absent[:] = True
    d.requires_grad_()
    outcome = compare(q, d, masked, n, absent, 0.1)
    outcome.loss.backward()
    assert outcome.loss.item() == 0.0
    assert outcome.accuracy.item() == 1.0
    assert torch.equal(d.grad, torch.zeros_like(d))


def test_hard_negatives_join_only_their_own_row() -> None:
    q, d, masked, n, absent = random_case(3, 5, 2)
    absent[:] = True
    absent[2] = False
    n.requires_grad_()
    compare(q, d, masked, n, absent, 0.1).loss.backward()
    assert n.grad is not None
    touched = n.grad.abs().sum(dim=(1, 2)) > 0
    assert touched.tolist() == [False, False, True, False, False]


def test_equal_scores_do_not_count_as_right() -> None:
    q = d = functional.normalize(torch.ones(3, 4), dim=-1)
    nothing = torch.zeros(3, 0, dtype=torch.bool)
    assert compare(q, d, torch.zeros(3, 3, dtype=torch.bool), torch.zeros(3, 0, 4), nothing, 0.1).accuracy == 0


def _row(q: Tensor, d: Tensor, n: Tensor, absent: Tensor, i: int) -> Tensor:
    return torch.cat([d @ q[i], (n[i] @ q[i])[~absent[i]]]) / 0.1


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 7), st.integers(0, 3))
def test_hinge_equals_a_double_loop(seed: int, size: int, negatives: int) -> None:
    q, d, masked, n, absent = random_case(seed, size, negatives)
    expected = 0.0
    for i in range(size):
        others = [q[i] @ d[j] for j in range(size) if j != i and not masked[i, j]]
        others += [q[i] @ n[i, k] for k in range(negatives) if not absent[i, k]]
        losses = [max(0.0, 0.2 - float(q[i] @ d[i] - other)) for other in others]
        expected += sum(losses) / max(1, len(losses)) / size
    found = compare(q, d, masked, n, absent, 1, partial(hinge, margin=0.2)).loss.item()
    assert math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-12)


def test_hinge_gives_no_gradient_to_triplets_beyond_the_margin() -> None:
    scores = torch.tensor([[3.0, 1.5], [0.5, 1.0]], requires_grad=True)
    nothing = torch.zeros(2, 2, dtype=torch.bool)
    hinge(scores, nothing, torch.zeros(2, 0), margin=1).loss.backward()
    assert scores.grad is not None
    assert scores.grad.tolist() == [[0.0, 0.0], [0.5, -0.5]]


ALL = ("query_to_document", "document_to_query", "query_to_query", "document_to_document")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"directions": ALL},
        {"directions": ALL[:2], "partition_mode": "per_direction"},
        {"directions": (ALL[0], ALL[3]), "hardness_strength": 5},
        {"directions": ALL[:2], "partition_mode": "per_direction", "hardness_strength": 5},
        {"hardness_strength": 9, "hardness_mode": "in_batch_negatives"},
        {"hardness_strength": 5, "hardness_mode": "hard_negatives"},
    ],
)
@pytest.mark.parametrize("dimensions", [None, {2: 1.0, 5: 1.0}, {3: 0.5, 4: 2.0}])
def test_all_terms_equal_those_of_sentence_transformers(
    options: dict[str, Any], dimensions: Mapping[int, float] | None
) -> None:
    q, d, masked, n, absent = random_case(4, 6, 2)
    terms = Terms(**options)
    given = [each.requires_grad_() for each in (q, d, *n.unbind(1))]
    queries, documents, *negatives = (functional.normalize(each, dim=-1) for each in given)
    objective = partial(info_nce, terms=terms)
    ours = compare(
        queries, documents, masked, torch.stack(negatives, 1), absent, 0.1, objective, dimensions=dimensions
    ).loss

    theirs = options | {"directions": [each.replace("document", "doc") for each in terms.directions]}
    if terms.hardness_strength:
        theirs["hardness_mode"] = terms.hardness_mode
    model: Any = Columns(given)
    similarity = Masked(terms.directions, masked, absent)
    loss: nn.Module = MultipleNegativesRankingLoss(model, 10, similarity, **theirs)
    if dimensions:
        loss = MatryoshkaLoss(model, loss, list(dimensions), list(dimensions.values()))
    expected = loss([{"place": torch.tensor(place)} for place in range(len(given))], torch.empty(0))

    assert ours.item() == pytest.approx(expected.item(), abs=1e-5)
    gradients = (torch.autograd.grad(each, given) for each in (ours, expected))
    for own, other in zip(*gradients, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("weight", [None, 0.7])
@pytest.mark.parametrize("dimensions", [None, {3: 0.5, 5: 2.0}])
@pytest.mark.parametrize("loss", ["kl", "margin_mse"])
def test_what_a_teacher_adds_equals_the_losses_of_sentence_transformers(
    loss: Any, dimensions: Mapping[int, float] | None, weight: float | None
) -> None:
    q, d, masked, n, absent = random_case(4, 6, 3)
    absent[:] = False
    taught = torch.randn(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * 5
    given = [each.requires_grad_() for each in (q, d, *n.unbind(1))]
    queries, documents, *negatives = (functional.normalize(each, dim=-1) for each in given)
    case = queries, documents, masked, torch.stack(negatives, 1), absent, 0.1

    def ours(distill: Distill | None) -> Tensor:
        return compare(*case, partial(info_nce, distill=distill), dimensions=dimensions, taught=taught).loss

    model: Any = Columns(given)
    theirs: nn.Module
    if loss == "kl":
        theirs = DistillKLDivLoss(model, pairwise_cos_sim, student_temperature=0.1, teacher_temperature=2)
    else:
        theirs = MarginMSELoss(model, lambda one, other: pairwise_cos_sim(one, other) / 0.1)
    if dimensions:
        theirs = MatryoshkaLoss(model, theirs, list(dimensions), list(dimensions.values()))
    labels = taught if loss == "kl" else taught / 2
    expected = theirs([{"place": torch.tensor(place)} for place in range(len(given))], labels)
    expected = expected / 0.1**2 if loss == "kl" else expected  # the library's factor for student_temperature
    if weight:
        expected = ours(None) + weight * expected
    found = ours(Distill(loss=loss, weight=weight, temperature=2))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    gradients = (torch.autograd.grad(each, given, retain_graph=True) for each in (found, expected))
    for own, other in zip(*gradients, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-5, atol=1e-5)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 7), st.integers(0, 3), st.sampled_from(["kl", "margin_mse"]))
def test_a_teacher_counts_for_the_queries_whose_document_and_negatives_it_scored(
    seed: int, size: int, negatives: int, loss: Any
) -> None:
    generator = torch.Generator().manual_seed(seed)
    own, taught = torch.randn(2, size, 1 + negatives, dtype=torch.float64, generator=generator)
    unknown, absent = torch.rand(2, size, 1 + negatives, generator=generator) < 0.3
    absent[:, 0] = False
    own, taught = own.masked_fill(absent, -torch.inf).requires_grad_(), taught.masked_fill(unknown, torch.nan)
    losses = []
    for row, there in zip(range(size), (~absent & ~unknown).tolist(), strict=True):
        chosen = [place for place in range(1 + negatives) if there[place]]
        if not there[0] or len(chosen) < 2:
            continue
        mine, theirs = own[row, chosen], taught[row, chosen]
        if loss == "kl":
            losses.append(sum(p * (p.log() - q.log()) for p, q in zip(theirs.softmax(0), mine.softmax(0), strict=True)))
        else:
            losses.append(((mine[0] - mine[1:]) - (theirs[0] - theirs[1:])).square().mean())
    found = distillation(own, taught, loss)
    expected = sum(each.item() for each in losses) / max(1, len(losses))
    assert math.isclose(found.item(), expected, rel_tol=1e-9, abs_tol=1e-12)
    (gradient,) = torch.autograd.grad(found, own)
    assert torch.isfinite(gradient).all()
    assert (gradient[absent | unknown] == 0).all()


class Columns(nn.Module):
    """Stands for a model whose vectors of each column are given."""

    def __init__(self, columns: list[Tensor]) -> None:
        super().__init__()
        self._columns = columns

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"sentence_embedding": self._columns[int(features["place"])]}

    def get_embedding_dimension(self) -> int:
        return self._columns[0].shape[1]


class Masked:
    """Cosines of the library's calls, one for each direction in its order, -inf for what we mask."""

    def __init__(self, directions: Iterable[str], masked: Tensor, absent: Tensor) -> None:
        size, count = absent.shape
        itself = torch.eye(size, dtype=torch.bool)
        pairs, alike = masked & ~itself, (masked | masked.T) & ~itself
        own = torch.cat([~itself | absent[:, place, None] for place in range(count)], dim=1)
        every = {
            ALL[0]: torch.cat([pairs, own], dim=1),
            ALL[2]: alike,
            ALL[1]: pairs,
            ALL[3]: torch.cat([alike, torch.ones_like(own)], dim=1).T,
        }
        self._masks = cycle([mask for name, mask in every.items() if name in directions])

    def __call__(self, first: Tensor, second: Tensor) -> Tensor:
        return cos_sim(first, second).masked_fill(next(self._masks), -torch.inf)


def test_terms_that_need_vectors_or_a_teacher_do_not_do_without() -> None:
    scores, nothing = torch.zeros(2, 2), torch.zeros(2, 2, dtype=torch.bool)
    with pytest.raises(ValueError, match="needs a teacher's scores"):
        info_nce(scores, nothing, torch.zeros(2, 0), distill=Distill())
    with pytest.raises(ValueError, match="need vectors"):
        info_nce(scores, nothing, torch.zeros(2, 0), terms=Terms(hardness_strength=1))
