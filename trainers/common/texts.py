"""A batch's texts as a model reads them, prepared before the model is."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from batchwright.training.batches import TrainBatch
from trainers.common.passes.groups import Features, Group, group_texts


class BatchTexts(NamedTuple):
    """A batch, and its texts on this rank in groups: queries, and documents followed by their hard negatives."""

    batch: TrainBatch
    queries: list[Group]
    documents: list[Group]


def prepare_texts(
    batch: TrainBatch,
    query: Callable[[list[str]], Features],
    document: Callable[[list[str]], Features],
    most: int,
) -> BatchTexts:
    """Group the batch's texts, at most ``most`` in a group; ``query`` and ``document`` make model inputs of them."""
    queries, documents = text_numbers(batch)
    return BatchTexts(
        batch,
        group_texts(query, batch.queries, queries, most),
        group_texts(document, batch.documents + batch.negatives, documents, most),
    )


def text_numbers(batch: TrainBatch) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The numbers of the rank's queries, and of its documents and hard negatives, among all texts of the batch.

    Of B rows, row r's query is r, its document B + r, and its hard negatives 2B + r, 3B + r, ...
    """
    rows = np.arange(batch.size)[batch.rows]
    counts = batch.negative_counts[batch.rows]
    nth = np.concatenate([np.arange(0), *(np.arange(count) for count in counts)])
    negatives = (2 + nth) * batch.size + np.repeat(rows, counts)
    return rows, np.concatenate([batch.size + rows, negatives])
