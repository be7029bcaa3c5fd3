"""Publish and deploy: move the remote's branches and tags."""

from pathlib import Path

from batchwright.core.errors import InputError
from project.programs import dvc, git
from project.retrain.repository import DEPLOYED, Upstream, fetch, promoted, revision, tag, upstream


def promote(name: str | None) -> str:
    """Deploy the current commit without a gate, or the promotion ``name``, such as ``promoted-3``, again.

    Raises:
        InputError: nothing was made, files are changed and not committed, or there is no such promotion.
    """
    at = upstream()
    fetch(at)
    if name is None:
        if not Path("dvc.lock").exists():
            raise InputError(
                "dvc.lock: no such file, so there is nothing to deploy; run dvc repro and commit what it wrote"
            )
        if changed := git("diff", "--name-only", "HEAD").splitlines():
            more = f" and {len(changed) - 1} more" if changed[1:] else ""
            raise InputError(
                f"{changed[0]}{more}: changed and not committed, as after a night that was rejected or failed; commit "
                "them to deploy them, too, or undo it: git checkout ."
            )
        dvc("push", quiet=True)
        return f"{publish(at, git('rev-parse', 'HEAD'))} is deployed"
    known = {tag(number): commit for number, commit in promoted().items()}
    if name not in known:
        raise InputError(f"no promotion '{name}'; known: {', '.join(known) or 'none'}")
    push(at, DEPLOYED, known[name])
    return f"{name} is deployed again"


def roll_back() -> str:
    """Deploy what was promoted before the deployed commit.

    Raises:
        InputError: nothing is deployed, or nothing was promoted before it.
    """
    at = upstream()
    fetch(at)
    current = revision(at.branch_ref(DEPLOYED))
    if current is None:
        raise InputError("nothing is deployed yet")
    known = promoted()
    numbers = [number for number, commit in known.items() if commit == current]
    earlier = [number for number in known if numbers and number < numbers[0]]
    if not earlier:
        raise InputError("nothing was promoted before what is deployed now")
    push(at, DEPLOYED, known[earlier[-1]])
    return f"{tag(earlier[-1])} is deployed again"


def publish(at: Upstream, commit: str) -> str:
    """Push ``commit`` to its branch, as the next promotion, and as what is deployed: all of it or nothing.

    Return the promotion's name.
    """
    name = tag(max(promoted(), default=0) + 1)
    push(at, DEPLOYED, commit, f"{commit}:refs/heads/{at.branch}", f"{commit}:refs/tags/{name}")
    return name


def push(at: Upstream, branch: str, commit: str, *others: str) -> None:
    """Move ``branch`` to ``commit``, unless somebody else has moved it since it was fetched."""
    known = revision(at.branch_ref(branch)) or ""
    lease = f"--force-with-lease=refs/heads/{branch}:{known}"
    git("push", "--quiet", "--atomic", lease, at.remote, f"{commit}:refs/heads/{branch}", *others)
