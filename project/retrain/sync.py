"""Take over what others pushed."""

from pathlib import Path

from batchwright.core.errors import InputError
from project.retrain.repository import LOCK, Upstream
from project.retrain.tools import dvc, git


def sync(at: Upstream) -> None:
    """Bring the branch up to date with the remote's, and the data that its new commits changed.

    What an earlier retraining wrote and did not commit gives way to what was pushed; DVC remembers its runs.

    Raises:
        InputError: both have commits that the other lacks, or a file of ``raw/`` was changed here and there.
    """
    ours, theirs = map(int, git("rev-list", "--count", "--left-right", f"HEAD...{at.ref}").split())
    if ours and theirs:
        raise InputError(f"this branch and {at.remote}/{at.branch} have both gone on; run: git pull --rebase")
    if not theirs:
        return
    pushed = set(_names("diff", "--name-only", "--relative", "-z", "HEAD", at.ref))
    git("reset", "--quiet")
    for file in pushed & set(_names("diff", "--name-only", "--relative", "-z", "HEAD")):
        if _made_by_retraining(file):
            git("checkout", "--quiet", "HEAD", "--", file)
    for file in pushed & set(_names("ls-files", "--others", "--exclude-standard", "-z")):
        if _made_by_retraining(file):
            Path(file).unlink()
    git("merge", "--quiet", "--ff-only", at.ref)
    if data := [file for file in sorted(pushed) if file.endswith(".dvc") and Path(file).exists()]:
        dvc("pull", "--quiet", *data)


def _made_by_retraining(file: str) -> bool:
    return file == LOCK or file.startswith("results/") or Path(file).suffix == ".dvc" or Path(file).name == ".gitignore"


def _names(*arguments: str) -> list[str]:
    return [name for name in git(*arguments).split("\0") if name]
