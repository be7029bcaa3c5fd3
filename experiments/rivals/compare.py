"""Run arms on a set: same start models, same pairs, same number of steps."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from batchwright.core.errors import InputError
from experiments.rivals.arms import ARMS, known, margin
from experiments.rivals.encoders import Kind, Tokens, build, tokenise
from experiments.rivals.orders import steps
from experiments.rivals.runs import Run, Runs
from experiments.rivals.sets import HeldOut, PairSet, Training
from experiments.rivals.training import Batch, best_documents, embed, ndcg, train

Places = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Texts:
    """Where the texts of the training pairs and of the held-out collection are among ``tokens``."""

    tokens: Tokens
    pairs: tuple[Places, Places]
    held_out: tuple[Places, Places]


def compare(pairs: PairSet, runs: Runs, arms: Sequence[str], kind: Kind, epochs: int, seeds: int) -> None:
    """Add the runs of ``arms`` that are not there yet."""
    texts = texts_of(pairs, kind)
    for arm, seed in ((arm, seed) for arm in arms for seed in range(seeds)):
        run = Run(set=pairs.name, arm=arm, kind=kind, epochs=epochs, seed=seed)
        if runs.has(run):
            continue
        model = build(kind, seed, texts.tokens)
        batches = Recorded(ARMS[arm].batches(pairs.training, epochs, seed))
        count = steps(pairs.training, epochs)
        loss = ARMS[arm].loss(pairs.training)
        torch.manual_seed(seed)  # draws what is dropped
        curve = train(model, kind, texts.pairs, islice(batches, count), count, loss, _scorer(texts, pairs.held_out))
        if len(batches.batches) < count:
            raise InputError(f"arm {arm!r}: {len(batches.batches)} batches of {count}; the set is too small for it")
        costs = {"surrogate_s": pairs.seconds, "batches_s": batches.seconds, "training_s": curve.seconds}
        runs.add(run, curve, {**costs, **describe(pairs.training, batches.batches)})
        print(
            f"{pairs.name:12} {arm:24} {seed} nDCG@10 {curve.scores[-1].mean():.4f}  {curve.seconds:.0f} s", flush=True
        )


class Recorded:
    """Iterates over an arm's batches; keeps them, and the ``seconds`` that making them took."""

    def __init__(self, batches: Iterator[Batch]) -> None:
        self._source = batches
        self.batches: list[Batch] = []
        self.seconds = 0.0

    def __iter__(self) -> Iterator[Batch]:
        while True:
            started = time.perf_counter()
            batch = next(self._source, None)
            self.seconds += time.perf_counter() - started
            if batch is None:
                return
            self.batches.append(batch)
            yield batch


def texts_of(pairs: PairSet, kind: Kind) -> Texts:
    """Tokenise each different text of a set once."""
    columns = (pairs.training.queries, pairs.training.documents, pairs.held_out.queries, pairs.held_out.documents)
    texts = sorted(set().union(*columns))
    place = {text: number for number, text in enumerate(texts)}
    queries, documents, asked, corpus = (np.array([place[text] for text in column]) for column in columns)
    return Texts(tokens=tokenise(kind, texts), pairs=(queries, documents), held_out=(asked, corpus))


def _scorer(texts: Texts, held_out: HeldOut) -> Callable[[nn.Module], NDArray[np.float32]]:
    def score(model: nn.Module) -> NDArray[np.float32]:
        queries, documents = (embed(model, rows) for rows in texts.held_out)
        return ndcg(best_documents(queries, documents), held_out.relevant)

    return score


def describe(training: Training, batches: Sequence[Batch]) -> dict[str, float]:
    """Means over the batches of the second half of training, when schedules are at their hardest.

    ``hardness`` is the mean surrogate score of negatives that are no known positives or duplicates, ``above_own`` the
    share of these that score higher than the query's own document, and ``masked`` the share of all negatives that a
    margin of .05 would mask: a measure of doubt, not what the arms mask.
    """
    rules = known(training), margin(training)
    measures = []
    for batch in batches[len(batches) // 2 :: 4]:
        scores = training.vectors.queries(batch.rows) @ training.vectors.documents(batch.rows).T
        negative = ~np.eye(len(scores), dtype=np.bool_)
        masked = rules[1](batch.rows)[negative].mean()
        honest = negative & ~rules[0](batch.rows)
        above = (scores > scores.diagonal()[:, None])[honest]
        measures.append((scores[honest].mean(), above.mean(), masked))
    return dict(zip(("hardness", "above_own", "masked"), np.mean(measures, axis=0).tolist(), strict=True))
