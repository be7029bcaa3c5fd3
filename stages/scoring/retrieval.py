"""Trained models and start models as systems to score."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from batchwright.retrievers import load_retriever
from stages.scoring.collection import Collection
from stages.scoring.measures import DEPTH
from stages.scoring.scores import System


def model_system(folder: Path) -> System:
    """Return a system that searches with the retriever in ``folder``, which it loads again for each collection."""

    def rank(collection: Collection) -> NDArray[np.int64]:
        queries, documents = collection.queries, collection.documents
        index = load_retriever(folder).index([each.text for each in documents], [each.domain for each in documents])
        return index.search([each.text for each in queries], DEPTH, [each.domain for each in queries])[0]

    return rank
