"""Losses of a batch, computed from the scores of its queries and documents."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from batchwright.formats.loss_options import Direction, Distillation, HardnessMode, LossOptions, PartitionMode


class Outcome(NamedTuple):
    """The mean loss, and the accuracy: the share of queries whose positive outscores all their negatives.

    ``measures`` are additional columns of the training curve, by name; every step must have the same ones.
    """

    loss: Tensor
    accuracy: Tensor
    measures: Mapping[str, Tensor] = {}


class Vectors(NamedTuple):
    """Unit vectors ``(B, d)`` of a batch's queries and documents, and what divides their inner products."""

    queries: Tensor
    documents: Tensor
    temperature: float


@dataclass(frozen=True, kw_only=True)
class Terms:
    """Options of InfoNCE, as in sentence-transformers' MultipleNegativesRankingLoss.

    ``directions``: what a pair's score is compared with beside the query's scores with other documents. With
    ``partition_mode`` joint, all are in one sum; otherwise the loss is the mean of one for each direction. The cosines
    of the negatives that ``hardness_mode`` names count ``hardness_strength`` times more, without gradient.
    """

    directions: tuple[Direction, ...] = ("query_to_document",)
    partition_mode: PartitionMode = "joint"
    hardness_mode: HardnessMode = "all_negatives"
    hardness_strength: float = 0


PLAIN = Terms()
"""Each query's scores with documents, and nothing else."""


@dataclass(frozen=True, kw_only=True)
class Distill:
    """What is learned from a teacher, whose scores are divided by ``temperature``.

    Its ``loss`` counts ``weight`` times beside InfoNCE; None: it alone.
    """

    loss: Distillation = "kl"
    weight: float | None = 1
    temperature: float = 1


class Objective(Protocol):
    """A loss as a function of four tensors, of the vectors that they come from, and of a teacher's scores."""

    def __call__(
        self,
        scores: Tensor,
        masked: Tensor,
        negative_scores: Tensor,
        stands_for: Tensor | None,
        vectors: Vectors | None,
        taught: Tensor | None,
        *,
        weights: Tensor | None = None,
    ) -> Outcome:
        """Compute the loss.

        Args:
            scores: ``(B, B)``, with the positives on its diagonal.
            masked: ``(B, B)`` bool, True for false negatives; its diagonal is ignored.
            negative_scores: ``(B, K)``, the scores of each row's own hard negatives, -inf if absent.
            stands_for: ``(B, B)``, how many documents document j stands for as a negative of query i; None: itself
                alone.
            vectors: What the scores come from, if anybody asks.
            taught: ``(B, 1 + K)``, a teacher's scores of each row's document and hard negatives, NaN where it has none.
            weights: ``(B,)``, what each row's term in the loss is multiplied by; None: 1.
        """


def info_nce(
    scores: Tensor,
    masked: Tensor,
    negative_scores: Tensor,
    stands_for: Tensor | None = None,
    vectors: Vectors | None = None,
    taught: Tensor | None = None,
    *,
    weights: Tensor | None = None,
    terms: Terms = PLAIN,
    distill: Distill | None = None,
) -> Outcome:
    """InfoNCE: cross-entropy of each row's positive among the unmasked documents and the row's own hard negatives.

    *Contextual Document Embeddings* (arXiv 2410.02525), equation 4. With ``stands_for`` it estimates the cross-entropy
    over a whole collection from the few documents in the batch: the logarithm is added to their scores (sampled
    softmax, Bengio and Senecal, 2008). ``terms`` other than the default ones need ``vectors``. A masked pair (i, j) is
    masked in both directions, and so are queries i and j, and documents i and j, among themselves. With ``distill``,
    what ``taught`` teaches is added (``distillation``). ``weights`` ``(B,)`` multiply the rows' terms, before the mean.
    """
    outcome = _contrast(scores, masked, negative_scores, stands_for, vectors, terms, weights)
    if distill is None:
        return outcome
    if taught is None:
        raise ValueError("distill needs a teacher's scores")
    own = torch.cat([scores.diagonal()[:, None], negative_scores], dim=1)
    loss = distillation(own, taught / distill.temperature, distill.loss, weights)
    return outcome._replace(loss=loss if distill.weight is None else outcome.loss + distill.weight * loss)


