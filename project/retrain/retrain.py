"""Train again on what came since, promote the models if they pass the gate, and tell what came of it."""

import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal

from batchwright.core.command import alone
from batchwright.core.errors import InputError
from batchwright.core.params import load_params
from batchwright.core.paths import PAIRS
from batchwright.formats.runs import Run, Runs
from project.programs import dvc, git
from project.retrain.drift import LAST, Figures, drift, figures, locked_data, newest_doubtful
from project.retrain.gate import RetrainParams, Verdict, describe, gained, judge, retrain_params
from project.retrain.message import Message, Outcome
from project.retrain.prepare import clean, preflight, snapshot, sync
from project.retrain.publish import publish, push
from project.retrain.record import Record, Since
from project.retrain.repository import (
    CANDIDATE,
    DEPLOYED,
    REJECTED,
    Upstream,
    commit_own,
    copy_of,
    locked,
    locked_now,
    promoted,
    revision,
    unstage,
)

_MOST_HOURS = 10_000
_AGAIN = 600
"""Seconds after which the limit stops again what went on in spite."""


def retrain(hours: float | None = None) -> str:
    """Retrain, tell what came of it, and return that; unless it is a promotion, print it and exit with its code.

    Whatever stops it, the next call goes on: nothing is published by halves, DVC remembers finished stages, and
    unfinished ones their parts.

    Raises:
        InputError: it failed, it took more than ``hours``, or it is running already.
    """
    if hours is not None and not 0 < hours < _MOST_HOURS:
        raise InputError(f"--hours {hours:g}: give more than 0, and less than {_MOST_HOURS:,}")
    with alone("retrain"), Message() as message:
        try:
            with _at_most(hours):
                outcome = _retrain(message)
        except BaseException as error:
            message.tell(Outcome("failed", str(error) or "interrupted or terminated"))
            raise
        message.tell(outcome)
    text = f"retrain: {outcome.kind}: {outcome.text}"
    if outcome.code:
        print(text)
        sys.exit(outcome.code)
    return text


@contextmanager
def _at_most(hours: float | None) -> Iterator[None]:
    """Stop the block after so many hours; what it has started ends with it."""

    def stop(number: int, frame: object) -> None:  # noqa: ARG001
        raise InputError(f"it took more than --hours {hours:g}; run it again to go on")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, (hours or 0) * 3600, _AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _retrain(message: Message) -> Outcome:
    message.at("checking remotes, sources and disk")
    limits = retrain_params()
    models = _models(limits)
    at = preflight()
    sync(at)
    if limits.keep_days is not None:
        message.at("removing old data and models")
        clean(at, limits.keep_days)
    message.at("taking in what came since")
    snapshot()
    message.at("making what has changed")
    dvc("repro", "--pull", LAST, begins=message.in_stage)
    deployed = revision(at.branch_ref(DEPLOYED))
    # Beside the deployed commit: after a roll-back, the same is not promoted again.
    handled = [*list(promoted().values())[-1:], revision(at.branch_ref(CANDIDATE))]
    before = Record.of(deployed)
    data, changes = _look(before, deployed, handled, limits)
    if changes and before and limits.drift.action == "stop" and not _differ("params", deployed):
        record = Record.of_tonight(deployed, limits.model_dump(mode="json"), data)
        why = "the data have changed more than retrain.drift allows, so nothing was trained"
        then = "if it is meant, set retrain.drift.action to warn"
        return _rejected_before(at, record) or _reject(at, "\n".join([why, *changes, then]), record)
    dvc("repro", "--pull", begins=message.in_stage)
    if locked_now() in map(locked, handled):
        return Outcome("nothing new", "nothing has changed since the last promotion or candidate")
    record = Record.of_tonight(deployed, limits.model_dump(mode="json"), data)
    if rejected := _rejected_before(at, record):
        return rejected
    message.at("comparing with what is deployed")
    since = before.since if before else {}
    verdicts, notes = _judge(models, deployed, limits, since)
    told = "\n".join([describe(verdicts), *notes, *(f"data: {line}" for line in changes)])
    if failed := [verdict for verdict in verdicts if verdict.failed]:
        return _reject(at, f"{len(failed)} of {len(verdicts)} comparisons failed\n{told}", record)
    message.at("publishing")
    return _publish(at, told, record._replace(since=gained(verdicts, since, limits)), limits)


def _look(
    before: Record | None, deployed: str | None, handled: Sequence[str | None], limits: RetrainParams
) -> tuple[Figures, list[str]]:
    """Return the figures of tonight's data, and how they differ from those ``before``, unless they were handled."""
    if before and not _differ("outs", deployed):
        return before.data, []
    data = figures()
    if not deployed or any(not _differ("outs", commit) for commit in handled):
        return data, []
    if before is None:  # a person deployed it
        return data, ["the deployed commit has no record of its night to compare with"]

    def doubtful(domain: str) -> str:
        return newest_doubtful(domain, copy_of(PAIRS, deployed))

    return data, drift(before.data, data, limits.drift, doubtful)


def _differ(what: Literal["outs", "params"], commit: str | None) -> bool:
    """Whether the stages of the data have other outputs, or parameters, than in a commit."""
    return locked_data(locked_now(), what) != locked_data(locked(commit), what)


def _rejected_before(at: Upstream, record: Record) -> Outcome | None:
    """Return that there is nothing new, if the same was rejected by the same limits: no second alert."""
    if not record.asks_the_same_as(Record.of(revision(at.branch_ref(REJECTED)))):
        return None
    return Outcome("nothing new", f"nothing has changed since it was rejected; the branch {REJECTED} says why")


def _models(limits: RetrainParams) -> dict[str, Run]:
    runs = load_params("runs", Runs).root
    for name in limits.models or []:
        if name not in runs:
            raise InputError(f"params.yaml: retrain.models names '{name}', which is not in runs: {', '.join(runs)}")
    return {name: runs[name] for name in limits.models or runs}


def _judge(
    models: Mapping[str, Run], deployed: str | None, limits: RetrainParams, since: Mapping[str, Since]
) -> tuple[list[Verdict], list[str]]:
    # Imported here: it brings PyTorch, which a night without news does not need.
    from project.retrain.score import score

    scored, notes = score(models, deployed, limits.baselines)
    return judge(scored, limits, since), notes


def _reject(at: Upstream, why: str, record: Record) -> Outcome:
    """Push what was rejected as a branch, where people and later nights see it; its data and models stay here."""
    if record.deployed:
        why = f"{why}\nsee what came with it: git diff --stat {at.remote}/{DEPLOYED} {at.remote}/{REJECTED}"
    record.write()
    commit = commit_own(f"Rejected\n\n{why}")
    unstage()
    push(at, REJECTED, commit)
    return Outcome("rejected", why, commit)


def _publish(at: Upstream, comparisons: str, record: Record, limits: RetrainParams) -> Outcome:
    dvc("push", quiet=True)
    record.write()
    pairs = sum(domain["pairs"] for domain in record.data["domains"].values())
    commit = commit_own(f"Retrained on {pairs:,} pairs\n\n{comparisons}")
    if limits.review:
        push(at, CANDIDATE, commit)
        return Outcome("promoted", f"branch {CANDIDATE} is ready for review\n{comparisons}", commit)
    name = publish(at, commit)
    git("reset", "--quiet", "--soft", commit)
    return Outcome("promoted", f"{name} is deployed\n{comparisons}", commit)
