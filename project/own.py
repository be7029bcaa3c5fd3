"""A project of one's own: made by ``batchwright init``, brought up to date by ``batchwright upgrade``.

It has parameters, data and results, but no code: ``dvc.yaml`` runs the stages that are installed.
"""

import re
import shlex
import shutil
from pathlib import Path

from batchwright.core.atomic import atomic_file
from batchwright.core.errors import InputError
from batchwright.core.files import read_json, write_json
from batchwright.core.fingerprint import file_sha256
from batchwright.core.params import PARAMS_FILE, read_params
from project.pipeline import DIGESTS, PIPELINE, code_digests, looped_groups, project_pipeline, root_file
from project.programs import dvc, git

TEMPLATE = Path(__file__).with_name("template")
_COPIED_ONCE = (".gitignore", ".dvcignore", ".dvc/config")
_RENEWED = (".dvc/hydra.yaml", ".dvc/plots", "profiles/current.yaml", "requirements.lock")


def init(folder: Path) -> str:
    """Make a project in ``folder``, a git repository with DVC; return what to do next.

    Raises:
        InputError: the folder holds something else.
    """
    if folder.exists() and any(entry.name != ".git" for entry in folder.iterdir()):
        raise InputError(f"{folder}: is not empty; name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / ".git").exists():
        git("init", "--quiet", "--initial-branch", "main", cwd=folder)
    dvc("init", "--quiet", quiet=True, cwd=folder)
    for name in _COPIED_ONCE:
        _copy(root_file(name), folder / name)
    for notes in root_file("raw").glob("*/README.md"):
        _copy(notes, folder / "raw" / notes.parent.name / notes.name)
    shutil.copytree(TEMPLATE, folder, dirs_exist_ok=True)
    _write_pipeline(folder)
    git("add", ".", cwd=folder)
    enter = f"cd {shlex.quote(str(folder))}"
    steps = enter, "batchwright add FILE    your pairs; it estimates how long training takes", "dvc repro"
    ready = f"{folder} is ready. Next:" + "".join(f"\n  {step}" for step in steps)
    return f"{ready}\n{_hide(folder)}".rstrip()


def _hide(folder: Path) -> str:
    """Let a git repository around the project overlook it, which it could not take in; return what was done."""
    above = folder.resolve().parent
    try:
        root = Path(git("rev-parse", "--show-toplevel", cwd=above))
    except InputError:
        return ""
    exclude = above / git("rev-parse", "--git-path", "info/exclude", cwd=above)
    line = "/" + re.sub(r"([\\*?[])", r"\\\1", folder.resolve().relative_to(root).as_posix()) + "/"
    lines = exclude.read_text(encoding="utf-8").splitlines() if exclude.exists() else []
    if line not in lines:
        exclude.parent.mkdir(parents=True, exist_ok=True)
        exclude.write_text("\n".join([*lines, line]) + "\n", encoding="utf-8")
    return (
        f"It lies in the git repository {root}, but is one of its own: commit and push it by itself. {exclude} has "
        f"the line {line} now, so that git add leaves it out there."
    )


def upgrade(folder: Path = Path()) -> str:
    """Renew what a project has from Batchwright; return which stages will run again.

    Raises:
        InputError: there is no project here, or its dvc.yaml was changed by hand.
    """
    if not (folder / DIGESTS).exists():
        raise InputError(f"{folder / DIGESTS}: no such file; run this in a project that batchwright init made")
    before = read_json(folder / DIGESTS, made_by="")
    if file_sha256(folder / PIPELINE) != before[PIPELINE]:
        raise InputError(
            f"{PIPELINE}: was changed by hand; put stages of your own into a folder with its own {PIPELINE}, "
            f"and undo the change: git checkout {PIPELINE}"
        )
    _write_pipeline(folder)
    added = _add_groups(folder / PARAMS_FILE)
    after = read_json(folder / DIGESTS, made_by="")
    changed = [name for name in after if name != PIPELINE and after[name] != before.get(name)]
    told = f"; {PARAMS_FILE} has new, empty groups: {', '.join(added)}" if added else ""
    if not changed:
        return f"up to date; no stage has changed{told}"
    return (
        f"these stages have changed, and run again with dvc repro: {', '.join(changed)}{told}; commit the files first"
    )


def _add_groups(params: Path) -> list[str]:
    """Add the groups whose entries are stages, without which DVC cannot read the pipeline, and return their names."""
    there = read_params(params)
    missing = {name: empty for name, empty in looped_groups().items() if name not in there}
    if missing:
        lines = [f"{name}: {empty}\n" for name, empty in missing.items()]
        text = params.read_text(encoding="utf-8").rstrip("\n")
        with atomic_file(params) as temporary:
            temporary.write_text("\n\n".join([text, *lines]), encoding="utf-8")
    return list(missing)


def _write_pipeline(folder: Path) -> None:
    """Write what a project has from the installed Batchwright, and nothing of its own."""
    for name in _RENEWED:
        _copy(root_file(name), folder / name)
    with atomic_file(folder / PIPELINE) as temporary:
        temporary.write_text(project_pipeline(root_file(PIPELINE).read_text(encoding="utf-8")), encoding="utf-8")
    write_json(folder / DIGESTS, {**code_digests(), PIPELINE: file_sha256(folder / PIPELINE)})


def _copy(source: Path, target: Path) -> None:
    """Copy a file or a folder to ``target``, replacing what is there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copyfile(source, target)