def _contrast(
    scores: Tensor,
    masked: Tensor,
    negative_scores: Tensor,
    stands_for: Tensor | None,
    vectors: Vectors | None,
    terms: Terms,
    weights: Tensor | None,
) -> Outcome:
    compared = _compared(scores, masked, negative_scores)
    counted = compared if stands_for is None else _compared(scores + stands_for.log(), masked, negative_scores)
    pairs = torch.arange(len(scores), device=scores.device)
    if terms == PLAIN:
        return Outcome(_cross_entropy(counted, pairs, weights), _accuracy(compared))
    if vectors is None:
        raise ValueError("these terms need vectors")
    if terms.hardness_strength:
        counted = counted + _hardness(compared, terms, vectors.temperature)
    sums = [counted, *_further(scores, masked, vectors, terms.directions)]
    if terms.partition_mode == "joint":
        sums = [torch.cat(sums, dim=1)]
    losses = [_cross_entropy(each, pairs, weights) for each in sums]
    return Outcome(torch.stack(losses).mean(), _accuracy(compared))


def _cross_entropy(scores: Tensor, pairs: Tensor, weights: Tensor | None) -> Tensor:
    if weights is None:
        return functional.cross_entropy(scores, pairs)
    return (weights * functional.cross_entropy(scores, pairs, reduction="none")).mean()


def _further(scores: Tensor, masked: Tensor, vectors: Vectors, directions: Sequence[Direction]) -> Iterator[Tensor]:
    """Yield the scores ``(B, B)`` of each direction but the first, -inf for those that are masked."""
    itself = torch.eye(len(scores), dtype=torch.bool, device=scores.device)
    alike = masked | masked.T | itself
    if "document_to_query" in directions:
        yield scores.T.masked_fill(masked.T & ~itself, -torch.inf)
    if "query_to_query" in directions:
        yield (vectors.queries @ vectors.queries.T / vectors.temperature).masked_fill(alike, -torch.inf)
    if "document_to_document" in directions:
        yield (vectors.documents @ vectors.documents.T / vectors.temperature).masked_fill(alike, -torch.inf)


def _hardness(compared: Tensor, terms: Terms, temperature: float) -> Tensor:
    """What the hardness of negatives adds to the scores ``compared`` ``(B, B + K)``."""
    positive = torch.eye(*compared.shape, dtype=torch.bool, device=compared.device)
    in_batch = torch.arange(compared.shape[1], device=compared.device) < len(compared)
    chosen = torch.isfinite(compared) & ~positive
    if terms.hardness_mode != "all_negatives":
        chosen &= in_batch if terms.hardness_mode == "in_batch_negatives" else ~in_batch
    return (terms.hardness_strength * temperature * compared.detach()).where(chosen, 0)


def distillation(own: Tensor, taught: Tensor, loss: Distillation, weights: Tensor | None = None) -> Tensor:
    """How far a model's scores ``own`` are from those that it is ``taught``: the mean over queries that have both.

    Both are ``(B, 1 + K)``, a query's document before its hard negatives; scores that are not finite are left out, and
    a query needs its document and a hard negative. ``kl``: the divergence of the softmax of ``own`` from that of
    ``taught``; sentence-transformers' DistillKLDivLoss is this times its squared ``student_temperature``.
    ``margin_mse``: the mean squared difference between the margins of the document over its hard negatives, as in
    MarginMSELoss (arXiv 2010.02666). ``weights`` ``(B,)`` multiply what each query adds.
    """
    there = torch.isfinite(own.detach()) & torch.isfinite(taught)
    learns = there[:, 0] & there[:, 1:].any(dim=1)
    there &= learns[:, None]
    if loss == "kl":
        hidden = ~there & learns[:, None]
        of_taught, of_own = (
            functional.log_softmax(each.where(there, 0).masked_fill(hidden, -torch.inf), dim=1)
            for each in (taught, own)
        )
        losses = (of_taught.exp() * (of_taught - of_own)).where(there, 0).sum(dim=1)
    else:
        own, taught = own.where(there, 0), taught.where(there, 0)
        margins = (own[:, :1] - own[:, 1:]) - (taught[:, :1] - taught[:, 1:])
        losses = margins.square().where(there[:, 1:], 0).sum(dim=1) / there[:, 1:].sum(dim=1).clamp(min=1)
    return (losses if weights is None else weights * losses).sum() / learns.sum().clamp(min=1)


def objective_of(options: LossOptions) -> Objective:
    """InfoNCE with the terms and the teacher that ``options`` ask for; what ``in_batch`` decides is up to masks."""
    terms = Terms(
        directions=tuple(options.directions),
        partition_mode=options.partition_mode,
        hardness_mode=options.hardness_mode,
        hardness_strength=options.hardness_strength,
    )
    return partial(info_nce, terms=terms, distill=Distill(**options.distill.model_dump()) if options.distill else None)


