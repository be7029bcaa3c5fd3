"""The last run: what git's last commit has of results, parameters and ``dvc.lock``."""

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from batchwright.core.params import PARAMS_FILE
from batchwright.core.paths import RESULTS

LOCK = Path("dvc.lock")

Content = Mapping[str, str]
"""The text of files, by path."""


def read_now() -> dict[str, str]:
    """Return the files that tell what a run was given and what it found, as they are now."""
    files = [PARAMS_FILE, LOCK, *sorted(RESULTS.rglob("*.json"))]
    return {str(file): file.read_text(encoding="utf-8") for file in files if file.is_file()}


def read_committed() -> dict[str, str]:
    """Return the same files as the last commit has them; none without git, a commit, or these files in it."""
    listed = _git("ls-tree", "-r", "--name-only", "HEAD", str(PARAMS_FILE), str(LOCK), f"{RESULTS}/") or ""
    names = [name for name in listed.splitlines() if name.endswith((".json", PARAMS_FILE.name, LOCK.name))]
    return {name: _git("show", f"HEAD:./{name}") or "" for name in names}


def flat(values: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves of nested maps with their keys joined by points; lists are leaves."""
    if isinstance(values, dict) and values:
        for key, value in values.items():
            yield from flat(value, f"{prefix}.{key}" if prefix else str(key))
    else:
        yield prefix, values


def inputs(lock: str) -> dict[str, dict[str, Any]]:
    """Return the hashes of each stage's inputs in ``dvc.lock``, by path."""
    stages = (yaml.safe_load(lock) or {}).get("stages", {})
    return {
        name: {each["path"]: each.get("md5") or each.get("hash") for each in stage.get("deps", [])}
        for name, stage in stages.items()
    }


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, encoding="utf-8", check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout
