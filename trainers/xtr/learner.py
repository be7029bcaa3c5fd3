"""Trains XTR: its parameters, and loss and gradient of a batch from its token vectors."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from sentence_transformers import MultiVectorEncoder
from sentence_transformers.base.modules import Dense
from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask
from torch import Tensor, nn
from torch.nn import functional

from batchwright.retrievers.xtr.model import Task, save_token_model
from batchwright.retrievers.xtr.prefixes import begin_with, prefix_heads
from batchwright.training.batches import TrainBatch
from batchwright.training.losses import Objective, Outcome, objective_of
from trainers.common.distributed import gather_objects, gather_rows
from trainers.common.gradient_cache import BatchTexts, CachedForward, Passes
from trainers.common.job import TrainJob
from trainers.common.params import Common, VariantParams, refuse
from trainers.common.passes import float32_products, placed, sent
from trainers.common.sentence_learner import present_negatives, spread, stands_for, take, taught, weighted
from trainers.common.texts import Group
from trainers.common.tokenise import Tokenise
from trainers.xtr.scores import Scores, Tokens, score
from trainers.xtr.start import start_from

TASKS: tuple[Task, ...] = get_args(Task)


class Params(VariantParams):
    """Group ``train.xtr``."""

    score: Literal["xtr", "colbert"] = "xtr"
    """How training scores a batch's documents: by their retrieved tokens (``xtr``) or by all tokens (``colbert``)."""
    k: int = Field(default=1024, ge=1)
    """How many document tokens of the batch each query token retrieves. With fewer, more documents are scored by a
    single token and beat the positive (docs/xtr.md)."""
    width: int | None = Field(default=None, ge=1)
    """Projects token vectors to this many dimensions, for a smaller index; null keeps those of the start model."""

    def check(self, name: str, common: Common) -> None:
        """See ``VariantParams``."""
        why = "XTR, which has a vector for each token, not one for a text; remove it"
        refuse(name, common, ["directions", "hardness_strength", "dimensions"], why)


class TokenTexts(NamedTuple):
    """A batch's texts, and which tokens ``(n, l)`` of the rank's queries and documents have vectors."""

    texts: BatchTexts
    queries: NDArray[np.bool_]
    documents: NDArray[np.bool_]


class TokenLearner:
    """A ``trainers.common.run.Learner`` for a MultiVectorEncoder."""

    def __init__(self, job: TrainJob) -> None:
        self._job = job
        self._params = cast(Params, job.params)
        self.model: MultiVectorEncoder = start_from(job.start_model, job.info, job.loading_device, self._params.width)
        self._passes, self._tokenise = Passes(job, self.model), Tokenise(self.model)
        self._heads = prefix_heads(self.model.tokenizer, job.info.prefixes.texts())

    @property
    def fresh(self) -> Sequence[nn.Parameter]:
        """See ``Learner``."""
        new = [module for module in self.model if isinstance(module, Dense)] if self._job.info.variant != "xtr" else []
        return [each for module in new for each in module.parameters()]

    def prepare(self, batch: TrainBatch) -> TokenTexts:
        """See ``Learner``."""
        query, document = (partial(self._tokenise, side=task) for task in TASKS)
        texts = self._passes.prepare(batch, query, document)
        return TokenTexts(texts, *(self._present(groups, task) for groups, task in zip(texts[1:], TASKS, strict=True)))

    def backward(self, prepared: TokenTexts) -> Outcome:
        """See ``Learner``; uses a gradient cache, and one retrieval pool for the whole batch."""
        batch, *sides = prepared.texts
        masks = whole_masks(prepared.queries, prepared.documents, batch)
        k = self._params.k if self._params.score == "xtr" else None
        with self._passes.batch():
            queries, documents = (self._forward(batch, groups, task) for groups, task in zip(sides, TASKS, strict=True))
            objective = objective_of(self._job.common)
            return contrast_tokens(queries, documents, batch, masks, k, self._params.temperature, objective)

    def save(self, folder: Path) -> None:
        """Write a MultiVectorEncoder folder."""
        save_token_model(self.model, folder, self._job.info.prefixes.default)

    def _forward(self, batch: TrainBatch, groups: list[Group], task: Task) -> CachedForward:
        length = _longest(groups)
        return self._passes.forward(batch, lambda each: embed_tokens(self.model, each, task, length), groups)

    def _present(self, groups: list[Group], task: Task) -> NDArray[np.bool_]:
        mask = np.zeros((sum(len(group.places) for group in groups), _longest(groups)), np.bool_)
        for group in groups:
            present = present_tokens(self.model, self._heads, group.features, task)[: len(group.places)]
            mask[group.places, : present.shape[1]] = present
        return mask


def _longest(groups: list[Group]) -> int:
    return max(int(group.features["input_ids"].shape[1]) for group in groups)


def present_tokens(
    model: MultiVectorEncoder, heads: list[list[int]], features: dict[str, Any], task: Task
) -> NDArray[np.bool_]:
    """Which tokens ``(n, l)`` of model inputs have a vector: the model's own mask, but known before it runs.

    ``heads`` are the token ids with which prefixes begin.
    """
    masked = dict(features)
    for module in model:
        if isinstance(module, MultiVectorMask):
            masked = module(masked, task=task)
    prefix = begin_with(features["input_ids"], heads, cast(Any, model.tokenizer).pad_token_id)
    present: NDArray[np.bool_] = (masked["attention_mask"].bool() & ~prefix).numpy()
    return present


