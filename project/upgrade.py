"""``batchwright upgrade``: a project takes over the Batchwright that is installed now."""

import shutil
from pathlib import Path

from batchwright.core.atomic import atomic_file
from batchwright.core.errors import InputError
from batchwright.core.files import read_json, write_json
from batchwright.core.fingerprint import file_sha256
from batchwright.home import code_root
from project.code import FILE, digests
from project.pipeline import project_pipeline

PIPELINE = "dvc.yaml"
_COPIED = (".dvc/hydra.yaml", ".dvc/plots", ".dvc/vega.html", "profiles/current.yaml", "requirements.lock")


def main(folder: Path) -> str:
    """Renew what a project has from Batchwright; return which stages will run again.

    Raises:
        InputError: there is no project here, or its dvc.yaml was changed by hand.
    """
    if not (folder / FILE).exists():
        raise InputError(f"{folder / FILE}: no such file; run this in a project that batchwright init made")
    before = read_json(folder / FILE, made_by="")
    if file_sha256(folder / PIPELINE) != before[PIPELINE]:
        raise InputError(
            f"{PIPELINE}: was changed by hand; put stages of your own into a folder with its own {PIPELINE}, "
            f"and undo the change: git checkout {PIPELINE}"
        )
    write_pipeline(folder)
    after = read_json(folder / FILE, made_by="")
    changed = [name for name in after if name != PIPELINE and after[name] != before.get(name)]
    if not changed:
        return "up to date; no stage has changed"
    return f"these stages have changed, and run again with dvc repro: {', '.join(changed)}; commit the files first"


def write_pipeline(folder: Path) -> None:
    """Write what a project has from the installed Batchwright, and nothing of its own."""
    for name in _COPIED:
        copy(code_root() / name, folder / name)
    with atomic_file(folder / PIPELINE) as temporary:
        text = (code_root() / PIPELINE).read_text(encoding="utf-8")
        temporary.write_text(project_pipeline(text), encoding="utf-8")
    write_json(folder / FILE, {**digests(), PIPELINE: file_sha256(folder / PIPELINE)})


def copy(source: Path, target: Path) -> None:
    """Copy a file or a folder to ``target``, replacing what is there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copyfile(source, target)
