"""Where the time of a step goes: how much of it the GPU is busy, with which kernels, and what the host does."""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from torch.autograd import DeviceType  # type: ignore[attr-defined]
from torch.profiler import ProfilerActivity, profile

from batchwright.core.files import write_tsv
from benchmarks.gpu.corpus import Form
from benchmarks.gpu.lengths import Lengths
from benchmarks.gpu.measure import Result, Task, failure, seconds_of
from benchmarks.gpu.steps import OURS, THEIRS, Setting, build, job_of, settings
from benchmarks.gpu.training import Trainer, read
from trainers.common.job import TrainJob, training_device

MOST, LONGEST_NAME = 10, 160
COMPARED = ("mixed", "equal")


class Profiles:
    """Steps of ours and of theirs; what takes most of their time goes to ``file``."""

    def __init__(self, form: Form, folder: Path, lengths: Lengths, file: Path) -> None:
        self._form, self._folder, self._lengths, self._file = form, folder, lengths, file
        self._rows: list[dict[str, str | int | float]] = []

    def tasks(self, names: Sequence[str] | None, contenders: Sequence[str] | None) -> Iterator[Task]:
        """Profile one contender after the other, in the settings of these ``names``."""
        chosen = [setting for setting in settings(self._form) if setting.name in (names or COMPARED)]
        for contender in contenders or (OURS, THEIRS):
            title = " and ".join(setting.name for setting in chosen)
            yield Task("profile", f"{title}: {contender}", partial(self._profile, chosen, contender))

    def _profile(self, chosen: Sequence[Setting], contender: str) -> Iterator[Result]:
        trainer: Trainer | None = None
        for setting in chosen:
            job = job_of(self._form, self._folder, self._lengths, setting)
            trainer = trainer or build(self._form, job, setting, contender)
            title = f"{setting.title}: {contender}"
            try:
                yield from self._steps(job, trainer, title)
            except Exception as error:
                yield failure("profile", title, error)

    def _steps(self, job: TrainJob, trainer: Trainer, title: str) -> Iterator[Result]:
        prepared = [trainer.prepare(read(job, number)) for number in range(4)]
        trainer.kernels.use()
        for each in prepared[:2]:
            trainer.step(each)
        if training_device() == "cuda":
            yield from self._on_device(trainer, prepared[2], title)
        yield from self._on_host(trainer, prepared[3], title)

    def _on_device(self, trainer: Trainer, prepared: Any, title: str) -> Iterator[Result]:
        """Look at the kernels alone: to look at the host as well would slow it down."""
        with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as traced:
            seconds = seconds_of(partial(trainer.step, prepared))
        kernels = [each for each in traced.events() if _on_gpu(each)]
        spans = [(each.time_range.start / 1e6, each.time_range.end / 1e6) for each in kernels]
        busy = covered(spans)
        told = partial(Result, "profile", title)
        yield told("seconds of a step", seconds)
        yield told("kernels and copies", len(kernels))
        yield told("seconds in which the GPU is busy", busy)
        yield told("share of the step in which the GPU is busy", busy / seconds)
        times, calls = Counter[str](), Counter[str](each.name for each in kernels)
        for each, (start, end) in zip(kernels, spans, strict=True):
            times[each.name] += end - start
        self._keep(title, "kernel", times, calls)

    def _on_host(self, trainer: Trainer, prepared: Any, title: str) -> Iterator[Result]:
        with profile(activities=[ProfilerActivity.CPU], acc_events=True) as traced:
            seconds = seconds_of(partial(trainer.step, prepared))
        operators = traced.key_averages()
        times = Counter({each.key: each.self_cpu_time_total / 1e6 for each in operators})
        yield Result("profile", title, "seconds of a step whose operators are traced", seconds)
        yield Result("profile", title, "seconds in traced operators", sum(times.values()))
        self._keep(title, "operator", times, Counter({each.key: each.count for each in operators}))

    def _keep(self, title: str, kind: str, seconds: Counter[str], calls: Counter[str]) -> None:
        for name, spent in heapq.nlargest(MOST, seconds.items(), key=lambda each: each[1]):
            counted = {"calls": calls[name], "milliseconds": round(1e3 * spent, 3)}
            self._rows.append({"setting": title, "kind": kind, **counted, "name": name[:LONGEST_NAME]})
        write_tsv(self._file, self._rows)


def _on_gpu(event: Any) -> bool:
    return event.device_type == DeviceType.CUDA and not getattr(event, "is_user_annotation", False)


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """Return the length of the union of intervals."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(end - max(start, reached), 0)
        reached = max(reached, end)
    return total
