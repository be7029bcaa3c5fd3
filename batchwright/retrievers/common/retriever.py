"""What every retriever offers, and how to load one."""

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from batchwright.retrievers.common.info import ModelInfo

Ranking = tuple[NDArray[np.int64], NDArray[np.float32]]
"""Numbers of documents, best first, and their scores, ``(Q, k)`` each; equal scores are ordered by number."""


class Index(Protocol):
    """Documents that can be searched."""

    def search(self, queries: Sequence[str], k: int, domains: Sequence[str] | None = None) -> Ranking:
        """The best ``min(k, N)`` documents for each query; ``domains`` names the queries' domains."""


class Retriever(Protocol):
    """A model that finds documents. It puts its prefixes before texts and cuts them to its maximum length."""

    info: ModelInfo

    def index(self, documents: Sequence[str], domains: Sequence[str] | None = None) -> Index:
        """Encode documents, numbered from 0; ``domains`` names the domain of each."""


def load_retriever(folder: Path | str, info: ModelInfo | None = None) -> Retriever:
    """Load the model in ``folder``; without ``info``, the folder's ``batchwright.json`` describes it.

    Raises:
        InputError: the folder holds no such model, or it is damaged.
    """
    info = info or ModelInfo.read(Path(folder))
    package = importlib.import_module(f"batchwright.retrievers.{info.variant}")
    return cast(Retriever, package.load(Path(folder), info))
