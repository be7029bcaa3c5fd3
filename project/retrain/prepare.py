"""Before hours are spent: check what must be there, take over what others pushed, and take in what came since."""

import json
import os
import platform
import shutil
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import yaml

from batchwright.core.errors import InputError
from batchwright.core.params import PARAMS_FILE
from batchwright.core.paths import PIPELINE, RAW
from batchwright.core.runtime import scratch_root
from batchwright.core.storage import check_disk
from project.programs import dvc, git
from project.retrain.repository import (
    CANDIDATE,
    DEPLOYED,
    LOCK,
    RECORD,
    Upstream,
    fetch,
    foreign_changes,
    revision,
    unstage,
    upstream,
)
from stages.params.check import check_params

_LOCKS = Path(".dvc/tmp/rwlock")
_DAY = 24 * 3600
_DVC = ".dvc"
"""What the names of DVC's pointers end with."""


def preflight() -> Upstream:
    """Check the folder, both remotes, the links of ``raw/`` and the disk; return where to publish.

    Raises:
        InputError: something is missing; the message says what to do.
    """
    if not Path(PIPELINE).exists():
        raise InputError(f"{PIPELINE}: no such file in {Path.cwd()}; run this in the project folder")
    check_params(PARAMS_FILE)
    _remove_broken_lock()
    git("var", "GIT_COMMITTER_IDENT")  # a commit needs a name
    at = upstream()
    if changed := foreign_changes():
        raise InputError(
            f"{changed[0]}: is changed and not committed; commit it and push, or undo it: git checkout {changed[0]}"
        )
    fetch(at)
    _check_dvc_remote()
    for link in (path for path in RAW.rglob("*") if path.is_symlink() and not path.exists()):
        raise InputError(f"{link}: the file that it links to, {link.readlink()}, is not there")
    _check_imports()
    _check_disk()
    return at


def _remove_broken_lock() -> None:
    """Remove the list of locks that a killed DVC left half written: DVC refuses to read it until it is gone."""
    for wait in (1.0, 0.0):  # a DVC that runs has written it a second later
        try:
            json.loads(_LOCKS.read_bytes())
        except FileNotFoundError:
            return
        except ValueError:
            time.sleep(wait)
        else:
            return
    _LOCKS.unlink(missing_ok=True)


def _check_dvc_remote() -> None:
    # Imported here: it takes a second, and not every command needs it.
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    with Repo() as repo:
        name = repo.config["core"].get("remote")
        if not name:
            raise InputError(
                "DVC has no default remote, so models could not be published; see dvc remote add --default"
            )
        try:
            remote = repo.cloud.get_remote(name)
            there = remote.fs.exists(remote.path)
        except (DvcException, OSError) as error:
            raise InputError(f"DVC's remote {name} cannot be reached: {error}") from None
        if not there and remote.fs.protocol == "local":
            raise InputError(f"DVC's remote {name}: no folder {remote.path}; make it, or mount its disk")


def _check_imports() -> None:
    """Check that what was imported is on this machine: a pointer names the place that it had where it was imported."""
    for pointer in filter(_is_import, _pointers()):
        for source in yaml.safe_load(pointer.read_text(encoding="utf-8"))["deps"]:
            path = source["path"]
            if (
                source.keys().isdisjoint({"repo", "remote"})
                and "://" not in path
                and not (pointer.parent / path).exists()
            ):
                raise InputError(
                    f"{pointer}: imports {path}, which is not on {platform.node()}; bring it there, or import it from "
                    f"another place: dvc import-url --force PATH {pointer.with_suffix('')}"
                )


def _check_disk() -> None:
    """Check that there is as much room as all outputs of the last run take: each may be made anew."""
    if not Path(LOCK).exists():
        return
    stages = yaml.safe_load(Path(LOCK).read_text(encoding="utf-8")).get("stages", {})
    needed = sum(out.get("size", 0) for stage in stages.values() for out in stage.get("outs", []))
    for folder in (Path.cwd(), scratch_root()):
        check_disk({folder: needed}, "a run")


def clean(at: Upstream, days: float) -> None:
    """Remove from the cache what no file here and no commit of the last so many days has, and older unfinished work.

    What is deployed and what waits for a person stay, too: ``days`` goes back at least as far as they do.
    """
    current = [commit for branch in (DEPLOYED, CANDIDATE) if (commit := revision(at.branch_ref(branch)))]
    made = [float(git("show", "--no-patch", "--format=%ct", commit)) for commit in current]
    since = min([time.time() - days * _DAY, *made])
    day = date.fromtimestamp(since).isoformat()  # of the local time, as DVC reads it
    dvc("gc", "--workspace", "--date", day, "--force", quiet=True)
    for work in scratch_root().glob("*/*"):
        if work.is_dir() and _last_change(work) < since:
            shutil.rmtree(work)


def _last_change(folder: Path) -> float:
    """When something in a folder last changed, in seconds since 1970."""
    return max(path.lstat().st_mtime for path in [folder, *folder.rglob("*")])


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
    unstage()
    for file in pushed & set(_names("diff", "--name-only", "--relative", "-z", "HEAD")):
        if _made_by_retraining(file):
            git("checkout", "--quiet", "HEAD", "--", file)
    for file in pushed & set(_names("ls-files", "--others", "--exclude-standard", "-z")):
        if _made_by_retraining(file):
            Path(file).unlink()
    git("merge", "--quiet", "--ff-only", at.ref)
    if data := [file for file in sorted(pushed) if file.endswith(".dvc") and Path(file).exists()]:
        dvc("pull", *data, quiet=True)


def _made_by_retraining(file: str) -> bool:
    return (
        file in (LOCK, RECORD)
        or file.startswith("results/")
        or Path(file).suffix == ".dvc"
        or Path(file).name == ".gitignore"
    )


def _names(*arguments: str) -> list[str]:
    return [name for name in git(*arguments).split("\0") if name]


def snapshot() -> None:
    """Bring imports up to date, and add new and changed files.

    Links to files elsewhere become imports (``dvc import-url``), since a commit must hold its data. Where they lie
    beside the project, paths are relative, so that another machine finds them beside its own. What git tracks is left
    to git.
    """
    links = [path for path in _entries() if path.is_symlink()]
    for link in links:
        target = link.resolve()
        beside = target.is_relative_to(Path.cwd().parent)
        if git("ls-files", "--", str(link)):
            git("rm", "--quiet", "--cached", "--", str(link))
        dvc(
            "import-url",
            "--force",
            os.path.relpath(target, link.parent.resolve()) if beside else str(target),
            str(link),
            quiet=True,
        )
    pointers = _pointers()
    imports = [pointer for pointer in pointers if _is_import(pointer)]
    missing = [pointer for pointer in pointers if pointer not in imports and not pointer.with_suffix("").exists()]
    if imports:
        dvc("update", *map(str, imports), quiet=True)
    if missing:
        dvc("pull", *map(str, missing), quiet=True)
    new = [path for path in _entries() if Path(f"{path}{_DVC}") not in imports and not git("ls-files", "--", str(path))]
    if new:
        dvc("add", *map(str, new), quiet=True)


def _entries() -> Iterator[Path]:
    """Files and folders in the folders of ``raw/``."""
    for path in sorted(RAW.glob("*/*")):
        if not path.name.startswith(".") and path.name != "README.md" and path.suffix != _DVC:
            yield path


def _pointers() -> list[Path]:
    return sorted(RAW.rglob(f"*{_DVC}"))


def _is_import(pointer: Path) -> bool:
    return "deps" in yaml.safe_load(pointer.read_text(encoding="utf-8"))
