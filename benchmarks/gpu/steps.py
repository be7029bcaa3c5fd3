"""What steps cost, ours and those of sentence-transformers in turn, with a new batch in each."""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.gpu.corpus import Form, base_start, write_shards
from benchmarks.gpu.lengths import Lengths
from benchmarks.gpu.machine import matrix_rate
from benchmarks.gpu.measure import (
    Result,
    Task,
    allocated_mib,
    allocation_retries,
    failure,
    peak_mib,
    reset_peak,
    seconds_of,
)
from benchmarks.gpu.training import TEMPERATURE, Trainer, ours, plan, read, theirs
from trainers.common.job import TrainJob
from trainers.variants import load_variant

FASTER, FASTER_COMPILED, SHARE, DEARER = 1.3, 2, 0.5, 1.55
LEAST = 3
OURS, THEIRS, CDE = "biencoder, auto", "sentence-transformers, cached", "cde, auto"


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Contenders by name, each with what it has of its own of ``train.common``, that train on the same batches.

    ``size`` is the most tokens of a text and the pairs of a batch; with ``mixed``, texts are as long as real ones.
    """

    name: str
    size: tuple[int, int]
    mixed: bool
    contenders: Sequence[str]
    common: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """As in the table."""
        return f"{self.name}: {self.size[0]} tokens, batch {self.size[1]}"


FIXED, PADDED, COMPILED = "biencoder, fixed", "biencoder, padded", "biencoder, compiled"
BY_TOKENS, UNCACHED = "sentence-transformers, cached by tokens", "sentence-transformers, not cached"
OWN: Mapping[str, Mapping[str, Any]] = {
    FIXED: {},
    COMPILED: {"mini_batch_size": "auto", "compile": True},
    PADDED: {"mini_batch_size": "auto", "attention": "padded"},
    OURS: {"mini_batch_size": "auto"},
    CDE: {"mini_batch_size": "auto"},
}


def settings(form: Form) -> list[Setting]:
    """What to measure, the most important first."""
    mixed = partial(Setting, size=form.usual, mixed=True)
    equal = partial(Setting, mixed=False)
    fast = (OURS, COMPILED, CDE) if form.compiles else (OURS, CDE)
    return [
        mixed(name="mixed", contenders=(*fast, PADDED, THEIRS, BY_TOKENS)),
        equal(name="equal", size=form.usual, contenders=(*fast, THEIRS)),
        equal(name="long", size=form.long, contenders=(OURS, THEIRS, CDE)),
        mixed(name="few", size=form.few, contenders=(OURS, THEIRS, UNCACHED)),
        mixed(name="fixed", contenders=(OURS, FIXED)),
        mixed(name="not cached", contenders=(OURS, UNCACHED)),
        mixed(name="dropout .1", contenders=(OURS, THEIRS), common={"dropout": 0.1}),
    ]


def steps(
    form: Form,
    folder: Path,
    lengths: Lengths,
    chosen: Sequence[str] | None = None,
    contenders: Sequence[str] | None = None,
) -> Iterator[Task]:
    """Measure the settings, or those ``chosen`` by name, with their ``contenders``, or some of them."""
    for setting in settings(form):
        if chosen is None or setting.name in chosen:
            some = [each for each in setting.contenders if contenders is None or each in contenders]
            setting = replace(setting, contenders=some)
            yield Task("steps", setting.title, partial(_compare, form, folder, lengths, setting))


def job_of(form: Form, folder: Path, lengths: Lengths, setting: Setting) -> TrainJob:
    """Write the batches of a setting, and plan a training on them."""
    cut, size = setting.size
    shards = folder / f"shards-{cut}-{size}-{'mixed' if setting.mixed else 'equal'}"
    if not shards.exists():
        write_shards(shards, form.warm + form.timed, size, cut, lengths if setting.mixed else None)
    job = plan("biencoder", base_start(folder, form), shards, max(form.chunk_tokens // cut, 1))
    return replace(job, info=job.info.model_copy(update={"max_length": cut}))


def build(form: Form, job: TrainJob, setting: Setting, contender: str) -> Trainer:
    """Load the model of a contender, ready to train."""
    if contender == CDE:
        options = {"temperature": TEMPERATURE, "context_documents": form.context, "context_dropout": 0}
        job = replace(job, name="cde", variant="cde", params=load_variant("cde").Params.model_validate(options))
    common = job.common.model_copy(update={**setting.common, **OWN.get(contender, {})})
    job = replace(job, common=common)
    if contender in OWN:
        return ours(job, bf16=True)
    by_tokens = form.chunk_tokens if contender == BY_TOKENS else None
    return theirs(job, bf16=True, cache=contender != UNCACHED, by_tokens=by_tokens)


class Runner:
    """Takes steps of a contender on one batch after the other, and times those after the ``warm`` first ones.

    ``mib`` is the most memory that the first ones needed, without what other contenders hold.
    """

    def __init__(self, name: str, job: TrainJob, make: Callable[[], Trainer], warm: int) -> None:
        reset_peak()
        before = allocated_mib()
        self.name, self._job, self._next = name, job, 0
        self._trainer = make()
        self.first, self.loss = self.step()
        for _ in range(warm - 1):
            self.step()
        self.mib = peak_mib() - before
        self.seconds: list[float] = []
        self._retries = allocation_retries()

    def step(self) -> tuple[float, float]:
        """Train on the next batch: seconds, without those for its tokens, and the loss."""
        prepared = self._trainer.prepare(read(self._job, self._next))
        self._next += 1
        self._trainer.kernels.use()
        losses: list[float] = []
        return seconds_of(lambda: losses.append(self._trainer.step(prepared))), losses[0]

    def timed(self) -> None:
        """Take a step that counts."""
        seconds, self.loss = self.step()
        self.seconds.append(seconds)

    @property
    def median(self) -> float:
        """Of the steps that count."""
        return statistics.median(self.seconds)

    @property
    def retries(self) -> int:
        """How often a step of any contender had to free cached memory of the GPU to get some."""
        return allocation_retries() - self._retries


def _compare(form: Form, folder: Path, lengths: Lengths, setting: Setting) -> Iterator[Result]:
    """Warm the contenders up one after the other, and let them take steps in turn."""
    job, runners = job_of(form, folder, lengths, setting), list[Runner]()
    for name in setting.contenders:
        try:
            runner = Runner(name, job, partial(build, form, job, setting, name), form.warm)
        except Exception as error:
            yield failure(name, setting.title, error)
            continue
        runners.append(runner)
        yield Result(name, setting.title, "seconds of the first step", runner.first)
        yield Result(name, setting.title, "MiB", runner.mib)
    yield from _in_turn(form, setting, runners)
    yield from _told(form, setting, job, [runner for runner in runners if runner.seconds])


def _in_turn(form: Form, setting: Setting, runners: list[Runner]) -> Iterator[Result]:
    end = time.monotonic() + form.seconds
    for number in range(form.timed):
        if number >= LEAST and time.monotonic() > end:
            return
        for runner in list(runners):
            try:
                runner.timed()
            except Exception as error:
                runners.remove(runner)
                yield failure(runner.name, setting.title, error)


def _told(form: Form, setting: Setting, job: TrainJob, runners: Sequence[Runner]) -> Iterator[Result]:
    work = _work(form, job)
    ours_ = next((runner for runner in runners if runner.name == OURS), None)
    for runner in runners:
        told = partial(Result, runner.name, setting.title)
        quartiles = statistics.quantiles(runner.seconds, n=4, method="inclusive")
        yield told("seconds, median", runner.median)
        yield told("seconds, lower quartile", quartiles[0])
        yield told("seconds, upper quartile", quartiles[2])
        yield told("timed steps", len(runner.seconds))
        yield told("retries of allocations", runner.retries)
        yield told("pairs per second", setting.size[1] / runner.median)
        yield told("loss", runner.loss)
        if runner.name != CDE:
            share = work / runner.median / matrix_rate(form.matrix, form.matrix, form.matrix)
            aim = f"at least {SHARE}" if runner.name == COMPILED and not setting.mixed else ""
            yield told("share of the matrix rate, one forward and backward of real tokens", share, aim)
    if ours_:
        for runner in runners:
            yield from _ratios(setting, ours_, runner, runners)


def _ratios(setting: Setting, ours_: Runner, runner: Runner, runners: Sequence[Runner]) -> Iterator[Result]:
    told = partial(Result, runner.name, setting.title)
    if runner.name == CDE:
        yield told("times the biencoder's step", runner.median / ours_.median, f"at most {DEARER}")
        return
    if runner.name not in OWN:
        return
    if runner is not ours_:
        yield told("times as fast as auto", ours_.median / runner.median)
    for other in runners:
        if other.name not in OWN:
            faster = {OURS: FASTER, COMPILED: FASTER_COMPILED}.get(runner.name) if other.name == THEIRS else None
            aim = f"at least {faster}" if faster and (setting.mixed or runner is ours_) else ""
            yield told(f"times as fast as {other.name}", other.median / runner.median, aim)


def _work(form: Form, job: TrainJob) -> float:
    """Operations of a batch's forward and backward pass, without padding and without encoding anything twice."""
    batches = [read(job, number) for number in range(form.warm, form.warm + form.timed)]
    texts = [text for batch in batches for text in batch.queries + batch.documents]
    return 3 * sum(form.base.operations(len(text.split()) + 2) for text in texts) / len(batches)
