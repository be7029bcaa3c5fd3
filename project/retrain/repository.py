"""The project's git repository: what is deployed, and what came of each night.

The branch ``deployed`` is what production follows. The tags ``promoted-1``, ``promoted-2``, ... are what it pointed to.
"""

import shutil
from pathlib import Path
from typing import NamedTuple

from batchwright.core.errors import InputError
from batchwright.core.runtime import scratch
from project.programs import dvc, git

DEPLOYED = "deployed"
CANDIDATE = "candidate"
REJECTED = "rejected"
_TAG = "promoted-"
LOCK = "dvc.lock"
RECORD = "retrain.json"
_OWN = (LOCK, RECORD, "results/", "raw/")
"""What retraining changes and commits."""


class Upstream(NamedTuple):
    """The remote branch that the current one follows."""

    remote: str
    branch: str

    @property
    def ref(self) -> str:
        """The local name of the remote branch."""
        return f"refs/remotes/{self.remote}/{self.branch}"

    def branch_ref(self, branch: str) -> str:
        """The local name of another branch of the same remote."""
        return f"refs/remotes/{self.remote}/{branch}"


def upstream() -> Upstream:
    """Return what the current branch follows.

    Raises:
        InputError: this is no git repository, no branch is checked out, or it follows none.
    """
    branch = git("branch", "--show-current")
    if not branch:
        raise InputError("no branch is checked out; run: git switch main")
    remote = _setting(f"branch.{branch}.remote")
    merge = _setting(f"branch.{branch}.merge")
    if not remote or not merge:
        raise InputError(
            f"branch {branch} follows no remote branch, so nothing could be published; "
            f"run: git remote add origin URL && git push --set-upstream origin {branch}"
        )
    return Upstream(remote, merge.removeprefix("refs/heads/"))


def fetch(at: Upstream) -> None:
    """Learn what the remote has: branches, and which tags are on it."""
    git("fetch", "--quiet", "--prune", "--tags", "--force", at.remote)


def revision(ref: str) -> str | None:
    """Return the commit that ``ref`` points to, or None."""
    return git("for-each-ref", "--format=%(objectname)", ref) or None


def show(commit: str | None, file: str) -> str | None:
    """Return the text of a commit's file, or None if there is none."""
    if commit is None or not git("ls-tree", "--name-only", commit, "--", file):
        return None
    return git("show", f"{commit}:./{file}")


def locked(commit: str | None) -> str | None:
    """Return ``dvc.lock`` of a commit, or None."""
    return show(commit, LOCK)


def locked_now() -> str:
    """Return ``dvc.lock`` as it is now, as ``locked`` does."""
    return Path(LOCK).read_text(encoding="utf-8").rstrip("\n")


def copy_of(artifact: Path, commit: str) -> Path:
    """Return a copy of a commit's artifact, out of DVC's cache or remote."""
    copy = scratch("retrain") / "deployed" / artifact
    if copy.exists():
        shutil.rmtree(copy)
    copy.parent.mkdir(parents=True, exist_ok=True)
    dvc("get", ".", str(artifact), "--rev", commit, "--out", str(copy), quiet=True)
    return copy


def promoted() -> dict[int, str]:
    """Return the commits that were promoted, by number, in order."""
    lines = git("for-each-ref", "--format=%(refname:strip=2) %(objectname)", f"refs/tags/{_TAG}*").splitlines()
    tags = {name.removeprefix(_TAG): commit for name, commit in map(str.split, lines)}
    return dict(sorted((int(number), commit) for number, commit in tags.items() if number.isdecimal()))


def tag(number: int) -> str:
    """Return the name of a promotion."""
    return f"{_TAG}{number}"


def foreign_changes() -> list[str]:
    """Return files that are changed and not committed, but for those that retraining commits itself."""
    prefix = git("rev-parse", "--show-prefix")  # of this folder, if it is not the top of the repository
    lines = git("status", "--porcelain", "--no-renames", "--untracked-files=all", "-z").split("\0")
    files = [line[3:].removeprefix(prefix) for line in lines if line[3:].startswith(prefix) and line]
    return [file for file in files if not file.startswith(_OWN)]


def commit_own(message: str) -> str:
    """Return a commit of what retraining changed, on top of the current one; no branch points to it yet.

    So a crash before it is published leaves nothing behind that would have to be undone.
    """
    there = [path for path in _OWN if git("ls-files", "--cached", "--others", "--exclude-standard", "--", path)]
    git("add", "--all", "--", *there)
    tree = git("write-tree")
    if tree == git("rev-parse", "HEAD^{tree}"):
        return git("rev-parse", "HEAD")
    return git("commit-tree", tree, "-p", "HEAD", "-m", message)


def unstage() -> None:
    """Let the index be as HEAD is; files stay as they are."""
    git("reset", "--quiet")


def _setting(key: str) -> str:
    return git("config", "--default", "", "--get", key)
