"""Hard negatives, chosen by the code of the stages, and teachers that score them."""

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from batchwright.core.atomic import atomic_file
from batchwright.core.fingerprint import fingerprint
from batchwright.formats.vectors import blocks
from experiments.rivals.cross_encoder import score_with, trained_on
from experiments.rivals.masks import Rows, known_cells
from experiments.rivals.sets import Training, seen_by_minilm
from experiments.rivals.training import Batch
from stages.filter.rank import nearest
from stages.negatives.choice import Choice, Ranking, choose, draw_keys

MOST_POSITIVES = 100
"""Known positives of a query that may be among the first ranks when negatives are mined."""
Scores = NDArray[np.float32]
Score = Callable[[Training, Rows], Scores]
"""Takes pairs and each one's candidates ``(N, 1 + k)``, the rows whose documents are scored, -1 for none."""


@dataclass(frozen=True, kw_only=True)
class Teacher:
    """What scores documents; ``temperature`` divides its scores, and ``weight`` is that of what it teaches beside
    the contrastive loss."""

    score: Score
    temperature: float
    weight: float = 1.0


def with_negatives(
    choice: Choice, training: Training, seed: int, batches: Iterator[Batch], *, unasked: bool = False
) -> Iterator[Batch]:
    """The same batches with the hard negatives that our stages choose from what words rank high.

    Known positives and duplicates are none. A pair has its own document in place of those that it lacks. With
    ``unasked``, documents of pairs that are not asked may be hard negatives, too.
    """
    chosen = choose_documents(training, choice, seed, unasked=unasked)
    for batch in batches:
        own = chosen[batch.rows]
        yield replace(batch, negatives=np.where(own >= 0, own, batch.rows[:, None]).ravel())


@lru_cache(maxsize=4)
def choose_documents(training: Training, choice: Choice, seed: int, *, unasked: bool = False) -> Rows:
    """Return the rows whose documents are the hard negatives of each pair ``(N, k)``, -1 if there are fewer."""
    rows = np.arange(len(training)) if unasked else np.sort(np.concatenate(list(training.by_domain().values())))
    _, places = np.unique(training.classes[1, rows], return_index=True)
    first = rows[places]
    chosen = []
    for block in blocks(len(training)):
        asked = np.arange(len(training))[block]
        scores, ranked = nearest(
            training.vectors.queries(block), training.vectors, first, choice.depth + MOST_POSITIVES
        )
        positive = np.stack([known_cells(training, asked[[place]], own)[0] for place, own in enumerate(ranked)])
        ranking = Ranking.of(scores, ranked, positive, training.vectors.scores()[block])
        keys = draw_keys(seed, map(str, asked))
        chosen.append(choose([ranking], [np.zeros_like(positive)], choice, keys))
    negatives = np.concatenate(chosen).astype(np.int64)
    print(f"{np.mean(negatives[:, 0] >= 0):.2f} of {len(negatives)} pairs have a hard negative", flush=True)
    return negatives


def candidates_of(training: Training, choice: Choice) -> Rows:
    """Each pair and the rows of its hard negatives ``(N, 1 + k)``, -1 where there are fewer; all -1 if it has none."""
    chosen = choose_documents(training, choice, seed=0)  # other seeds differ only if the choice is a sample
    own = np.where(chosen[:, 0] >= 0, np.arange(len(training)), -1)
    return np.column_stack([own, chosen])


class Taught(NamedTuple):
    """A teacher's ``scores`` ``(N, 1 + k)`` of candidates, NaN where there is none, and the ``seconds`` they took."""

    scores: Scores
    seconds: float


@lru_cache(maxsize=4)
def taught(training: Training, choice: Choice, score: Score) -> Taught:
    """What a teacher says of ``candidates_of``, kept in the folder of the set."""
    candidates = candidates_of(training, choice)
    about = fingerprint(training.queries, training.documents, candidates.tolist())
    file = training.folder / f"{score.__name__}-{about}.npz" if training.folder else None
    if file and file.exists():
        with np.load(file) as arrays:
            return Taught(arrays["scores"], float(arrays["seconds"]))
    started = time.perf_counter()
    scores = np.where(candidates >= 0, score(training, candidates), np.float32(np.nan)).astype(np.float32)
    seconds = time.perf_counter() - started
    print(f"{score.__name__}: {seconds:.0f} s, ranks {ranks_first(scores):.2f} of the documents first", flush=True)
    if file:
        with atomic_file(file) as temporary, temporary.open("wb") as handle:
            np.savez(handle, scores=scores, seconds=np.float64(seconds))
    return Taught(scores, seconds)


def ranks_first(scores: Scores) -> float:
    """The share of queries whose document, the first of each row, scores higher than its hard negatives."""
    others = scores[np.isfinite(scores[:, 0])]
    return float(np.mean(others[:, 0] > np.nanmax(others[:, 1:], axis=1)))


def score_with_minilm(training: Training, candidates: Rows) -> Scores:
    """Cosines of MiniLM as it is."""
    vectors, every = seen_by_minilm(training).vectors, slice(None)
    scores: Scores = np.einsum("nd,nkd->nk", vectors.queries(every), vectors.documents(every)[candidates])
    return scores


def score_alike(_: Training, candidates: Rows) -> Scores:
    """The same for all: what a teacher that knows nothing says."""
    return np.zeros(candidates.shape, np.float32)


def score_with_cross_encoder(training: Training, candidates: Rows) -> Scores:
    """Logits of a cross-encoder that is MiniLM trained for an epoch to tell these pairs from these candidates."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = training.folder or Path(temporary)
        model = trained_on(training.queries, training.documents, candidates, folder)
        return score_with(model, training.queries, training.documents, candidates)
