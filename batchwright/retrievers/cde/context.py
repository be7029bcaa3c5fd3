"""Context: the documents of a corpus that texts are read with.

This file is saved with models, so it must not import this project.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor


@dataclass
class Context:
    """Documents to read texts with. What stage 2 reads of them is computed when needed, and again for new weights."""

    texts: list[str]
    prepared: Tensor | None = None
    weights: object = None


def draw(corpus: Sequence[str], count: int, seed: int, prompt: str) -> Context:
    """Draw ``count`` documents as mteb's wrapper does for the published models, and put ``prompt`` before each.

    Without replacement, or with replacement if the corpus is smaller.

    Raises:
        ValueError: the corpus is empty, or one text.
    """
    if isinstance(corpus, str):
        raise ValueError("fit_context: the corpus is one text; pass a list of documents")
    if not len(corpus):
        raise ValueError("fit_context: the corpus is empty; pass documents, or do not call it to encode without")
    chosen = np.random.default_rng(seed).choice(len(corpus), count, replace=len(corpus) < count)
    return Context([prompt + corpus[row] for row in chosen.tolist()])
