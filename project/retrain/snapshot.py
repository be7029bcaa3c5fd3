"""Take what came since into DVC: what lies in ``raw/``, and what it was imported from."""

from collections.abc import Iterator
from pathlib import Path

import yaml

from batchwright.core.paths import RAW
from project.retrain.tools import dvc, git

_DVC = ".dvc"


def snapshot() -> None:
    """Bring imports up to date, and add new and changed files.

    Links to files elsewhere become imports (``dvc import-url``), since a commit must hold its data. What git tracks is
    left to git.
    """
    links = [path for path in _entries() if path.is_symlink()]
    for link in links:
        target = str(link.resolve())
        if git("ls-files", "--", str(link)):
            git("rm", "--quiet", "--cached", "--", str(link))
        dvc("import-url", "--quiet", "--force", target, str(link))
    pointers = sorted(RAW.rglob(f"*{_DVC}"))
    imports = [pointer for pointer in pointers if _is_import(pointer)]
    missing = [pointer for pointer in pointers if pointer not in imports and not pointer.with_suffix("").exists()]
    if imports:
        dvc("update", "--quiet", *map(str, imports))
    if missing:
        dvc("pull", "--quiet", *map(str, missing))
    own = [path for path in _entries() if Path(f"{path}{_DVC}") not in imports and not git("ls-files", "--", str(path))]
    if own:
        dvc("add", "--quiet", *map(str, own))


def _entries() -> Iterator[Path]:
    """Files and folders in the folders of ``raw/``."""
    for path in sorted(RAW.glob("*/*")):
        if not path.name.startswith(".") and path.name != "README.md" and path.suffix != _DVC:
            yield path


def _is_import(pointer: Path) -> bool:
    return "deps" in yaml.safe_load(pointer.read_text(encoding="utf-8"))