def hinge(
    scores: Tensor,
    masked: Tensor,
    negative_scores: Tensor,
    stands_for: Tensor | None = None,  # noqa: ARG001
    vectors: Vectors | None = None,  # noqa: ARG001
    taught: Tensor | None = None,  # noqa: ARG001
    *,
    weights: Tensor | None = None,
    margin: float,
) -> Outcome:
    """Hinge loss: max(0, margin - (s+ - s-)), averaged over each query's negatives, then over queries.

    *Less is More* (arXiv 2102.09206), section 3. ``margin`` is in units of the scores: of cosines, if their temperature
    is 1. A query whose negatives are all masked counts as 0. Every negative counts once, whatever it stands for.
    ``weights`` ``(B,)`` multiply the queries' terms.
    """
    scores = _compared(scores, masked, negative_scores)
    positive = scores.diagonal()
    negative = torch.isfinite(scores) & ~torch.eye(*scores.shape, dtype=torch.bool, device=scores.device)
    losses = (margin - positive[:, None] + scores).clamp(min=0).where(negative, 0.0)
    of_queries = losses.sum(dim=1) / negative.sum(dim=1).clamp(min=1)
    return Outcome((of_queries if weights is None else weights * of_queries).mean(), _accuracy(scores))


def static_temperature(documents: Iterable[int]) -> float:
    """About the best temperature for a static model from scratch if negatives stand for all documents of their domain.

    Found on thirteen sets of 860 to 32,000 documents (``experiments.rivals.temperatures``): the more there are, the
    lower it is.

    Args:
        documents: How many each domain has. Of several, each document's domain counts, in the geometric mean.
    """
    counts = list(documents)
    usual = math.exp(fmean([math.log(count) for count in counts], weights=counts))
    return float(f"{0.07 * math.sqrt(math.sqrt(7000 / usual)):.2g}")


def compare(
    queries: Tensor,
    documents: Tensor,
    masked: Tensor,
    negatives: Tensor,
    absent: Tensor,
    temperature: float,
    objective: Objective = info_nce,
    stands_for: Tensor | None = None,
    dimensions: Mapping[int, float] | None = None,
    taught: Tensor | None = None,
) -> Outcome:
    """Compute ``objective`` on the inner products of unit vectors, divided by ``temperature``.

    With ``dimensions``, the loss is the sum over vectors cut to each of them and normalised again, times its weight
    (Matryoshka, arXiv 2205.13147). The accuracy is that of the largest.

    Args:
        queries: ``(B, d)``.
        documents: ``(B, d)``; row ``i`` is the positive of query ``i``.
        masked: ``(B, B)`` bool, True if document ``j`` is not a negative of query ``i``; the diagonal is ignored.
        negatives: ``(B, K, d)``, each query's own hard negatives.
        absent: ``(B, K)`` bool, True where a query has no hard negative.
        temperature: Divides all inner products.
        objective: The loss.
        stands_for: ``(B, B)``, how many documents document ``j`` stands for as a negative of query ``i``, 1 on the
            diagonal; None: each for itself.
        dimensions: The weight of each number of dimensions; None: whole vectors.
        taught: ``(B, 1 + K)``, a teacher's scores of each query's document and hard negatives, NaN where it has none.
    """
    if dimensions:
        found = {
            size: compare(
                _cut(queries, size),
                _cut(documents, size),
                masked,
                _cut(negatives, size),
                absent,
                temperature,
                objective,
                stands_for,
                taught=taught,
            )
            for size in sorted(dimensions)
        }
        weighted = [weight * found[size].loss for size, weight in sorted(dimensions.items())]
        return found[max(found)]._replace(loss=torch.stack(weighted).sum())
    scores = queries @ documents.T / temperature
    own = torch.einsum("bd,bkd->bk", queries, negatives) / temperature
    vectors = Vectors(queries, documents, temperature)
    return objective(scores, masked, own.masked_fill(absent, -torch.inf), stands_for, vectors, taught)


def _cut(vectors: Tensor, dimension: int) -> Tensor:
    return functional.normalize(vectors[..., :dimension], dim=-1)


def _compared(scores: Tensor, masked: Tensor, negative_scores: Tensor) -> Tensor:
    """Scores ``(B, B + K)`` of documents and hard negatives, -inf for those that are masked or absent."""
    diagonal = torch.eye(len(scores), dtype=torch.bool, device=scores.device)
    return torch.cat([scores.masked_fill(masked & ~diagonal, -torch.inf), negative_scores], dim=1)


@torch.no_grad()
def _accuracy(scores: Tensor) -> Tensor:
    positive = scores.diagonal()
    hardest = scores.diagonal_scatter(torch.full_like(positive, -torch.inf)).amax(dim=1)
    return (positive > hardest).float().mean()