class Masks(NamedTuple):
    """Which tokens of a whole batch have vectors.

    Of ``queries`` ``(B, l)``, ``documents`` ``(B, m)`` and their hard negatives ``(B, K, m)``.
    """

    queries: NDArray[np.bool_]
    documents: NDArray[np.bool_]
    negatives: NDArray[np.bool_]


def whole_masks(queries: NDArray[np.bool_], documents: NDArray[np.bool_], batch: TrainBatch) -> Masks:
    """Put the masks of all ranks' texts together, padded to the longest.

    The only wait for other ranks' GPUs in a step: from here on, all shapes are known.
    """
    present = present_negatives(batch)
    own, (length,) = present[batch.rows], documents.shape[1:]
    negatives = np.zeros((*own.shape, length), np.bool_)
    negatives[own] = documents[len(batch.documents) :]
    ranks = gather_objects((queries, documents[: len(batch.documents)], negatives))
    return Masks(*(_interleaved(parts, batch.size) for parts in zip(*ranks, strict=True)))


def _interleaved(parts: Sequence[NDArray[np.bool_]], size: int) -> NDArray[np.bool_]:
    whole = np.zeros((size, *parts[0].shape[1:-1], max(part.shape[-1] for part in parts)), np.bool_)
    for rank, part in enumerate(parts):
        whole[rank :: len(parts), ..., : part.shape[-1]] = part
    return whole


def contrast_tokens(
    queries: CachedForward,
    documents: CachedForward,
    batch: TrainBatch,
    masks: Masks,
    k: int | None,
    temperature: float,
    objective: Objective,
) -> Outcome:
    """Compute ``objective`` over the whole batch, and backpropagate its gradient at this rank's rows.

    ``documents`` holds the documents of the rank's rows, followed by their hard negatives, as ``(n, l, d)`` with zero
    vectors in place of padding. Query tokens retrieve from all documents and hard negatives of the batch, on all ranks,
    as they would from an index. This pool includes masked documents and other rows' hard negatives: they are left out
    of the loss, not out of the pool.
    """
    device = queries.output.device
    present = present_negatives(batch)
    local_present = present[batch.rows]
    positives, negatives = documents.output.tensor_split([len(batch.documents)])
    local = (queries.output, positives, spread(negatives, local_present))
    lengths = [mask.shape[-1] for mask in masks]
    leaves = [_gather(rows, batch.size, length).requires_grad_() for rows, length in zip(local, lengths, strict=True)]
    masked, weights, of_teacher = sent(batch.masked, device), stands_for(batch, device), taught(batch, device)
    objective = weighted(objective, batch, device)

    def compute() -> tuple[Outcome, list[Tensor]]:
        pool = torch.cat([leaves[1], take(leaves[2], present)])
        there = np.concatenate([masks.documents, masks.negatives[present]])
        scores = score(Tokens(leaves[0], masks.queries), Tokens(pool, there), k)
        compared = _compared(scores.values / temperature, masked, present)
        outcome = objective(*compared, weights, None, of_teacher)
        gradients = [gradient[batch.rows] for gradient in torch.autograd.grad(outcome.loss, leaves)]
        return Outcome(outcome.loss.detach(), outcome.accuracy, _measures(scores)), gradients

    with float32_products(tf32=False):
        outcome, gradients = queries.memory.beside(compute)
    queries.backward(gradients[0][:, : queries.output.shape[1]])
    length = documents.output.shape[1]
    documents.backward(torch.cat([gradients[1][:, :length], take(gradients[2], local_present)[:, :length]]))
    return outcome


def _compared(scores: Tensor, masked: Tensor, present: NDArray[np.bool_]) -> tuple[Tensor, Tensor, Tensor]:
    """Arguments of the loss: document scores ``(B, B)``, their mask, and scores of own hard negatives ``(B, K)``."""
    size = len(scores)
    places = np.flatnonzero(present)
    rows = sent(places // max(present.shape[1], 1), scores.device)
    columns = torch.arange(size, size + len(places), device=scores.device)
    own = scores.new_full((present.size,), -torch.inf)
    own[sent(places, scores.device)] = scores[rows, columns]
    return scores[:, :size], masked, own.view(present.shape)


def _measures(scores: Scores) -> dict[str, Tensor]:
    """How many query tokens retrieve a token of the positive.

    ``z`` is the mean number over queries; ``missed_positives`` is the share of queries with none.
    """
    z = scores.retrieving.diagonal()
    return {"z": z.float().mean(), "missed_positives": (z == 0).float().mean()}


def _gather(local: Tensor, size: int, length: int) -> Tensor:
    """Gather the rows of all ranks, ``(size, ..., l, d)``, padded to ``length``."""
    return gather_rows(functional.pad(local, (0, 0, 0, length - local.shape[-2])), size)


def embed_tokens(model: MultiVectorEncoder, features: dict[str, Any], task: Task, length: int) -> Tensor:
    """Embed model inputs as unit vectors ``(n, length, d)``, with gradient; zero vectors mark absent tokens.

    The vectors are float32 whatever the model computes in; it has scaled them to unit length only as exactly as that.
    """
    output = model(placed(features, model.device), task=task)
    vectors = functional.normalize(output["token_embeddings"].float(), dim=-1)
    vectors = vectors.masked_fill(~output["attention_mask"].bool()[:, :, None], 0)
    padding = vectors.new_zeros(len(vectors), length - vectors.shape[1], vectors.shape[2])
    return torch.cat([vectors, padding], dim=1)
