"""Run arms on a set: same start models, same pairs, same number of steps, each arm at its own best settings."""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from batchwright.core.errors import InputError
from batchwright.training.losses import static_temperature
from experiments.rivals.arms import ARMS, document_counts
from experiments.rivals.encoders import RATES, Kind, Tokens, build, tokenise_once
from experiments.rivals.masks import known, margin
from experiments.rivals.orders import steps
from experiments.rivals.runs import Result, Run, Runs
from experiments.rivals.sets import PairSet, Training, read_set
from experiments.rivals.training import Batch, Curve, Settings, best_documents, embed, ndcg, train
from experiments.rivals.tuning import choose, first_settings

Places = NDArray[np.int64]
_cached_set = lru_cache(maxsize=1)(read_set)
"""A process compares several arms on one set."""


@dataclass(frozen=True, kw_only=True)
class Texts:
    """Where the texts of the training pairs and of the held-out collection are among ``tokens``."""

    tokens: Tokens
    pairs: tuple[Places, Places]
    held_out: tuple[Places, Places]


def embed_files(arguments: argparse.Namespace, group: tuple[str, Sequence[Path]]) -> int:
    """Make the vectors of the set of some files, unless they are there; return the number of training pairs."""
    return len(_read(arguments, group).training)


def compare_files(arguments: argparse.Namespace, job: tuple[tuple[str, Sequence[Path]], str]) -> None:
    """Compare one arm on the set of some files."""
    group, arm = job
    runs = Runs(arguments.output)
    settings = Settings(*arguments.settings) if arguments.settings else None
    compare(_read(arguments, group), runs, arm, arguments.kind, arguments.epochs, arguments.seeds, settings)


def _read(arguments: argparse.Namespace, group: tuple[str, Sequence[Path]]) -> PairSet:
    name, files = group
    return _cached_set(
        name,
        tuple(files),
        arguments.vectors,
        arguments.limit,
        unasked=arguments.unasked,
        batch=arguments.batch,
        by_group=arguments.by_group,
        seen=arguments.seen,
    )


def compare(
    pairs: PairSet, runs: Runs, arm: str, kind: Kind, epochs: int, seeds: int, settings: Settings | None = None
) -> None:
    """Train an arm once for each seed, at ``settings``, or those that are best on dev queries.

    Runs that are there already are not done again.
    """

    def score(settings: Settings) -> float:
        return _mean(result_of(pairs, runs, Run(pairs.name, arm, kind, epochs, settings, seed=0)))

    temperature = ARMS[arm].temperature
    if ARMS[arm].untuned:
        default = default_settings(pairs.training, kind)
        settings = default._replace(temperature=temperature or default.temperature)
    if settings is None:
        first = first_settings(kind, ARMS[arm].teacher, temperature)
        settings = choose(score, first, keep_temperature=temperature is not None)
    for seed in range(1, seeds + 1):
        result_of(pairs, runs, Run(pairs.name, arm, kind, epochs, settings, seed))


def default_settings(training: Training, kind: Kind) -> Settings:
    """As ``params.yaml`` has them; the rate of static models is that where all arms begin."""
    if kind == "static":
        return Settings(static_temperature(document_counts(training).values()), RATES[kind])
    return Settings(0.07, 2e-4)


def result_of(pairs: PairSet, runs: Runs, run: Run) -> Result:
    """The result of a run, which is trained unless it is there."""
    if runs.has(run):
        return runs.read(run)
    chooses = run.seed == 0
    look = scorer(pairs, run.kind, dev=chooses)
    curve, batches = train_arm(pairs, run, look, points=1 if chooses else None)
    costs = {"surrogate_s": pairs.seconds, "batches_s": batches.seconds}
    runs.add(run, curve, {**costs, **describe(pairs.training, batches.batches)})
    result = runs.read(run)
    settings = "  ".join(f"{name} {value:g}" for name, value in run.settings._asdict().items() if value is not None)
    print(
        f"{run.set:12} {run.arm:24} {run.seed}  {settings}  nDCG@10 {_mean(result):.4f}  {curve.seconds:.0f} s",
        flush=True,
    )
    return result


def train_arm(
    pairs: PairSet, run: Run, look: Callable[[nn.Module], NDArray[np.float32]], points: int | None = None
) -> tuple[Curve, "Recorded"]:
    """Train a model as ``run`` says, which ``look`` measures at ``points`` points (see ``train``); also return its
    batches.

    Raises:
        InputError: the set is too small for the arm.
    """
    texts, arm, count = texts_of(pairs, run.kind), ARMS[run.arm].at(run.settings), steps(pairs.training, run.epochs)
    batches = Recorded(arm.batches(pairs.training, run.epochs, run.seed))
    torch.manual_seed(run.seed)  # draws what is dropped
    curve = train(
        build(run.kind, run.seed, texts.tokens),
        run.kind,
        texts.pairs,
        islice(batches, count),
        count,
        arm.loss(pairs.training),
        run.settings,
        look,
        tempering=arm.tempering,
        points=points,
    )
    if len(batches.batches) < count:
        raise InputError(f"arm {run.arm!r}: {len(batches.batches)} batches of {count}; the set is too small for it")
    return curve, batches


def _mean(result: Result) -> float:
    return float(result.scores.mean(dtype=np.float64))


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


@lru_cache(maxsize=1)
def texts_of(pairs: PairSet, kind: Kind) -> Texts:
    """Tokenise each different text of a set once."""
    training, held_out = pairs.training, pairs.held_out
    tokens, (queries, documents, asked, corpus) = tokenise_once(
        kind, training.queries, training.documents, held_out.queries, held_out.documents
    )
    return Texts(tokens=tokens, pairs=(queries, documents), held_out=(asked, corpus))


def scorer(pairs: PairSet, kind: Kind, *, dev: bool) -> Callable[[nn.Module], NDArray[np.float32]]:
    """Return what scores a model on the queries that choose settings, or on those that test."""
    texts, asked = texts_of(pairs, kind), pairs.held_out.places(dev)
    relevant = [pairs.held_out.relevant[place] for place in asked]

    def score(model: nn.Module) -> NDArray[np.float32]:
        queries, documents = embed(model, texts.held_out[0][asked]), embed(model, texts.held_out[1])
        return ndcg(best_documents(queries, documents), relevant)

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
