"""XTR's scores by definition, in loops, and random tokens to score."""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from trainers.xtr.scores import Tokens


def looped(queries: Tokens, documents: Tokens, k: int | None) -> Tensor:
    """Scores ``(B, N)`` token by token."""
    values = torch.zeros(len(queries.vectors), len(documents.vectors), dtype=torch.float64)
    for b, (query, there) in enumerate(zip(*queries, strict=True)):
        found: dict[int, list[float]] = {}
        for vector in query[there].double():
            pool = [
                (float(vector @ token), n)
                for n, (document, present) in enumerate(zip(*documents, strict=True))
                for token in document[present].double()
            ]
            similarities = sorted((similarity for similarity, _ in pool), reverse=True)
            last = similarities[-1 if k is None else min(k, len(pool)) - 1] if pool else 0.0
            retrieved: dict[int, float] = {}
            for similarity, n in pool:
                if similarity >= last:
                    retrieved[n] = max(similarity, retrieved.get(n, similarity))
            for n, similarity in retrieved.items():
                found.setdefault(n, []).append(similarity)
        for n, maxima in found.items():
            values[b, n] = sum(maxima) / len(maxima)
    return values


def random_tokens(generator: torch.Generator, texts: int, length: int, width: int = 6) -> Tokens:
    """Unit vectors in float64, each text padded at random; padding holds arbitrary vectors."""
    vectors = functional.normalize(torch.randn(texts, length, width, generator=generator, dtype=torch.float64), dim=-1)
    lengths = torch.randint(1, length + 1, (texts, 1), generator=generator)
    return Tokens(vectors, (torch.arange(length) < lengths).numpy())


def tokens(*texts: list[list[float]]) -> Tokens:
    """Texts of one length, given token by token."""
    vectors = torch.tensor(texts, dtype=torch.float64)
    return Tokens(vectors, np.ones(vectors.shape[:2], np.bool_))
