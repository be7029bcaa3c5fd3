"""Hard negatives that sentence-transformers mines, from the surrogate's vectors that are already there."""

from collections.abc import Iterator
from contextlib import redirect_stderr
from io import StringIO
from typing import Any

import numpy as np
from datasets import Dataset
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import mine_hard_negatives

from experiments.rivals.encoders import start_model
from experiments.rivals.library import sampled
from experiments.rivals.pairs import Training
from experiments.rivals.training import Batch

RELATIVE_MARGIN = 0.05


class Remembered(SentenceTransformer):
    """A model that answers with the vectors of the training pairs that are already there."""

    def remember(self, training: Training) -> "Remembered":
        """Take over the vectors of ``training``."""
        rows = slice(None)
        self.of_queries = dict(zip(training.queries, training.vectors.queries(rows), strict=True))
        self.of_documents = dict(zip(training.documents, training.vectors.documents(rows), strict=True))
        return self

    def encode_query(self, inputs: list[str], **_: Any) -> NDArray[np.float32]:  # type: ignore[override]
        """Vectors of queries."""
        return np.stack([self.of_queries[text] for text in inputs])

    def encode_document(self, inputs: list[str], **_: Any) -> NDArray[np.float32]:  # type: ignore[override]
        """Vectors of documents."""
        return np.stack([self.of_documents[text] for text in inputs])


def mined(training: Training, _: int, seed: int) -> Iterator[Batch]:
    """Random batches of pairs with one mined hard negative each, the best-ranked within the relative margin.

    Pairs for which the library finds none are left out, as it does.
    """
    pairs = Dataset.from_dict({"anchor": training.queries, "positive": training.documents})
    with redirect_stderr(StringIO()):
        found = mine_hard_negatives(
            pairs,
            Remembered(modules=list(start_model("minilm", 0)), device="cpu").remember(training),
            relative_margin=RELATIVE_MARGIN,
            num_negatives=1,
            use_faiss=True,
            output_format="n-tuple",
            verbose=False,
        )
    print(f"mine_hard_negatives leaves out {len(pairs) - len(found)} of {len(pairs)} pairs", flush=True)
    row_of = {pair: row for row, pair in enumerate(zip(training.queries, training.documents, strict=True))}
    row_of_document = {text: row for row, text in enumerate(training.documents)}
    rows = np.array([row_of[pair] for pair in zip(found["anchor"], found["positive"], strict=True)])
    negatives = np.array([row_of_document[text] for text in found["negative_1"]])
    for batch in sampled(found, seed):
        yield Batch(rows=rows[batch], negatives=negatives[batch])


def minable(training: Training, epochs: int, seed: int) -> Iterator[Batch]:
    """The same batches without the mined negatives: what leaving out the other pairs does."""
    return (Batch(rows=batch.rows) for batch in mined(training, epochs, seed))
