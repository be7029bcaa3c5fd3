"""The project's git repository: git and DVC as a person would run them, and what is deployed.

The branch ``deployed`` is what production follows. The tags ``promoted-1``, ``promoted-2``, ... are what it pointed to.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from batchwright.core.command import end_with_parent
from batchwright.core.errors import InputError
from batchwright.core.runtime import scratch

DEPLOYED = "deployed"
CANDIDATE = "candidate"
REJECTED = "rejected"
_TAG = "promoted-"
LOCK = "dvc.lock"
RECORD = "retrain.json"
_OWN = (LOCK, RECORD, "results/", "raw/")
"""What retraining changes and commits."""
_LAST_LINES, _LAST_SHOWN = 100, 5
_STAGE = re.compile(r"Running stage '(?P<name>.+)':|Updating lock file")
"""What DVC says when a stage begins, or has ended."""
_UNCHANGED = "didn't change, skipping"
_FAILED = "ERROR: failed to reproduce"
_PATIENCE = 60
"""Seconds that a program has to end after it was told to."""


def git(*arguments: str) -> str:
    """Run git and return what it printed.

    Raises:
        InputError: it failed; the message has what it said.
    """
    process = _started("git", *arguments, stderr=subprocess.PIPE)
    try:
        output, errors = process.communicate()
    finally:
        _end(process)
    if process.returncode:
        raise InputError(f"git {arguments[0]} failed: {' '.join(errors.split())}")
    return output.rstrip("\n")


def dvc(*arguments: str, quiet: bool = False, begins: Callable[[str], None] | None = None) -> None:
    """Run DVC, and show what it prints while it does, unless ``quiet``; ``begins`` is told the name of each stage.

    DVC's own ``--quiet`` would also hide why it fails.

    Raises:
        InputError: it failed; the message has the stage, and what that or DVC said.
    """
    said: list[str] = []
    stage = ""
    process = _started("dvc", *arguments, stderr=subprocess.STDOUT)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if not quiet:
                print(line, end="", flush=True)
            if running := _STAGE.match(line):
                said, stage = [], running["name"] or ""
                if begins and stage:
                    begins(f"stage {stage}")
                continue
            if line.strip() and not line.rstrip().endswith(_UNCHANGED):
                said = [*said, line.strip()][-_LAST_LINES:]
        code = process.wait()
    finally:
        _end(process)
    if code:
        where = f" in stage {stage}" if stage else ""
        raise InputError(f"dvc {arguments[0]} failed{where}: {_reason(said)}")


def _reason(said: list[str]) -> str:
    """Return of the last lines of DVC and a stage those of the stage's own error, or else the last ones."""
    errors = [place for place, line in enumerate(said) if ": error: " in line]
    own = [line for line in said[errors[-1] :] if not line.startswith(_FAILED)] if errors else said[-_LAST_SHOWN:]
    return " | ".join(own)


def _started(*command: str, stderr: int) -> "subprocess.Popen[str]":
    """Start a program in a process group of its own, so that its stages end with it, and it with this process."""
    environment = {**os.environ, "PATH": _path(), "GIT_TERMINAL_PROMPT": "0"}
    try:
        return subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            process_group=0,
            preexec_fn=end_with_parent,
        )
    except FileNotFoundError:
        raise InputError(f"{command[0]} is not installed; retraining needs git, and pip install dvc") from None


def _path() -> str:
    """Return the search path, with this environment's programs: those of cron lack them."""
    programs, paths = str(Path(sys.executable).parent), os.environ.get("PATH", "").split(os.pathsep)
    return os.pathsep.join(paths if programs in paths else [programs, *paths])


def _end(process: "subprocess.Popen[str]") -> None:
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


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
