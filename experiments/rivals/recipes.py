"""Recipes that go on from ours: clusters by a model that the pairs have trained, and batches that are hard in part."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

import faiss
import numpy as np
from numpy.typing import NDArray

from experiments.rivals.encoders import build, tokenise_once
from experiments.rivals.orders import HARD, ORDERS, grouped, groups_by_domain, steps, with_hard
from experiments.rivals.sets import Training
from experiments.rivals.training import Batch, Loss, embed, pairs_only, train
from experiments.rivals.tuning import first_settings

EPOCHS = 4
NEAREST = 20
"""How many documents a query's confusion looks at; duplicates of its own are passed over."""


def clustered_by_the_model(loss: Loss, training: Training, epochs: int, seed: int) -> Iterator[Batch]:
    """Our batches with the clusters of a model that the pairs have trained (``seen_by_trained``)."""
    return grouped([0.0, HARD], seen_by_trained(loss, training), epochs, seed)


def hard_in_part(loss: Loss | None, training: Training, epochs: int, seed: int) -> Iterator[Batch]:
    """Our batches, of which only half of the clusters stay; the pairs of the others are drawn at random.

    Which ones stay is drawn; with a ``loss``, it is those whose queries a model that it trained confuses most.
    """
    doubt = np.zeros(len(training), np.float32) if loss is None else confusion(seen_by_trained(loss, training))
    return with_hard(
        lambda batches, epoch: mix(batches, doubt, training, np.random.default_rng([seed, epoch, 4])),
        *(training, epochs, seed),
    )


def mix(batches: list[Batch], doubt: NDArray[np.float32], training: Training, rng: np.random.Generator) -> list[Batch]:
    """The same pairs in other batches: half of each domain's clusters stay together, those of the most ``doubt``."""
    mixed: list[Batch] = []
    for rows, groups in groups_by_domain(batches, training):
        drawn = rng.permutation(len(rows))  # of equal doubt, at random
        order = drawn[np.argsort(-doubt[rows].mean(axis=1)[drawn], kind="stable")]
        hard, loose = rng.permutation(order[: len(rows) // 2]), order[len(rows) // 2 :]
        alone = -1 - np.arange(rows[loose].size)  # each of these pairs is a group of its own
        parts = rows[hard], rng.permutation(rows[loose].ravel()), groups[hard], alone
        cut = (part.reshape(-1, training.batch // 2) for part in parts)
        for near, far, together, apart in zip(*cut, strict=True):
            mixed.append(Batch(rows=np.concatenate([near, far]), groups=np.concatenate([together, apart])))
    return [mixed[place] for place in rng.permutation(len(mixed))]


def confusion(training: Training) -> NDArray[np.float32]:
    """By how much the best document that is not a query's own scores more than it, ``(N,)``."""
    rows = np.arange(len(training))
    queries, documents = training.vectors.queries(rows), training.vectors.documents(rows)
    scores, near = faiss.knn(queries, documents, min(NEAREST, len(rows)), metric=faiss.METRIC_INNER_PRODUCT)
    same = training.classes[1][near] == training.classes[1][:, None]
    best: NDArray[np.float32] = np.where(same, -1, scores).max(axis=1) - training.vectors.scores()
    return best


@lru_cache(maxsize=2)
def seen_by_trained(loss: Loss, training: Training) -> Training:
    """The same pairs with the vectors of a static model that ``loss`` trained on random batches of them."""
    tokens, (queries, documents) = tokenise_once("static", training.queries, training.documents)
    count = steps(training, EPOCHS)
    model = build("static", 0, tokens)
    batches = islice(pairs_only(ORDERS["random"](training, EPOCHS, 0)), count)
    at = first_settings("static")
    train(model, "static", (queries, documents), batches, count, loss, at, lambda _: np.zeros(1, np.float32), points=1)
    vectors = np.concatenate([embed(model, queries), embed(model, documents)]).astype(np.float16)
    return training.seen_as(vectors)
