"""nDCG@10 of each query, by torch alone: exact search on the device, with what a variant can be asked with."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import MultiVectorEncoder
from torch import Tensor
from torch.nn import functional

from batchwright.retrievers.cde.context import Context
from batchwright.retrievers.xtr.model import Task
from experiments.gpu.arms import Reading
from experiments.gpu.folder import Carried, Test
from experiments.gpu.training import Arm, Tokens
from trainers.common.job import training_device
from trainers.xtr.learner import embed_tokens

DEPTH = 10
BATCH = 2048
"""Texts that are encoded at once."""
RETRIEVED = 1000
"""Tokens that a query's token retrieves, XTR's k'."""
SIMILARITIES = 1 << 27
"""Similarities of tokens in memory at once."""
_SEED = 42  # mteb's


@dataclass(frozen=True, kw_only=True)
class Evaluator:
    """Evaluates arms on all tests; ``tokens`` are on the device."""

    carried: Carried
    tokens: Tokens

    def scores(self, arm: Arm, reading: Reading) -> NDArray[np.float32]:
        """nDCG@10 of the queries of all tests, one after the other."""
        arm.model.eval()
        with torch.no_grad():
            rank = self._by_tokens if arm.settings.recipe.variant == "xtr" else self._by_vectors
            found = [
                self._ndcg(test, similar) for test, similar in zip(self.carried.tests, rank(arm, reading), strict=True)
            ]
        arm.model.train()
        scores: NDArray[np.float32] = torch.cat(found).cpu().numpy()
        return scores

    def _by_vectors(self, arm: Arm, reading: Reading) -> Iterator[Tensor]:
        """Scores ``(Q, N)`` of each test; only CDE reads a context.

        Where all tests have one context, or none, their texts are encoded together.
        """
        encoder = getattr(arm.learner, "encoder", None)
        contexts = self._contexts(encoder.documents, reading) if encoder else [None] * len(self.carried.tests)
        together = all(context is contexts[0] for context in contexts)
        vectors: Tensor | None = None
        for test, context in zip(self.carried.tests, contexts, strict=True):
            if encoder:
                encoder.context = context
            if vectors is None or not together:
                vectors = self._encode(arm, self.carried.tests if together else [test])
            queries, documents = (self._numbers(each) for each in (test.queries, test.documents))
            yield vectors[queries] @ vectors[documents].T
        if encoder:
            encoder.clear_context()

    def _by_tokens(self, arm: Arm, reading: Reading) -> Iterator[Tensor]:
        """Scores ``(Q, N)`` of each test by tokens."""
        for test in self.carried.tests:
            queries = self._encode_tokens(arm, self._numbers(test.queries), "query")
            documents = self._encode_tokens(arm, self._numbers(test.documents), "document")
            yield token_scores(queries, documents, RETRIEVED if reading == "retrieved" else None)

    def _contexts(self, count: int, reading: Reading) -> Sequence[Context | None]:
        """What to read with each test."""
        tests = self.carried.tests
        if reading == "none" or not count:
            return [None] * len(tests)
        if reading == "random":
            return [Context(self._draw(np.unique(self.carried.documents), count))] * len(tests)
        step = 0 if reading == "own" else len(tests) // 2
        return [Context(self._draw(tests[(place + step) % len(tests)].documents, count)) for place in range(len(tests))]

    def _draw(self, numbers: NDArray[np.int32], count: int) -> list[str]:
        chosen = np.random.default_rng(_SEED).choice(numbers, count, replace=len(numbers) < count)
        return [self.carried.texts[number] for number in chosen]

    def _ndcg(self, test: Test, similar: Tensor) -> Tensor:
        documents, queries = self._numbers(test.documents), self._numbers(test.queries)
        similar[queries[:, None] == documents] = -torch.inf  # a query does not find itself
        best = similar.topk(min(DEPTH, len(documents)), dim=1).indices
        return ndcg(best, torch.from_numpy(test.relevant).to(best.device), len(queries), len(documents))

    def _numbers(self, numbers: NDArray[np.int32]) -> Tensor:
        return torch.from_numpy(numbers).to(self.tokens.ids.device).long()

    def _encode(self, arm: Arm, tests: Sequence[Test]) -> Tensor:
        """Unit vectors float32 of all texts, of which only those of ``tests`` are filled; one length together."""
        numbers = np.unique(np.concatenate([each for test in tests for each in (test.queries, test.documents)]))
        wanted = self._numbers(numbers)
        wanted = wanted[self.tokens.counts[wanted].argsort()]
        parts = [self._vectors(arm, self.tokens.of(part)) for part in torch.split(wanted, BATCH)]
        vectors = parts[0].new_zeros(len(self.tokens.counts), parts[0].shape[1])
        vectors[wanted] = torch.cat(parts)
        return vectors

    def _vectors(self, arm: Arm, features: dict[str, Any]) -> Tensor:
        with torch.autocast(training_device(), torch.bfloat16):
            vectors: Tensor = arm.model(features)["sentence_embedding"]
        return functional.normalize(vectors.float(), dim=-1)

    def _encode_tokens(self, arm: Arm, numbers: Tensor, task: Task) -> Tensor:
        """Vectors ``(n, l, d)`` of the tokens of texts; those that are absent are zero."""
        length = int(self.tokens.counts[numbers].max())
        with torch.autocast(training_device(), torch.bfloat16):
            parts = [
                embed_tokens(cast(MultiVectorEncoder, arm.model), self.tokens.of(part), task, length)
                for part in torch.split(numbers, BATCH)
            ]
        return torch.cat(parts)


