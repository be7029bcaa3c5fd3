"""What must be there before hours are spent."""

import json
import shutil
import time
from pathlib import Path

import yaml

from batchwright.core.errors import InputError
from batchwright.core.names import check_names
from batchwright.core.params import PARAMS_FILE
from batchwright.core.paths import PIPELINE, RAW
from batchwright.core.runtime import scratch_root
from project.retrain.repository import LOCK, Upstream, fetch, foreign_changes, upstream
from project.retrain.tools import git

_LOCKS = Path(".dvc/tmp/rwlock")


def preflight() -> Upstream:
    """Check the folder, both remotes, the links of ``raw/`` and the disk; return where to publish.

    Raises:
        InputError: something is missing; the message says what to do.
    """
    if not Path(PIPELINE).exists():
        raise InputError(f"{PIPELINE}: no such file in {Path.cwd()}; run this in the project folder")
    check_names(PARAMS_FILE)
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


def _check_disk() -> None:
    """Check that there is as much room as all outputs of the last run take: each may be made anew."""
    if not Path(LOCK).exists():
        return
    stages = yaml.safe_load(Path(LOCK).read_text(encoding="utf-8")).get("stages", {})
    needed = sum(out.get("size", 0) for stage in stages.values() for out in stage.get("outs", []))
    for folder in (Path.cwd(), scratch_root()):
        free = shutil.disk_usage(folder if folder.exists() else Path.cwd()).free
        if free < needed:
            raise InputError(
                f"{folder}: {free / 1e9:.1f} GB are free, and a run may need {needed / 1e9:.1f}; free some, "
                "such as by: dvc gc --workspace"
            )
