"""nDCG@10 of each query, by torch alone: exact search on the device, with the contexts that CDE can read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from batchwright.retrievers.cde.contextual_encoder import Context
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
        """nDCG@10 of the queries of all tests, one after the other; a biencoder reads no context."""
        arm.model.eval()
        tests, encoder = self.carried.tests, getattr(arm.learner, "encoder", None)
        contexts: Mapping[int, Context] = self._contexts(encoder.documents, reading) if encoder else {}
        found = []
        with torch.no_grad():
            for place, test in enumerate(tests):
                if encoder:
                    encoder.context = contexts.get(place)
                found.append(self._test(arm, test))
        if encoder:
            encoder.clear_context()
        arm.model.train()
        return torch.cat(found).cpu().numpy()

    def _contexts(self, count: int, reading: Reading) -> dict[int, Context]:
        tests = self.carried.tests
        if reading == "none" or not count:
            return {}
        if reading == "random":
            drawn = self._draw(np.unique(self.carried.documents), count)
            return {place: Context(drawn) for place in range(len(tests))}
        step = 0 if reading == "own" else len(tests) // 2
        return {
            place: Context(self._draw(tests[(place + step) % len(tests)].documents, count))
            for place in range(len(tests))
        }

    def _draw(self, numbers: NDArray[np.int32], count: int) -> list[str]:
        chosen = np.random.default_rng(_SEED).choice(numbers, count, replace=len(numbers) < count)
        return [self.carried.texts[number] for number in chosen]

    def _test(self, arm: Arm, test: Test) -> Tensor:
        documents, queries = (
            torch.from_numpy(each).to(self.tokens.ids.device) for each in (test.documents, test.queries)
        )
        similar = self._encode(arm, queries.long()) @ self._encode(arm, documents.long()).T
        similar[queries[:, None] == documents] = -torch.inf  # a query does not find itself
        best = similar.topk(min(DEPTH, len(documents)), dim=1).indices
        return ndcg(best, torch.from_numpy(test.relevant).to(best.device), len(queries), len(documents))

    def _encode(self, arm: Arm, numbers: Tensor) -> Tensor:
        """Unit vectors ``(n, d)`` float32 of texts, those of one length together."""
        order = self.tokens.counts[numbers].argsort()
        parts = [self._vectors(arm, self.tokens.of(part)) for part in torch.split(numbers[order], BATCH)]
        vectors = torch.empty_like(torch.cat(parts))
        vectors[order] = torch.cat(parts)
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
