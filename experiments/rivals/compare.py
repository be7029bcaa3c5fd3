"""Run arms on a set: same start models, same pairs, same number of steps."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from batchwright.core.errors import InputError
from batchwright.formats.vectors import PairVectors
from experiments.rivals.arms import ARMS, Arm
from experiments.rivals.encoders import Kind, Tokens, build, tokenise
from experiments.rivals.hardness import describe
from experiments.rivals.held_out import HeldOut
from experiments.rivals.pairs import PairSet, Training
from experiments.rivals.runs import Run, Runs
from experiments.rivals.scoring import best_documents, ndcg
from experiments.rivals.streams import steps
from experiments.rivals.training import Batch, embed, train

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
        made = Made(ARMS[arm].batches(_watched(pairs.training, ARMS[arm], model, texts), epochs, seed))
        count = steps(pairs.training, epochs)
        loss = ARMS[arm].loss(pairs.training)
        torch.manual_seed(seed)  # draws what is dropped
        curve = train(model, kind, texts.pairs, islice(made, count), count, loss, _scorer(texts, pairs.held_out))
        if len(made.batches) < count:
            raise InputError(f"arm {arm!r}: {len(made.batches)} batches of {count}; the set is too small for it")
        costs = {"surrogate_s": pairs.seconds, "batches_s": made.seconds, "training_s": curve.seconds}
        runs.add(run, curve, {**costs, **describe(pairs.training, made.batches)})
        print(
            f"{pairs.name:12} {arm:24} {seed} nDCG@10 {curve.scores[-1].mean():.4f}  {curve.seconds:.0f} s", flush=True
        )


class Made:
    """Iterates over batches; keeps those that were made, and the ``seconds`` that making them took."""

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


def _watched(training: Training, arm: Arm, model: nn.Module, texts: Texts) -> Training:
    """``training``, with the model's vectors if the arm asks for them; others get it as it is, since caches know it."""

    def current() -> PairVectors:
        vectors = np.concatenate([embed(model, places) for places in texts.pairs]).astype(np.float16)
        return PairVectors(vectors=vectors, rows=np.arange(len(vectors)).reshape(2, -1))

    return replace(training, current=current) if arm.watches else training


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
