"""The interface of every retriever, and a function that loads one."""

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, Self, cast

import numpy as np
from numpy.typing import NDArray

from batchwright.core.arguments import check_lists, check_texts
from batchwright.core.atomic import CHECKSUMS, check
from batchwright.retrievers.common.model_folder import ModelInfo

Ranking = tuple[NDArray[np.int64], NDArray[np.float32]]
"""Document numbers, best first, and their scores, ``(Q, k)`` each; equal scores are ordered by number."""


class Index(Protocol):
    """Documents that can be searched."""

    def search(self, queries: Sequence[str], k: int, domains: Sequence[str] | None = None) -> Ranking:
        """Find the best ``min(k, N)`` documents for each query; ``domains`` gives the domain of each query.

        Raises:
            InputError: ``queries`` or ``domains`` is no list of texts, or ``k`` is below 1.
        """


class DenseIndex(Index, Protocol):
    """Documents with one vector each, as all variants but XTR index them."""

    def cut(self, dimension: int) -> "DenseIndex":
        """Return an index that compares vectors cut to their first ``dimension`` numbers."""


class Retriever(Protocol):
    """A model that finds documents; it adds its prefixes to texts and cuts them to its maximum length."""

    info: ModelInfo

    def index(self, documents: Sequence[str], domains: Sequence[str] | None = None) -> Index:
        """Encode documents and number them from 0; ``domains`` gives the domain of each document.

        Raises:
            InputError: ``documents`` or ``domains`` is no list of texts.
        """

    def score(
        self, queries: Sequence[str], documents: Sequence[Sequence[str]], domain: str | None = None
    ) -> NDArray[np.float32]:
        """Score the documents given for each query, ``(n,)``, one query after the other; all are of one ``domain``.

        Scores are cosines. XTR takes the mean, over the query's tokens, of the largest among all tokens of a document.

        Raises:
            InputError: these are no lists of texts.
        """


class DiskRetriever(Retriever, Protocol):
    """A retriever whose indexes may not fit into memory, as those of XTR."""

    def index_on_disk(self, documents: Sequence[str], folder: Path, domains: Sequence[str] | None = None) -> Index:
        """``index``, with what takes much room in files in ``folder``, which must outlive it."""


class Given(NamedTuple):
    """The different ``texts`` of documents given for queries; ``places`` and ``owners`` ``(n,)`` are their numbers, and
    those of the queries.
    """

    texts: list[str]
    places: NDArray[np.int64]
    owners: NDArray[np.int64]

    @classmethod
    def of(cls, queries: Sequence[str], documents: Sequence[Sequence[str]]) -> Self:
        """Number the texts in the order in which they come first.

        Raises:
            InputError: ``documents`` is no list of texts for each of ``queries``.
        """
        check_texts("queries", queries)
        check_lists("documents", documents, len(queries))
        numbers: dict[str, int] = {}
        places = [numbers.setdefault(text, len(numbers)) for own in documents for text in own]
        owners = np.repeat(np.arange(len(documents)), [len(own) for own in documents])
        return cls(list(numbers), np.array(places, np.int64), owners)


def load_retriever(folder: Path | str, info: ModelInfo | None = None) -> Retriever:
    """Load the model in ``folder``, described by ``info`` or, by default, by the folder's ``batchwright.json``.

    Raises:
        InputError: the folder does not contain such a model, or the model is damaged.
    """
    info = info or ModelInfo.read(Path(folder))
    for file in Path(folder).rglob("*"):
        if file.is_file() and file.name != CHECKSUMS and file.suffix != ".md":  # cards may be edited
            check(file, most_bytes=None)
    package = importlib.import_module(f"batchwright.retrievers.{info.variant}")
    return cast(Retriever, package.load(Path(folder), info))
