"""nDCG@10 of each query, by torch alone: exact search on the device, with the contexts that CDE can read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from batchwright.retrievers.cde.context import Context
from experiments.gpu.folder import Carried, Test
from experiments.gpu.training import Arm, Tokens
from trainers.common.job import training_device

DEPTH = 10
BATCH = 2048
"""Texts that are encoded at once."""
Reading = Literal["own", "another", "random", "none"]
"""The documents that CDE reads: of the test's own corpus, of a test far from it in the list, of all training pairs, or
none."""
READINGS: tuple[Reading, ...] = ("own", "another", "random", "none")
_SEED = 42  # mteb's


@dataclass(frozen=True, kw_only=True)
class Evaluator:
    """Evaluates arms on all tests; ``tokens`` are on the device."""

    carried: Carried
    tokens: Tokens

    def scores(self, arm: Arm, reading: Reading) -> NDArray[np.float32]:
        """nDCG@10 of the queries of all tests, one after the other; a biencoder reads no context.

        Where all tests have one context, or none, their texts are encoded together.
        """
        arm.model.eval()
        encoder = getattr(arm.learner, "encoder", None)
        contexts = self._contexts(encoder.documents, reading) if encoder else [None] * len(self.carried.tests)
        together = all(context is contexts[0] for context in contexts)
        found: list[Tensor] = []
        with torch.no_grad():
            for test, context in zip(self.carried.tests, contexts, strict=True):
                if encoder:
                    encoder.context = context
                if not found or not together:
                    vectors = self._encode(arm, self.carried.tests if together else [test])
                found.append(self._test(test, vectors))
        if encoder:
            encoder.clear_context()
        arm.model.train()
        scores: NDArray[np.float32] = torch.cat(found).cpu().numpy()
        return scores

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

    def _test(self, test: Test, vectors: Tensor) -> Tensor:
        documents, queries = (
            torch.from_numpy(each).to(vectors.device).long() for each in (test.documents, test.queries)
        )
        similar = vectors[queries] @ vectors[documents].T
        similar[queries[:, None] == documents] = -torch.inf  # a query does not find itself
        best = similar.topk(min(DEPTH, len(documents)), dim=1).indices
        return ndcg(best, torch.from_numpy(test.relevant).to(best.device), len(queries), len(documents))

    def _encode(self, arm: Arm, tests: Sequence[Test]) -> Tensor:
        """Unit vectors float32 of all texts, of which only those of ``tests`` are filled; one length together."""
        numbers = np.unique(np.concatenate([each for test in tests for each in (test.queries, test.documents)]))
        wanted = torch.from_numpy(numbers).to(self.tokens.ids.device).long()
        wanted = wanted[self.tokens.counts[wanted].argsort()]
        parts = [self._vectors(arm, self.tokens.of(part)) for part in torch.split(wanted, BATCH)]
        vectors = parts[0].new_zeros(len(self.tokens.counts), parts[0].shape[1])
        vectors[wanted] = torch.cat(parts)
        return vectors

    def _vectors(self, arm: Arm, features: dict[str, Any]) -> Tensor:
        with torch.autocast(training_device(), torch.bfloat16):
            vectors: Tensor = arm.model(features)["sentence_embedding"]
        return functional.normalize(vectors.float(), dim=-1)


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
