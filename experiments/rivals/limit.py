"""What negatives can bring at most, at equal steps: random batches whose queries have all documents as negatives."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from experiments.rivals.library import TEMPERATURE
from experiments.rivals.masks import known_cells
from experiments.rivals.ours import ours
from experiments.rivals.pairs import Training
from experiments.rivals.training import Batch, Loss


def all_documents(training: Training, epochs: int, seed: int) -> Iterator[Batch]:
    """Our random batches, with one pair of each document as a further negative."""
    _, first = np.unique(np.array(training.documents), return_index=True)
    return (Batch(rows=rows, negatives=first) for rows in ours([0.0], training, epochs, seed))


def all_documents_loss(training: Training) -> Loss:
    """InfoNCE over the own document and all others that are not known to answer the query."""
    _, first = np.unique(np.array(training.documents), return_index=True)

    def loss(queries: Tensor, documents: Tensor, batch: Batch) -> Tensor:
        rows = batch.rows
        own, others = documents[: len(rows)], documents[len(rows) :]
        scores = torch.cat([(queries * own).sum(1, keepdim=True), queries @ others.T], dim=1) / TEMPERATURE
        answers = torch.from_numpy(known_cells(training, rows, first)).to(queries.device)
        scores[:, 1:] = scores[:, 1:].masked_fill(answers, -torch.inf)
        return torch.nn.functional.cross_entropy(scores, scores.new_zeros(len(rows), dtype=torch.int64))

    return loss
