"""Train again on what came since; promote the models if they pass the gate."""

from pathlib import Path

from batchwright.core.errors import InputError
from batchwright.core.files import read_json
from batchwright.core.lock import alone
from batchwright.core.params import load_params
from batchwright.formats.runs import Runs
from project.retrain.describe import describe
from project.retrain.gate import Verdict, judge
from project.retrain.message import Outcome, tell
from project.retrain.params import RetrainParams, retrain_params
from project.retrain.preflight import preflight
from project.retrain.refs import publish, publish_candidate
from project.retrain.repository import CANDIDATE, DEPLOYED, LOCK, Upstream, commit_own, locked, promoted, revision
from project.retrain.snapshot import snapshot
from project.retrain.sync import sync
from project.retrain.tools import dvc, git


def main() -> Outcome:
    """Retrain, tell what came of it, and return that.

    Whatever stops it, the next call goes on: nothing is published by halves, DVC remembers finished stages, and
    unfinished ones their parts.

    Raises:
        InputError: it failed, or it is running already.
    """
    with alone("retrain"):
        try:
            outcome = _retrain()
        except BaseException as error:
            tell(Outcome("failed", str(error) or type(error).__name__))
            raise
        tell(outcome)
        return outcome


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
    _say("comparing with what is deployed")
    verdicts = _judge(models, revision(at.branch_ref(DEPLOYED)), limits)
    if failed := [verdict for verdict in verdicts if verdict.failed]:
        return Outcome("rejected", f"{len(failed)} of {len(verdicts)} comparisons failed\n{describe(verdicts)}")
    _say("publishing")
    return _publish(at, describe(verdicts), limits)


def _models(limits: RetrainParams) -> list[str]:
    runs = list(load_params("runs", Runs).root)
    for name in limits.models or []:
        if name not in runs:
            raise InputError(f"params.yaml: retrain.models names '{name}', which is not in runs: {', '.join(runs)}")
    return limits.models or runs


def _judge(models: list[str], deployed: str | None, limits: RetrainParams) -> list[Verdict]:
    # Imported here: it brings PyTorch, which a night without news does not need.
    from project.retrain.score import gone, score

    return judge(score(models, deployed), gone(deployed), limits)


def _publish(at: Upstream, found: str, limits: RetrainParams) -> Outcome:
    dvc("push", "--quiet")
    commit = commit_own(f"Retrained on {_pairs():,} pairs\n\n{found}")
    if limits.review:
        publish_candidate(at, commit)
        return Outcome("promoted", f"branch {CANDIDATE} is ready for review\n{found}")
    name = publish(at, commit)
    git("reset", "--quiet", "--soft", commit)
    return Outcome("promoted", f"{name} is deployed\n{found}")


def _pairs() -> int:
    domains = read_json(Path("results/ingest.json"), made_by="ingest")["domains"]
    return sum(domain[split] for domain in domains.values() for split in ("train", "dev", "test"))


def _say(text: str) -> None:
    print(f"retrain: {text}", flush=True)
