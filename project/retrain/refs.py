"""Publish commits: move the remote's branches and tags."""

from project.retrain.repository import CANDIDATE, DEPLOYED, Upstream, promoted, revision, tag
from project.retrain.tools import git


def publish(at: Upstream, commit: str) -> str:
    """Push ``commit`` to its branch, as the next promotion, and as what is deployed: all of it or nothing.

    Return the promotion's name.
    """
    name = tag(max(promoted(), default=0) + 1)
    _push(at, DEPLOYED, commit, f"{commit}:refs/heads/{at.branch}", f"{commit}:refs/tags/{name}")
    return name


def publish_candidate(at: Upstream, commit: str) -> None:
    """Push ``commit`` for review."""
    _push(at, CANDIDATE, commit)


def deploy(at: Upstream, commit: str) -> None:
    """Make a commit that was promoted before the deployed one."""
    _push(at, DEPLOYED, commit)


def _push(at: Upstream, branch: str, commit: str, *others: str) -> None:
    """Move ``branch`` to ``commit``, unless somebody else has moved it since it was fetched."""
    known = revision(at.branch_ref(branch)) or ""
    lease = f"--force-with-lease=refs/heads/{branch}:{known}"
    git("push", "--quiet", "--atomic", lease, at.remote, f"{commit}:refs/heads/{branch}", *others)
