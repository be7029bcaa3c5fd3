"""Train again on what came since, promote the models if they pass the gate, and tell what came of it."""

import json
import os
import sys
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from batchwright.core.command import alone
from batchwright.core.errors import InputError
from batchwright.core.files import read_json, write_json
from batchwright.core.params import load_params
from batchwright.core.runtime import scratch
from batchwright.formats.runs import Run, Runs
from project.retrain.gate import RetrainParams, Verdict, describe, gained, judge, retrain_params
from project.retrain.prepare import preflight, snapshot, sync
from project.retrain.publish import publish, push
from project.retrain.record import Record, Since
from project.retrain.repository import (
    CANDIDATE,
    DEPLOYED,
    LOCK,
    REJECTED,
    Upstream,
    commit_own,
    dvc,
    git,
    locked,
    promoted,
    revision,
    unstage,
)

CODES = {"promoted": 0, "failed": 1, "nothing new": 3, "rejected": 4}
"""Exit codes; 2 is that of a wrong command line."""
_TIMEOUT = 20


class Outcome(NamedTuple):
    """How a retraining ended."""

    kind: Literal["promoted", "failed", "nothing new", "rejected"]
    text: str

    @property
    def code(self) -> int:
        """The exit code."""
        return CODES[self.kind]


def retrain() -> str:
    """Retrain, tell what came of it, and return that; unless it is a promotion, print it and exit with its code.

    Whatever stops it, the next call goes on: nothing is published by halves, DVC remembers finished stages, and
    unfinished ones their parts.

    Raises:
        InputError: it failed, or it is running already.
    """
    with alone("retrain"):
        try:
            outcome = _retrain()
        except BaseException as error:
            _tell(Outcome("failed", str(error) or type(error).__name__))
            raise
        _tell(outcome)
    text = f"retrain: {outcome.kind}: {outcome.text}"
    if outcome.code:
        print(text)
        sys.exit(outcome.code)
    return text


def _retrain() -> Outcome:
    _say("checking remotes, sources and disk")
    limits = retrain_params()
    models = _models(limits)
    at = preflight()
    sync(at)
    _say("taking in what came since")
    snapshot()
    dvc("repro", "--pull")
    # Not the deployed commit: after a roll-back, the same is not promoted again.
    handled = [*list(promoted().values())[-1:], revision(at.branch_ref(CANDIDATE))]
    if Path(LOCK).read_text(encoding="utf-8").rstrip("\n") in [locked(commit) for commit in handled]:
        return Outcome("nothing new", "nothing has changed since the last promotion or candidate")
    deployed = revision(at.branch_ref(DEPLOYED))
    record = Record.of_tonight(deployed, limits.model_dump(mode="json"))
    if record.asks_the_same_as(Record.of(revision(at.branch_ref(REJECTED)))):
        return Outcome("nothing new", f"nothing has changed since it was rejected; the branch {REJECTED} says why")
    _say("comparing with what is deployed")
    before = Record.of(deployed)
    since = before.since if before else {}
    verdicts = _judge(models, deployed, limits, since)
    if failed := [verdict for verdict in verdicts if verdict.failed]:
        return _reject(at, f"{len(failed)} of {len(verdicts)} comparisons failed\n{describe(verdicts)}", record)
    _say("publishing")
    return _publish(at, describe(verdicts), record._replace(since=gained(verdicts, since, limits)), limits)


def _models(limits: RetrainParams) -> dict[str, Run]:
    runs = load_params("runs", Runs).root
    for name in limits.models or []:
        if name not in runs:
            raise InputError(f"params.yaml: retrain.models names '{name}', which is not in runs: {', '.join(runs)}")
    return {name: runs[name] for name in limits.models or runs}


def _judge(
    models: Mapping[str, Run], deployed: str | None, limits: RetrainParams, since: Mapping[str, Since]
) -> list[Verdict]:
    # Imported here: it brings PyTorch, which a night without news does not need.
    from project.retrain.score import gone, score

    return judge(score(models, deployed, limits.baselines), gone(deployed), limits, since)


def _reject(at: Upstream, why: str, record: Record) -> Outcome:
    """Push what was rejected as a branch, where people and later nights see it; its data and models stay here."""
    record.write()
    commit = commit_own(f"Rejected\n\n{why}")
    unstage()
    push(at, REJECTED, commit)
    return Outcome("rejected", why)


def _publish(at: Upstream, comparisons: str, record: Record, limits: RetrainParams) -> Outcome:
    dvc("push", "--quiet")
    record.write()
    commit = commit_own(f"Retrained on {_pairs():,} pairs\n\n{comparisons}")
    if limits.review:
        push(at, CANDIDATE, commit)
        return Outcome("promoted", f"branch {CANDIDATE} is ready for review\n{comparisons}")
    name = publish(at, commit)
    git("reset", "--quiet", "--soft", commit)
    return Outcome("promoted", f"{name} is deployed\n{comparisons}")


def _pairs() -> int:
    domains = read_json(Path("results/ingest.json"), made_by="ingest")["domains"]
    return sum(domain[split] for domain in domains.values() for split in ("train", "dev", "test"))


def _say(text: str) -> None:
    print(f"retrain: {text}", flush=True)


def _tell(outcome: Outcome) -> None:
    """Write ``.scratch/retrain/message.json``, and post the same to ``BATCHWRIGHT_WEBHOOK`` if that is set.

    The key ``text`` is what chat programs show. A webhook that does not answer changes nothing.
    """
    message = {"outcome": outcome.kind, "exit_code": outcome.code, "text": f"{outcome.kind}: {outcome.text}"}
    write_json(scratch("retrain") / "message.json", message)
    if not (url := os.environ.get("BATCHWRIGHT_WEBHOOK")):
        return
    try:
        if not url.startswith(("http://", "https://")):
            raise ValueError("expected a URL that begins with http:// or https://")
        request = urllib.request.Request(url, json.dumps(message).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=_TIMEOUT):
            pass
    except (OSError, ValueError) as error:
        print(f"warning: BATCHWRIGHT_WEBHOOK: the message could not be sent: {error}", file=sys.stderr)