def token_scores(queries: Tensor, documents: Tensor, retrieved: int | None) -> Tensor:
    """Scores ``(Q, N)`` of documents by their tokens ``(N, m, d)`` that are most similar to queries' ``(Q, l, d)``.

    With ``retrieved``, each of a query's tokens retrieves as many, and what it did not retrieve counts as the last one
    (*XTR*, eq. 4): no document's best token is less similar than that. Vectors that are zero are absent.
    """
    absent = ~documents.any(dim=2)
    scores = documents.new_zeros(len(queries), len(documents))
    step = max(1, SIMILARITIES // (queries.shape[1] * absent.numel()))
    for place in range(0, len(queries), step):
        of, tokens = queries[place : place + step].any(dim=2).nonzero(as_tuple=True)
        similar = torch.einsum("pd,nmd->pnm", queries[place + of, tokens], documents)
        similar = similar.masked_fill(absent, -torch.inf)
        best = similar.amax(dim=2)
        if retrieved is not None and retrieved < int((~absent).sum()):
            best = best.maximum(similar.flatten(1).topk(retrieved, dim=1).values[:, -1:])
        scores.index_add_(0, place + of, best)
    return scores


def ndcg(best: Tensor, relevant: Tensor, queries: int, documents: int) -> Tensor:
    """nDCG of the ``best`` documents ``(Q, k)``, first ones first, given ``relevant`` ``(R, 3)``, as ``(Q,)``."""
    gains = torch.zeros(queries, documents, device=best.device)
    gains[relevant[:, 0].long(), relevant[:, 1].long()] = relevant[:, 2].float()
    discounts = 1 / torch.log2(torch.arange(DEPTH, device=best.device) + 2.0)
    found = (gains.gather(1, best) * discounts[: best.shape[1]]).sum(dim=1)
    ideal = gains.topk(min(DEPTH, documents), dim=1).values
    return found / (ideal * discounts[: ideal.shape[1]]).sum(dim=1).clamp(min=1e-9)


def queries_of(tests: Sequence[Test]) -> NDArray[np.int32]:
    """The test of each query."""
    return np.repeat(np.arange(len(tests), dtype=np.int32), [len(test.queries) for test in tests])
